"""Chunks run eight at a time with a pause between them, and every item gets its own answer."""

from __future__ import annotations

import asyncio

import pytest

from penstock.control.chunks import Fulfilled, Rejected, in_chunks
from penstock.testing import virtual


class Crowd:
    """Counts who is inside, and when each came."""

    def __init__(self, takes: float = 1.0) -> None:
        self.takes = takes
        self.inside = self.most = 0
        self.came: list[float] = []

    async def __call__(self, item: int) -> int:
        self.came.append(asyncio.get_running_loop().time())
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(self.takes)
        self.inside -= 1
        if item == 3:
            raise RuntimeError("three")
        return item * 10


@pytest.mark.spec("A6-08")
@virtual
async def test_fifty_items_run_in_seven_chunks_of_at_most_eight_with_six_pauses() -> None:
    crowd = Crowd()
    began = asyncio.get_running_loop().time()
    await in_chunks(range(50), crowd)

    assert crowd.most == 8
    starts = sorted({round(at - began, 3) for at in crowd.came})
    assert starts == [round(chunk * 1.2, 3) for chunk in range(7)]
    # Seven seconds of work and six pauses: none after the last chunk.
    assert round(asyncio.get_running_loop().time() - began, 3) == 7 + 6 * 0.2


@pytest.mark.spec("A6-08", "A6-09", "F-29")
@virtual
async def test_one_failing_item_harms_no_other_and_answers_align_with_items() -> None:
    results = await in_chunks(range(20), Crowd(), concurrency=7, delay_seconds=5)

    assert [result.value for result in results if isinstance(result, Fulfilled)] == [
        item * 10 for item in range(20) if item != 3
    ]
    assert isinstance(failed := results[3], Rejected)
    assert str(failed.error) == "three"


@pytest.mark.spec("A6-09")
@virtual
async def test_answers_are_in_the_order_of_items_whichever_is_first() -> None:
    async def slow_first(item: int) -> int:
        await asyncio.sleep(10 - item)
        return item

    assert await in_chunks(range(8), slow_first) == [Fulfilled(item) for item in range(8)]


@virtual
async def test_nothing_to_do_is_done_at_once() -> None:
    assert await in_chunks([], Crowd()) == []


@virtual
async def test_cancelling_stops_the_items_too() -> None:
    crowd = Crowd(takes=100)
    task = asyncio.create_task(in_chunks(range(20), crowd))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(crowd.came) == 8
