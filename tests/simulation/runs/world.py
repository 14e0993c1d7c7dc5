"""A world of workflows: runs are started, signalled and operated, on a stage with faults, and each has to come to its end."""

from __future__ import annotations

from pathlib import Path

from penstock.testing.process import Process
from penstock.workflows.inputs import hints_of
from tests.simulation import stage
from tests.simulation.runs.crew import RunsApp
from tests.simulation.runs.final import final_law
from tests.simulation.runs.invariants import RunsLaw
from tests.simulation.runs.outside import Outside
from tests.simulation.runs.plan import RunsPlan
from tests.simulation.runs.script import Script
from tests.simulation.watch import Change

Post = stage.Post[stage.Worker, RunsApp]


class RunsWorld(stage.Stage[stage.Worker, RunsApp]):
    def __init__(self, plan: RunsPlan, database: Path, trace: stage.Trace) -> None:
        super().__init__(plan, database, trace)
        self.plan = plan
        self.law = RunsLaw(plan, now=self.now, wall=self.wall, note=self.note, broken=self.break_)
        self._script = Script(self)
        self.outside = Outside(self)

    @property
    def version(self) -> int:
        """Of the code that begins now."""
        return 2 if self.plan.upgrade_at is not None and self.now() >= self.plan.upgrade_at else 1

    def crew_of(self, app: RunsApp) -> stage.Worker:
        return next(post.crew for post in self.posts if post.app is app)

    def committed(self, process: Process, changes: list[Change]) -> None:
        self.law.committed(process, changes)

    def verdict(self, database: Path) -> str | None:
        return final_law(database, self.law, self.outside)

    @property
    def size(self) -> int:
        return len(self.law.runs)

    # -- the run ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        for start in self.plan.starts:
            self.at(start.at, self.outside.start, start)
        for signal in self.plan.signals:
            self.at(signal.at, self.outside.signal, signal)
        for act in self.plan.acts:
            self.at(act.at, self.outside.operate, act)

    def _planned(self) -> list[float]:
        plan = self.plan
        return [start.at for start in plan.starts] + [said.at for said in plan.signals] + [act.at for act in plan.acts]

    def _open_things(self) -> list[str]:
        waiting = [f"{run.id} is {run.state}" for run in self.law.open_runs]
        return waiting or [f"message {seq}" for seq in sorted(self.law.messages)]

    def _is_busy(self, post: Post) -> bool:
        return False

    def _patience(self) -> float:
        """Leases that were lost and clocks that had jumped; then the work itself, one after the other."""
        plans = [run.plan for run in self.law.runs.values()]
        plans += [self.plan.workflows[workflow] for start in self.plan.starts for workflow, _, _ in start.runs]
        work = sum(map(self.plan.seconds_of, plans))
        return 4 * self.plan.lease + 2 * self.plan.set_back + 2 * work + 1_000 * self.plan.latency

    def _look_seconds(self) -> float:
        """Where nobody ticks, days pass at once: then nobody looks every moment either."""
        idle = self.plan.tick_seconds is None and self.now() > self.plan.calm_at + 60.0
        return 900.0 if idle else 0.5

    # -- workers ------------------------------------------------------------------------------------------

    def _hire(self, post: Post, process: Process) -> tuple[stage.Worker, RunsApp]:
        crew = stage.Worker(process.name, process, started_at=self.now())
        self.law.of_process[process] = crew
        return crew, RunsApp(self.plan, self._database, process, self._script, order=self._order)

    def _worker_died(self, crew: stage.Worker) -> None:
        self.note(f"{crew.name} is killed")
        self.law.worker_died(crew)

    def _calmed(self) -> None:
        self.outside.tend()

    def _disposed(self) -> None:
        hints_of.cache_clear()  # it remembers functions, and with them this whole world
