"""An app under test: the real engine on a real file, in virtual time, with hands on its messages, its clock and its life."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NoReturn, TypedDict, TypeVar, Unpack

import httpx2
import msgspec

from penstock.app import App
from penstock.contracts.faults import CRASH_POINTS, NoFaults, known_point
from penstock.model.errors import BadApp, PenstockError
from penstock.model.ids import as_text
from penstock.model.message import PRIORITY_NORMAL
from penstock.model.times import Span, from_micros, in_seconds, to_micros
from penstock.queues.letters import DeadLetter
from penstock.queues.queue import Queue
from penstock.runtime.engine import Engine
from penstock.runtime.unit import AwaitedUnit, open_unit
from penstock.testing.attempts import Answers, Attempt, Recorder, note_failures
from penstock.testing.counts import Counts, check_conservation, counts_of, dead_letters
from penstock.testing.loop import VirtualTime
from penstock.testing.process import Killed, Process
from penstock.testing.surroundings import VirtualHost
from penstock.testing.unruly import CandidRecorder, Unruly

DRAIN_SECONDS_MAX = 86_400.0  # virtual ones; a handler that is not done by then never will be
HAIR_SECONDS = 0.2e-6  # past the microsecond asked for: sums of floats may put a timer that is due then a hair later
T = TypeVar("T")
__all__ = ["CRASH_POINTS", "Trap"]


class More(TypedDict, total=False):
    """The keywords that `TestApp.send` passes on to `queue.send`."""

    id: str | None
    unique: str | None
    correlation: str | None


class Trap:
    """The faults of one process. Points are counted from the moment they are armed."""

    def __init__(self, process: Process, armed: dict[str, int] | None = None) -> None:
        self._process = process
        self.armed = {} if armed is None else armed  # how often each point is still to be passed

    def arm(self, point: str, *, nth: int = 1) -> None:
        """The process dies at the `nth` time from now that `point` is reached."""
        self.armed[known_point(point)] = nth

    def at(self, point: str) -> None:
        if self._process.dead:
            raise Killed
        if not self.armed or (left := self.armed.get(point)) is None:
            return
        self.armed[point] = left - 1
        if left == 1:
            del self.armed[point]
            self._process.kill()
            raise Killed


class WorkerFailed(PenstockError):
    """The worker under test fell over."""


class NotDrained(PenstockError):
    """Something stays ready or leased, whatever time passes."""


class TestApp:
    """Runs an app with one worker. Nothing moves between two statements of a test: only `advance` and `drain` let the
    worker learn of what was sent and time pass. What the test itself sends and reads goes through a process of its own,
    so it survives when the worker is killed."""

    __test__ = False
    new_database: ClassVar[Callable[[], str] | None] = None  # where tests that name no folder keep theirs

    def __init__(
        self,
        app: App,
        *,
        seed: int = 0,
        start: datetime | None = None,
        synchronous: str = "off",
        tick_seconds: float | None = None,
        latency: float = 0.0,
        shuffled: bool = False,
        duplicated: bool = False,
        folder: Path | None = None,
        database: str | None = None,
    ) -> None:
        """The database is the empty one that `database` names, or kept in `folder`, or in one that goes with the test.
        `latency` is what the worker's store takes to begin and to answer, in virtual seconds. With `shuffled` what is
        claimed together begins in any order, as the seed wants it. With `duplicated` each message that the test sends is
        sent twice under one id, and each is delivered once more to a handler that has lost its lease, so that it runs and
        can save nothing: `delivered` leaves that one out."""
        self.app = app
        self.answers: Answers = deque()
        self.seed = seed
        self._start = start
        self._synchronous = synchronous
        self._tick_seconds = tick_seconds
        self._latency = (lambda: latency) if latency else None
        self._shuffled = shuffled
        self._duplicated = duplicated
        self._kept_in = folder
        self._named = database
        self._answering: list[Queue[Any]] = []
        self._open = False
        self._workers = 0
        self._worker: Process
        self._trap: Trap | None = None
        self._running: asyncio.Task[None] | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None

    # -- opening and closing ------------------------------------------------------------------------------

    async def __aenter__(self) -> TestApp:
        self._host = VirtualHost(seed=self.seed)
        self._context = contextvars.copy_context()
        self._time = VirtualTime(self._host.loop)
        if self._start is not None:
            self._time.jump((to_micros(self._start) - self._time.clock.now()) / 1_000_000)
        self._folder = TemporaryDirectory(prefix="penstock-test-")
        self._before = (self.app.database, self.app.config)
        if self._named is not None:
            self.app.database = self._named
        elif self._kept_in is None and TestApp.new_database is not None:
            self.app.database = TestApp.new_database()
        else:
            self.app.database = str(Path(self._kept_in or self._folder.name, f"{self.app.name}.db"))
        self.app.config = msgspec.structs.replace(self.app.config, synchronous=self._synchronous)
        recorder = CandidRecorder if self._duplicated else Recorder
        self._recorder = recorder(lambda: self._time.clock.now())
        try:
            for queue in self.app.queues.values():
                if queue in self._answering:
                    self._recorder.answer(queue, self.answers)
                else:
                    self._recorder.watch(queue)
            self._host.bells.held = True
            await self._start_worker()
            self._outside = await self._open_outside()
            self._note_failures = note_failures(self.app.events)
            self._open = True
            await self._host.loop.settle()
        except BaseException:
            self._put_back()
            raise
        return self

    async def __aexit__(self, _class: object, error: BaseException | None, *_: object) -> None:
        self._open = False
        self._note_failures(error)
        assert self._trap is not None
        self._trap.armed.clear()
        try:
            if self._reviving is not None:
                await self._reviving
            if self._running is not None and not self._worker.dead:
                self.app.stop()
                await asyncio.wait([self._running])
            if error is None:
                await self.check_conservation()
            await self._outside.close()
        finally:
            self._put_back()
        self._raise_failure()

    def _put_back(self) -> None:
        self._host.dispose()
        self._recorder.leave()
        self.app.database, self.app.config = self._before
        self._folder.cleanup()

    async def _open_outside(self) -> Engine:
        process = self._host.process("outside")
        surroundings = self._host.surroundings(process, NoFaults())
        app = self.app
        engine = Engine(app, app._store(), app.events, app.limits, surroundings, lease_longest=0.0)
        await process.start(engine.open())
        process.owns(engine)
        return engine

    async def _start_worker(self) -> None:
        self._workers += 1
        process = self._worker = self._host.process(f"worker {self._workers}")
        # What was armed and not reached waits for the next worker: some points are reached only after a death.
        self._trap = Trap(process, {} if self._trap is None else self._trap.armed)
        surroundings = self._host.surroundings(
            process, self._trap, tick_seconds=self._tick_seconds, latency=self._latency
        )
        engine = await process.start(self.app._open(surroundings))
        process.owns(engine)
        if self._shuffled or self._duplicated:
            engine.scheduler._ledger = Unruly(
                engine.scheduler._ledger,
                self._host.chance(f"deliveries of {process.name}"),
                shuffled=self._shuffled,
                duplicated=self._duplicated,
            )
        process.when_killed.append(self._revive)
        self.app._life.stop_asked = False  # asked of one that died meanwhile
        self._running = process.start(self.app.run())
        self._running.add_done_callback(self._worker_ended)
        await self._host.loop.settle()

    def _revive(self) -> None:
        """As a supervisor would: a new worker starts at once and returns what the dead one held."""
        if self._open:
            self._host.loop.call_soon(self._revive_now, context=self._context)

    def _revive_now(self) -> None:
        self._reviving = asyncio.ensure_future(self._start_worker())

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise WorkerFailed(f"The worker failed: {type(failure).__qualname__}: {failure}") from failure

    # -- messages -----------------------------------------------------------------------------------------

    async def send(
        self, queue: Queue[T], payload: T, *, delay: Span = 0.0, priority: int = PRIORITY_NORMAL, **more: Unpack[More]
    ) -> str:
        """Sends one message and returns its id. It is there when this returns; the worker learns of it at `advance`."""
        if self._duplicated:
            if not more:
                more["id"] = self.new_id()
            async with self.unit():
                queue.send(payload, delay=delay, priority=priority, **more)
        async with self.unit():
            return queue.send(payload, delay=delay, priority=priority, **more)

    def new_id(self) -> str:
        """An id for a message that is to be sent more than once."""
        return as_text(self._outside.ids.new())

    @asynccontextmanager
    async def unit(self, key: str | None = None) -> AsyncIterator[AwaitedUnit]:
        """A unit of work from outside the worker, like `app.unit` in another process."""
        async with open_unit(self._outside, key) as unit:
            yield unit

    def answering(self, queue: Queue[Any]) -> None:
        """Handlers of this queue give the next of `answers`: exceptions are raised, values returned, else None."""
        if self._open and not queue.is_served:
            raise BadApp(f"No handler serves queue {queue.name!r} yet; call `answering` before the app is entered.")
        self._answering.append(queue)
        if self._open:
            self._recorder.answer(queue, self.answers)

    def delivered(self, queue: Queue[Any]) -> list[Attempt]:
        """Every delivery so far, in the order they began."""
        return list(self._recorder.delivered.get(queue.name, ()))

    async def counts(self, queue: Queue[Any]) -> Counts:
        """What has become of everything that was ever sent to this queue."""
        return await counts_of(self._outside, queue.name)

    async def dead(self, queue: Queue[Any]) -> list[DeadLetter]:
        """The dead letters of a queue."""
        return await dead_letters(self._outside, queue.name)

    async def check_conservation(self) -> None:
        """sent = acked + ready + leased + delayed + dead + purged + expired, for every queue."""
        await check_conservation(self._outside)

    def client(self, *scopes: str) -> httpx2.AsyncClient:
        """Return an HTTP client of the app in this process: `async with shop.client("app:read") as http:`. Its token has
        these scopes, or all."""
        from penstock.web import KnownToken, hashed
        from penstock.web.site import make_site

        site = make_site(self.app, tokens=[KnownToken("test", hashed("test"), scopes or ("*",))])
        headers = {"Authorization": "Bearer test"}
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=site), base_url="http://test", headers=headers)

    # -- time ---------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return from_micros(self._time.clock.now())

    async def advance(
        self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Lets everything due up to then happen in order, and returns at that moment."""
        await self._until(self._after(in_seconds(seconds) + 60 * minutes + 3_600 * hours + 86_400 * days))

    def _after(self, seconds: float) -> float:
        passing = round(seconds * 1_000_000)
        return (round(self._host.loop.time() * 1_000_000) + passing) / 1_000_000 + HAIR_SECONDS

    async def drain(self) -> None:
        """Runs until no queue has a message that is ready or under way. Time passes only as far as handlers take it."""
        await drain([self], self._until)

    def _next_timer(self) -> float:
        upcoming = min((timer._when for timer in self._host.loop._scheduled if not timer.cancelled()), default=None)
        if upcoming is None:
            raise NotDrained("Nothing is scheduled, and the condition is not met.")
        return upcoming

    async def _busy(self) -> list[str]:
        counted = [(queue.name, await self.counts(queue)) for queue in self.app.queues.values() if queue.is_served]
        return [name for name, counts in counted if counts.ready or counts.leased]

    async def _until(self, when: float) -> None:
        await pass_until([self], when)

    def jump(self, seconds: float) -> None:
        """Sets the clock on the wall forward or back. The app notices at its next look, as it does once a second."""
        self._time.jump(seconds)
        for process in self._host.processes:
            if process.engine is not None and process.engine.is_open:
                process.context.run(process.engine.scheduler.arm)

    # -- life and death -----------------------------------------------------------------------------------

    async def crash(self, *, at: str, nth: int = 1) -> None:
        """Arms a crash point: the worker that reaches it vanishes as with SIGKILL, and a new one starts."""
        assert self._trap is not None
        self._trap.arm(at, nth=nth)

    async def kill(self) -> None:
        """Kills the worker now. A new one starts and returns its rows."""
        self._worker.kill()
        await self._host.loop.settle()

    def die(self) -> NoReturn:
        """Called inside a handler: the process dies on the spot, as from a fault in native code."""
        self._worker.kill()
        raise Killed

    @property
    def workers_started(self) -> int:
        """How many workers there have been, those that were killed among them."""
        return self._workers

    async def restart(self) -> None:
        """Stop the worker, which releases its claims, and start a new one."""
        running, worker = self._running, self._worker
        assert running is not None
        self.app.stop()
        await self._until(self._host.loop.time())
        while not running.done() and not worker.dead:
            await self._until(self._next_timer())
        if not worker.dead:
            await self._start_worker()


async def pass_until(shops: Collection[TestApp], when: float) -> None:
    """Let everything due up to then happen in apps that share a loop."""
    loop = next(iter(shops))._host.loop
    for shop in shops:
        shop._host.bells.let_go()
    await loop.settle()
    if when > loop.time():
        reached = loop.create_future()
        loop.call_at(when, reached.set_result, None)
        await reached
        await loop.settle()
    for shop in shops:
        shop._host.bells.held = True
        shop._raise_failure()


async def drain(shops: Collection[TestApp], until: Callable[[float], Awaitable[None]]) -> None:
    """Let time pass by `until`, as long as a queue of these apps has a message that is ready or under way."""
    first = next(iter(shops))
    loop = first._host.loop
    ends = loop.time() + DRAIN_SECONDS_MAX
    await until(loop.time())
    while busy := [name for shop in shops for name in await shop._busy()]:
        if loop.time() > ends:
            raise NotDrained(f"{', '.join(busy)} do not end, however much time passes.", queues=busy)
        await until(first._next_timer())
