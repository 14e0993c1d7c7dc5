"""The limit on what is under way: never exceeded, nobody forgotten, and whoever gives up takes no place along."""

from __future__ import annotations

import asyncio
import random

import pytest

from penstock_systems.appstore.enrich.outbound import Outbound

pytestmark = pytest.mark.slow("postgres")


@pytest.mark.spec("B3-04", "G5-23")
async def test_there_are_never_more_than_the_limit_under_way_and_all_get_their_turn(seed: int) -> None:
    chance = random.Random(seed)
    outbound, at_once, seen = Outbound(4), 0, 0

    async def request() -> None:
        nonlocal at_once, seen
        async with outbound:
            at_once += 1
            try:
                assert at_once <= 4
                await asyncio.sleep(chance.random())
                seen += 1
            finally:
                at_once -= 1

    waiting = [asyncio.ensure_future(request()) for _ in range(200)]
    for _ in range(60):
        await asyncio.sleep(chance.random() / 2)
        chance.choice(waiting).cancel()
    ended = await asyncio.gather(*waiting, return_exceptions=True)

    cancelled = sum(isinstance(each, asyncio.CancelledError) for each in ended)
    assert [each for each in ended if each is not None and not isinstance(each, asyncio.CancelledError)] == []
    assert (seen, outbound.under_way, outbound.peak) == (200 - cancelled, 0, 4)


async def test_a_place_goes_to_the_one_who_waits_longest() -> None:
    outbound, order = Outbound(1), []

    async def request(name: int) -> None:
        async with outbound:
            order.append(name)
            await asyncio.sleep(1)

    await asyncio.gather(*(request(name) for name in range(5)))
    assert order == [0, 1, 2, 3, 4]


async def test_one_that_fails_gives_its_place_back() -> None:
    outbound = Outbound(1)
    for _ in range(3):
        with pytest.raises(OSError, match="refused"):
            async with outbound:
                raise OSError("refused")
    assert outbound.under_way == 0


async def test_who_is_cancelled_at_the_moment_of_his_turn_hands_it_on() -> None:
    outbound = Outbound(1)
    inside = asyncio.Event()

    async def request() -> None:
        async with outbound:
            inside.set()
            await asyncio.sleep(1)

    first, second, third = (asyncio.ensure_future(request()) for _ in range(3))
    await asyncio.sleep(0.5)
    inside.clear()
    first.cancel()
    await asyncio.sleep(0)  # the first leaves, and it is the second's turn
    second.cancel()
    await third
    assert (inside.is_set(), outbound.under_way) == (True, 0)
