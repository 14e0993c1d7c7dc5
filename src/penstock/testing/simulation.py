"""An app in a bad world: what befalls it is drawn from a seed, and what its author promises has to hold all the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine
from datetime import timedelta
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, ParamSpec, TypeVar, Unpack

import msgspec

from penstock.app import App
from penstock.contracts.faults import CRASH_POINTS
from penstock.data.database import Database
from penstock.model.limits import Limits
from penstock.model.message import PRIORITY_NORMAL
from penstock.model.times import Span
from penstock.queues.queue import Queue
from penstock.runtime.engine import Engine
from penstock.runtime.events import EngineEvent
from penstock.testing.harness import More, TestApp

P = ParamSpec("P")
T = TypeVar("T")

UNREST_SECONDS = 60.0  # after the last disturbance: what failed is retried, and may meet a fault that is still to come
LATENCIES_SECONDS = (0.0, 0.002, 0.1)  # of the store; each history has one of these
FATES = ("slow to begin", "slow to answer", "fails", "answer lost")  # of a call that goes wrong
ANSWER_SECONDS = (0.0, 0.5)  # a service that is well takes so long to begin, and again to answer
SLOW_SECONDS = (5.0, 120.0)
TROUBLE = (0.0, 0.1, 0.3)  # the share of calls that go wrong; each history has one of these
WORDS = "queue type event_id id task object workflow attempt success error reason done failed by_seconds".split()
TEXT_MAX = 300  # of a payload or a note in the story
DISTURBANCES_MAX = 6
DISTURBANCES = {"crash": 8, "kill": 2, "stop": 2, "stall": 2, "jump": 2}
POINTS = {point: 3 if point.startswith(("handler.", "unit.", "commit.")) else 1 for point in CRASH_POINTS}
TURNS_MAX = 3  # of the scenario, between two of them
AFTER_SECONDS = (0.02, 0.3, 5.0)  # on average from the beginning of a turn: most work is done soon after it is sent
NTH = (1, 1, 2, 4)  # the time that a crash point is reached at which the worker dies
STALL_SECONDS = 30.0
LEAP_SECONDS = (90.0, 3_600.0, 86_400.0)  # forward; backward never so far that what waits is not done in the calm
BACK_SECONDS = 60.0


class Disturbance(NamedTuple):
    """It comes `after` seconds after time has begun to pass for the `turns`-th time."""

    kind: str
    text: str
    turns: int
    after: float
    seconds: float = 0.0
    point: str = ""
    nth: int = 1


def disturbance(number: int, chance: Random) -> Disturbance:
    kind = _weighed(chance, DISTURBANCES)
    turns, after = chance.randint(0, TURNS_MAX), chance.expovariate(1 / chance.choice(AFTER_SECONDS))
    name = f"disturbance {number}"
    match kind:
        case "crash":
            point, nth = _weighed(chance, POINTS), chance.choice(NTH)
            text = f"crash: at {point}, time {nth} ({name})"
            return Disturbance(kind, text, turns, after, point=point, nth=nth)
        case "stall":
            seconds = chance.uniform(0.0, STALL_SECONDS)
            return Disturbance(kind, f"stall: {seconds:.3f} s ({name})", turns, after, seconds)
        case "jump":
            seconds = chance.choice((1, -1)) * chance.uniform(0.0, 1.0)
            seconds *= chance.choice(LEAP_SECONDS) if seconds > 0 else BACK_SECONDS
            return Disturbance(kind, f"jump: {seconds:+.3f} s ({name})", turns, after, seconds)
        case _:
            return Disturbance(kind, f"{kind}: the worker ({name})", turns, after)


def _weighed(chance: Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


class Simulation(TestApp):
    """One history of an app. Derive from it, say how the app is made, what happens to it and what must hold, and let
    `simulate` run it from many seeds. Between two statements of yours nothing moves; `advance` and `drain` let time pass,
    and then the worker is killed, stalled and stopped, clocks are set, and services fail.

    Where a message is tried more often than by default, or less often, say how many `misfortunes` a history may hold."""

    misfortunes = 2  # deaths and failed calls together: what a message survives with the usual settings of a queue
    calm = timedelta(hours=1)  # after the last disturbance, in which everything has to come to its end
    longest = timedelta(days=7)  # a history that takes longer waits for what never comes

    def __init__(self, seed: int = 0, *, spared: Collection[str] = ()) -> None:
        """What is `spared` does not happen, though the seed would have it."""
        self.befallen: list[str] = []
        self.story: list[str] = []
        self.random = Random(f"{seed}/scenario")  # for the scenario's own choices
        self.db = Database(_OutsideApp(self))  # type: ignore[arg-type]  # the part of an app that it uses
        self._spared = frozenset(spared)
        self.seed = seed
        self._left = self.misfortunes
        self._disturbed = False  # while one disturbance lasts there is no other
        self._calls: Counter[str] = Counter()
        self._armed: dict[str, str] = {}  # crash points, and their line in the story
        self._deaf: Callable[[], None] = lambda: None
        world = self._draws("world")
        numbers = range(1, world.randint(0, DISTURBANCES_MAX) + 1)
        self._planned = [disturbance(number, self._draws(f"disturbance {number}")) for number in numbers]
        self._turns = 0  # that time has begun to pass since the last disturbance
        self._due: float | None = None  # when the next one comes, if it is its turn
        self._trouble = world.choice(TROUBLE)
        shuffled = world.random() < 0.5 and self._befalls("deliveries in any order")
        duplicated = world.random() < 0.15 and self._befalls("every message delivered twice")
        super().__init__(None, seed=seed, shuffled=shuffled, duplicated=duplicated)  # type: ignore[arg-type]
        if (slow := world.choice(LATENCIES_SECONDS)) and self._befalls("a slow store"):
            latencies = self._draws("latency")
            self._latency = lambda: latencies.uniform(0.0, 2 * slow)
        self.prepare()
        self.app = self.make()

    # -- what you say about your app ----------------------------------------------------------------------

    def prepare(self) -> None:
        """Makes what is not the app's and outlives its crashes: what its services know, and what they were asked."""

    def make(self) -> App:
        """Makes the app, anew for each worker that starts: what it keeps in memory dies with it, as it would."""
        raise NotImplementedError("A simulation defines `make`, which returns its app.")

    async def scenario(self) -> None:
        """What happens to the app: messages, runs, hours that pass."""

    async def always(self) -> None:
        """Asserts what must hold at every moment. Asked whenever time has passed, and after each disturbance."""

    async def in_the_end(self) -> None:
        """Asserts what must hold when the world has been calm for long enough that everything is done."""

    # -- what it offers -----------------------------------------------------------------------------------

    def service(self, function: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """The same function as a service far away would do it: it takes its time, and continues when its caller is dead or
        tired of waiting. Some calls fail before anything was done (ConnectionError), and of some the answer gets lost
        (TimeoutError) though it was done."""

        @wraps(function)
        async def far_away(*args: P.args, **kwargs: P.kwargs) -> T:
            name = getattr(function, "__name__", "service")
            self._calls[name] += 1
            call = f"{name}, call {self._calls[name]}"
            answering = self._answered(call, lambda: function(*args, **kwargs))
            request = self._host.loop.create_task(answering, context=self._context.copy())
            request.add_done_callback(_looked_at, context=self._context.copy())
            return await asyncio.shield(request)

        return far_away

    def note(self, text: str) -> None:
        """Add a line to the story, which is printed for a history that breaks an invariant."""
        self.story.append(f"{asyncio.get_running_loop().time():12.3f}  {text[:TEXT_MAX]}")

    async def send(
        self, queue: Queue[T], payload: T, *, delay: Span = 0.0, priority: int = PRIORITY_NORMAL, **more: Unpack[More]
    ) -> str:
        """Send one message and return its id; add it to the story."""
        id = await super().send(queue, payload, delay=delay, priority=priority, **more)
        self.note(f"sent to {queue.name}: {payload!r:.{TEXT_MAX}} as {id}")
        return id

    async def live(self) -> None:
        """The whole history: the scenario under disturbances, then calm, then the end."""
        async with self:
            await self.scenario()
            while self._planned:
                self._turns = self._planned[0].turns
                await self.advance(seconds=UNREST_SECONDS)
            await self.advance(seconds=UNREST_SECONDS)
            self._left = 0
            self._disarm()
            self.note("calm")
            await self.advance(seconds=self.calm.total_seconds())
            await self.drain()
            await self.in_the_end()

    # -- what befalls it ----------------------------------------------------------------------------------

    def _draws(self, concern: str) -> Random:
        return Random(f"{self.seed}/{concern}")

    def _befalls(self, what: str) -> bool:
        """Each has a name, so that a history can be replayed without it."""
        if what in self._spared:
            return False
        self.befallen.append(what)
        return True

    async def advance(
        self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Lets so much time pass, with what befalls the app on the way, and asks what must always hold."""
        self._turn()
        await super().advance(seconds, minutes=minutes, hours=hours, days=days)

    async def drain(self) -> None:
        """Runs until no queue has a message that is ready or under way, whatever befalls the app meanwhile."""
        self._turn()
        await super().drain()

    def _turn(self) -> None:
        self._turns += 1
        if self._planned and self._due is None and self._turns > self._planned[0].turns:
            self._due = self._host.loop.time() + self._planned[0].after

    async def _until(self, when: float) -> None:
        if self._due is not None and self._due <= when and not self._disturbed:
            await super()._until(self._due)
            self._disturbed, self._due, self._turns = True, None, 0
            try:
                await self._strike(self._planned.pop(0))
            finally:
                self._disturbed = False
        await super()._until(when)
        if self._open and not self._disturbed:
            await self.always()

    async def _strike(self, it: Disturbance) -> None:
        await self._manned()
        deadly = it.kind in ("crash", "kill")
        if (deadly and not self._left) or it.point in self._armed or not self._befalls(it.text):
            return
        if it.kind != "crash":  # which is written when the worker has died there
            self.note(it.text)
        match it.kind:
            case "crash":
                self._armed[it.point] = it.text
                await self.crash(at=it.point, nth=it.nth)
            case "kill":
                await self.kill()
            case "stop":
                await self.restart()
            case "stall":
                self._worker.pause()
                self._host.loop.call_later(it.seconds, self._worker.resume, context=self._context)
            case "jump":
                self.jump(it.seconds)
        await self._manned()
        await self.always()

    async def _manned(self) -> None:
        """Returns when a worker is there: one that has died is replaced, which takes a slow store its time."""
        while self._reviving is not None and not self._reviving.done():
            await self._reviving

    async def _answered(self, call: str, function: Callable[[], Awaitable[T]]) -> T:
        chance = self._draws(call)
        fate = chance.choice(FATES) if chance.random() < self._trouble and self._left else ""
        if fate and self._befalls(f"{fate}: {call}"):
            self._left -= 1
            self.note(f"{fate}: {call}")
        else:
            fate = ""
        await asyncio.sleep(chance.uniform(*(SLOW_SECONDS if fate == "slow to begin" else ANSWER_SECONDS)))
        if fate == "fails":
            raise ConnectionError(f"{call}: no answer")
        answer = await function()
        self.note(f"done: {call}")
        await asyncio.sleep(chance.uniform(*(SLOW_SECONDS if fate == "slow to answer" else ANSWER_SECONDS)))
        if fate == "answer lost":
            raise TimeoutError(f"{call}: no answer, and an unknown result")
        return answer

    # -- its workers --------------------------------------------------------------------------------------

    async def _start_worker(self) -> None:
        app = self.make() if self._workers else self.app
        if app is not self.app:
            app.database = self.app.database
            self.app = self._outside.app = app
            for queue in app.queues.values():
                self._recorder.watch(queue)
        self._deaf()
        self._deaf = app.events.subscribe(self._heard)
        # What became of every message is in the story: no file is kept of it beside the database.
        app.config = msgspec.structs.replace(app.config, history=False, synchronous="off")
        await super()._start_worker()

    def _revive(self) -> None:
        if self._open:
            assert self._trap is not None
            reached = [text for point, text in self._armed.items() if point not in self._trap.armed]
            self._armed = {point: text for point, text in self._armed.items() if point in self._trap.armed}
            self.note(", ".join(["the worker is dead", *reached]))
            self._left = max(0, self._left - 1)
            if not self._left:
                self._disarm()
        super()._revive()

    def _disarm(self) -> None:
        """Remove crash points that were never reached from the story."""
        assert self._trap is not None
        for point, text in self._armed.items():
            self._trap.armed.pop(point, None)
            self.befallen.remove(text)
        self._armed.clear()

    def _put_back(self) -> None:
        super()._put_back()
        self._deaf()

    def _heard(self, event: EngineEvent) -> None:
        facts = event.facts()
        self.note(f"{event.name} " + " ".join(f"{word}={facts[word]}" for word in WORDS if facts.get(word) is not None))


def _looked_at(request: asyncio.Task[Any]) -> None:
    """Read the result of a request whose caller may be dead, so that asyncio does not warn."""
    if not request.cancelled():
        request.exception()


class _OutsideApp:
    """The database as a process beside the worker sees it, also while the worker is dead."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    @property
    def limits(self) -> Limits:
        return self._world.app.limits

    async def _opened(self) -> Engine:
        return self._world._outside

    def blobs(self, path: str | Path) -> Any:
        return self._world.app.blobs(path)
