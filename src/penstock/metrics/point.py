"""One data point as it is kept: checked, cut to fit, and identified by a digest of its sort."""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

BLOBS_MAX = DOUBLES_MAX = 20
BLOB_CHARACTERS_MAX = 256  # longer text is cut: it is there to group by
INDEX_CHARACTERS_MAX = 96
DOUBLE_MAX = 1e290  # a trillion such numbers can still be added up
SORTS_KNOWN_MAX = 10_000  # by heart; there are as many as tasks, queues and phases of an app


class Unfit(ValueError):
    """What was written is no data point."""


class Noted(NamedTuple):
    """A point as it was written. `at` is in microseconds; nothing of the rest is checked yet."""

    dataset: str
    at: int
    blobs: tuple[Any, ...]
    doubles: tuple[Any, ...]
    under: Any  # the index


class Sort(NamedTuple):
    """What points are grouped by: the rows of one sort have the same index and words. Words at the end may be missing."""

    digest: int
    dataset: str
    under: str | None
    blobs: tuple[str | None, ...]


class Sorts:
    """Knows the sorts it has seen, so that words are checked once rather than for every point."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any, tuple[Any, ...]], Sort] = {}

    def of(self, point: Noted) -> Sort:
        key = (point.dataset, point.under, point.blobs)
        try:
            known = self._known.get(key)
        except TypeError:
            raise Unfit(_no_text(next(each for each in (point.under, *point.blobs) if not _is_text(each)))) from None
        if known is None:
            known = _sort(point)
            if len(self._known) >= SORTS_KNOWN_MAX:
                self._known.clear()
            # Of numbers some are equal that are not the same text: 1 and True.
            if all(type(each) is str or each is None for each in (point.under, *point.blobs)):
                self._known[key] = known
        return known


def in_order(values: Any) -> tuple[Any, ...]:
    """What was given instead of a tuple. A text is one value rather than many, and a set has no first one."""
    if isinstance(values, str | bytes | Mapping | Set):
        raise Unfit(f"blobs and doubles are tuples, and one is a {type(values).__name__}")
    return tuple(values)


def numbers(doubles: tuple[Any, ...]) -> tuple[float | None, ...]:
    """Numbers as they are stored. None is a number that is missing."""
    if len(doubles) > DOUBLES_MAX:
        raise Unfit(f"it has {len(doubles)} doubles, and {DOUBLES_MAX} are the most")
    for double in doubles:
        if type(double) is not float or not -DOUBLE_MAX <= double <= DOUBLE_MAX:
            return tuple(map(_number, doubles))
    return doubles


def _number(double: Any) -> float | None:
    if double is None:
        return None
    if not isinstance(double, int | float):
        raise Unfit(f"a double is a number, and one is a {type(double).__name__}")
    try:
        number = float(double)
    except OverflowError:
        number = DOUBLE_MAX * 10
    if not -DOUBLE_MAX <= number <= DOUBLE_MAX:
        raise Unfit(f"{number} cannot be added up")
    return number


def _sort(point: Noted) -> Sort:
    if len(point.blobs) > BLOBS_MAX:
        raise Unfit(f"it has {len(point.blobs)} blobs, and {BLOBS_MAX} are the most")
    blobs = [_text(blob, BLOB_CHARACTERS_MAX) for blob in point.blobs]
    while blobs and blobs[-1] is None:
        blobs.pop()
    under = _text(point.under, INDEX_CHARACTERS_MAX)
    digest = blake2b(msgspec.json.encode([point.dataset, under, *blobs]), digest_size=8).digest()
    return Sort(int.from_bytes(digest) >> 1, point.dataset, under, tuple(blobs))


def _text(value: Any, most: int) -> str | None:
    """Text as both databases store it. Numbers become text; half characters and NUL become question marks."""
    if value is None:
        return None
    if not _is_text(value):
        raise Unfit(_no_text(value))
    text = str.__str__(value) if isinstance(value, str) else str(value)
    return text[:most].replace("\0", "?").encode(errors="replace").decode()


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int | float | None)


def _no_text(value: Any) -> str:
    return f"blobs and the index are text, and one is a {type(value).__name__}"
