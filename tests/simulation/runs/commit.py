"""What one commit may change of runs: a step with its effects, a wait with its signal, an end with its message."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tests.simulation.runs.model import ACTIVE, ENDED, ERRORED, PAUSED, TERMINATED, Held, Record, Row, Tracked
from tests.simulation.runs.shape import Do
from tests.simulation.stage import Worker
from tests.simulation.watch import Change

if TYPE_CHECKING:
    from tests.simulation.runs.invariants import RunsLaw

FINAL = {"done", "failed", "timed_out"}
OPEN = {ACTIVE, PAUSED}
ENGINES_OWN = "\x1f"  # begins the names of signals that no user sends
WORKFLOW, NOTICES, POSTS = "workflow.", "-dlq", "posts"


class Before(NamedTuple):
    """A run as the last commit had left it."""

    state: str
    generation: int
    holder: Worker | None
    parent: bytes | None
    children: frozenset[bytes]


class Commit:
    def __init__(self, law: RunsLaw, crew: Worker) -> None:
        self._law = law
        self._crew = crew
        self._before: dict[bytes, Before] = {}
        self._effects: Counter[tuple[str, str, int]] = Counter()  # run, step, generation
        self._sent: Counter[str] = Counter()  # messages that steps have sent, by their keys
        self._started: Counter[str] = Counter()  # runs that steps have started
        self._done: list[tuple[Tracked, Record]] = []
        self._heard: list[tuple[Tracked, str, bytes]] = []  # signals that have gone
        self._signalled: list[Tracked] = []
        self._begun: set[bytes] = set()
        self._buried: list[Tracked] = []

    def take(self, change: Change) -> None:
        match change.table:
            case "effects":
                self._effect(change.new)
            case "penstock_messages":
                self._message(change.old, change.new)
            case "penstock_runs":
                self._run(change.old, change.new)
            case "penstock_steps":
                self._step(change.old, change.new)
            case "penstock_signals":
                self._signal(change.old, change.new)
            case "penstock_dead":
                self._letter(change.old, change.new)

    def _expect(self, kept: bool, law: str) -> None:
        self._law.expect(kept, law)

    def _touch(self, key: bytes) -> Tracked:
        run = self._law.runs[key]
        if key not in self._before:
            holder = run.message.crew if run.message is not None else None
            children = frozenset(child.key for child in self._law.children_of(run) if child.state in OPEN)
            self._before[key] = Before(run.state, run.generation, holder, run.parent, children)
        return run

    # -- one row ------------------------------------------------------------------------------------------

    def _effect(self, new: Row | None) -> None:
        assert new is not None
        said = bytes(new["id"]).decode()
        if new["kind"] == "step":
            self._effects[(said, new["handler"], new["token"])] += 1
        elif new["kind"] == "post":
            self._law.got[said] += 1
            self._expect(self._law.got[said] == 1, f"the message of {said} was handled twice")
        elif new["kind"] == "order":
            self._law.saved[said] += 1
            self._expect(self._law.saved[said] == 1, f"{said} was saved twice")

    def _message(self, old: Row | None, new: Row | None) -> None:
        row: Any = new or old
        law, queue = self._law, row["queue"]
        if new is None:
            law.messages.discard(row["seq"])
        else:
            law.messages.add(row["seq"])
        if queue == POSTS and old is None:
            self._sent[msgspec.json.decode(row["body"])["origin"]] += 1
        if not queue.startswith(WORKFLOW) or queue.endswith(NOTICES):
            return
        run = self._touch(bytes(row["id"]))
        if new is None:
            run.message = None
            return
        held = run.message
        if held is None or held.seq != new["seq"]:
            self._expect(held is None, f"{run.id} has two messages")
            held = run.message = Held(new["seq"], new["token"], None, new["due"])
        if new["worker"] is not None and held.worker is None:
            held.crew, held.claimed_at = self._crew, law.now()
            held.claimed_paused = run.state == PAUSED
        elif new["worker"] is None and held.worker is not None:
            self._released(run, held)
            held.crew = None
        held.token, held.worker, held.due, held.attempts = new["token"], new["worker"], new["due"], new["attempts"]

    def _released(self, run: Tracked, held: Held) -> None:
        """Nobody takes a run from a worker that is well: only from one that was paused for about as long as its lease."""
        holder = held.crew
        if holder is None or holder is self._crew or holder.died_at is not None or holder.left:
            return
        run.deaths += 1
        slept = holder.paused_at >= held.claimed_at
        lasted = self._law.now() - held.claimed_at
        well = not slept or lasted < (run.plan.wall + 30.0) / 2 - 1.0
        self._expect(not well, f"{run.id} was taken from {holder.name}, who had held it for {lasted:.3f} s")

    def _run(self, old: Row | None, new: Row | None) -> None:
        if new is None:
            assert old is not None
            self._expect(False, f"{old['id']} was forgotten")
            return
        key = bytes(new["key"])
        if old is None:
            self._law.begun(key, new, self._started)
            self._begun.add(key)
            if new["parent"] is not None:
                self._touch(bytes(new["parent"]))
        run = self._touch(key)
        if old is not None:
            self._expect(bytes(new["input"]) == run.input, f"{run.id} got another input")
        run.state, run.generation = new["state"], new["generation"]
        run.result, run.error = new["result"], new["error"]
        run.parent = None if new["parent"] is None else bytes(new["parent"])
        self._expect(new["reason"] in (None, "asked"), f"{run.id} was parked: {new['error']}")

    def _step(self, old: Row | None, new: Row | None) -> None:
        row: Any = new or old
        run = self._touch(bytes(row["run"]))
        if new is None:
            del run.records[row["position"]]
            return
        before = run.records.get(new["position"])
        record = Record(*(new[name] for name in Record._fields))
        run.records[record.position] = record
        if before is not None and before.state in FINAL:
            self._expect(record == before, f"{run.id}: {record.name} was {before.state} and is {record.state}")
        elif record.state in FINAL:
            self._done.append((run, record))
            if before is not None and before.due is not None and record.kind in ("sleep", "signal"):
                early = record.state == "timed_out" or record.kind == "sleep"
                self._expect(not early or self._law.is_past(before.due), f"{run.id}: {record.name} was over too early")
        self._expect(
            sum(each.name == record.name for each in run.records.values()) == 1, f"{run.id} has two of {record.name}"
        )

    def _signal(self, old: Row | None, new: Row | None) -> None:
        row: Any = new or old
        run = self._touch(bytes(row["run"]))
        if new is not None:
            run.signals[row["seq"]] = (row["name"], bytes(row["payload"]))
            self._signalled.append(run)
            if not row["name"].startswith(ENGINES_OWN):
                self._law.signal_saved(row["payload"])
        else:
            self._heard.append((run, *run.signals.pop(row["seq"])))

    def _letter(self, old: Row | None, new: Row | None) -> None:
        if old is None and new is not None and new["queue"].startswith(WORKFLOW):
            self._expect(not new["queue"].endswith(NOTICES), f"the news of a death died: {new['error_message']}")
            self._buried.append(self._touch(bytes(new["id"])))
        elif old is None and new is not None:
            self._expect(False, f"a message of {new['queue']} died: {new['error_message']}")

    # -- all of it ----------------------------------------------------------------------------------------

    def close(self) -> None:
        for run in self._buried:
            enough = run.deaths >= 3 or run.overruns >= 4
            self._expect(enough, f"{run.id} died after {run.deaths} deaths and {run.overruns} overruns")
            run.mourned = True
        self._check_steps()
        self._check_signals()
        for key, before in self._before.items():
            run = self._law.runs[key]
            if run.generation != before.generation:
                self._restarted(run, before)
            if run.state != before.state or run.generation != before.generation:
                self._changed(run, before)
        for key in self._before:
            self._law.look_at(self._law.runs[key])

    def _check_steps(self) -> None:
        law, wanted = self._law, Counter[tuple[str, str, int]]()
        for run, record in self._done:
            before = self._before[run.key]
            self._expect(before.holder is self._crew, f"{self._crew.name} saved {record.name} of {run.id}, not its own")
            self._expect(before.state in OPEN, f"{run.id} was {before.state} when {record.name} was saved")
            law.note(f"{self._crew.name} saved {run.id} {record.name}: {record.state}")
            node = law.part_of(run, record.name)
            if isinstance(node, Do):
                law.step_saved(self._crew, run, record, paused=before.state == PAUSED)
            if isinstance(node, Do) and record.state == "done":
                wanted[(run.id, record.name, before.generation)] += 1
                key = f"{run.plan.name}/{run.id}/{record.name}" + (f"#{before.generation}" * (before.generation > 0))
                self._expect(self._sent[key] == (node.kind == "send"), f"{key} sent {self._sent[key]} messages")
                self._expect(self._started[key] == (node.kind == "start"), f"{key} started {self._started[key]} runs")
        self._expect(self._effects == wanted, f"saved: {sorted(wanted)}, with the effects of {sorted(self._effects)}")
        law.effects.update(self._effects)
        law.sent.update(self._sent)
        made = self._sent.keys() | self._started.keys()
        keys = {f"{law.flow_of(run)}/{run}/{name}" + (f"#{again}" * (again > 0)) for run, name, again in wanted}
        self._expect(made <= keys, f"{sorted(made - keys)} is of steps that were not saved")

    def _check_signals(self) -> None:
        got = [(run.key, record.result) for run, record in self._done if record.kind in ("signal", "child")]
        gone = Counter((run.key, payload) for run, _, payload in self._heard)
        for run, record in self._done:
            if record.kind == "signal" and record.state == "done":
                assert record.result is not None
                payload = bytes(record.result)
                self._expect(payload not in run.heard, f"{run.id} heard {payload!r} twice")
                run.heard.add(payload)
            if record.kind == "child":
                self._law.child_heard(run, record)
            if record.kind in ("signal", "child") and record.state == "done":
                self._expect(
                    gone[(run.key, record.result or b"")] > 0, f"{run.id} got {record.name} and it is still there"
                )
        for run, name, payload in self._heard:
            restarted = run.generation != self._before[run.key].generation and name.startswith(ENGINES_OWN)
            self._expect((run.key, payload) in got or restarted, f"{run.id} lost the signal {name!r}")
        for run in self._signalled:
            states = {run.state, self._before[run.key].state}
            self._expect(bool(states & OPEN), f"{run.id} is {run.state} and was signalled")

    def _restarted(self, run: Tracked, before: Before) -> None:
        law = self._law
        law.comes_to_pass(run, "restart")
        run.deaths = run.overruns = 0
        run.mourned = False
        self._expect(
            run.generation == before.generation + 1, f"{run.id} went from {before.generation} to {run.generation}"
        )
        kept = {record.name for record in run.records.values()}
        for key in before.children:
            child = law.runs[key]
            goes_on = child.parent_step in kept
            self._expect(
                (child.state in OPEN) == goes_on, f"{child.id} is {child.state} after its parent was restarted"
            )

    def _changed(self, run: Tracked, before: Before) -> None:
        law = self._law
        law.note(f"{self._crew.name} made {run.id} {run.state}")
        law.state_changed(run)
        if run.state in ENDED:
            self._expect(
                before.state in OPEN or run.key in self._begun, f"{run.id} was {before.state} and is {run.state}"
            )
            self._expect(run.message is None, f"{run.id} is {run.state} and has a message")
            if run.state == TERMINATED:
                self._terminated(run, before)
            elif run.state == ERRORED and run.mourned:
                pass
            else:
                self._expect(before.holder is self._crew, f"{self._crew.name} ended {run.id}, not its own")
                law.judge_end(run)
        elif run.state == PAUSED:
            law.comes_to_pass(run, "pause")
        elif before.state == PAUSED:
            if run.generation == before.generation:
                law.comes_to_pass(run, "resume")
        else:
            new = run.key in self._begun or run.generation != before.generation
            self._expect(new, f"{run.id} was {before.state} and is {run.state}")

    def _terminated(self, run: Tracked, before: Before) -> None:
        parent = None if before.parent is None else self._law.runs[before.parent]
        above = None if parent is None else self._before.get(parent.key)
        with_parent = (
            parent is not None
            and above is not None
            and (parent.state == TERMINATED or parent.generation != above.generation)
        )
        if not with_parent:
            self._law.comes_to_pass(run, "terminate")
        for key in before.children:
            child = self._law.runs[key]
            self._expect(child.state not in OPEN, f"{child.id} is {child.state} after its parent was terminated")
