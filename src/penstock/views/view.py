"""A view: the rows of one noun and its columns, defined once for the table, `--json` and a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.model.times import iso_z, to_micros

Row = dict[str, Any]  # as `--json` prints it
NONE = "-"
SPANS = ((2 * 86_400, 86_400, "days"), (2 * 3_600, 3_600, "h"), (120, 60, "min"), (0, 1, "s"))


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a row, or what `of` makes of the row. A narrow table leaves columns out, those of the highest rank first.
    `link` is the page of an app that the value leads to: `/orders/{id}`."""

    name: str
    heading: str
    kind: str = "text"  # of KINDS
    rank: int = 0
    of: Callable[[Row], Any] | None = None
    link: str = ""

    def text(self, row: Row, now: int) -> str:
        value = row.get(self.name) if self.of is None else self.of(row)
        return NONE if value is None or value == "" else KINDS[self.kind](value, now)

    @property
    def is_right(self) -> bool:
        return self.kind in RIGHT


@dataclass(frozen=True, slots=True)
class View:
    """`rows` reads the rows that `columns` show; None where they are a part of another view's row. `empty` is the sentence
    for none. Internal rows are shown on request."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[..., Awaitable[list[Row]]] | None = None
    empty: str = ""
    is_internal: Callable[[Row], bool] = lambda row: False

    async def read(self, source: Any, *given: Any, **filters: Any) -> list[Row]:
        """Read the rows from an Observer, or from what else the view is of."""
        assert self.rows is not None, f"the rows of {self.name} are a part of another view's row"
        return await self.rows(source, *given, **filters)

    def visible(self, rows: Sequence[Row], *, internals: bool) -> list[Row]:
        return [row for row in rows if internals or not self.is_internal(row)]


BODIES = {"input", "result"}  # JSON that is passed on to the last digit
FLAGS = {"alarm_lost", "paused"}


def shaped(names: str, facts: Mapping[str, Any]) -> Row:
    """Return these facts as `--json` prints them: times and ids as text, bodies as JSON, errors without secrets."""
    return {name: _shaped(name, facts[name]) for name in names.split()}


def _shaped(name: str, value: Any) -> Any:
    if name.endswith("error") and value is not None:
        return redacted(value)
    if isinstance(value, bytes | memoryview):
        return msgspec.Raw(bytes(value)) if name in BODIES else as_text(bytes(value))
    if isinstance(value, int):
        is_time = name in ("at", "due") or name.endswith("_at")
        return iso_z(value) if is_time else bool(value) if name in FLAGS else value
    return value


# -- how values are written ---------------------------------------------------------------------------------


def bytes_text(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 1_000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1_000
    raise AssertionError("every size has a unit")


def span_text(seconds: float) -> str:
    """Return a span in one unit, rounded down: `90 s`, `5 min`, `26 h`, `3 days`."""
    _, size, unit = next(each for each in SPANS if seconds >= each[0] or not each[0])
    return f"{seconds // size:,.0f} {unit}"


def ago_text(at: int, now: int) -> str:
    """Return a time relative to now: `5 min ago`, `in 28 s`."""
    away = (at - now) / 1_000_000
    if abs(away) < 1:
        return "now"
    return f"in {span_text(away)}" if away > 0 else f"{span_text(-away)} ago"


def usd_text(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else "<$0.01"


def small_usd_text(usd: float) -> str:
    """Return dollars with the fractions of a cent that one call costs."""
    whole, _, digits = f"{usd:,.6f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"


def took_text(milliseconds: float) -> str:
    if milliseconds < 1_000:
        return f"{milliseconds:,.1f} ms"
    return f"{milliseconds / 1_000:.1f} s" if milliseconds < 60_000 else span_text(milliseconds / 1_000)


def rate_text(rate: float) -> str:
    """Return a rate in the unit that a person can imagine: 2.5/s, 12/min, 40/h."""
    scale, unit = (1, "s") if rate >= 1 else (60, "min") if rate * 60 >= 1 else (3_600, "h")
    return f"{rate * scale:,.3g}/{unit}"


def number_text(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}" if abs(value) < 1 else f"{value:,.1f}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 message`, `2 messages`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """Return text without what moves a terminal's cursor. Line breaks stay."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def short(text: str, most: int) -> str:
    """Return text in one line of at most `most` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def micros_of(iso: str) -> int:
    """Return a time in ISO 8601 as microseconds. One without a zone is in UTC, as the tables of apps keep it."""
    at = datetime.fromisoformat(iso)
    return to_micros(at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def exact_text(iso: str, now: int) -> str:
    """Return a time relative to now and in UTC, for the view of one thing."""
    return f"{ago_text(micros_of(iso), now)} ({iso[:19].replace('T', ' ')} UTC)"


# How values of a kind are written, given the time in microseconds. Prose may be broken into lines.
KINDS: dict[str, Callable[[Any, int], str]] = {
    **dict.fromkeys(("text", "prose", "figure", "url"), lambda value, _: str(value)),
    "state": lambda value, _: str(value).replace("_", " "),
    "count": lambda value, _: f"{value:,}",
    "percent": lambda value, _: f"{value:.1f} %",
    "number": lambda value, _: number_text(value),
    "rate": lambda value, _: rate_text(value),
    "bytes": lambda value, _: bytes_text(value),
    "span": lambda value, _: span_text(value),
    "took": lambda value, _: took_text(value),
    "usd": lambda value, _: usd_text(value),
    "small_usd": lambda value, _: small_usd_text(value),
    "time": lambda value, now: ago_text(micros_of(value), now),
    "due": lambda value, now: ago_text(max(now, micros_of(value)), now),
    "exact_time": exact_text,
}
RIGHT = {"figure", "count", "percent", "number", "rate", "bytes", "span", "took", "usd", "small_usd"}

# What a state means to an operator. A terminal has a colour for each, a page a class.
TONES = {
    word: tone
    for tone, words in {
        "good": "running runs done complete acked ok pass applied passed",
        "bad": "dead errored failed fail lost died reached blocked changed",
        "warn": "paused stopped terminated timed_out retrying retried unserved warn pending note unknown_type worker_died",
        "busy": "queued waiting ready leased delayed claimed cooling",
        "dull": "skip idle skipped disabled resting empty",
    }.items()
    for word in words.split()
}


def tone_of(state: str) -> str:
    """Return the tone of a state, which may be followed by details: `cooling down, 40 s left`."""
    whole = state.replace(" ", "_")
    return TONES.get(whole) or TONES.get(whole.partition("_")[0].strip(",:"), "")
