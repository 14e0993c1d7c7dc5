"""Workers of a simulated world of workflows: an app with the workflows of its plan, and a queue that their steps send to."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import penstock as ps
from penstock.config import Config
from penstock.testing.process import Process
from tests.simulation.apps import StagedApp
from tests.simulation.runs.commit import POSTS
from tests.simulation.runs.plan import RunsPlan, WorkflowPlan
from tests.simulation.runs.script import EFFECT, OFTEN, Script


class Posted(ps.Event):
    """A message from a step, named by the step's key."""

    origin: str


class RunsApp(StagedApp):
    def __init__(
        self, plan: RunsPlan, database: Path, process: Process, script: Script, *, order: Random | None
    ) -> None:
        limits = {"retry_first_seconds": 1.0, "retry_longest_seconds": 4.0}
        config = Config(synchronous="off", history=False, grace_seconds=plan.grace, overrides=limits)
        super().__init__(database, process, config, order=order)
        self._script = script
        self._posts = self.queue(POSTS, Posted, retries=1_000, crashes_max=1_000)
        self._posts.handler(Posted)(self._on_posted)
        self.flows: list[ps.Workflow[[int, str], int]] = [self._declare(flow) for flow in plan.workflows]

    def _declare(self, plan: WorkflowPlan) -> ps.Workflow[[int, str], int]:
        async def play(run: ps.Run, value: int, origin: str) -> int:
            return await self._script.play(self, plan, run, value)

        declare: Any = self.workflow(name=plan.name, parallel=plan.parallel, timeout=plan.wall, retries=OFTEN)
        workflow: ps.Workflow[[int, str], int] = declare(play)
        return workflow

    async def _on_posted(self, posted: Posted) -> None:
        self.db.write(EFFECT, id=posted.origin.encode(), handler="", token=0, kind="post")

    def send_post(self, origin: str, *, delay: float) -> None:
        self._posts.send(Posted(origin=origin), delay=delay)
