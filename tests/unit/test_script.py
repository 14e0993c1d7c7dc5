"""The script of a run: what was recorded, in which order its code may ask for it, and how a difference is described."""

from __future__ import annotations

import pytest

from penstock.model.errors import BadMessage
from penstock.model.run import (
    DONE,
    NAME_MAX,
    PATCH,
    SLEEP,
    STEP,
    DuplicateStep,
    Nondeterminism,
    Script,
    StepRecord,
    check_name,
    is_made,
    key_of,
    made_id,
)


def record(position: int, name: str, kind: str = STEP) -> StepRecord:
    return StepRecord(run=bytes(16), position=position, name=name, kind=kind, state=DONE, attempts=1, started_at=0)


def script(*names: str) -> Script:
    return Script([record(position, name) for position, name in enumerate(names)])


def test_a_new_run_replays_nothing_and_its_first_step_has_the_first_position() -> None:
    new = Script([])

    assert not new.is_replaying
    assert new.is_next("anything")
    assert (new.next_position, new.asked, new.patches) == (0, 0, set())
    assert new.found("anything", STEP) is None


def test_the_next_step_follows_the_highest_recorded_position() -> None:
    recorded = Script([record(7, "last"), record(2, "first"), record(4, "old code", PATCH)])

    assert recorded.next_position == 8
    assert [recorded.is_next("last"), recorded.is_next("first"), recorded.is_next("last")] == [False, True, True]


def test_a_run_replays_until_each_record_was_asked_for_in_the_order_of_their_beginnings() -> None:
    recorded = script("fetch", "rate", "save")

    turns = [recorded.is_next(name) for name in ("rate", "fetch", "fetch", "rate", "save")]

    assert turns == [False, True, False, True, True]
    assert not recorded.is_replaying
    assert recorded.is_next("what no run has done yet")


def test_a_run_that_asked_for_one_of_two_records_still_replays() -> None:
    recorded = script("fetch", "save")
    assert recorded.is_replaying

    recorded.is_next("fetch")

    assert recorded.is_replaying


def test_a_name_can_be_asked_for_once() -> None:
    recorded = script("fetch")
    recorded.ask("fetch")
    recorded.ask("save")

    with pytest.raises(DuplicateStep, match=r"two steps called 'fetch'.*f\"fetch-\{number\}\""):
        recorded.ask("fetch")

    assert recorded.asked == 2


def test_a_record_is_found_by_its_name_and_refused_for_another_kind() -> None:
    recorded = Script([record(0, "wait", SLEEP)])

    found = recorded.found("wait", SLEEP)

    assert found is not None
    assert found.name == "wait"
    with pytest.raises(Nondeterminism, match="'wait' was recorded as a sleep, and the code has a step of that name"):
        recorded.found("wait", STEP)


def test_a_difference_shows_three_steps_before_it_and_counts_those_after_it() -> None:
    recorded = script("a", "b", "c", "d", "e", "f", "g")
    for name in "abcd":
        recorded.is_next(name)

    told = recorded.differs("x")

    assert "recorded:\n  b\n  c\n  d\n- e  (recorded)\n+ x  (what the code does now)\n- and 2 more recorded\n" in str(
        told
    )
    assert told.facts == {"recorded": "e", "asked": "x"}


def test_a_difference_at_the_last_record_counts_nothing_after_it() -> None:
    told = script("a").differs(None)

    assert "recorded:\n- a  (recorded)\n+ the end  (what the code does now)\nPut the old code back" in str(told)


def test_a_patch_is_taken_by_the_runs_that_recorded_it_and_by_new_ones_but_not_while_old_steps_replay() -> None:
    with_patch = Script([record(0, "better", PATCH), record(1, "fetch")])
    without = script("fetch")

    assert with_patch.patched("better") is True
    assert without.patched("better") is False
    without.is_next("fetch")
    assert without.patched("better") is None
    assert Script([]).patched("better") is None


def test_a_patch_is_no_step_to_ask_for() -> None:
    recorded = Script([record(0, "better", PATCH), record(1, "fetch")])

    assert recorded.found("better", PATCH) is None
    assert recorded.is_next("fetch")
    assert not recorded.is_replaying


def test_the_key_of_a_run_without_an_id_is_in_its_made_id_and_that_of_another_is_of_its_workflow_too() -> None:
    key = bytes(range(16))

    assert key_of("import", made_id(key)) == key_of("export", made_id(key)) == key
    assert is_made(made_id(key))
    assert not is_made(made_id(key) + "0")
    assert len({key_of("import", "order-1"), key_of("export", "order-1"), key_of("import", "order-2")}) == 3


@pytest.mark.parametrize("name", ["", "a\nb", None, 7, "x" * (NAME_MAX + 1)])
def test_a_name_that_cannot_be_shown_in_a_line_is_refused(name: object) -> None:
    with pytest.raises(BadMessage, match=r"cannot name a step: 1 to 200 printable characters"):
        check_name(name, "a step")


def test_a_name_may_have_200_characters() -> None:
    assert check_name("x" * 200, "a step") == "x" * 200
