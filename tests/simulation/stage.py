"""What every simulated world stands on: workers on one database file in virtual time, and the faults that befall them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from penstock.testing.harness import Trap
from penstock.testing.loop import VirtualTime
from penstock.testing.process import Killed, Process
from penstock.testing.surroundings import VirtualHost
from tests.simulation.apps import StagedApp, run_until_stopped
from tests.simulation.plan import FaultPlan
from tests.simulation.watch import Change


class Trace:
    """What happened, in order. The same seed gives the same lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, at: float, text: str) -> None:
        self.lines.append(f"{at:12.6f} {text}")


@dataclass(slots=True, eq=False)
class Worker:
    """One worker process, from its start to its end."""

    name: str
    process: Process
    serving: bool = False  # it claims
    stopping: bool = False
    started_at: float = 0.0
    paused_at: float = float("-inf")
    resumed_at: float = float("-inf")
    died_at: float | None = None
    left: bool = False


AnyWorker = TypeVar("AnyWorker", bound=Worker)
AnyApp = TypeVar("AnyApp", bound=StagedApp)


class Staging(Protocol):
    """As much of a plan as a stage needs to know."""

    @property
    def seed(self) -> int: ...
    @property
    def workers(self) -> int: ...
    @property
    def faults(self) -> Sequence[FaultPlan]: ...
    @property
    def calm_at(self) -> float: ...
    @property
    def tick_seconds(self) -> float | None: ...
    @property
    def latency(self) -> float: ...
    @property
    def peaceful(self) -> bool: ...
    @property
    def rings_lost(self) -> float: ...
    @property
    def rings_doubled(self) -> float: ...
    @property
    def shuffled(self) -> bool: ...


