"""A look at the whole database for the standard points: what waits, what cron tasks did, what the month has cost.

One process at a time looks, once in five minutes at most. It reads with a connection of its own, in the history's lane,
so that nothing waits for it and no row is metered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from penstock.contracts.history import HistoryFile, Run
from penstock.contracts.store import Reader, Store
from penstock.model.prices import cost, metered
from penstock.model.sql_files import load
from penstock.model.times import day_of, month_of
from penstock.model.usage import USAGE

SECOND = 1_000_000
FIRST_SECONDS = 300  # what the first look looks back
COST_SECONDS = 600.0  # between two looks at what the month has used
TICK_SECONDS_MAX = 86_400.0  # a run that took longer is not in the points; its row says everything
ROWS_MAX = 10_000
SECONDS_MAX = 5.0

SQL = load("penstock.metrics", "metrics.sql")


class Fact(NamedTuple):
    """One fact of a sample: `kind` and `name` are words of a point, `more` the words after them."""

    kind: str
    name: str
    numbers: tuple[float, ...]
    more: tuple[str, ...] = ()


def look(file: HistoryFile, store: Store, *, now: int, every_seconds: float) -> list[Fact] | None:
    """Return None if another process has just looked. Runs of cron tasks are reported by one process."""

    def claim(run: Run) -> tuple[int | None, int | None]:
        since = _claimed(run, "state", now, every_seconds)
        return since, None if since is None else _claimed(run, "cost", now, min(COST_SECONDS, 2 * every_seconds))

    since, costed = file.transact(claim)
    if since is None:
        return None
    with closing(store.open_reader()) as reader:
        facts = [*_queues(reader, now), *_ticks(reader, since, now)]
        if costed is not None:
            facts.append(_cost(reader, now))
    return facts


def _claimed(run: Run, kind: str, now: int, every_seconds: float) -> int | None:
    """The time of the last look, if it is long enough ago for another."""
    for (at,) in run("sampled", {"kind": kind}):
        if at > now - every_seconds * SECOND:
            return None
        run("note_sample", {"kind": kind, "now": now})
        return int(at)
    run("note_sample", {"kind": kind, "now": now})
    return now - FIRST_SECONDS * SECOND


def _queues(reader: Reader, now: int) -> Iterator[Fact]:
    for queue, waiting, dead, first_due in _read(reader, SQL["queues"], now=now):
        age = 0.0 if first_due is None or first_due > now else (now - first_due) / SECOND
        yield Fact("queue", queue, (float(waiting), age, float(dead)))


def _ticks(reader: Reader, since: int, now: int) -> Iterator[Fact]:
    back = since - int(TICK_SECONDS_MAX * SECOND)
    for task, status, runs, late, micros, rows_read in _read(reader, SQL["ticks"], since=since, back=back, now=now):
        yield Fact("tick", task, (float(runs), late / SECOND, micros / SECOND, float(rows_read)), (status,))


def _cost(reader: Reader, now: int) -> Fact:
    usage = metered(_read(reader, USAGE["used"], month=month_of(now)))
    usd = cost(usage, days=int(day_of(now)[8:])).usd
    used = (usage.rows_read, usage.rows_written, usage.queue_operations)
    return Fact("cost", month_of(now), (usd, *map(float, used)))


def _read(reader: Reader, sql: str, **bound: Any) -> list[tuple[Any, ...]]:
    wanted = {name: value for name, value in {**bound, "most": ROWS_MAX}.items() if f":{name}" in sql}
    return reader.read(sql, wanted, rows_max=ROWS_MAX, seconds_max=SECONDS_MAX).values
