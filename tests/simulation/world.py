"""One simulated world: a database file, the workers on it, producers, and the faults of its plan, all in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import penstock as ps
from penstock.model.errors import StoreUnavailable
from penstock.model.ids import from_text
from penstock.runtime.events import MessageSettled
from penstock.runtime.unit import current_unit
from penstock.testing.crashpoints import Trap
from penstock.testing.loop import VirtualTime
from penstock.testing.process import Killed, Process
from penstock.testing.surroundings import Host
from tests.simulation.crews import Job, SimulatedApp, Watched, run_until_stopped
from tests.simulation.law import LEASE_SLACK, Law
from tests.simulation.model import ACKED, Crew, Order, Run, Trace
from tests.simulation.plan import FaultPlan, Plan, SendPlan
from tests.simulation.script import EFFECT, Script, refused
from tests.simulation.watch import Change


class World:
    def __init__(self, plan: Plan, database: Path, trace: Trace) -> None:
        self._plan = plan
        self._database = database
        self._trace = trace
        self._bells = Host(seed=plan.seed).chance("bells")
        self._host = Host(seed=plan.seed, fate=self._fate)
        self._loop = self._host.loop
        self._time = VirtualTime(self._loop)
        self._latencies = self._host.chance("latency")
        self._order = self._host.chance("order") if plan.shuffled else None
        self._posts: list[Post] = [Post(number) for number in range(plan.workers)]
        self._numbers = 0
        self._calm = False
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
        self._script = Script(plan, self._host.chance("handlers"), die=self._die, broken=self.break_)

    def note(self, text: str) -> None:
        self._trace.note(self._loop.time(), text)

    def break_(self, law: str) -> None:
        if self.broken is None:
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
            for post in self._posts:
                self._man(post)
            for send in self._plan.sends:
                self._at(send.at, self._produce, send)
            for fault in self._plan.faults:
                self._at(fault.at, self._strike, fault)
            self._at(self._plan.calm_at, self._calm_down)
            await self._until(self._is_over, self._plan.calm_at)
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

    def _at(self, when: float, callback: Callable[..., None], *arguments: object) -> None:
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
        return self._calm or (self._loop.time() > 1.0 and self._nothing_planned() and self._is_drained())

    def _nothing_planned(self) -> bool:
        last = max([0.0, *(send.at for send in self._plan.sends), *(fault.at for fault in self._plan.faults)])
        return self._loop.time() > last + 0.5 and not any(post.crew.process.paused for post in self._posts)

    def _is_drained(self) -> bool:
        return self._nothing_planned() and not self.law.open_rows and not any(post.producing for post in self._posts)

    def _patience(self) -> float:
        """Two leases cover what was lost last and a clock that had jumped; then the work itself, one after the other."""
        lease = max(queue.wall for queue in self._plan.queues) + LEASE_SLACK
        work = 3.0 * len(self.law.rows) + 20 * self._plan.retry_first
        return (3.5 * lease if self._plan.jumps else 1.2 * lease) + work + 500 * self._plan.latency

    async def _close(self) -> None:
        self._calm_down()
        for post in self._posts:
            if post.app is not None and post.task is not None and not post.task.done():
                post.app.stop()
                post.crew.serving, post.crew.stopping = False, True
        waiting = [post.task for post in self._posts if post.task is not None]
        _, left = await asyncio.wait(waiting, timeout=60)
        if left:
            self.break_(f"{len(left)} workers do not stop")

    # -- workers ------------------------------------------------------------------------------------------

    def _man(self, post: Post) -> None:
        """Starts a worker at this post."""
        self._numbers += 1
        process = self._host.process(f"w{self._numbers}")
        served = self._plan.served[post.number]
        queues = {self._plan.queues[number].name: self._plan.queues[number] for number in served}
        crew = post.crew = Crew(process.name, process, queues, started_at=self._loop.time())
        self.law.of_process[process] = crew
        post.trap = Trap(process)
        latency = self._latency if self._plan.latency else None
        surroundings = self._host.surroundings(
            process, post.trap, tick_seconds=self._plan.tick_seconds, latency=latency
        )
        post.app = SimulatedApp(self._plan, served, self._database, process, order=self._order, handle=self._handle)
        if self._plan.told:
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
        return self._latencies.uniform(0.0, 2 * self._plan.latency)

    def _fate(self) -> list[float]:
        if self._calm or self._plan.peaceful:
            return [0.0]
        if self._bells.random() < self._plan.rings_lost:
            return []
        late = self._bells.choice((0.0, 0.0, 0.3))
        return [0.0, late] if self._bells.random() < self._plan.rings_doubled else [late]

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
            crew.suspects = {culprit} if culprit is not None else set(crew.running)
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
        return next(post for post in self._posts if post.crew is crew)

    # -- faults -------------------------------------------------------------------------------------------

    def _strike(self, fault: FaultPlan) -> None:
        post = self._posts[fault.worker]
        crew = post.crew
        if self._calm or post.task is None:
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
                crew.process.pause()
                crew.paused_at = self._loop.time()
                self.note(f"{crew.name} is paused")
                self.law.look_for_room()
                self._at(self._loop.time() + fault.seconds, self._resume, crew)
            case "restart":
                self.note(f"{crew.name} is to stop")
                assert post.app is not None
                crew.serving, crew.stopping = False, True
                post.app.stop()
                post.task.add_done_callback(lambda _task: self._revive_later(post, fault.seconds))

    def _revive_later(self, post: Post, seconds: float) -> None:
        self._at(self._loop.time() + (0.0 if self._calm else seconds), self._revive, post, post.crew)

    def _revive(self, post: Post, dead: Crew) -> None:
        if post.crew is dead:
            self._man(post)

    def _resume(self, crew: Crew) -> None:
        if crew.process.paused and not crew.process.dead:
            crew.resumed_at = self._loop.time()
            self.note(f"{crew.name} goes on")
            self.law.look_for_room()
            self.law.look_for_slots(crew)
            crew.process.resume()

    def _calm_down(self) -> None:
        if self._calm:
            return
        self._calm = self._script.calm = True
        self.note("calm")
        for post in self._posts:
            post.trap.armed.clear()
            self._resume(post.crew)
            if post.crew.process.dead or (post.task is not None and post.task.done()):
                self._revive(post, post.crew)

    # -- producers ----------------------------------------------------------------------------------------

    def _produce(self, send: SendPlan) -> None:
        post = self._posts[send.worker]
        if post.crew.serving and not post.crew.process.dead:
            post.orders.append(post.crew.process.start(self._order_in(post, post.crew, send)))

    async def _order_in(self, post: Post, crew: Crew, send: SendPlan) -> None:
        app, number = post.app, self._plan.sends.index(send)
        assert app is not None
        order = Order([], [f"p{number}.{index}" for index in range(len(send.jobs))])
        post.producing += 1
        crew.process.when_killed.append(lambda: self._gave_up(post, order))
        try:
            async with app.unit() as unit:
                for key, (queue, delay) in zip(order.keys, send.jobs, strict=True):
                    order.ids.append(from_text(app.by_number[queue].send(Job(key=key), delay=delay)))
                    self.law.orders[order.ids[-1]] = order
                if send.slow:
                    await asyncio.sleep(send.slow)
                if send.doubled:
                    unit.send(unit.sends[0])
                app.db.write(EFFECT, id=order.ids[0], token=0, kind="producer")
                if send.spoilt:
                    app.db.write("insert into no_such_table (id) values (1)")
        except ps.PenstockError as error:
            closed = crew.stopping and isinstance(error, StoreUnavailable)
            if not closed and not (send.spoilt and refused(error)):
                self.break_(f"order {order.keys} failed: {type(error).__name__}: {error}")
            order.fate = "refused"
        else:
            order.fate = "confirmed"
            if any(id not in self.law.rows for id in order.ids):
                self.break_(f"order {order.keys} was confirmed and is not there")
        self.note(f"{crew.name} heard that {order.keys} is {order.fate}")
        post.producing -= 1

    def _gave_up(self, post: Post, order: Order) -> None:
        if order.fate == "unknown":
            order.fate = "killed"
            post.producing -= 1

    # -- handlers -----------------------------------------------------------------------------------------

    async def _handle(self, app: SimulatedApp, job: Job, message: ps.Message) -> object:
        unit = current_unit.get()
        assert unit is not None
        assert unit.delivery is not None
        crew = next(post.crew for post in self._posts if post.app is app)
        run = self._begun(crew, unit.delivery.id, unit.delivery.seq, unit.delivery.token, unit.delivery.crashes)
        try:
            answer = await Watched(self._script.play(app, job, run), crew, run)
            run.outcome = run.outcome or "done"
        except asyncio.CancelledError:
            overran = self._loop.time() - run.began >= run.row.queue.wall - 0.002
            # Cancelled by what it waits for is a failure, unless the worker cancels everybody at the same time.
            stopping = app.worker is not None and app.worker.stopping
            failed = run.outcome == "cancelled" and not stopping
            run.outcome = "wall" if overran else "fail" if failed else "handed_back"
            raise
        except ps.LeaseLost:
            run.outcome = "fail"
            raise
        except Exception as error:
            if not run.outcome and not crew.process.dead:
                run.outcome = "fail"
                self.break_(f"{run.row.key} failed as nobody planned: {type(error).__name__}: {error}")
            raise
        finally:
            if not crew.process.dead:
                run.ended = self._loop.time()
                self.law.look_for_slots(crew)
                crew.running.remove(run)
                self.note(f"{crew.name} ends {run.row.key} as {run.outcome}")
        return answer

    def _begun(self, crew: Crew, id: bytes, seq: int, token: int, crashes: int) -> Run:
        law = self.law
        row = law.rows[id]
        run = Run(row, token, crew, self._loop.time(), crashes > 0)
        if (seq, token) in law.runs:
            self.break_(f"{row.key} began twice under one token")
        law.runs[(seq, token)] = run
        alone = not crew.running or not (crashes or any(other.suspect for other in crew.running))
        if not alone:
            self.break_(f"{row.key} began beside {[other.row.key for other in crew.running]}, and one is a suspect")
        law.starts(crew, row)
        crew.running.append(run)
        law.look_for_slots(crew)
        self.note(f"{crew.name} begins {row.key}")
        return run

    def _told(self, event: MessageSettled) -> None:
        row = self.law.rows[bytes.fromhex(event.id.replace("-", ""))]
        if type(event.settlement).__name__ == "Done" and row.state != ACKED:
            self.break_(f"{row.key} was said to be done and is {row.state}")

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
