"""The gate: one runs alone at a time, and whoever gives up its turn leaves the way open for the others."""

from __future__ import annotations

import asyncio

from penstock.runtime.gate import Gate


def test_a_turn_that_is_given_up_while_others_run_reopens_the_gate() -> None:
    async def work() -> None:
        gate, reopened = Gate(), []
        gate.when_reopened(lambda: reopened.append(gate.closed))
        gate.running = 1
        turn = asyncio.ensure_future(gate.turn())
        await asyncio.sleep(0)
        assert gate.closed

        turn.cancel()
        await asyncio.wait({turn})
        assert reopened == [False]

        gate.running = 0
        await asyncio.wait_for(gate.turn(), 1)

    asyncio.run(work())


def test_a_turn_that_is_given_up_before_it_came_takes_nothing_from_who_has_one() -> None:
    async def work() -> None:
        gate = Gate()
        await gate.turn()
        second, third = asyncio.ensure_future(gate.turn()), asyncio.ensure_future(gate.turn())
        await asyncio.sleep(0)

        second.cancel()
        await asyncio.wait({second})
        assert gate.closed
        assert not third.done()

        gate.over()
        await asyncio.wait_for(third, 1)
        assert gate.closed

    asyncio.run(work())


def test_it_stays_closed_until_the_last_that_waits_has_had_its_turn() -> None:
    async def work() -> None:
        gate, reopened = Gate(), []
        gate.when_reopened(lambda: reopened.append(gate.closed))
        await gate.turn()
        second = asyncio.ensure_future(gate.turn())
        await asyncio.sleep(0)

        gate.over()
        assert gate.closed
        await asyncio.wait_for(second, 1)
        assert reopened == []

        gate.over()
        assert reopened == [False]

    asyncio.run(work())