class Post(Generic[AnyWorker, AnyApp]):
    """A place where one worker after another stands."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.crew: AnyWorker
        self.trap: Trap
        self.app: AnyApp | None = None
        self.task: asyncio.Task[None] | None = None
        self.producing = 0
        self.orders: list[asyncio.Task[None]] = []

    @property
    def is_manned(self) -> bool:
        """Whether somebody here can be asked for something."""
        return self.crew.serving and not self.crew.process.dead


class Stage(ABC, Generic[AnyWorker, AnyApp]):
    def __init__(self, plan: Staging, database: Path, trace: Trace) -> None:
        self._staging = plan
        self._database = database
        self._trace = trace
        self._bells = VirtualHost(seed=plan.seed).chance("bells")
        self._host = VirtualHost(seed=plan.seed, fate=self._fate)
        self._loop = self._host.loop
        self._time = VirtualTime(self._loop)
        self._latencies = self._host.chance("latency")
        self._order = self._host.chance("order") if plan.shuffled else None
        self.posts: list[Post[AnyWorker, AnyApp]] = [Post(number) for number in range(plan.workers)]
        self._numbers = 0
        self.calm = False
        self._over = False
        self._stop = asyncio.Event()
        self.broken: str | None = None
        self.deaths = 0

    # -- what each world does in its own way --------------------------------------------------------------

    @abstractmethod
    def committed(self, process: Process, changes: list[Change]) -> None:
        """A process has committed these changes."""

    @abstractmethod
    def verdict(self, database: Path) -> str | None:
        """Which law the file shows to be broken in the end."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How much there was to do."""

    @abstractmethod
    def _begin(self) -> None:
        """Sets the time of everything that comes from outside."""

    @abstractmethod
    def _planned(self) -> list[float]:
        """When something comes from outside."""

    @abstractmethod
    def _open_things(self) -> list[str]:
        """What is not done yet."""

    @abstractmethod
    def _is_busy(self, post: Post[AnyWorker, AnyApp]) -> bool:
        """Whether somebody there still works at something."""

    @abstractmethod
    def _patience(self) -> float:
        """The seconds after the last fault in which everything has to be done."""

    @abstractmethod
    def _hire(self, post: Post[AnyWorker, AnyApp], process: Process) -> tuple[AnyWorker, AnyApp]: ...

    def _worker_opened(self, crew: AnyWorker) -> None: ...
    def _worker_died(self, crew: AnyWorker) -> None: ...
    def _worker_paused(self, crew: AnyWorker) -> None: ...
    def _worker_resumes(self, crew: AnyWorker) -> None: ...
    def _worker_left(self, crew: AnyWorker) -> None: ...
    def _calmed(self) -> None: ...
    def _disposed(self) -> None: ...

    # -- time ---------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self._loop.time()

    def wall(self) -> int:
        """What the clock on the wall shows, in microseconds."""
        return self._loop.wall_ns() // 1000

    def chance(self, concern: str) -> Random:
        return self._host.chance(concern)

    def note(self, text: str) -> None:
        self._trace.note(self._loop.time(), text)

    def break_(self, law: str) -> None:
        if self.broken is None and not self._over:
            self.broken = law
            self.note(f"BROKEN: {law}")
            self._stop.set()

    def at(self, when: float, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_at(when, self._unless_over, callback, *arguments, context=self._host.context)

    def _unless_over(self, callback: Callable[..., None], *arguments: object) -> None:
        if not self._over:
            callback(*arguments)

    # -- the run ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Faults, then calm, then everything must be done in time."""
        self._loop.set_exception_handler(self._unhandled)
        try:
            for post in self.posts:
                self._man(post)
            self._begin()
            for fault in self._staging.faults:
                self.at(fault.at, self._strike, fault)
            self.at(self._staging.calm_at, self._calm_down)
            await self._until(self._is_over, self._staging.calm_at)
            await self._until(self._is_drained, self._patience())
            if self.broken is None and not self._is_drained():
                self.break_(f"not drained: {self._open_things()}")
            if self.broken is None:
                await self._close()
        finally:
            self._over = True
            self._host.dispose()
            self._disposed()

    async def _until(self, reached: Callable[[], bool], seconds: float) -> None:
        """Looks now and then; time costs nothing here."""
        ends = self._loop.time() + seconds
        while self.broken is None and not reached() and self._loop.time() < ends:
            try:
                async with asyncio.timeout(self._look_seconds()):
                    await self._stop.wait()
            except TimeoutError:
                pass

    def _look_seconds(self) -> float:
        return 0.5

    def _is_over(self) -> bool:
        return self.calm or (self._loop.time() > 1.0 and self._nothing_planned() and self._is_drained())

    def _nothing_planned(self) -> bool:
        last = max([0.0, *self._planned(), *(fault.at for fault in self._staging.faults)])
        return self._loop.time() > last + 0.5 and not any(post.crew.process.paused for post in self.posts)

    def _is_drained(self) -> bool:
        busy = any(post.producing or self._is_busy(post) for post in self.posts)
        return self._nothing_planned() and not self._open_things() and not busy

    async def _close(self) -> None:
        self._calm_down()
        for post in self.posts:
            if post.app is not None and post.task is not None and not post.task.done():
                post.app.stop()
                post.crew.serving, post.crew.stopping = False, True
        waiting = [post.task for post in self.posts if post.task is not None]
        _, left = await asyncio.wait(waiting, timeout=60)
        if left:
            self.break_(f"{len(left)} workers do not stop")

    # -- workers ------------------------------------------------------------------------------------------

    def ask(self, post: Post[AnyWorker, AnyApp], work: Coroutine[Any, Any, None]) -> None:
        """Somebody does this in the process that stands there now."""
        post.orders.append(post.crew.process.start(work))

    def _man(self, post: Post[AnyWorker, AnyApp]) -> None:
        """Starts a worker at this post."""
        self._numbers += 1
        process = self._host.process(f"w{self._numbers}")
        crew, app = self._hire(post, process)
        post.crew, post.app = crew, app
        post.trap = Trap(process)
        latency = self._latency if self._staging.latency else None
        surroundings = self._host.surroundings(
            process, post.trap, tick_seconds=self._staging.tick_seconds, latency=latency
        )
        process.when_killed.append(lambda: self._died(crew))

        def opened() -> None:
            self._worker_opened(crew)
            crew.serving = not crew.stopping
            crew.started_at = self._loop.time()

        post.task = process.start(run_until_stopped(app, surroundings, opened))
        post.task.add_done_callback(lambda task: self._ended(crew, task))
        self.note(f"{crew.name} starts")

    def _latency(self) -> float:
        return self._latencies.uniform(0.0, 2 * self._staging.latency)

    def _fate(self) -> list[float]:
        if self.calm or self._staging.peaceful:
            return [0.0]
        if self._bells.random() < self._staging.rings_lost:
            return []
        late = self._bells.choice((0.0, 0.0, 0.3))
        return [0.0, late] if self._bells.random() < self._staging.rings_doubled else [late]

    def _ended(self, crew: AnyWorker, task: asyncio.Task[None]) -> None:
        crew.serving, crew.left = False, True
        self._worker_left(crew)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Killed):
            self.break_(f"{crew.name} fell over: {type(error).__name__}: {error}")

    def _died(self, crew: AnyWorker) -> None:
        if crew.died_at is None and not crew.left:
            crew.died_at = self._loop.time()
            self.deaths += 1
            crew.serving = False
            self._worker_died(crew)

    def _post_of(self, crew: AnyWorker) -> Post[AnyWorker, AnyApp]:
        return next(post for post in self.posts if post.crew is crew)

    # -- faults -------------------------------------------------------------------------------------------

    def _strike(self, fault: FaultPlan) -> None:
        post = self.posts[fault.worker]
        crew = post.crew
        if self.calm or post.task is None:
            return
        if fault.kind == "jump":
            self.note(f"the clock jumps by {fault.seconds:.3f} s")
            self._time.jump(fault.seconds)
            return
        if crew.process.dead or post.task.done() or crew.process.paused:
            return
        match fault.kind:
            case "kill":
                self._revive_later(post, fault.seconds)
                crew.process.kill()
            case "trap":
                post.trap.arm(fault.point, nth=fault.nth)
                crew.process.when_killed.append(lambda: self._revive_later(post, fault.seconds))
                self.note(f"{crew.name} is to die at {fault.point}, the {fault.nth}. time")
            case "pause":
                self._pause(crew, fault.seconds)
            case "restart":
                self.note(f"{crew.name} is to stop")
                assert post.app is not None
                crew.serving, crew.stopping = False, True
                post.app.stop()
                post.task.add_done_callback(lambda _task: self._revive_later(post, fault.seconds))

    def _revive_later(self, post: Post[AnyWorker, AnyApp], seconds: float) -> None:
        self.at(self._loop.time() + (0.0 if self.calm else seconds), self._revive, post, post.crew)

    def _revive(self, post: Post[AnyWorker, AnyApp], dead: AnyWorker) -> None:
        if post.crew is dead:
            self._man(post)

    def _pause(self, crew: AnyWorker, seconds: float) -> None:
        crew.process.pause()
        crew.paused_at = self._loop.time()
        self.note(f"{crew.name} is paused")
        self._worker_paused(crew)
        self.at(self._loop.time() + seconds, self._resume, crew)

    def _resume(self, crew: AnyWorker) -> None:
        if crew.process.paused and not crew.process.dead:
            crew.resumed_at = self._loop.time()
            self.note(f"{crew.name} goes on")
            self._worker_resumes(crew)
            crew.process.resume()

    def _calm_down(self) -> None:
        if self.calm:
            return
        self.calm = True
        self.note("calm")
        self._calmed()
        for post in self.posts:
            post.trap.armed.clear()
            self._resume(post.crew)
            if post.crew.process.dead or (post.task is not None and post.task.done()):
                self._revive(post, post.crew)

    # -- what is heard -------------------------------------------------------------------------------------

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        # What a killed worker was about to hear is nobody's any more.
        forgotten = "never retrieved" in str(context.get("message")) and self.deaths
        if not isinstance(error, Killed) and not forgotten:
            self.break_(f"nobody handled {type(error).__name__}: {error} ({context.get('message')})")
