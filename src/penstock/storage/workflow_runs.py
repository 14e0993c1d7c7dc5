"""Runs of workflows: begun with their message, advanced with what their steps wrote, ended with their result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.runs import (
    EndRun,
    NewRun,
    NewSignal,
    ParkRun,
    Progress,
    RunChange,
    RunHistory,
    RunRow,
    Signal,
    Suspend,
    TakeSignal,
    WakeMessage,
)
from penstock.model.errors import BadSignal, NoSuchRun
from penstock.model.expectation import Expectation, misfit
from penstock.model.message import PAUSING, NewMessage
from penstock.model.run import (
    ACTIVE,
    DONE,
    NEVER_SECONDS,
    PAUSED,
    TERMINATED,
    Ending,
    StepRecord,
    child_signal,
    queue_of,
)
from penstock.storage.sends import Conflicts
from penstock.storage.session import Session, StoredPart, in_transaction
from penstock.storage.tally import PURGED, SENT, Tally


def change_runs(session: Session, changes: Sequence[RunChange], tally: Tally, *, careful: bool, now: int) -> None:
    """Change runs of workflows: what many units want alike in bulk, and the rest in order."""
    begun: list[NewRun] = []
    steps: list[StepRecord] = []
    ends: list[EndRun] = []
    others: list[RunChange] = []
    for change in changes:
        match change:
            case StepRecord():
                steps.append(change)
            case NewRun():
                begun.append(change)
            case EndRun(is_child=False):
                ends.append(change)
            case _:
                others.append(change)
    if begun:
        _begin(session, begun, tally, careful=careful)
    if steps:
        _note(session, steps, careful=careful)
    if ends:
        session.change_many("workflow_runs.end", [_ended(ending, now) for ending in ends])
    for change in others:
        _change(session, change, tally, now)


def _begin(session: Session, begun: list[NewRun], tally: Tally, *, careful: bool) -> None:
    rows = [_row(run) for run in begun]
    if careful:
        begun = [
            run for run, row in zip(begun, rows, strict=True) if session.change("workflow_runs.create", row._asdict())
        ]
    elif session.insert("workflow_runs.create", rows) != len(rows):
        session.rollback()
        raise Conflicts
    messages = [run.message for run in begun]
    if messages and session.insert_messages(messages) != len(messages):
        session.rollback()
        raise Conflicts
    if messages:
        tally.bulk(messages, SENT)


class _Row(NamedTuple):
    key: bytes
    workflow: str
    id: str
    state: str
    input: bytes
    priority: int
    correlation_id: bytes
    parent: bytes | None
    parent_step: str | None
    created_at: int


def _row(run: NewRun) -> _Row:
    key, workflow, id, input, parent, parent_step, message = run
    begun = message.sent_at
    return _Row(key, workflow, id, ACTIVE, input, message.priority, message.correlation_id, parent, parent_step, begun)


def _note(session: Session, steps: list[StepRecord], *, careful: bool) -> None:
    """Nearly all are done at the first try, and noted for the first time. The others come first: one that waited for its
    turn and was done in the same commit is in both, and stays done."""
    others = [step for step in steps if careful or step.attempts != 1 or step.state != DONE]
    new = [] if careful else [step for step in steps if step.attempts == 1 and step.state == DONE]
    if others:
        session.change_many("workflow_runs.note_step", [step._asdict() for step in others])
    if new and session.insert("workflow_runs.add_step", new) != len(new):
        session.rollback()
        raise Conflicts


def _change(session: Session, change: RunChange, tally: Tally, now: int) -> None:
    match change:
        case EndRun():
            _end(session, change, tally, now)
        case Suspend():
            _suspend(session, change, tally, now)
        case ParkRun():
            session.change("workflow_runs.park", change._asdict())
        case Progress():
            session.change("workflow_runs.forgive", change._asdict())
        case NewSignal():
            if not _signal(session, change, tally, now):
                raise NoSuchRun(f"No run {change.key.hex()} exists for signal {change.name!r}; nothing was saved.")
        case TakeSignal():
            session.change("workflow_runs.take_signal", change._asdict())
        case WakeMessage():
            _wake(session, change.id, change.queue, tally, now, claimed=1)


def _end(session: Session, ending: EndRun, tally: Tally, now: int) -> bool:
    if not session.change("workflow_runs.end", _ended(ending, now)):
        return False
    for parent, step in session.rows("workflow_runs.parent", {"key": ending.key}):
        payload = msgspec.json.encode(Ending(ending.state, msgspec.Raw(ending.result or b"null"), ending.error))
        _signal(session, NewSignal(bytes(parent), child_signal(step), payload), tally, now)
    return True


def _ended(ending: EndRun, now: int) -> dict[str, Any]:
    return {
        "key": ending.key,
        "state": ending.state,
        "result": ending.result,
        "error": ending.error,
        "traceback": ending.traceback,
        "now": now,
        "forget_at": now + int(ending.kept_seconds * 1_000_000),
        "generation": ending.generation,
    }


def _signal(session: Session, signal: NewSignal, tally: Tally, now: int) -> bool:
    """False if there is no such run. One that has ended needs no signal."""
    found: list[Any] = session.rows("workflow_runs.lock", {"key": signal.key})
    for workflow, state in found:
        if state in (ACTIVE, PAUSED):
            _check(session, signal)
            session.change("workflow_runs.signal", signal._asdict() | {"now": now})
        if state == ACTIVE:
            _wake(session, signal.key, queue_of(workflow), tally, now)
    return bool(found)


def _check(session: Session, signal: NewSignal) -> None:
    """Refuse a payload that no wait for this signal takes. Where none waits yet, the run checks it."""
    rows: list[Any] = session.rows("workflow_runs.waits", {"key": signal.key})
    waits = [msgspec.json.decode(wait, type=Expectation) for (wait,) in rows]
    waited = [each for each in waits if each.signal == signal.name]
    reasons = [each.schema and misfit(signal.payload, each.schema) for each in waited]
    if reasons and all(reasons):
        raise BadSignal(
            f"Signal {signal.name!r} was refused: {reasons[0]}. The run still waits for it; send it again, corrected.",
            signal=signal.name,
            reason=reasons[0],
        )


def _wake(session: Session, key: bytes, queue: str, tally: Tally, now: int, *, claimed: int = 0) -> None:
    if session.change("workflow_runs.wake", {"key": key, "queue": queue, "now": now, "claimed": claimed}):
        tally.waits(queue, now)


def _suspend(session: Session, suspend: Suspend, tally: Tally, now: int) -> None:
    """A signal comes before this, and is seen here, or after, and finds the run waiting."""
    found: list[Any] = session.rows("workflow_runs.lock", {"key": suspend.key})
    if not found or found[0][1] != ACTIVE:
        return
    if suspend.pausing or any(
        session.value("workflow_runs.is_signalled", {"key": suspend.key, "name": name}) for name in suspend.signals
    ):
        _wake(session, suspend.key, suspend.queue, tally, now)


class StoredRuns(StoredPart):
    def histories(self, keys: Sequence[bytes]) -> list[RunHistory | None]:
        # Not of one moment: the caller holds the runs, and learns of signals that come meanwhile when it waits.
        return [self._history(key) for key in keys]

    def _history(self, key: bytes) -> RunHistory | None:
        state: str | None = self._session.value("workflow_runs.state", {"key": key})
        if state is None:
            return None
        signals: list[Any] = self._session.rows("workflow_runs.signals", {"key": key})
        return RunHistory(state, self.steps(key), [Signal(*row) for row in signals])

    def steps(self, key: bytes) -> list[StepRecord]:
        return [StepRecord(*row) for row in self._session.rows("workflow_runs.steps", {"key": key})]

    def find(self, key: bytes, *, now: int) -> RunRow | None:
        rows: list[Any] = self._session.rows("workflow_runs.find", {"key": key, "now": now})
        return RunRow(*rows[0]) if rows else None

    def listed(self, workflow: str | None, state: str | None, *, now: int, limit: int) -> list[RunRow]:
        bound = {"workflow": workflow, "state": state, "now": now, "limit": limit}
        return [RunRow(*row) for row in self._session.rows("workflow_runs.listed", bound)]

    # -- what an operator does ----------------------------------------------------------------------------

    @in_transaction
    def pause(self, key: bytes, *, now: int) -> set[str]:
        found: list[Any] = self._session.rows("workflow_runs.lock", {"key": key})
        if not found or found[0][1] != ACTIVE:
            return set()
        self._session.change("workflow_runs.park", {"key": key, "reason": "asked", "error": None})
        never = now + int(NEVER_SECONDS * 1_000_000)
        held = {"key": key, "queue": queue_of(found[0][0]), "pausing": PAUSING, "never": never}
        self._session.change("workflow_runs.hold_message", held)
        return {queue_of(found[0][0])}

    @in_transaction
    def resume(self, key: bytes, *, now: int) -> set[str]:
        found: list[Any] = self._session.rows("workflow_runs.lock", {"key": key})
        if not found or not self._session.change("workflow_runs.resume", {"key": key}):
            return set()
        freed = {"key": key, "queue": queue_of(found[0][0]), "pausing": PAUSING, "now": now}
        self._session.change("workflow_runs.free_message", freed)
        return {queue_of(found[0][0])}

    @in_transaction
    def terminate(self, key: bytes, *, now: int, kept_seconds: float) -> set[str]:
        tally = Tally()
        self._terminate(tally, key, now, kept_seconds)
        return self._counted(tally)

    def _counted(self, tally: Tally) -> set[str]:
        """Save the counts, and return the queues that changed."""
        tally.save(self._session)
        return {*tally.by_queue, *tally.waiting}

    def _terminate(self, tally: Tally, key: bytes, now: int, kept_seconds: float) -> None:
        found: list[Any] = self._session.rows("workflow_runs.lock", {"key": key})
        if not found or not _end(self._session, EndRun(key, TERMINATED, None, None, kept_seconds), tally, now):
            return
        self._remove_message(key, found[0][0], tally)
        for (child,) in self._session.rows("workflow_runs.children", {"key": key}):
            self._terminate(tally, bytes(child), now, kept_seconds)

    def _remove_message(self, key: bytes, workflow: str, tally: Tally) -> None:
        gone = {"key": key, "queue": queue_of(workflow)}
        for queue, body_bytes in self._session.rows("workflow_runs.remove_message", gone):
            tally.left(queue, PURGED, body_bytes)

    @in_transaction
    def restart(
        self, key: bytes, position: int, generation: int, message: NewMessage, *, kept_seconds: float
    ) -> set[str]:
        session, tally = self._session, Tally()
        found: list[Any] = session.rows("workflow_runs.lock", {"key": key})
        if not found or not session.change("workflow_runs.restart", {"key": key, "generation": generation}):
            return set()
        self._remove_message(key, found[0][0], tally)
        for (child,) in session.rows("workflow_runs.children_since", {"key": key, "position": position}):
            self._terminate(tally, bytes(child), message.due, kept_seconds)
        forgotten = {"key": key, "position": position, "child": child_signal("")}
        session.change("workflow_runs.forget_children", forgotten)
        session.change("workflow_runs.disown_children", forgotten)
        session.change("workflow_runs.forget_steps", forgotten)
        session.insert_messages([message])
        tally.bulk([message], SENT)
        return self._counted(tally)
