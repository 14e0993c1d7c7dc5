"""The law at the end, recomputed from the rows of the file alone and compared with what was logged outside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from tests.simulation.invariants import Law
from tests.simulation.model import ACKED, DEAD, LEASED, WAITING
from tests.simulation.outside import Outside
from tests.simulation.together import FENCED

ONCE = {"keyed", "once"}  # for a message and all its replays


def final_law(database: Path, law: Law, outside: Outside) -> str | None:
    """What is wrong with the file, or None."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        for check in (_sound, _conserved, _nothing_lost, _effects_once, _counted_right):
            broken = check(connection, law)
            if broken is not None:
                return broken
        return _answered_right(law, outside)
    finally:
        connection.close()


def _sound(connection: apsw.Connection, law: Law) -> str | None:
    answer = connection.execute("pragma quick_check").fetchall()
    return None if answer == [("ok",)] else f"quick_check: {answer}"


def _conserved(connection: apsw.Connection, law: Law) -> str | None:
    there: dict[str, tuple[int, int]] = {
        queue: (count, size)
        for queue, count, size in connection.execute(
            "select queue, count(*), sum(length(body)) from penstock_messages group by queue"
        )
    }
    dead = dict(connection.execute("select queue, count(*) from penstock_dead where resolution is null group by queue"))
    counted: list[Any] = connection.execute(
        "select queue, sum(sent), sum(acked), sum(dead), sum(purged), sum(expired), sum(bytes) from penstock_counters "
        "group by queue"
    ).fetchall()
    fed = {queue for queue, shown in law.counts.shown.items() if shown["sent"]}
    if set(there) | set(dead) | fed != {queue for queue, *_ in counted}:
        return f"queues with counters: {counted}; with messages: {sorted(fed)}"
    for queue, sent, acked, died, purged, expired, size in counted:
        rows, body_bytes = there.get(queue, (0, 0))
        if sent != acked + rows + dead.get(queue, 0) + purged + expired:
            return f"{queue}: sent {sent} is not acked {acked} + rows {rows} + dead {died} + {purged} + {expired}"
        if died != dead.get(queue, 0):
            return f"{queue}: counted {died} dead letters and has {dead.get(queue, 0)}"
        if size != body_bytes:
            return f"{queue}: counted {size} bytes and has {body_bytes}"
    return None


def _nothing_lost(connection: apsw.Connection, law: Law) -> str | None:
    here = {(bytes(id), handler) for id, handler in connection.execute("select id, handler from penstock_messages")}
    dead = {(bytes(id), handler) for id, handler in connection.execute("select id, handler from penstock_dead")}
    for order in law.orders.values():
        missing = [key for id, key in zip(order.ids, order.keys, strict=False) if id not in law.by_id]
        if order.fate == "confirmed" and missing:
            return f"{missing} was confirmed and never came"
        if order.fate == "refused" and order.saved:
            return f"{order.keys} was refused and came all the same"
    for row in law.rows.values():
        if row.name not in here and row.state in (WAITING, LEASED):
            return f"{row.key} is {row.state} and in no table"
        if row.name not in dead and row.state == DEAD:
            return f"{row.key} is dead and has no letter"
    return None


def _effects_once(connection: apsw.Connection, law: Law) -> str | None:
    """A settlement's effects are there once; what is keyed, once for a message and all its replays."""
    keyed: Counter[tuple[bytes, str, str]] = Counter()
    found: Counter[tuple[bytes, str, str]] = Counter()
    for raw, handler, kind, count in connection.execute(
        "select id, handler, kind, count(*) from effects group by id, handler, kind"
    ):
        id = bytes(raw)
        if kind == "late":
            return f"{law.rows[(id, handler)].key} saved what it wrote after it was settled"
        if kind == "producer":
            if count != 1:
                return f"{id.decode()} was saved {count} times"
        elif kind in ONCE:
            keyed[(law.rows[(id, handler)].origin, handler, kind)] += count
        elif kind not in FENCED:
            found[(id, handler, kind)] = count
    for (id, handler, kind), count in keyed.items():
        if count != 1:
            return f"{law.rows[(id, handler)].key} has {count} effects {kind}"
    for id, handler, kind in sorted(found.keys() | law.kept.keys()):
        if (count := found[(id, handler, kind)]) != (kept := law.kept[(id, handler, kind)]):
            return f"{law.rows[(id, handler)].key} has {count} effects {kind}, and {kept} is right"
    for row in law.rows.values():
        if row.state == ACKED and not row.bare and found[(*row.name, "done")] < 1:
            return f"{row.key} is acked and has no effect"
    return None


def _counted_right(connection: apsw.Connection, law: Law) -> str | None:
    for id, handler, attempts, crashes in connection.execute(
        "select id, handler, attempts, crashes from penstock_dead"
    ):
        row = law.rows[(bytes(id), handler)]
        if row.state != DEAD:
            return f"{row.key} is {row.state} and has a dead letter"
        if attempts != row.charged or attempts > row.queue.retries + 1:
            return (
                f"{row.key} has {attempts} attempts; {row.charged} failures were charged, {row.queue.retries} retries"
            )
        if crashes != row.crashes:
            return f"{row.key} has {crashes} crashes, and {row.crashes} were counted"
    return None


def _answered_right(law: Law, outside: Outside) -> str | None:
    """Those outside were told what happened: whose message was the first of its key, whose hand dealt with a letter."""
    for orders in law.wanted.values():
        saved = [order for order in orders if order.keyed and order.saved]
        first = [order for order in saved if order.fate == "confirmed" and not order.duplicate]
        if saved and len(first) != 1 and not (not first and any(order.fate == "killed" for order in saved)):
            return f"{saved[0].keys} was sent {len(saved)} times, and {len(first)} were told to be the first"
    if outside.told > law.dealt_with or (outside.told < law.dealt_with and not outside.unheard):
        return f"operators were told of {outside.told} letters, and {law.dealt_with} were dealt with"
    return None
