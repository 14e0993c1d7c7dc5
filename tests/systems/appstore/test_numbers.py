"""The numbers that docs/guide/appstore-numbers.md states are those of the code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/guide/appstore-numbers.md"
ROW = re.compile(r"^\| [^|]+ \| ([\d,.]+) \| `([\w.]+):(\w+)` \|$")


def test_the_page_of_numbers_has_the_numbers_of_the_code() -> None:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ") and line.endswith("` |")]

    rows = [row.groups() for line in lines if (row := ROW.match(line))]

    assert len(rows) == len(lines) >= 150
    shown = {f"{module}:{name}": float(number.replace(",", "")) for number, module, name in rows}
    assert shown == {
        f"{module}:{name}": getattr(importlib.import_module(f"penstock_systems.appstore.{module}"), name)
        for _, module, name in rows
    }
