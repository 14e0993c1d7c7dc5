"""Where the names of bubbles go: inside, or beside where nothing else is, or nowhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from penstock_systems.appstore.reading.layout import Bubble

SIZE = 13.0  # of the letters
HIGH = 1.25 * SIZE
GAP = 3.0
LINE = 18  # characters: a longer name is broken


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def meets_bubble(self, bubble: Bubble) -> bool:
        x = min(max(bubble.x, self.left), self.right) - bubble.x
        y = min(max(bubble.y, self.top), self.bottom) - bubble.y
        return x * x + y * y < (bubble.radius + 1) ** 2


class Label(NamedTuple):
    """The middle of the first line's base, the lines, and whether they stand in their bubble."""

    x: float
    y: float
    lines: tuple[str, ...]
    inside: bool


def width_of(text: str, size: float = SIZE) -> float:
    """About how wide a text is drawn: rather too wide than too narrow."""
    return sum(_wide(each) for each in text) * size


def placed(names: Sequence[str], bubbles: Sequence[Bubble], *, width: float, height: float) -> list[Label | None]:
    """A place for each name, the first names first; None where there is no room."""
    taken: list[Box] = []
    found: list[Label | None] = []
    for name, bubble in zip(names, bubbles, strict=True):
        others = [other for other in bubbles if other is not bubble]
        tried = [broken(name, most) for most in (3, 2, 1)]
        if _fits_inside(tried[0], bubble):
            found.append(Label(bubble.x, bubble.y + 1.1 * SIZE, tried[0], True))
            continue
        for label, box in (place for lines in tried for place in _beside(bubble, lines)):
            free = box.left > 2 and box.right < width - 2 and box.top > 2 and box.bottom < height - 2
            if free and not any(map(box.meets, taken)) and not any(map(box.meets_bubble, others)):
                taken.append(box)
                found.append(label)
                break
        else:
            found.append(None)
    return found


def broken(name: str, most: int) -> tuple[str, ...]:
    """On as many lines as it takes, so many at most; what does not fit is cut off."""
    return tuple(wrap(name, LINE, max_lines=most, placeholder="…")) or ("",)


def _fits_inside(lines: Sequence[str], bubble: Bubble) -> bool:
    """Below the number: two lines need a larger bubble."""
    return max(map(width_of, lines)) < 1.6 * bubble.radius and bubble.radius > (0.6 + len(lines)) * HIGH


def _beside(bubble: Bubble, lines: tuple[str, ...]) -> Iterator[tuple[Label, Box]]:
    """Below, above, to the right and to the left."""
    x, y, radius = bubble
    long, high = max(map(width_of, lines)), HIGH * len(lines)
    far = radius + GAP + long / 2
    for middle, top in (
        (x, y + radius + GAP),
        (x, y - radius - GAP - high),
        (x + far, y - high / 2),
        (x - far, y - high / 2),
    ):
        box = Box(middle - long / 2, top, middle + long / 2, top + high)
        yield Label(middle, top + 0.78 * HIGH, lines, False), box


def _wide(each: str) -> float:
    if unicodedata.combining(each) or unicodedata.category(each) == "Cf":
        return 0.0
    if unicodedata.east_asian_width(each) in "WF":
        return 1.1
    return 0.36 if each in " iljtfr.,:;'|!" else 0.86 if each in "mwMW@%" else 0.72 if each.isupper() else 0.6
