"""Ids: what is new sorts by time and never repeats, and what follows from something else always gets the same id."""

from __future__ import annotations

import uuid
from random import Random

import pytest

from penstock.model.ids import NO_PARENT, IdSource, as_text, correlation_of, derived, from_text

MILLISECOND = 1_000
NOON = 1_799_582_400_000 * MILLISECOND


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def milliseconds(id: bytes) -> int:
    return int.from_bytes(id[:6], "big")


@pytest.mark.spec("A2-01")
def test_a_new_id_is_a_uuid_of_version_7_that_begins_with_the_time(clock: Clock) -> None:
    id = uuid.UUID(bytes=IdSource(clock, Random(1)).new())

    assert (id.version, id.variant) == (7, uuid.RFC_4122)
    assert milliseconds(id.bytes) == NOON // MILLISECOND


def test_ids_of_one_millisecond_count_on_from_the_first_and_keep_time_version_and_variant(clock: Clock) -> None:
    source = IdSource(clock, Random(1))

    ids = [source.new() for _ in range(100_000)]

    assert ids == sorted(set(ids))
    assert {milliseconds(id) for id in ids} == {NOON // MILLISECOND}
    assert {(uuid.UUID(bytes=id).version, uuid.UUID(bytes=id).variant) for id in (ids[0], ids[-1])} == {
        (7, uuid.RFC_4122)
    }


@pytest.mark.parametrize("drawn", [0, (1 << 73) - 1])
def test_even_the_highest_id_that_can_be_drawn_leaves_room_for_the_next_ones(clock: Clock, drawn: int) -> None:
    class Drawn(Random):
        def getrandbits(self, k: int, /) -> int:
            return drawn & ((1 << k) - 1)

    source = IdSource(clock, Drawn())
    first = int.from_bytes(source.new(), "big")

    assert (first + (1 << 60)) >> 62 == first >> 62, "counting on would change the variant"


def test_ids_go_on_upwards_when_the_clock_is_set_back_and_begin_anew_when_it_goes_on(clock: Clock) -> None:
    source = IdSource(clock, Random(1))
    first = source.new()
    clock.now -= 5_000 * MILLISECOND
    later = source.new()
    clock.now = NOON + MILLISECOND
    last = source.new()

    assert first < later < last
    assert milliseconds(later) == milliseconds(first)
    assert milliseconds(last) == milliseconds(first) + 1


def test_two_processes_in_one_millisecond_have_different_ids(clock: Clock) -> None:
    assert IdSource(clock, Random(1)).new() != IdSource(clock, Random(2)).new()


@pytest.mark.spec("A2-11")
def test_a_derived_id_is_a_uuid_of_version_8_that_depends_on_everything_it_comes_from(clock: Clock) -> None:
    parent = IdSource(clock, Random(1)).new()

    id = uuid.UUID(bytes=derived(parent, "orders", "1"))

    assert (id.version, id.variant) == (8, uuid.RFC_4122)
    assert id.bytes == derived(parent, "orders", "1")
    assert milliseconds(id.bytes) == milliseconds(parent)
    others = [derived(parent, "orders1", ""), derived(parent, "orders", "2"), derived(NO_PARENT, "orders", "1")]
    assert len({id.bytes, *others}) == 4


def test_databases_hold_these_ids_of_keys_and_chains() -> None:
    """Another digest would let a message of an earlier version run again under a new id."""
    assert as_text(derived(NO_PARENT, "orders", "o-1")) == "00000000-0000-83a8-b3eb-b4711f9527e1"
    assert as_text(correlation_of("brand 7")) == "00000000-0000-82f4-9d9d-b1a95f35fb7d"


def test_a_chain_is_named_by_a_uuid_or_by_any_text() -> None:
    text = "019a8c3e-7f00-7abc-8def-0123456789ab"

    assert as_text(correlation_of(text)) == text
    assert correlation_of("a") != correlation_of("b")
    assert as_text(from_text(text.upper())) == text
