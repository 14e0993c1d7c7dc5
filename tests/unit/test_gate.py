"""The gate: one runs alone at a time, whoever gives up its turn leaves the way open for the others, and without the store
nothing begins."""

from __future__ import annotations

import asyncio

from penstock.runtime.gate import Gate


def expected(gate: Gate) -> asyncio.Future[None]:
    gate.expect()
    return asyncio.ensure_future(gate.turn())


def test_a_turn_that_is_given_up_while_others_run_reopens_the_gate() -> None:
    async def work() -> None:
        gate, reopened = Gate(), []
        gate.on_reopen.append(lambda: reopened.append(gate.closed))
        gate.running = 1
        turn = expected(gate)
        await asyncio.sleep(0)
        assert gate.closed

        turn.cancel()
        gate.leave(had_turn=False)
        await asyncio.wait({turn})
        assert reopened == [False]

        gate.running = 0
        await asyncio.wait_for(expected(gate), 1)

    asyncio.run(work())


def test_a_turn_that_is_given_up_before_it_came_takes_nothing_from_who_has_one() -> None:
    async def work() -> None:
        gate = Gate()
        await expected(gate)
        second, third = expected(gate), expected(gate)
        await asyncio.sleep(0)

        second.cancel()
        gate.leave(had_turn=False)
        await asyncio.wait({second})
        assert gate.closed
        assert not third.done()

        gate.leave(had_turn=True)
        await asyncio.wait_for(third, 1)
        assert gate.closed

    asyncio.run(work())


def test_it_stays_closed_until_the_last_that_was_claimed_has_had_its_turn() -> None:
    async def work() -> None:
        gate, reopened = Gate(), []
        gate.on_reopen.append(lambda: reopened.append(gate.closed))
        await expected(gate)
        second = expected(gate)

        gate.leave(had_turn=True)
        assert gate.closed
        await asyncio.wait_for(second, 1)
        assert reopened == []

        gate.leave(had_turn=True)
        assert reopened == [False]

    asyncio.run(work())


def test_it_is_closed_while_the_store_is_away_and_as_long_as_a_suspect_is_there() -> None:
    async def work() -> None:
        gate, reopened = Gate(), []
        gate.on_reopen.append(lambda: reopened.append(gate.closed))
        cuts: list[str] = []
        gate.on_draining.add(lambda: cuts.append("what runs for long lands"))
        gate.on_store_lost.append(lambda: cuts.append("what waits goes back"))
        gate.set_store_lost(True)
        assert gate.closed
        assert gate.draining == 1
        gate.set_store_lost(True)  # once more, before it is back
        assert cuts == ["what runs for long lands", "what waits goes back"]
        gate.set_store_lost(False)
        assert gate.draining == 0
        assert reopened == [False]

        await expected(gate)
        gate.set_store_lost(True)
        gate.set_store_lost(False)
        assert gate.closed
        gate.set_store_lost(True)
        gate.leave(had_turn=True)
        assert gate.closed
        gate.set_store_lost(False)
        assert reopened == [False, False]

    asyncio.run(work())
