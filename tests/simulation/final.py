"""The law at the end, recomputed from the rows of the file alone and compared with what was logged outside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from tests.simulation.law import Law
from tests.simulation.model import ACKED, DEAD
from tests.simulation.transaction import DONE, KEEPS_EFFECTS


def final_law(database: Path, law: Law) -> str | None:
    """What is wrong with the file, or None."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        for check in (_sound, _conserved, _nothing_lost, _effects_once, _counted_right):
            broken = check(connection, law)
            if broken is not None:
                return broken
        return None
    finally:
        connection.close()


def _sound(connection: apsw.Connection, law: Law) -> str | None:
    answer = connection.execute("pragma quick_check").fetchall()
    return None if answer == [("ok",)] else f"quick_check: {answer}"


def _conserved(connection: apsw.Connection, law: Law) -> str | None:
    waiting = dict(connection.execute("select queue, count(*) from penstock_messages group by queue"))
    dead = dict(connection.execute("select queue, count(*) from penstock_dead where resolution is null group by queue"))
    counted: list[Any] = connection.execute(
        "select queue, sum(sent), sum(acked), sum(dead), sum(purged), sum(expired) from penstock_counters group by queue"
    ).fetchall()
    if set(waiting) | set(dead) | set(law.inserted) != {queue for queue, *_ in counted}:
        return f"queues with counters: {counted}; with messages: {sorted(law.inserted)}"
    for queue, sent, acked, died, purged, expired in counted:
        rows = waiting.get(queue, 0) + dead.get(queue, 0)
        if sent != acked + rows + purged + expired:
            return f"{queue}: sent {sent} is not acked {acked} + rows {rows} + purged {purged} + expired {expired}"
        if died != dead.get(queue, 0):
            return f"{queue}: counted {died} dead letters and has {dead.get(queue, 0)}"
        if sent != law.inserted[queue]:
            return f"{queue}: counted {sent} sent, and {law.inserted[queue]} were"
    return None


def _nothing_lost(connection: apsw.Connection, law: Law) -> str | None:
    there = {bytes(id) for (id,) in connection.execute("select id from penstock_messages")}
    there |= {bytes(id) for (id,) in connection.execute("select id from penstock_dead")}
    for order in law.orders.values():
        missing = [key for id, key in zip(order.ids, order.keys, strict=True) if id not in law.rows]
        if order.fate == "confirmed" and missing:
            return f"{missing} was confirmed and never came"
        if order.fate == "refused" and len(missing) < len(order.ids):
            return f"{order.keys} was refused and came all the same"
    for row in law.rows.values():
        if row.state != ACKED and row.id not in there:
            return f"{row.key} is {row.state} and in no table"
    return None


def _effects_once(connection: apsw.Connection, law: Law) -> str | None:
    found: Counter[tuple[bytes, str]] = Counter()
    for id, kind, count in connection.execute("select id, kind, count(*) from effects group by id, kind"):
        found[(bytes(id), kind)] = count
    answers: Counter[tuple[bytes, str]] = Counter()  # how often a handler's answer that keeps effects was saved
    for run in law.runs.values():
        if run.outcome in KEEPS_EFFECTS - DONE:
            for kind in run.effects:
                answers[(run.row.id, kind)] += 1
    for (id, kind), count in found.items():
        row = law.rows[id]
        if kind == "late":
            return f"{row.key} saved what it wrote after it was settled"
        if kind in ("producer", "keyed", "once") and count != 1:
            return f"{row.key} has {count} effects {kind}"
        if kind in ("done", "more") and count > (row.state == ACKED) + answers[(id, kind)]:
            return f"{row.key} is {row.state} and has {count} effects {kind}"
    for row in law.rows.values():
        if row.state == ACKED and found[(row.id, "done")] < 1:
            return f"{row.key} is acked and has no effect"
    return None


def _counted_right(connection: apsw.Connection, law: Law) -> str | None:
    for id, attempts, crashes in connection.execute("select id, attempts, crashes from penstock_dead"):
        row = law.rows[bytes(id)]
        if row.state != DEAD:
            return f"{row.key} is {row.state} and has a dead letter"
        if attempts != row.charged or attempts > row.queue.retries + 1:
            return (
                f"{row.key} has {attempts} attempts; {row.charged} failures were charged, {row.queue.retries} retries"
            )
        if crashes != row.crashes:
            return f"{row.key} has {crashes} crashes, and {row.crashes} were counted"
    return None
