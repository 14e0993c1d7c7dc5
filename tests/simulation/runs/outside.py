"""Those outside who start runs, signal them and operate them; each hears what became of it, or nothing at all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

import penstock as ps
from penstock.model.errors import BadMessage, NoSuchRun, StatementFailed, StoreUnavailable
from penstock.workflows.workflow import Handle
from tests.simulation.runs.model import ACTIVE, ENDED, PAUSED, Tracked
from tests.simulation.runs.plan import OperatePlan, SignalPlan, StartPlan
from tests.simulation.runs.script import EFFECT
from tests.simulation.stage import Worker

if TYPE_CHECKING:
    from tests.simulation.runs.crew import RunsApp
    from tests.simulation.runs.world import Post, RunsWorld

AGAIN_SECONDS = 0.3


class Outside:
    def __init__(self, world: RunsWorld) -> None:
        self._world = world
        self._orders = 0
        self._signals = 0
        self._tending: Worker | None = None
        self.confirmed: list[tuple[str, str]] = []  # the order and the id of each run that was said to be started
        self.refused: list[str] = []  # orders

    def _ask(self, post: Post, work: Coroutine[Any, Any, None]) -> None:
        """Nothing is over before whoever was asked has answered, or is dead."""
        crew, answered = post.crew, False

        def over() -> None:
            nonlocal answered
            post.producing -= not answered
            answered = True

        async def do() -> None:
            try:
                await work
            finally:
                over()

        post.producing += 1
        crew.process.when_killed.append(over)
        self._world.ask(post, do())

    def _handle(self, app: RunsApp, run: Tracked) -> Handle[[int, str], int]:
        return app.flows[self._world.plan.workflows.index(run.plan)].get(run.id)

    def _signal(self, handle: Handle[[int, str], int], name: str) -> None:
        self._signals += 1
        self._world.law.said.add(msgspec.json.encode(self._signals))
        handle.signal(name, self._signals)

    # -- starting -----------------------------------------------------------------------------------------

    def start(self, start: StartPlan) -> None:
        """Whoever finds nobody there comes again."""
        world = self._world
        post = world.posts[start.worker]
        if post.is_manned:
            self._ask(post, self._start(post, post.crew, start))
        elif not world.calm:
            world.at(world.now() + AGAIN_SECONDS, self.start, start)

    async def _start(self, post: Post, crew: Worker, start: StartPlan) -> None:
        world, law, app = self._world, self._world.law, post.app
        assert app is not None
        self._orders += 1
        order, ids = f"order {self._orders}", list[str]()
        try:
            async with app.unit():
                for workflow, id, value in start.runs:
                    flow = app.flows[workflow]
                    handle = flow[id].start(value, "") if id else flow.start(value, "")
                    ids.append(handle.id)
                    if not start.spoilt:
                        law.wanted.setdefault(handle.id, set()).add(value)
                    if handle.id == ids[0]:
                        for name in start.signals:
                            self._signal(handle, name)
                if start.slow:
                    await asyncio.sleep(start.slow)
                app.db.write(EFFECT, id=order.encode(), handler="", token=0, kind="order")
                if start.spoilt:
                    app.db.write("insert into no_such_table (id) values (1)")
        except ps.PenstockError as error:
            closed = crew.stopping and isinstance(error, StoreUnavailable)
            if not closed and not (start.spoilt and isinstance(error, StatementFailed)):
                world.break_(f"{order} failed: {type(error).__name__}: {error}")
            self.refused.append(order)
            world.note(f"{crew.name} heard that {order} was refused")
        else:
            self.confirmed += [(order, id) for id in ids]
            if not all(id in law.by_id for id in ids):
                world.break_(f"{order} was confirmed, and {ids} are not there")
            world.note(f"{crew.name} heard that {order} was saved: {ids}")

    # -- signals and operations ----------------------------------------------------------------------------

    def signal(self, signal: SignalPlan) -> None:
        post, run = self._world.posts[signal.worker], self._chosen(signal.run)
        if post.is_manned:
            names = [signal.name] * (1 + signal.doubled)
            self._ask(
                post, self._say_in_vain(post, post.crew) if run is None else self._say(post, post.crew, run, names)
            )

    async def _say_in_vain(self, post: Post, crew: Worker) -> None:
        """There is no run yet: whoever signals to one is refused, and nothing of his unit is saved."""
        app, order = post.app, "order in vain"
        assert app is not None
        try:
            async with app.unit():
                app.db.write(EFFECT, id=order.encode(), handler="", token=0, kind="order")
                self._signal(app.flows[0].get("nobody"), "a")
        except StoreUnavailable as error:
            self._check_closed(crew, error)
        except NoSuchRun:
            self.refused.append(order)
        else:
            self._world.break_("a signal to nobody was saved")

    def _chosen(self, where: float, among: str = "anybody") -> Tracked | None:
        law, parents = self._world.law, {run.parent for run in self._world.law.open_runs}
        chosen = {
            "anybody": [],
            "at work": law.open_runs,
            "running": [run for run in law.open_runs if run.slices],
            "parents": [run for run in law.open_runs if run.key in parents],
        }
        runs = chosen[among] or [*law.runs.values()]
        return runs[int(where * len(runs))] if runs else None

    async def _say(self, post: Post, crew: Worker, run: Tracked, names: list[str]) -> None:
        app = post.app
        assert app is not None
        self._world.note(f"{crew.name} is to signal {names} to {run.id}")
        try:
            async with app.unit():
                for name in names:
                    self._signal(self._handle(app, run), name)
        except StoreUnavailable as error:
            self._check_closed(crew, error)
        except ps.PenstockError as error:
            self._world.break_(f"a signal to {run.id} failed: {type(error).__name__}: {error}")

    def _check_closed(self, crew: Worker, error: Exception) -> None:
        if not crew.stopping:
            self._world.break_(f"{crew.name} serves and says: {type(error).__name__}: {error}")

    def operate(self, act: OperatePlan) -> None:
        post, run = self._world.posts[act.worker], self._chosen(act.run, act.among)
        if post.is_manned and run is not None:
            self._ask(post, self._operate(post, post.crew, run, act))

    async def _operate(self, post: Post, crew: Worker, run: Tracked, act: OperatePlan) -> None:
        app = post.app
        assert app is not None
        handle = self._handle(app, run)
        match act.kind:
            case "pause":
                if await self._asked(crew, run, "pause", handle.pause()):
                    await asyncio.sleep(act.seconds)
                    await self._asked(crew, run, "resume", handle.resume())
            case "terminate":
                await self._asked(crew, run, "terminate", handle.terminate())
            case "restart":
                await self._asked(crew, run, "restart", handle.restart())
            case "restart_step":
                steps = [record.name for record in run.records.values() if record.kind == "step"]
                if steps:
                    step = steps[int(act.step * len(steps))]
                    await self._asked(crew, run, "restart", handle.restart(step=step))

    async def _asked(self, crew: Worker, run: Tracked, what: str, asking: object) -> bool:
        """Whether it was done. What nobody answers may have been done."""
        before, run.asked[what] = run.happened[what], run.asked[what] + 1
        self._world.note(f"{crew.name} is to {what} {run.id}")
        try:
            await asking  # type: ignore[misc]
        except (BadMessage, NoSuchRun) as error:
            run.asked[what] -= 1
            self._world.note(f"{crew.name} heard: {error}")
            return False
        except (StoreUnavailable, AssertionError) as error:
            self._check_closed(crew, error)
            return False
        if run.happened[what] <= before:
            self._world.break_(f"{crew.name} was told that {run.id} was made to {what}, and it was not")
        return True

    # -- in the end ---------------------------------------------------------------------------------------

    def tend(self) -> None:
        """Once all is calm: nothing stays paused, and everybody soon hears what he waits for."""
        world = self._world
        post = next((post for post in world.posts if post.is_manned), None)
        tending = self._tending
        if post is not None and (tending is None or tending.process.dead):
            self._tending = post.crew
            self._ask(post, self._tend(post, post.crew))
        world.at(world.now() + 2 * world._look_seconds(), self.tend)

    async def _tend(self, post: Post, crew: Worker) -> None:
        app = post.app
        assert app is not None
        for run in [*self._world.law.runs.values()]:
            if run.state == PAUSED:
                await self._asked(crew, run, "resume", self._handle(app, run).resume())
            elif run.state == ACTIVE and (names := self._missing(run)):
                await self._say(post, crew, run, names)
        self._tending = None

    def _missing(self, run: Tracked) -> list[str]:
        """The signals that a run waits for and that nobody has sent."""
        there = {name for name, _ in run.signals.values()}
        waiting = {record.name for record in run.records.values() if record.kind == "signal"}
        waiting -= {record.name for record in run.records.values() if record.state != "waiting"}
        wanted = {self._world.law.signal_of(run, name) for name in waiting}
        return [] if run.state in ENDED else sorted(wanted - there)
