"""The rounds of a chain: which follow from one state to the next, and when counting begins anew."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from penstock.model.loops import LOOP_SECONDS, ROUNDS_MAX, begin, follow
from penstock.model.message import FLAGS, Delivery

SECOND = 1_000_000
NOON = 1_799_582_400 * SECOND


def delivery(body: str, flags: int, sent_at: int) -> Delivery:
    nothing = dict.fromkeys(Delivery._fields, 0)
    return Delivery(**nothing | {"type": "page", "body": body.encode(), "flags": flags, "sent_at": sent_at})  # type: ignore[arg-type]


def chain(bodies: Sequence[str], *, every: float = 0.01, type: str = "page", flags: int = 0) -> list[int]:
    """Return the rounds of each message that follows from the one before it."""
    now, state, found = NOON, flags, []
    for body, follower in pairwise(bodies):
        parent = delivery(body, state, now)
        now += round(every * SECOND)
        rounds, state = follow(parent, type, follower.encode(), now=now)
        assert state >> 63 == 0, "it does not fit into a signed integer"
        found.append(rounds)
    return found


@pytest.mark.spec("A2-20")
def test_a_message_that_causes_itself_completes_a_round_each_time() -> None:
    assert chain(["a"] * 6) == [1, 2, 3, 4, 5]


@pytest.mark.spec("A2-20")
def test_messages_with_different_bodies_or_types_complete_none() -> None:
    assert chain([str(number) for number in range(2_000)]) == [0] * 1_999
    assert chain(["a"] * 2, type="other") == [0]


@pytest.mark.spec("A2-20")
@pytest.mark.parametrize("length", [2, 3, 5, 8, 100, 256])
@pytest.mark.parametrize("before", [0, 7])
def test_a_round_of_several_messages_is_counted_once_it_was_found(length: int, before: int) -> None:
    """The ancestor changes after 1, 2, 4 ... messages, so a round of n messages is found within a few times as many."""
    rounds = chain([f"before {n}" for n in range(before)] + [str(n) for n in range(length)] * 12, every=0.001)

    found = [place for place, (now, then) in enumerate(zip(rounds, [0, *rounds], strict=False)) if now > then]
    assert found[0] <= 4 * (length + before) + 4
    assert {later - earlier for earlier, later in pairwise(found)} == {length}
    assert rounds[-1] == len(found) >= 7


def test_a_round_longer_than_256_messages_is_not_found() -> None:
    assert set(chain([str(n) for n in range(257)] * 12, every=0.0001)) == {0}


@pytest.mark.spec("A2-20")
def test_a_wait_longer_than_the_window_begins_anew() -> None:
    """It runs from the first message that completes a round on, and a single wait ends it too."""
    assert chain(["a"] * 5, every=LOOP_SECONDS + 0.01) == [1, 1, 1, 1]
    assert chain(["a"] * 7, every=LOOP_SECONDS / 3) == [1, 2, 3, 4, 1, 2]


def test_rounds_are_counted_up_to_their_most() -> None:
    assert chain(["a"] * (ROUNDS_MAX + 3), every=0.001)[-3:] == [ROUNDS_MAX] * 3


def test_the_flags_of_a_message_are_no_state() -> None:
    assert chain(["a"] * 3, flags=FLAGS) == [1, 2]
    assert begin("page", b"a", now=NOON) & FLAGS == 0
