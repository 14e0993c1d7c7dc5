"""The law of runs at the end, read from the rows of the file alone and compared with what was logged outside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import msgspec

from tests.simulation.runs.invariants import RunsLaw
from tests.simulation.runs.judge import Judge
from tests.simulation.runs.model import COMPLETE, ENDED, TERMINATED, Record
from tests.simulation.runs.outside import Outside

RUNS = "select key, workflow, id, state, input, result, error, generation from penstock_runs"
STEPS = """
select position, name, kind, state, attempts, due, result, error
from penstock_steps
where run = ?
"""
COUNTED = """
select queue, sum(sent), sum(acked), sum(dead), sum(purged), sum(expired), sum(bytes)
from penstock_counters
group by queue
"""


def final_law(database: Path, law: RunsLaw, outside: Outside) -> str | None:
    """What is wrong with the file, or None."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        for check in (_sound, _conserved, _ended, _effects_once):
            broken = check(connection, law)
            if broken is not None:
                return broken
        return _started_right(connection, law, outside)
    finally:
        connection.close()


def _sound(connection: apsw.Connection, law: RunsLaw) -> str | None:
    answer = connection.execute("pragma quick_check").fetchall()
    return None if answer == [("ok",)] else f"quick_check: {answer}"


def _conserved(connection: apsw.Connection, law: RunsLaw) -> str | None:
    there = dict(connection.execute("select queue, count(*) from penstock_messages group by queue"))
    dead = dict(connection.execute("select queue, count(*) from penstock_dead where resolution is null group by queue"))
    if there:
        return f"messages are left: {there}"
    for queue, sent, acked, died, purged, expired, size in connection.execute(COUNTED):
        if sent != acked + died + purged + expired or died != dead.get(queue, 0) or size:
            return f"{queue}: sent {sent}, acked {acked}, dead {died}, purged {purged}, expired {expired}, {size} bytes"
    return None


def _ended(connection: apsw.Connection, law: RunsLaw) -> str | None:
    """Each run has ended as its shape says, from what it has recorded."""
    rows: list[Any] = connection.execute(RUNS).fetchall()
    ids = {bytes(key): id for key, _, id, *_ in rows}
    if ids != {key: run.id for key, run in law.runs.items()}:
        return f"there are the runs {sorted(ids.values())}, and {sorted(law.by_id)} were begun"
    for key, workflow, id, state, given, result, error, generation in rows:
        run = law.runs[bytes(key)]
        if (workflow, state, generation) != (run.plan.name, run.state, run.generation):
            return f"{id} is {state} in generation {generation}, and was made {run.state} in {run.generation}"
        if state not in ENDED:
            return f"{id} is {state}"
        if state == TERMINATED:
            continue
        records = [Record(*row) for row in connection.execute(STEPS, (key,))]
        judge = Judge(run.plan.shape, {record.name: record for record in records})
        value = judge.value(msgspec.json.decode(given)["value"])
        if judge.problems:
            return f"{id}: {judge.problems}"
        if state == COMPLETE and (value is None or bytes(result) != b"%d" % value or run.plan.fails):
            return f"{id} came to {result!r}, and {value} is right"
        if state != COMPLETE and not (judge.doomed or run.mourned or (run.plan.fails and value is not None)):
            return f"{id} failed: {error}"
    return None


def _effects_once(connection: apsw.Connection, law: RunsLaw) -> str | None:
    """Each step that was saved has its effect once in each generation, and each of its messages was handled."""
    found: Counter[tuple[str, str, int]] = Counter()
    for id, step, generation, count in connection.execute(
        "select id, handler, token, count(*) from effects where kind = 'step' group by id, handler, token"
    ):
        found[(bytes(id).decode(), step, generation)] = count
    twice = [what for what, count in found.items() if count != 1]
    if twice or found != law.effects:
        return f"effects that are there twice: {twice}; or not as they were saved: {found - law.effects}"
    if law.sent != law.got:
        return f"steps sent {law.sent - law.got}, which nobody got, or got {law.got - law.sent}"
    return None


def _started_right(connection: apsw.Connection, law: RunsLaw, outside: Outside) -> str | None:
    orders = {bytes(id).decode() for (id,) in connection.execute("select id from effects where kind = 'order'")}
    for order, id in outside.confirmed:
        if id not in law.by_id or order not in orders:
            return f"{order} was confirmed, and {id} is not there"
    came = [order for order in outside.refused if order in orders]
    return f"{came} was refused and came all the same" if came else None
