"""Tables of pages that state constants of the code: `| what | 8 MB | `penstock.data.query:ANSWER_BYTES_MAX` |`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
ROW = re.compile(r"^\| .* \| ([^|]+) \| `([\w.]+):(\w+)` \|$", re.MULTILINE)
UNITS = {
    "": 1,
    "s": 1,
    "bytes": 1,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "min": 60,
    "h": 3_600,
    "days": 86_400,
}


def number(text: str) -> float | None:
    """Read `10,000`, `1 MB` or `15 min`; a dash is no limit."""
    if text == "-":
        return None
    digits, _, unit = text.partition(" ")
    return float(digits.replace(",", "")) * UNITS[unit]


def stated(page: str) -> dict[str, float | None]:
    """Return the numbers that a page states, by module and name."""
    rows = ROW.findall((DOCS / page).read_text("utf-8"))
    assert len({(module, name) for _, module, name in rows}) == len(rows), "a number is stated twice"
    return {f"{module}:{name}": number(text) for text, module, name in rows}


def in_code(places: dict[str, float | None], package: str) -> dict[str, float | None]:
    """Return the numbers that the code has at the same places below a package."""
    found = (place.split(":") for place in places)
    return {f"{module}:{name}": getattr(importlib.import_module(f"{package}.{module}"), name) for module, name in found}
