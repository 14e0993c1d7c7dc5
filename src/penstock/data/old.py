"""Which rows of a table are old: a time column, a span, and the unit in which the column keeps its times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

from penstock.model.errors import BadParameter
from penstock.model.times import MICROS, older_than, parse_span
from penstock.model.upsert import quoted

if TYPE_CHECKING:
    from penstock.data.database import Database

TimeUnit = Literal["text", "s", "ms", "micros"]
_MICROS_OF = {"s": MICROS, "ms": 1_000, "micros": 1}
# Below every real time of its kind and above what SQLite sorts in front of them (NULL, numbers before text, empty text):
# a row that holds something else than a time is never old.
_LEAST_TEXT, _LEAST_NUMBER = "0001-01-01", 1
_STORED = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", re.ASCII)
_LOOKED_AT = 1_000  # rows in which a first value is looked for


@dataclass(frozen=True, slots=True)
class Old:
    """Rows of a table whose column lies before a bound. All names in it have been checked."""

    table: str
    column: str
    unit: TimeUnit
    least: str | int
    bound: str | int

    @property
    def condition(self) -> str:
        return f"{self.column} >= :least and {self.column} < :bound"

    @property
    def bounds(self) -> dict[str, str | int]:
        return {"least": self.least, "bound": self.bound}


def old(table: str, column: str, span: str | float | timedelta, unit: TimeUnit, *, now: int) -> Old:
    if unit not in get_args(TimeUnit):
        raise BadParameter(f"unit={unit!r}: it can be {', '.join(get_args(TimeUnit))}.", unit=unit)
    if unit == "text":
        return Old(quoted(table), quoted(column), unit, _LEAST_TEXT, older_than(span, now=now))
    seconds = parse_span(span) if isinstance(span, str) else span
    seconds = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    bound = (now - round(seconds * MICROS)) // _MICROS_OF[unit]
    return Old(quoted(table), quoted(column), unit, _LEAST_NUMBER, bound)


async def refuse_other_units(database: Database, rows: Old) -> None:
    """A column that keeps its times in another form would be compared wrongly, so one value is looked at first."""
    seen = await database.value(_first_value(rows), most=_LOOKED_AT)
    if seen is None:
        return
    if rows.unit == "text" and not (isinstance(seen, str) and _STORED.fullmatch(seen)):
        raise BadParameter(
            f"{rows.table}.{rows.column} holds {seen!r}, which is no 'YYYY-MM-DD HH:MM:SS'. Say how it keeps its times: "
            "unit='s', 'ms' or 'micros' since 1970, or store them as text.",
            value=seen,
        )
    if rows.unit != "text" and not isinstance(seen, int):
        raise BadParameter(
            f"{rows.table}.{rows.column} holds {seen!r}, which is no whole number of {rows.unit}. Leave `unit=` out for "
            "times as text.",
            value=seen,
        )


def _first_value(rows: Old) -> str:
    return (
        f"select {rows.column} from (select {rows.column} from {rows.table} limit :most) "
        f"where {rows.column} is not null limit 1"
    )


def key_columns(key: str | Sequence[str]) -> list[str]:
    names = [key] if isinstance(key, str) else list(key)
    if not names:
        raise BadParameter("The key is empty. Name the columns that tell rows apart.", key=key)
    return [quoted(name) for name in names]
