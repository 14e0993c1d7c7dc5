"""One simulated world: a database file, the workers on it, producers, and the faults of its plan, all in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from pathlib import Path
from random import Random
from typing import NoReturn

from penstock.model.outcome import Done
from penstock.runtime.events import MessageSettled
from penstock.testing.crashpoints import Trap
from penstock.testing.loop import VirtualTime
from penstock.testing.process import Killed, Process
from penstock.testing.surroundings import Host
from tests.simulation.crews import SimulatedApp, run_until_stopped
from tests.simulation.handlers import Handlers
from tests.simulation.law import LEASE_SLACK, Law
from tests.simulation.model import ACKED, Crew, Run, Trace
from tests.simulation.outside import Outside
from tests.simulation.plan import STALL_SECONDS, FaultPlan, Plan
from tests.simulation.producers import Producers
from tests.simulation.script import Script
from tests.simulation.watch import Change


class World:
    def __init__(self, plan: Plan, database: Path, trace: Trace) -> None:
        self.plan = plan
        self._database = database
        self._trace = trace
        self._bells = Host(seed=plan.seed).chance("bells")
        self._host = Host(seed=plan.seed, fate=self._fate)
        self._loop = self._host.loop
        self._time = VirtualTime(self._loop)
        self._latencies = self._host.chance("latency")
        self._order = self._host.chance("order") if plan.shuffled else None
        self.posts: list[Post] = [Post(number) for number in range(plan.workers)]
        self._numbers = 0
        self.calm = False
        self._over = False
        self._stop = asyncio.Event()
        self.broken: str | None = None
        self.deaths = 0
        self.law = Law(
            plan,
            time=self._loop.time,
            wall=lambda: self._loop.wall_ns() // 1000,
            note=self.note,
            broken=self.break_,
        )
        self._script = Script(plan, self.chance("handlers"), die=self._die, stall=self._stall, broken=self.break_)
        self._handlers = Handlers(self, self._script)
        self._producers = Producers(self)
        self.outside = Outside(self)

    def now(self) -> float:
        return self._loop.time()

    def chance(self, concern: str) -> Random:
        return self._host.chance(concern)

    def crew_of(self, app: SimulatedApp) -> Crew:
        return next(post.crew for post in self.posts if post.app is app)

    def note(self, text: str) -> None:
        self._trace.note(self._loop.time(), text)

    def break_(self, law: str) -> None:
        if self.broken is None and not self._over:
            self.broken = law
            self.note(f"BROKEN: {law}")
            self._stop.set()

    def committed(self, process: Process, changes: list[Change]) -> None:
        self.law.committed(process, changes)

    # -- the run ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Faults, then calm, then everything must be done in time."""
        self._loop.set_exception_handler(self._unhandled)
        try:
            for post in self.posts:
                self._man(post)
            for send in self.plan.sends:
                self.at(send.at, self._producers.produce, send)
            for act in self.plan.acts:
                self.at(act.at, self.outside.act, act)
            for fault in self.plan.faults:
                self.at(fault.at, self._strike, fault)
            self.at(self.plan.calm_at, self._calm_down)
            await self._until(self._is_over, self.plan.calm_at)
            await self._until(self._is_drained, self._patience())
            if self.broken is None and not self._is_drained():
                self.break_(f"not drained: {[(row.key, row.state) for row in self.law.open_rows]}")
            if self.broken is None:
                await self._close()
        finally:
            self._over = True
            self._host.dispose()
            for task in self._script.left_over:
                task.cancel()

    def at(self, when: float, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_at(when, self._unless_over, callback, *arguments, context=self._host.context)

    def _unless_over(self, callback: Callable[..., None], *arguments: object) -> None:
        if not self._over:
            callback(*arguments)

    async def _until(self, reached: Callable[[], bool], seconds: float) -> None:
        """Looks now and then; time costs nothing here."""
        ends = self._loop.time() + seconds
        while self.broken is None and not reached() and self._loop.time() < ends:
            try:
                async with asyncio.timeout(0.5):
                    await self._stop.wait()
            except TimeoutError:
                pass

    def _is_over(self) -> bool:
        return self.calm or (self._loop.time() > 1.0 and self._nothing_planned() and self._is_drained())

    def _nothing_planned(self) -> bool:
        plan = self.plan
        planned = [send.at for send in plan.sends] + [fault.at for fault in plan.faults] + [act.at for act in plan.acts]
        last = max([0.0, *planned])
        return self._loop.time() > last + 0.5 and not any(post.crew.process.paused for post in self.posts)

    def _is_drained(self) -> bool:
        # A batch whose messages have all settled in blocks may still run.
        busy = any(post.producing or (post.crew.running and not post.crew.process.dead) for post in self.posts)
        return self._nothing_planned() and not self.law.open_rows and not busy

    def _patience(self) -> float:
        """Two leases cover what was lost last and a clock that had jumped; then the work itself, one after the other."""
        lease = max(queue.wall for queue in self.plan.queues) + LEASE_SLACK
        work = 5.0 * len(self.law.rows) + 20 * self.plan.retry_first
        return (3.5 * lease if self.plan.jumps else 1.2 * lease) + work + 500 * self.plan.latency

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

    def _man(self, post: Post) -> None:
        """Starts a worker at this post."""
        self._numbers += 1
        process = self._host.process(f"w{self._numbers}")
        served = self.plan.served[post.number]
        queues = {self.plan.queues[number].name: self.plan.queues[number] for number in served}
        crew = post.crew = Crew(process.name, process, queues, started_at=self._loop.time())
        crew.parallel = {queue.name: {queue.parallel: inf} for queue in self.plan.queues}
        self.law.of_process[process] = crew
        post.trap = Trap(process)
        latency = self._latency if self.plan.latency else None
        surroundings = self._host.surroundings(process, post.trap, tick_seconds=self.plan.tick_seconds, latency=latency)
        post.app = SimulatedApp(self.plan, served, self._database, process, order=self._order, handlers=self._handlers)
        if self.plan.told:
            post.app.events.subscribe(self._told, to=MessageSettled)
        process.when_killed.append(lambda: self._died(crew))

        def opened() -> None:
            self.law.look_for_room()
            crew.serving = not crew.stopping
            crew.started_at = self._loop.time()

        post.task = process.start(run_until_stopped(post.app, surroundings, opened))
        post.task.add_done_callback(lambda task: self._ended(post, crew, task))
        self.note(f"{crew.name} starts")

    def _latency(self) -> float:
        return self._latencies.uniform(0.0, 2 * self.plan.latency)

    def _fate(self) -> list[float]:
        if self.calm or self.plan.peaceful:
            return [0.0]
        if self._bells.random() < self.plan.rings_lost:
            return []
        late = self._bells.choice((0.0, 0.0, 0.3))
        return [0.0, late] if self._bells.random() < self.plan.rings_doubled else [late]

    def _ended(self, post: Post, crew: Crew, task: asyncio.Task[None]) -> None:
        crew.serving, crew.left = False, True
        if crew.died_at is None and any(crew.held.values()):
            self.break_(f"{crew.name} left and still holds {crew.held}")
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Killed):
            self.break_(f"{crew.name} fell over: {type(error).__name__}: {error}")

    def _died(self, crew: Crew) -> None:
        if crew.died_at is None and not self._closed(crew):
            crew.died_at = self._loop.time()
            self.deaths += 1
            crew.serving = False
            culprit = crew.on_processor
            crew.suspects = set(culprit.beside if culprit is not None else crew.running)
            self.note(f"{crew.name} is killed; suspects: {sorted(run.row.key for run in crew.suspects)}")
            self.law.look_for_room()

    def _closed(self, crew: Crew) -> bool:
        return crew.left

    def _die(self, run: Run) -> NoReturn:
        crew = run.crew
        self._revive_later(self._post_of(crew), 0.3)
        crew.process.kill()
        raise Killed

    def _post_of(self, crew: Crew) -> Post:
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

    def _revive_later(self, post: Post, seconds: float) -> None:
        self.at(self._loop.time() + (0.0 if self.calm else seconds), self._revive, post, post.crew)

    def _revive(self, post: Post, dead: Crew) -> None:
        if post.crew is dead:
            self._man(post)

    def _pause(self, crew: Crew, seconds: float) -> None:
        crew.process.pause()
        crew.paused_at = self._loop.time()
        self.note(f"{crew.name} is paused")
        self.law.look_for_room()
        self.at(self._loop.time() + seconds, self._resume, crew)

    def _stall(self, run: Run) -> None:
        if not run.crew.process.paused:
            self._pause(run.crew, STALL_SECONDS)

    def _resume(self, crew: Crew) -> None:
        if crew.process.paused and not crew.process.dead:
            crew.resumed_at = self._loop.time()
            self.note(f"{crew.name} goes on")
            self.law.look_for_room()
            self.law.look_for_slots(crew)
            crew.process.resume()

    def _calm_down(self) -> None:
        if self.calm:
            return
        self.calm = self._script.calm = True
        self.note("calm")
        self.outside.tend()
        for post in self.posts:
            post.trap.armed.clear()
            self._resume(post.crew)
            if post.crew.process.dead or (post.task is not None and post.task.done()):
                self._revive(post, post.crew)

    # -- what is heard -------------------------------------------------------------------------------------

    def _told(self, event: MessageSettled) -> None:
        rows = self.law.by_id[bytes.fromhex(event.id.replace("-", ""))]
        if isinstance(event.settlement, Done) and not any(row.state == ACKED for row in rows):
            self.break_(f"{rows[0].key} was said to be done and is {rows[0].state}")

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        # What a killed worker was about to hear is nobody's any more.
        forgotten = "never retrieved" in str(context.get("message")) and self.deaths
        if not isinstance(error, Killed) and not forgotten:
            self.break_(f"nobody handled {type(error).__name__}: {error} ({context.get('message')})")


class Post:
    """A place where one worker after another stands."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.crew: Crew
        self.trap: Trap
        self.app: SimulatedApp | None = None
        self.task: asyncio.Task[None] | None = None
        self.producing = 0
        self.orders: list[asyncio.Task[None]] = []
