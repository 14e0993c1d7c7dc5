"""The object behind a controller: its alarm is the tick, its state is the pace, the counts and the words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from msgspec.structs import replace

from penstock.contracts.objects import SaveObject
from penstock.control.controller import Definition
from penstock.control.flight import Flight, Tally
from penstock.control.outcome import Outcome
from penstock.control.pace import AdaptivePace, Pace
from penstock.control.status import Minute, noted, prune
from penstock.control.zoning import ZonesPace
from penstock.model.errors import BadApp
from penstock.objects.object import Object
from penstock.runtime.engine import Engine
from penstock.runtime.events import EngineEvent, PaceChanged

FLIGHT_SECONDS = 240.0  # of one tick: well below the wall limit of the alarm that it is
ALONE_SECONDS = 1.0  # of one after its worker died: nothing else runs beside it
# What a crash may lose of the pace that was found: so many answers, or so many seconds where there are fewer.
SAVE_SECONDS, SAVE_ANSWERS, SAVE_SECONDS_MAX = 5.0, 10, 30.0
START_SECONDS = 1.0
GRACE_SECONDS = 60.0  # new code is given time before it works, and begins carefully
SAID_MAX = 50  # changes of pace that are remembered in words
MODES = ("pilot", "zones")


def pace_of(definition: Definition, saved: dict[str, Any], *, now: float) -> Pace:
    """The pace as it was saved, within the rails that hold now."""
    if definition.mode == "pilot":
        return AdaptivePace(saved, rate=definition.rate, parallel=definition.parallel)
    if definition.mode == "zones":
        return ZonesPace(saved, parallel=definition.parallel, now=now)
    raise BadApp(f"There is no mode {definition.mode!r}; there are: {', '.join(MODES)}.")


class ControllerObject(Object):
    definitions: ClassVar[dict[str, Definition]] = {}
    opened: ClassVar[Callable[[], Awaitable[Engine]]]

    running: bool = True
    generation: int = 0
    version: str = ""
    pace: dict[str, Any] = {}  # noqa: RUF012 (every object gets a copy)
    tuned: dict[str, Any] = {}  # noqa: RUF012 (what an operator has set, where the pace does not remember it)
    tally: Tally = Tally()
    minutes: list[Minute] = []  # noqa: RUF012
    said: list[tuple[int, str]] = []  # noqa: RUF012
    last_tick_at: int = 0
    last_work_at: int = 0
    counting_since: int = 0
    idle_streak: int = 0

    async def loaded(self) -> None:
        self._flight: Flight | None = None
        self._woken = False  # since it took off
        self._refused: dict[str, None] = {}
        self._last_words = self.said[-1][1] if self.said else ""

    @property
    def _definition(self) -> Definition:
        found = self.definitions.get(self.name)
        if found is None:
            raise BadApp(
                f"There is no controller {self.name!r} here; there are: {', '.join(self.definitions) or 'none'}."
            )
        return found

    # -- the tick -----------------------------------------------------------------------------------------

    async def alarm(self) -> None:
        """One tick. The next alarm is set whatever happens, in a unit without anything of the user's."""
        engine = await type(self).opened()
        self.last_tick_at = engine.clock.now()
        self.counting_since = self.counting_since or self.last_tick_at
        if not self.running:
            return
        if self._flight is not None:
            # The one before still lands, after a stop or a reset: two would work on the same items.
            self.set_alarm(after=START_SECONDS)
            return
        definition = self._definition
        if self.version != definition.version:
            first = not self.version
            self.version = definition.version
            if not first:
                self.pace = {}
                self.set_alarm(after=GRACE_SECONDS)
                return
        generation, before = self.generation, replace(self.tally)
        pace = tuned_pace(definition, self.pace, self.tuned, now=engine.clock.now() / 1_000_000)
        worked, rest, error = False, definition.rest_seconds(self.idle_streak + 1), None
        async with self._residence.released(away=True):
            try:
                worked, rest = await self._fly(engine, definition, pace, generation)
            except Exception as raised:
                error = raised
        if self.generation != generation:
            return  # it was reset meanwhile: what this tick learnt belongs to the past
        self._note_pace(engine, pace)
        if told := ticked(self.name, before, self.tally, pace, engine.clock.now() / 1_000_000):
            engine.events.emit(told)
        self.last_work_at = engine.clock.now() if worked else self.last_work_at
        self.idle_streak = 0 if worked else self.idle_streak + 1
        if self.running:
            self.set_alarm(after=0.0 if self._woken else rest)
        if error is not None:
            engine.events.emit(PaceChanged(self.name, f"the tick failed: {type(error).__qualname__}: {error}", 0.0))

    async def _fly(self, engine: Engine, definition: Definition, pace: Pace, generation: int) -> tuple[bool, float]:
        """Whether there was anything to do, and how long it may rest now."""

        def fence() -> SaveObject:
            return SaveObject(type(self).__name__, self.name, self._residence.epoch, None)

        def note(outcome: Outcome) -> None:
            if self.generation == generation:
                noted(self.minutes, engine.clock.now(), outcome)
                self._note_pace(engine, pace)

        def tally() -> Tally:
            # Not the one it began with: an event that fails loads the state anew, and a reset begins another.
            return self.tally if self.generation == generation else Tally()

        def goes_on() -> bool:
            # Somebody in another process wants something of it, this one is to stop, or a suspect waits until nothing else
            # runs: the tick lands.
            called_away = self._residence.asked or engine.scheduler.stopped or engine.gate.draining
            return self.running and self.generation == generation and not called_away

        flight = self._flight = Flight(
            engine,
            definition.controller,
            pace,
            tally,
            fence,
            timeout_seconds=definition.timeout_seconds,
            gather_seconds=definition.flush_seconds,
            noted=note,
            refused=self._refused,
        )
        self._woken = False
        self._residence.on_asked = flight.interrupt
        engine.scheduler.on_stop.add(flight.interrupt)
        engine.gate.on_draining.add(flight.interrupt)
        saving = asyncio.ensure_future(self._keep_saving(engine, pace, generation))
        try:
            await flight.load()
            until = engine.clock.now() / 1_000_000 + (ALONE_SECONDS if engine.gate.closed else FLIGHT_SECONDS)
            worked = await flight.run(until, goes_on)
            if not flight.has_all:
                return worked, 0.0
            rest = definition.rest_seconds(1 if worked else self.idle_streak + 1)
            return worked, min(rest, max(START_SECONDS, flight.held_seconds()))
        finally:
            self._flight = None
            self._residence.on_asked = None
            engine.scheduler.on_stop.discard(flight.interrupt)
            engine.gate.on_draining.discard(flight.interrupt)
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)

    async def _keep_saving(self, engine: Engine, pace: Pace, generation: int) -> None:
        """Now and then while it works, so that a crash costs little of what was learnt, and status is fresh."""
        saved, waited = self.tally.dispatched, 0.0
        while self.generation == generation:
            await asyncio.sleep(SAVE_SECONDS)
            waited += SAVE_SECONDS
            new = self.tally.dispatched - saved
            if self.generation == generation and (new >= SAVE_ANSWERS or waited >= SAVE_SECONDS_MAX):
                saved, waited = self.tally.dispatched, 0.0
                self.pace = pace.saved()
                self.last_tick_at = engine.clock.now()
                await self._residence.save_between()

    def _note_pace(self, engine: Engine, pace: Pace) -> None:
        self.pace = pace.saved()
        now = engine.clock.now()
        prune(self.minutes, now)
        words = pace.words
        if words and words != self._last_words:
            self._last_words = words
            self.said = [*self.said[-SAID_MAX + 1 :], (now, words)]
            engine.events.emit(PaceChanged(self.name, words, pace.rate_per_second))

    # -- what an operator does ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Runs on, or begins; a cooldown ends and the window of measurement begins anew."""
        self.running = True
        engine = await type(self).opened()
        now = engine.clock.now() / 1_000_000
        self._changed(now, lambda pace: pace.restarted(now))
        self.set_alarm(after=START_SECONDS)

    async def stop(self) -> None:
        """No further item starts; the alarm is left in place and sees the flag."""
        self.running = False
        if self._flight is not None:
            self._flight.interrupt()

    async def reset(self, *, keep_stopped: bool = False) -> None:
        """As if it had never run; what a tick under way learns is dropped. Items that were set aside may be picked again."""
        self.generation += 1
        self.pace, self.tuned, self.tally, self.minutes, self.said = {}, {}, Tally(), [], []
        self.last_tick_at = self.last_work_at = self.counting_since = self.idle_streak = 0
        engine = await type(self).opened()
        states = ("gone", "parked", "waiting")
        await engine.in_writer(lambda: engine.writer.items.forget(self.name, states=states))
        if self._flight is not None:
            self._flight.interrupt()
        self.running = self.running if keep_stopped else True
        if self.running:
            self.set_alarm(after=START_SECONDS)

    async def tune(self, **wanted: object) -> dict[str, Any]:
        """Sets what the mode lets one set, within its rails, and at once."""
        engine = await type(self).opened()
        now = engine.clock.now() / 1_000_000
        await self._residence.save()  # what cannot be tuned fails, and must not take along what a tick has counted
        self._changed(now, lambda pace: pace.tune(now, wanted))
        self.tuned = self.tuned | wanted
        if self._flight is not None:
            self._flight.interrupt()
        elif self.running:
            self.set_alarm(after=0.0)
        return self.pace

    def _changed(self, now: float, change: Callable[[Pace], None]) -> None:
        """On the pace that flies now, or on the one that is saved."""
        # Tried on a copy: what is refused half-way must not stay with the one that flies.
        change(tuned_pace(self._definition, self.pace, self.tuned, now=now))
        flight = self._flight
        pace = tuned_pace(self._definition, self.pace, self.tuned, now=now) if flight is None else flight.pace
        change(pace)
        self.pace = pace.saved()

    async def wake(self) -> None:
        """There is new work: the tick comes now instead of after its rest, or right after the one that flies."""
        self._woken = True
        if self._flight is None and self.running:
            self.idle_streak = 0
            self.set_alarm(after=0.0)


def tuned_pace(definition: Definition, saved: dict[str, Any], tuned: dict[str, Any], *, now: float) -> Pace:
    """The pace as it was saved. A pilot is put back on the rails of its definition, so what an operator set is set again."""
    pace = pace_of(definition, saved, now=now)
    if tuned and definition.mode == "pilot":
        pace.tune(now, tuned)
    return pace


class ControllerTicked(EngineEvent, name="controller.ticked"):
    """A tick that did something, or was kept from it by a cooldown: what came of it, and how fast it goes on."""

    controller: str
    succeeded: int
    total: int
    failed: int
    batch_size: int
    interval_ms: int
    cooldown_seconds: float


def ticked(name: str, before: Tally, after: Tally, pace: Pace, now: float) -> ControllerTicked | None:
    """None where there was nothing to do."""
    succeeded = after.completed - before.completed
    failed = after.failed - before.failed + after.throttled - before.throttled
    total = succeeded + failed + after.skipped - before.skipped
    cooldown = round(max(0.0, pace.closed_until - now), 1)
    if total <= 0 and not cooldown:
        return None
    return ControllerTicked(name, succeeded, total, failed, pace.batch_size, pace.interval_ms, cooldown)
