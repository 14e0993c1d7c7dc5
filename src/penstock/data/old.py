"""Which rows of a table are old: a time column, a span, and the unit in which the column keeps its times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from penstock.model.errors import BadParameter, StatementFailed
from penstock.model.times import MICROS, in_seconds, older_than
from penstock.model.upsert import quoted

if TYPE_CHECKING:
    from penstock.data.database import Database

TimeUnit = Literal["text", "s", "ms", "micros"]
_MICROS_OF = {"s": MICROS, "ms": 1_000, "micros": 1}
# Below every real time of its kind and above what SQLite sorts in front of them (NULL, numbers before text, empty text):
# a row that holds something else than a time is never old.
_LEAST_TEXT, _LEAST_NUMBER = "0001-01-01", 1
_STORED = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", re.ASCII)


class Old(msgspec.Struct, frozen=True):
    """Rows of a table whose column lies before a bound. All names in it have been checked."""

    table: str
    column: str
    unit: TimeUnit
    least: str | int
    bound: str | int

    @property
    def condition(self) -> str:
        within = f"{self.column} >= :least and {self.column} < :bound"
        return f"{within} and {self.column} like '____-__-__%'" if self.unit == "text" else within

    @property
    def bounds(self) -> dict[str, str | int]:
        return {"least": self.least, "bound": self.bound}


def old(table: str, column: str, span: str | float | timedelta, unit: TimeUnit, *, now: int) -> Old:
    if unit not in get_args(TimeUnit):
        raise BadParameter(f"unit={unit!r}: it can be {', '.join(get_args(TimeUnit))}.", unit=unit)
    if unit == "text":
        return Old(quoted(table), quoted(column), unit, _LEAST_TEXT, older_than(span, now=now))
    bound = (now - round(in_seconds(span) * MICROS)) // _MICROS_OF[unit]
    return Old(quoted(table), quoted(column), unit, _LEAST_NUMBER, bound)


async def refuse_other_units(database: Database, rows: Old) -> None:
    """A column that keeps its times in another form would be compared wrongly, so a few values are looked at first."""
    try:
        seen = await database.column(_first_old(rows), rows.bounds)
    except StatementFailed:
        seen = []  # PostgreSQL does not even compare values of another kind
    seen = seen or await database.column(_first_values(rows))
    if not seen or any(_fits(rows.unit, value) for value in seen):
        return
    if rows.unit == "text":
        wrong = "'YYYY-MM-DD HH:MM:SS'. State the unit of its times: unit='s', 'ms' or 'micros', or store them as text."
    else:
        wrong = f"whole number of {rows.unit}. Leave `unit=` out for times as text."
    raise BadParameter(f"{rows.table}.{rows.column} holds {seen[0]!r}, which is no {wrong}", value=seen[0])


def _fits(unit: TimeUnit, value: object) -> bool:
    if unit == "text":
        return isinstance(value, str) and _STORED.fullmatch(value) is not None
    return isinstance(value, int)


def _first_old(rows: Old) -> str:
    return f"select {rows.column} from {rows.table} where {rows.condition} limit 10"


def _first_values(rows: Old) -> str:
    """Of the first thousand rows, lest a column full of NULL be read to its end."""
    return (
        f"select {rows.column} from (select {rows.column} from {rows.table} limit 1000) as first "
        f"where {rows.column} is not null limit 10"
    )


def key_columns(key: str | Sequence[str]) -> list[str]:
    names = [key] if isinstance(key, str) else list(key)
    if not names:
        raise BadParameter("The key is empty. Name the columns that identify a row.", key=key)
    return [quoted(name) for name in names]
