"""A replay check: whether changed code of a workflow still fits a run that was recorded, found out before it is deployed.

A history is what `penstock workflows show ID --json` prints. No step is done and no database is needed: what was recorded
is handed to the code, and what the code asks for is compared with it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from penstock.model.errors import BadParameter
from penstock.model.run import ERRORED, PENDING, RETRYING, Nondeterminism, Script, StepRecord, key_of
from penstock.model.times import to_micros
from penstock.runtime.unit import current_unit
from penstock.workflows.run import Run
from penstock.workflows.workflow import Workflow

TURNS = 50  # of the loop, in which code that has been handed everything may end or raise
PATIENCE_SECONDS = 1.0  # while branches wait at their ends and something recorded is still to be asked for
LOOK_SECONDS = 0.01


class RecordedStep(msgspec.Struct):
    name: str
    kind: str
    state: str
    position: int
    started_at: str
    attempts: int = 0
    ended_at: str | None = None
    due_at: str | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None


class RecordedRun(msgspec.Struct):
    id: str
    workflow: str
    state: str
    input: msgspec.Raw
    created_at: str
    steps: list[RecordedStep]


async def replay(workflow: Workflow[..., Any], history: str | Path | Mapping[str, Any]) -> None:
    """Returns if the code of a workflow asks for what the history has recorded, and raises `Nondeterminism` with the
    difference if it asks for something else. The history is a file, its text, or what was read from it. What is asked for
    behind everything recorded is new work, and fits. An error that the code raises and the run did not have is raised."""
    recorded = _read(history)
    if recorded.workflow != workflow.name:
        raise BadParameter(
            f"The history is of workflow {recorded.workflow!r}, and the code is that of {workflow.name!r}.",
            workflow=recorded.workflow,
        )
    try:
        given = workflow.inputs.decoded(bytes(recorded.input))
    except msgspec.MsgspecError as error:
        raise Nondeterminism(f"The run's input no longer matches the workflow: {error}") from error
    key = key_of(workflow.name, recorded.id)
    script = Script([_record(key, step) for step in recorded.steps])
    run = Replayed(workflow.name, recorded.id, key, _micros(recorded.created_at), script)
    raised = await run.through(workflow, given)
    if run.difference is not None:
        raise run.difference from raised
    if raised is not None and recorded.state != ERRORED:
        raise raised


class Replayed(Run):
    """A run that goes no further than what is recorded. A branch that comes to its end waits there, so that those beside it
    are looked at as well."""

    def __init__(self, workflow: str, id: str, key: bytes, began: int, script: Script) -> None:
        super().__init__(workflow, id, key, began, script, [], None)
        self._asked = 0
        self._asking = 0  # branches that wait for their turn
        self._ended = 0  # and those that wait at their end
        self._over = asyncio.Event()

    async def _recorded(self, name: str, kind: str) -> StepRecord | None:
        self._asked += 1
        self._asking += 1
        try:
            record = await super()._recorded(name, kind)
        finally:
            self._asking -= 1
        if record is None or record.state in (PENDING, RETRYING):
            self._ended += 1
            await self._over.wait()
            self.suspend()
        return record

    async def through(self, workflow: Workflow[..., Any], given: dict[str, Any]) -> Exception | None:
        """Calls the workflow. What it raised, if it did."""
        outside = contextvars.copy_context()
        outside.run(current_unit.set, None)
        task = asyncio.get_running_loop().create_task(_called(workflow, self, given), context=outside)
        try:
            await self._looked_through(task)
            self._over.set()
            await asyncio.wait([task])
        finally:
            task.cancel()
        error = task.exception()
        if error is None or isinstance(error, Exception):
            self.ended()
            return error
        if self.stopped is None:
            raise error
        return None

    async def _looked_through(self, task: asyncio.Task[Any]) -> None:
        """Returns when the code has ended, has asked for something else, or everything recorded was asked for."""
        time = asyncio.get_running_loop().time
        asked, turns, since = 0, 0, time()
        while not task.done() and self.difference is None:
            if self._asked != asked:
                asked, turns, since = self._asked, 0, time()
            turns += 1
            if self._ended and not self._asking and turns > TURNS:
                if not self._script.is_replaying:
                    return
                if time() - since > PATIENCE_SECONDS:
                    self.difference = self._script.differs(None)
                    return
            await asyncio.sleep(0 if turns <= TURNS else LOOK_SECONDS)


async def _called(workflow: Workflow[..., Any], run: Run, given: dict[str, Any]) -> None:
    await workflow.function(run, **given)


# -- the history ------------------------------------------------------------------------------------------


def _read(history: str | Path | Mapping[str, Any]) -> RecordedRun:
    try:
        if isinstance(history, Mapping):
            text = msgspec.json.encode(history)
        elif isinstance(history, str) and history.lstrip().startswith("{"):
            text = history.encode()
        else:
            text = Path(history).read_bytes()
        return msgspec.json.decode(text, type=RecordedRun)
    except (OSError, msgspec.MsgspecError) as error:
        raise BadParameter(
            f"This is no run history: {error}. `penstock workflows show ID --json` prints one.", cause=str(error)
        ) from error


def _record(key: bytes, step: RecordedStep) -> StepRecord:
    return StepRecord(
        key,
        step.position,
        step.name,
        step.kind,
        step.state,
        step.attempts,
        _micros(step.started_at),
        None if step.ended_at is None else _micros(step.ended_at),
        None if step.due_at is None else _micros(step.due_at),
        bytes(step.result),
        step.error,
    )


def _micros(text: str) -> int:
    return to_micros(datetime.fromisoformat(text))
