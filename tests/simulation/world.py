"""A world of queues: messages, batches, producers and operators, on a stage with faults, and the law that watches them."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import NoReturn

from penstock.model.outcome import Done
from penstock.runtime.events import MessageSettled
from penstock.testing.process import Killed, Process
from tests.simulation import stage
from tests.simulation.final import final_law
from tests.simulation.handlers import Handlers
from tests.simulation.invariants import LEASE_SLACK, Law
from tests.simulation.model import ACKED, Crew, Run
from tests.simulation.outside import Outside
from tests.simulation.plan import STALL_SECONDS, Plan
from tests.simulation.producers import Producers
from tests.simulation.script import Script
from tests.simulation.watch import Change
from tests.simulation.workers import SimulatedApp

Post = stage.Post[Crew, SimulatedApp]


class World(stage.Stage[Crew, SimulatedApp]):
    def __init__(self, plan: Plan, database: Path, trace: stage.Trace) -> None:
        super().__init__(plan, database, trace)
        self.plan = plan
        self.law = Law(plan, time=self.now, wall=self.wall, note=self.note, broken=self.break_)
        self._script = Script(plan, self.chance("handlers"), die=self._die, stall=self._stall, broken=self.break_)
        self._handlers = Handlers(self, self._script)
        self._producers = Producers(self)
        self.outside = Outside(self)

    def crew_of(self, app: SimulatedApp) -> Crew:
        return next(post.crew for post in self.posts if post.app is app)

    def committed(self, process: Process, changes: list[Change]) -> None:
        self.law.committed(process, changes)

    def verdict(self, database: Path) -> str | None:
        return final_law(database, self.law, self.outside)

    @property
    def size(self) -> int:
        return len(self.law.rows)

    # -- the run ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        for send in self.plan.sends:
            self.at(send.at, self._producers.produce, send)
        for act in self.plan.acts:
            self.at(act.at, self.outside.act, act)

    def _planned(self) -> list[float]:
        return [send.at for send in self.plan.sends] + [act.at for act in self.plan.acts]

    def _open_things(self) -> list[str]:
        return [f"{row.key} is {row.state}" for row in self.law.open_rows]

    def _is_busy(self, post: Post) -> bool:
        # A batch whose messages have all settled in blocks may still run.
        return bool(post.crew.running and not post.crew.process.dead)

    def _patience(self) -> float:
        """Two leases cover what was lost last and a clock that had jumped; then the work itself, one after the other."""
        lease = max(queue.wall for queue in self.plan.queues) + LEASE_SLACK
        work = max(5.0, self.plan.slowness) * len(self.law.rows) + 20 * self.plan.retry_first
        return (3.5 * lease if self.plan.jumps else 1.2 * lease) + work + 500 * self.plan.latency

    # -- workers ------------------------------------------------------------------------------------------

    def _hire(self, post: Post, process: Process) -> tuple[Crew, SimulatedApp]:
        served = self.plan.served[post.number]
        queues = {self.plan.queues[number].name: self.plan.queues[number] for number in served}
        crew = Crew(process.name, process, queues=queues, started_at=self.now())
        crew.parallel = {queue.name: {queue.parallel: inf} for queue in self.plan.queues}
        self.law.of_process[process] = crew
        app = SimulatedApp(self.plan, served, self._database, process, order=self._order, handlers=self._handlers)
        if self.plan.told:
            app.events.subscribe(self._told, to=MessageSettled)
        return crew, app

    def _worker_opened(self, crew: Crew) -> None:
        self.law.look_for_room()

    def _worker_left(self, crew: Crew) -> None:
        if crew.died_at is None and any(crew.held.values()):
            self.break_(f"{crew.name} left and still holds {crew.held}")

    def _worker_died(self, crew: Crew) -> None:
        culprit = crew.on_processor
        crew.suspects = set(culprit.beside if culprit is not None else crew.running)
        self.note(f"{crew.name} is killed; suspects: {sorted(run.row.key for run in crew.suspects)}")
        self.law.look_for_room()

    def _worker_paused(self, crew: Crew) -> None:
        self.law.look_for_room()

    def _worker_resumes(self, crew: Crew) -> None:
        self.law.look_for_room()
        self.law.look_for_slots(crew)

    def _die(self, run: Run) -> NoReturn:
        crew = run.crew
        self._revive_later(self._post_of(crew), 0.3)
        crew.process.kill()
        raise Killed

    def _stall(self, run: Run) -> None:
        if not run.crew.process.paused:
            self._pause(run.crew, STALL_SECONDS)

    def _calmed(self) -> None:
        self._script.calm = True
        self.outside.tend()

    def _disposed(self) -> None:
        for task in self._script.left_over:
            task.cancel()

    # -- what is heard -------------------------------------------------------------------------------------

    def _told(self, event: MessageSettled) -> None:
        rows = self.law.by_id[bytes.fromhex(event.id.replace("-", ""))]
        if isinstance(event.settlement, Done) and not any(row.state == ACKED for row in rows):
            self.break_(f"{rows[0].key} was said to be done and is {rows[0].state}")
