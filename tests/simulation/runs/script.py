"""What the workflows of a simulated world do: they play their shapes, and tell the law of all that they begin and end."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import penstock as ps
from penstock.runtime.unit import current_unit
from tests.simulation.runs.judge import ended
from tests.simulation.runs.model import Slice
from tests.simulation.runs.plan import WorkflowPlan
from tests.simulation.runs.shape import Child, Do, Node, Patched, Sequence, Sleep, Together, Wait, mixed

if TYPE_CHECKING:
    from tests.simulation.runs.crew import RunsApp
    from tests.simulation.runs.world import RunsWorld

EFFECT = "insert into effects (id, handler, token, kind) values (:id, :handler, :token, :kind)"
TIMEOUT_SECONDS = 0.4
OFTEN = ps.Retry(50, 0.2, 2.0)
SELDOM = ps.Retry(1, 0.3, 0.3)


class Planned(Exception):
    """A failure as planned."""


class Script:
    def __init__(self, world: RunsWorld) -> None:
        self._world = world
        self.calls: Counter[str] = Counter()  # by key, outside the database: what services remember

    async def play(self, app: RunsApp, plan: WorkflowPlan, run: ps.Run, value: int) -> int:
        unit = current_unit.get()
        assert unit is not None
        here = self._world.law.slice_begins(self._world.crew_of(app), run, self._world.version)
        outcome = "ends"
        try:
            reached = await Player(self, app, run, here).sequence(plan.shape, value)
            if plan.fails:
                raise Planned(f"{plan.name} fails at its end")
            return reached
        except Exception as error:
            outcome = f"raises {type(error).__name__}"
            raise
        except asyncio.CancelledError:
            outcome = "is cancelled"
            raise
        except BaseException:
            outcome = "waits"
            raise
        finally:
            self._world.law.slice_ends(here, outcome)

    async def work(self, app: RunsApp, here: Slice, do: Do, value: int) -> int:
        """The function of a step."""
        step = ps.step()
        self._world.law.step_begins(here, do, step)
        self.calls[step.key] += 1
        nth = self.calls[step.key]
        if do.kind == "slow" and nth == 1:
            await asyncio.sleep(3 * TIMEOUT_SECONDS)
        elif do.seconds:
            await asyncio.sleep(min(do.seconds, TIMEOUT_SECONDS / 2) if do.kind == "slow" else do.seconds)
        app.db.write(EFFECT, id=step.run.encode(), handler=do.name, token=here.generation, kind="step")
        match do.kind:
            case "flaky" if nth <= do.times:
                raise Planned(f"{do.name} fails the {nth}. time")
            case "throttled" if nth <= do.times:
                raise ps.Throttled(retry_after=do.after)
            case "refused" if nth <= do.times:
                app.db.write("insert into no_such_table (id) values (1)")
            case "permanent":
                raise ps.Refused("as planned")
            case "hopeless":
                raise Planned(f"{do.name} always fails")
            case "send":
                app.send_post(step.key, delay=do.after)
            case "start":
                app.flows[do.workflow].start(value, step.key)
        return mixed(do.name, "done", value)


class Player:
    """Plays a shape in one slice."""

    def __init__(self, script: Script, app: RunsApp, run: ps.Run, here: Slice) -> None:
        self._script = script
        self._app = app
        self._run = run
        self._here = here

    async def sequence(self, nodes: Sequence, value: int) -> int:
        for node in nodes:
            value = await self._node(node, value)
        return value

    async def _node(self, node: Node, value: int) -> int:
        run = self._run
        match node:
            case Do():
                return await self._do(node, value)
            case Sleep():
                await run.sleep(seconds=node.seconds, name=node.name if node.named else None)
                return mixed(node.name, "slept", value)
            case Wait():
                try:
                    said: object = await run.wait_for(node.signal, int, timeout=node.timeout, name=node.name)
                except ps.TimedOut:
                    said = "late"
                return mixed(node.name, said, value)
            case Child():
                return mixed(node.name, await self._child(node, value), value)
            case Patched():
                new = self._here.version == 2 and run.patched(node.name)
                return await self._do(node.new if new else node.old, value)
            case Together():
                return mixed(node.name, await self._together(node, value), value)

    async def _do(self, do: Do, value: int) -> int:
        timeout = TIMEOUT_SECONDS if do.kind == "slow" else None
        retries = SELDOM if do.kind == "hopeless" else OFTEN
        here = self._here
        try:
            result: int = await self._run.step(
                do.name, self._script.work, self._app, here, do, value, retries=retries, timeout=timeout
            )
            return result
        except ps.StepFailed:
            if not do.caught:
                raise
            return mixed(do.name, "failed", value)
        finally:
            here.heard_of_pause = here.heard_of_pause or do.name in here.saved_in_pause

    async def _child(self, node: Child, value: int) -> str:
        try:
            result: Any = await self._run.child(node.name, self._app.flows[node.workflow], value, "")
        except ps.ChildFailed as error:
            return ended("terminated" if error.error_class == "terminated" else "errored", None)
        return ended("complete", result)

    async def _together(self, node: Together, value: int) -> list[int]:
        if not node.grouped:
            return list(await asyncio.gather(*(self.sequence(branch, value) for branch in node.branches)))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.sequence(branch, value)) for branch in node.branches]
        return [task.result() for task in tasks]
