"""What is claimed is known, what is known is claimed or has a reason, and the page about faults is the newest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.model.limits import LOCAL
from tests.plugins import faults
from tests.plugins.claims import TESTS, Proof, claims, claims_of
from tests.plugins.requirements import BUILT, LEAST, REASON, requirements, share

NEWEST = "Run `python -m tests.plugins.faults`."


def test_the_page_about_faults_is_the_newest() -> None:
    assert faults.PAGE.read_text("utf-8") == faults.page(), NEWEST


def test_every_fault_has_a_test_or_a_reason() -> None:
    assert [id for id, fault in faults.faults().items() if id not in claims() and not fault.not_yet] == []


def test_every_mark_names_something_known() -> None:
    assert sorted({*claims()} - {*requirements().titles, *faults.faults()}) == []


def test_every_requirement_is_claimed_or_has_a_reason_and_not_both() -> None:
    known = requirements()
    groups = {id.partition("-")[0] for id in known.titles}

    assert [id for id in known.titles if id not in claims() and not known.reason(id)] == []
    assert [id for id in known.reasons if id in claims()] == []
    assert [id for id in known.reasons if id not in known.titles and id not in groups] == []


def test_every_reason_names_the_issue_that_covers_the_requirement_or_leaves_it_out() -> None:
    assert [id for id, reason in requirements().reasons.items() if not REASON.fullmatch(reason)] == []


def test_nearly_all_requirements_of_what_is_built_are_claimed(note: Callable[[str], None]) -> None:
    proven, count = share(BUILT, claims())

    note(f"requirements: tests claim {proven} of {count} ({proven / count:.1%})")
    assert proven / count >= LEAST


@pytest.mark.spec("A4-16")
def test_the_page_that_says_which_trigger_to_take_has_pace_memory_and_retries_of_each() -> None:
    page = (TESTS.parent / "docs" / "explain" / "which-trigger.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    table = {row[0]: row[1:] for row in rows}
    alarm = ", ".join(str(2**power) for power in (1, 2)) + f" ... {2**LOCAL.alarm_retries}"

    assert [cell.partition("]")[0].strip("[") for cell in table[""]] == ["Cron", "Alarm", "Queue", "Workflow"]
    assert table["Pace"] == ["fixed", "set by the object, adaptive", "as messages arrive", "step by step"]
    cron, after, queue, workflow = table["After a failure"]
    assert (cron, queue) == ("the next scheduled time", "retried three times")
    assert workflow == "only the failed step is retried"
    assert alarm in after
    assert "six times" in after


# -- these tests can fail -------------------------------------------------------------------------------------------


def test_marks_are_found_wherever_they_stand() -> None:
    source = """
pytestmark = [pytest.mark.slow("postgres"), pytest.mark.fault("F01")]

@pytest.mark.parametrize("a", [1, pytest.param(2, marks=pytest.mark.spec("B1-02"))])
@pytest.mark.spec("A1-01", "A1-02")
async def test_one(a): ...

def test_other(): ...

@pytest.mark.spec("A1-09")
def helper(): ...
"""

    assert list(claims_of(source, "tests/test_x.py")) == [
        (Proof("tests/test_x.py", "test_one"), ["A1-01", "A1-02", "B1-02", "F01"]),
        (Proof("tests/test_x.py", "test_other"), ["F01"]),
    ]
