"""What the datasets of a database hold, and what their points add up to: for people who look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.contracts.history import HistoryReader
from penstock.metrics.asking import BLOBS, DOUBLES, WORDS, Names, question
from penstock.metrics.saving import DAY, RAW_DAYS
from penstock.model.errors import BadParameter
from penstock.model.sql_files import load
from penstock.model.times import day_of, text_of_micros

EXACT_DAYS = 7  # beyond that hours are added up, and days beyond what points are kept for
GROUPS_MAX = 1_000
DATASETS_MAX = 1_000
SECONDS_MAX = 30.0

SQL = load("penstock.metrics", "metrics.sql")


class DatasetSummary(NamedTuple):
    """A dataset, and what became of what was written to it since the day that was asked for began."""

    name: str
    written: int
    dropped: int
    refused: int
    asked: int
    last_at: str | None


class PointGroup(NamedTuple):
    """Points with the same words, and the sum of each of their doubles; None where none of them has it."""

    words: tuple[str | None, ...]
    points: int
    sums: tuple[float | None, ...]


def datasets(file: HistoryReader, *, since: int) -> list[DatasetSummary]:
    bound = {"day": day_of(since), "most": DATASETS_MAX}
    _, rows = file.points(SQL["datasets"], bound, rows_max=DATASETS_MAX, seconds_max=SECONDS_MAX)
    return [DatasetSummary(*row) for row in rows]


def groups(file: HistoryReader, names: Names, by: Sequence[str], *, since: int, now: int) -> list[PointGroup]:
    """Sums by some columns, those with most points first. A long time is added up by whole hours, or whole days."""
    known = {*WORDS, *(name for name, column in names.columns.items() if column in WORDS)}
    for column in by:
        if column not in known:
            shown = ", ".join(sorted(known - set(BLOBS)))
            raise BadParameter(
                f"{column!r} is not a column to group by. There are: {shown}, and blob1 to blob20.", value=column
            )
    columns = ", ".join(f'"{column}"' for column in by)
    if now - since <= EXACT_DAYS * DAY:
        sums = ", ".join(f"sum({double})" for double in DOUBLES)
        sql = f"select {columns}, count(*), {sums} from points where at >= :since group by {columns}"
        return _sorted(
            PointGroup(row[: len(by)], row[len(by)], row[len(by) + 1 :]) for row in _ask(file, names, sql, since)
        )
    span = "hours" if now - since <= RAW_DAYS * DAY else "days"
    sql = f"select {columns}, place, sum(count), sum(sum) from {span} where at >= :since group by {columns}, place"
    found: dict[tuple[Any, ...], tuple[int, list[float | None]]] = {}
    for *words, place, count, total in _ask(file, names, sql, since):
        points, held = found.get(tuple(words), (0, [None] * len(DOUBLES)))
        if place:
            held[place - 1] = total
        found[tuple(words)] = (points if place else count, held)
    return _sorted(PointGroup(words, points, tuple(held)) for words, (points, held) in found.items())


def _ask(file: HistoryReader, names: Names, sql: str, since: int) -> list[tuple[Any, ...]]:
    text, bound = question(names, sql, {"since": text_of_micros(since)})
    return file.points(text, bound, rows_max=GROUPS_MAX * len(DOUBLES), seconds_max=SECONDS_MAX)[1]


def _sorted(found: Any) -> list[PointGroup]:
    ordered = sorted(found, key=lambda group: (-group.points, [word or "" for word in group.words]))
    return ordered[:GROUPS_MAX]
