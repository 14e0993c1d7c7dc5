"""What batch handlers of a simulated world do: say words, open blocks, write for all, and end in every way."""

from __future__ import annotations

import asyncio
from typing import Any

import penstock as ps
from penstock.queues.batch import Batch
from tests.simulation.endings import KEEPS_EFFECTS, worded
from tests.simulation.model import Run, Work
from tests.simulation.plan import Plan
from tests.simulation.script import ANSWERS, WORDS, Script, say
from tests.simulation.workers import SimulatedApp

REFUSED = {"bad", "lost_update"}  # by the database: then words count for nothing, because nothing of the unit happened
BLOCK_ENDINGS = {"fail", "throttled", "permanent", "bad", "lost_update"}


class BatchScript:
    def __init__(self, plan: Plan, script: Script) -> None:
        self._plan = plan
        self._script = script
        self._chance = script.chance
        self._stalled = False

    async def play(self, app: SimulatedApp, batch: Batch[Any], leader: Run) -> object:
        """`leader` stands for the handler itself: its work is what all of the batch have in common."""
        script, common, runs = self._script, leader.work, leader.beside
        kind = script.drawn()
        if self._plan.stalls and not script.calm and not self._stalled and self._chance.random() < 0.3:
            self._stalled = True
            script.stall(leader)
        await script.sleep()
        pairs = list(zip(batch.messages, runs, strict=True))
        self._chance.shuffle(pairs)
        for message, run in pairs:
            await self._treat(app, message, run)
        if common.runs and "midway" in self._plan.behaviours and self._chance.random() < 0.5:
            async with app.unit():
                script.midway(app, common.runs)
        await script.befall(kind, leader)
        if kind == "stubborn":
            try:
                await asyncio.sleep(leader.row.queue.wall + 1)
            except asyncio.CancelledError:
                pass
        if not script.calm and self._chance.random() < 0.1:
            self._say_to_all(batch, common)
        if kind in REFUSED or self._chance.random() < 0.8:
            for message, run in pairs:
                if run.work is common:
                    script.work(app, message.body, run, common)
        seconds = self._chance.choice((0.0, 0.5, 2.0))
        ending = kind if kind in ANSWERS else "done"
        common.keeps = ending in KEEPS_EFFECTS
        ended(common, ending, seconds)
        leader.answered = True
        return script.answer(kind, app, seconds)

    def _say_to_all(self, batch: Batch[Any], common: Work) -> None:
        word, seconds = self._chance.choice(("ack", "retried")), self._chance.choice((None, 0.0, 2.0))
        for run in common.runs:
            if run.word == "":
                run.word, run.seconds = word, seconds
        if word == "ack":
            batch.ack_all()
        else:
            batch.retry_all(seconds)

    async def _treat(self, app: SimulatedApp, message: ps.Message[Any], run: Run) -> None:
        drawn = self._chance.random()
        if drawn < 0.3:
            await self._block(app, message, run)
        elif drawn < 0.6:
            run.word = "ack" if self._script.calm else self._chance.choice(WORDS)
            run.seconds = self._chance.choice((0.0, 0.5, 2.0))
            say(message, run.word, run.seconds)

    async def _block(self, app: SimulatedApp, message: ps.Message[Any], run: Run) -> None:
        """A unit of its own for one message. What goes wrong in it is this message's alone."""
        script, common, own = self._script, run.work, Work([run])
        drawn = script.drawn()
        ending = drawn if drawn in BLOCK_ENDINGS else "done"
        async with message:
            try:
                await script.sleep()
                if "keyed" in self._plan.behaviours and self._chance.random() < 0.3:
                    await script.keyed(app, run)
                run.seconds = self._chance.choice((0.0, 0.5, 2.0))
                if not script.calm and self._chance.random() < 0.3:
                    run.word = self._chance.choice(WORDS)
                    say(message, run.word, run.seconds)
                if run.word == "retried" and ending in REFUSED:
                    ending = "done"  # a failure by its own word: what it wrote is dropped and never refused
                if ending in REFUSED or self._chance.random() < 0.8:
                    script.work(app, message.body, run, own)
            except Exception as error:
                if not isinstance(error, ps.LeaseLost):
                    script.broken(f"{run.row.key} failed in its block as nobody planned: {error!r}")
                ending = "fail"
                self._leave(common, own, run, ending)
                raise
            self._leave(common, own, run, ending)
            script.answer(ending, app, run.seconds)
        await script.sleep()

    def _leave(self, common: Work, own: Work, run: Run, ending: str) -> None:
        common.runs.remove(run)
        run.work, run.answered = own, True
        own.keeps = ending == "done" and run.word != "retried"
        ended(own, ending, run.seconds)


def ended(work: Work, ending: str, seconds: float | None) -> None:
    """The handler, or the block, of these runs has ended: what each of them comes to."""
    held_nothing = not work.effects
    for run in work.runs:
        word = "" if ending in REFUSED else run.word
        run.outcome = worded(word, ending, held_nothing=held_nothing)
        if run.outcome == ending and run.outcome != word:
            run.seconds = seconds
