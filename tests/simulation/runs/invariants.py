"""The law of runs, checked at every commit, slice and step against what the simulator knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

import penstock as ps
from penstock.testing.process import Process
from tests.simulation.runs.commit import Commit
from tests.simulation.runs.judge import Judge
from tests.simulation.runs.model import ACTIVE, COMPLETE, ENDED, PAUSED, Record, Row, Slice, Tracked
from tests.simulation.runs.plan import RunsPlan
from tests.simulation.runs.shape import Child, Do, Node, Wait, nodes
from tests.simulation.stage import Worker
from tests.simulation.watch import Change

SOON_MICROS = 2_000_000


class RunsLaw:
    def __init__(
        self,
        plan: RunsPlan,
        *,
        now: Callable[[], float],
        wall: Callable[[], int],
        note: Callable[[str], None],
        broken: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.now = now
        self._wall = wall
        self.note = note
        self._broken = broken
        self._flows = {flow.name: flow for flow in plan.workflows}
        self._parts: dict[str, dict[str, Node]] = {
            flow.name: {node.name: node for node in nodes(flow.shape)} for flow in plan.workflows
        }
        self.runs: dict[bytes, Tracked] = {}
        self.by_id: dict[str, Tracked] = {}
        self.of_process: dict[Process, Worker] = {}
        self.messages: set[int] = set()  # everything that waits or is held, in any queue
        self.wanted: dict[str, set[int]] = {}  # the values with which a run of an id may begin
        self.said: set[bytes] = set()  # signals that somebody wants to send
        self.effects: Counter[tuple[str, str, int]] = Counter()
        self.saved: Counter[str] = Counter()  # orders of producers
        self.sent: Counter[str] = Counter()  # messages of steps
        self.got: Counter[str] = Counter()  # and those that were handled
        self._endings: dict[bytes, list[tuple[str, bytes | None]]] = {}

    def expect(self, kept: bool, law: str) -> None:
        if not kept:
            self._broken(law)

    def committed(self, process: Process, changes: list[Change]) -> None:
        crew = self.of_process[process]
        self.expect(not process.dead, f"{crew.name} is dead and has committed")
        commit = Commit(self, crew)
        for change in changes:
            commit.take(change)
        commit.close()

    @property
    def open_runs(self) -> list[Tracked]:
        return [run for run in self.runs.values() if run.state not in ENDED]

    def is_past(self, due: int) -> bool:
        """Where the clock on the wall was set back, processes are ahead of it."""
        return self._wall() + 1_000 >= due or self.plan.set_back > 0

    def flow_of(self, id: str) -> str:
        return self.by_id[id].plan.name

    def part_of(self, run: Tracked, name: str) -> Node | None:
        return self._parts[run.plan.name].get(name)

    def signal_of(self, run: Tracked, name: str) -> str:
        node = self.part_of(run, name)
        assert isinstance(node, Wait)
        return node.signal

    def children_of(self, run: Tracked) -> list[Tracked]:
        return [each for each in self.runs.values() if each.parent == run.key]

    # -- begins and ends ----------------------------------------------------------------------------------

    def begun(self, key: bytes, row: Row, started: Counter[str]) -> None:
        """A run begins: somebody asked for it outside, or a step, or its parent."""
        id, parent = row["id"], None if row["parent"] is None else bytes(row["parent"])
        run = Tracked(key, id, self._flows[row["workflow"]], bytes(row["input"]), parent, row["parent_step"])
        self.expect(id not in self.by_id, f"{id} began twice")
        self.runs[key] = self.by_id[id] = run
        given = msgspec.json.decode(run.input)
        self.note(f"{id} of {run.plan.name} begins with {given['value']}")
        if parent is not None:
            above = self.runs[parent]
            again = f"#{above.generation}" if above.generation else ""
            self.expect(id == f"{above.id}/{run.parent_step}{again}", f"{id} is no child of {above.id}")
        elif given["origin"]:
            started[given["origin"]] += 1
        else:
            self.expect(given["value"] in self.wanted.get(id, ()), f"{id} began with {given}, and nobody asked for it")

    def state_changed(self, run: Tracked) -> None:
        run.paused_since = self.now() if run.state == PAUSED else None
        if run.state in ENDED:
            self._endings.setdefault(run.key, []).append((run.state, run.result))

    def comes_to_pass(self, run: Tracked, what: str) -> None:
        run.happened[what] += 1
        self.expect(run.happened[what] <= run.asked[what], f"{run.id}: nobody asked for {what}")

    def judged(self, run: Tracked) -> tuple[Judge, int | None]:
        judge = Judge(run.plan.shape, run.by_name())
        value = judge.value(msgspec.json.decode(run.input)["value"])
        for problem in judge.problems:
            self._broken(f"{run.id}: {problem}")
        return judge, value

    def judge_end(self, run: Tracked) -> None:
        """An end that the shape does not say."""
        judge, value = self.judged(run)
        if run.state == COMPLETE:
            right = value is not None and not run.plan.fails and run.result == b"%d" % value
            self.expect(right, f"{run.id} is complete with {run.result!r}; its shape says {value}: {judge.front}")
        else:
            planned = judge.doomed or (value is not None and run.plan.fails)
            self.expect(planned, f"{run.id} ended with {run.error}: {judge.front}")

    def child_heard(self, run: Tracked, record: Record) -> None:
        """What a parent hears is the end of the very child that it began."""
        if record.state != "done":
            return
        children = [child for child in self.children_of(run) if child.parent_step == record.name]
        ending = msgspec.json.decode(record.result or b"{}")
        ends = self._endings.get(children[-1].key, []) if children else []
        right = any(state == ending["state"] and _read(result) == ending.get("result") for state, result in ends)
        self.expect(right, f"{run.id} heard that {record.name} ended with {ending}: {ends}")

    def signal_saved(self, payload: bytes) -> None:
        self.expect(bytes(payload) in self.said, f"nobody said {payload!r}, or twice")
        self.said.discard(bytes(payload))

    # -- slices and steps ---------------------------------------------------------------------------------

    def slice_begins(self, crew: Worker, run: ps.Run, version: int) -> Slice:
        tracked, inside = self.runs[run.key], run._execution
        assert inside is not None
        generation = int(inside._again[1:] or 0)
        here = Slice(tracked, generation, inside.delivery.token, crew, self.now(), version)
        self.note(f"{crew.name} goes on with {run.id}")
        if (
            generation == tracked.generation and tracked.state not in ENDED
        ):  # or somebody took it from whoever claimed it
            self._check_holder(here)
        tracked.slices.append(here)
        return here

    def _check_holder(self, here: Slice) -> None:
        """Whoever goes on with a run holds it, and nobody else does."""
        run, crew, held = here.run, here.crew, here.run.message
        if held is None or held.crew is not crew or held.token != here.token:
            self._broken(f"{crew.name} goes on with {run.id}, and does not hold it")
            return
        since = run.paused_since
        late = run.state == PAUSED and since is not None and held.claimed_at > since and held.claimed_paused
        self.expect(not late, f"{crew.name} goes on with {run.id}, which was paused before it was claimed")
        for other in run.slices:
            if other.crew.died_at is None:
                self.expect(other.token != here.token, f"{crew.name} and {other.crew.name} both run {run.id}")

    def slice_ends(self, here: Slice, outcome: str) -> None:
        if here.crew.process.dead:
            return
        here.ended = True
        here.run.slices.remove(here)
        crew = here.crew
        self.note(f"{crew.name}: {here.run.id} {outcome}")
        if outcome == "is cancelled" and self.now() - here.began >= here.run.plan.wall - 0.1:
            here.run.overruns += 1
            slept = crew.process.paused or crew.paused_at >= here.began
            self.expect(slept, f"{here.run.id} overran its wall limit")

    def step_begins(self, here: Slice, do: Do, step: ps.Step) -> None:
        run = here.run
        again = f"#{here.generation}" if here.generation else ""
        self.note(f"{here.crew.name} calls {run.id} {do.name}{again}, attempt {step.attempt}")
        self.expect(step.key == f"{run.plan.name}/{run.id}/{do.name}{again}", f"{run.id}: the key is {step.key}")
        self.expect(not here.ended, f"{run.id} {do.name} began after its slice had ended")
        if here.generation != run.generation:
            return
        record = run.by_name().get(do.name)
        known = record is not None and record.state in ("done", "failed")
        self.expect(not known, f"{run.id} {do.name} was called again after it was saved")
        early = record is not None and record.due is not None and not self.is_past(record.due)
        self.expect(not early, f"{run.id} {do.name} was tried again too early")
        paused = run.state == PAUSED and here.heard_of_pause
        self.expect(not paused, f"{run.id} {do.name} began although its slice had heard of the pause")

    def step_saved(self, crew: Worker, run: Tracked, record: Record, *, paused: bool) -> None:
        if record.state == "done":
            run.deaths = run.overruns = 0
        if paused:
            for here in run.slices:
                if here.crew is crew and not here.ended:
                    here.saved_in_pause.add(record.name)

    def worker_died(self, crew: Worker) -> None:
        for run in self.runs.values():
            run.slices = [here for here in run.slices if here.crew is not crew]
            if run.message is not None and run.message.crew is crew:
                run.deaths += 1

    # -- waiting ------------------------------------------------------------------------------------------

    def look_at(self, run: Tracked) -> None:
        """Whatever a run waits for has not happened yet."""
        if run.state != ACTIVE:
            return
        held = run.message
        if held is None:
            self.expect(run.mourned, f"{run.id} is active and has no message")
            return
        if held.worker is not None or held.due <= self._wall() + SOON_MICROS or self.plan.set_back or held.attempts:
            return
        judge, value = self.judged(run)
        self.expect(value is None and not judge.doomed, f"{run.id} waits at its end")
        dues = []
        for node, record in judge.front:
            if record is None:
                self._broken(f"{run.id} waits, and {node.name} could begin")
            elif isinstance(node, Wait):
                there = any(name == node.signal for name, _ in run.signals.values())
                self.expect(not there, f"{run.id} waits for {node.signal!r}, which is there")
            elif isinstance(node, Child):
                going = [child for child in self.children_of(run) if child.parent_step == node.name]
                ended = not going or going[-1].state in ENDED
                self.expect(not ended, f"{run.id} waits for {node.name}, which has ended")
            if record is not None and record.due is not None:
                dues.append(record.due)
        if dues:
            late = (held.due - min(dues)) / 1_000_000
            self.expect(late <= self.plan.lateness, f"{run.id} waits for {late:.3f} s longer than it has to")


def _read(result: bytes | None) -> object:
    return None if result is None else msgspec.json.decode(result)
