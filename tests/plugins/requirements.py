"""Which requirements of the engine (A) and of the App Store pipeline (B) are proven by a test, and why the others are not.

`python -m tests.plugins.requirements` prints the share and the list.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.plugins.claims import TESTS, claims

LEAST = 0.95  # of those that are still asked for
REASONS = ("left-out", "later", "open")
LAST_RUN = TESTS.parent / "build" / "spec.json"


class Requirements(NamedTuple):
    titles: Mapping[str, str]
    unproven: Mapping[str, str]  # by id, the reason

    def of(self, group: str) -> list[str]:
        """The ids of a group that are still asked for."""
        wanted = (id for id in self.titles if id.startswith(group))
        return [id for id in wanted if not self.unproven.get(id, "").startswith("left-out")]


def requirements() -> Requirements:
    found = tomllib.loads(Path(__file__).with_name("requirements.toml").read_text("utf-8"))
    return Requirements(found["A"] | found["B"], found["unproven"])


def share(group: str, proven: Mapping[str, object]) -> tuple[int, int]:
    """How many ids of a group are proven, and how many there are."""
    ids = requirements().of(group)
    return sum(id in proven for id in ids), len(ids)


def told() -> Iterator[str]:
    known = requirements()
    yield from _shares("claimed by the marks of tests", claims())
    if LAST_RUN.exists():
        yield from _shares("proven in the last run of all tests", json.loads(LAST_RUN.read_text("utf-8")))
    let_go = sum(reason.startswith("left-out") for reason in known.unproven.values())
    yield f"Of {len(known.titles)} ids {let_go} are left out and not counted above."
    for id, reason in known.unproven.items():
        yield f"  {id:7} {known.titles[id]}: {reason}"


def _shares(what: str, proven: Mapping[str, object]) -> Iterator[str]:
    yield f"{what}:"
    for group in ("A", "B", ""):
        number, all_of_them = share(group, proven)
        yield f"  {group or 'both':4} {number:3} of {all_of_them:3}, {number / all_of_them:.1%}"


if __name__ == "__main__":
    print("\n".join(told()))
