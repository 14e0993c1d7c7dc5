"""Which requirements a test proves, and for each of the others the issue that covers it.

`python -m tests.plugins.requirements` prints the share and the list.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.plugins.claims import TESTS, claims

GROUPS = "ABCDEFG"
BUILT = "AB"  # the engine and the App Store pipeline; the other systems come with their issues
LEAST = 0.94  # of the ids of what is built, without those left out
REASON = re.compile(r"left-out: .+|issue \d+: .+")
LAST_RUN = TESTS.parent / "build" / "spec.json"


class Requirements(NamedTuple):
    titles: Mapping[str, str]
    reasons: Mapping[str, str]  # by id or by group, as written under [unproven]

    def reason(self, id: str) -> str | None:
        """Return why no test claims this id; a group's reason holds for those of its ids without one of their own."""
        return self.reasons.get(id) or self.reasons.get(id.partition("-")[0])

    def of(self, groups: str) -> list[str]:
        """Return the ids of these groups without those left out."""
        wanted = (id for id in self.titles if id[0] in groups)
        return [id for id in wanted if not self.reasons.get(id, "").startswith("left-out")]


def requirements() -> Requirements:
    found = tomllib.loads(Path(__file__).with_name("requirements.toml").read_text("utf-8"))
    return Requirements({id: title for group in GROUPS for id, title in found[group].items()}, found["unproven"])


def share(groups: str, proven: Mapping[str, object]) -> tuple[int, int]:
    """Return how many ids of these groups are proven, and how many there are."""
    ids = requirements().of(groups)
    return sum(id in proven for id in ids), len(ids)


def report() -> Iterator[str]:
    known = requirements()
    yield from _shares("claimed by the marks of tests", claims())
    if LAST_RUN.exists():
        yield from _shares("proven in the last run of all tests", json.loads(LAST_RUN.read_text("utf-8")))
    left_out = sum(reason.startswith("left-out") for reason in known.reasons.values())
    yield f"Of {len(known.titles)} ids {left_out} are left out and not counted above."
    for id, title in known.titles.items():
        if id not in claims():
            yield f"  {id:7} {title}: {known.reason(id)}"


def _shares(what: str, proven: Mapping[str, object]) -> Iterator[str]:
    yield f"{what}:"
    for groups in (*GROUPS, BUILT, GROUPS):
        number, count = share(groups, proven)
        yield f"  {groups:7} {number:3} of {count:3}, {number / count:.1%}"


if __name__ == "__main__":
    print("\n".join(report()))
