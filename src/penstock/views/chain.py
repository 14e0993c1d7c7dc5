"""The events of a chain of messages, and their order: deliveries, and runs of workflows with their steps.

A run has the key of its message, so its rows are found from what is traced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.data.usage import Reading
from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.model.row import Row
from penstock.model.run import CHILD, WAITING, queue_of
from penstock.model.sql_files import load
from penstock.views import runs
from penstock.views.view import shaped

FIELDS = "at service kind name id causation_id attempt status duration_ms queue source error due reason resolution"
FIELDS += " replay_of depth run"
RUN = "run"  # the kind of a run; its steps have theirs
SQL = load("penstock.views", "trace.sql")
RUNS_MAX = 500  # of one chain, whose rows are read; some 50 ms
STEPS_MAX = 1_000  # of one run
ERROR_TEXT_MAX = 300


@dataclass(frozen=True, slots=True)
class Traced:
    """One delivery of a message, or the message as it waits; a run of a workflow, or one of its steps, under the id of the
    run's message. `at` is when it began; `depth` counts what led to it."""

    at: int
    service: str | None
    kind: str
    name: str
    id: bytes
    causation_id: bytes | None
    attempt: int
    status: str  # as in the history, or ready, delayed, leased; that of a run or a step
    micros: int | None
    queue: str
    source: str
    error: str | None = None
    due: int | None = None
    reason: str | None = None
    resolution: str | None = None
    replay_of: bytes | None = None
    depth: int = 0
    run: str | None = None  # of a run and its steps: its id
    position: int = 0  # of a step among those of its run

    @property
    def is_message(self) -> bool:
        return self.run is None

    @property
    def due_known(self) -> int | None:
        """Return when it continues by itself. A run that only a signal wakes does not."""
        return runs.soon(self.due, self.at)

    def facts(self) -> dict[str, Any]:
        took = None if self.micros is None else self.micros / 1_000
        return shaped(FIELDS, {**asdict(self), "duration_ms": took, "due": self.due_known})


@dataclass(frozen=True, slots=True)
class Trace:
    """`notes` are sentences about events that may be missing."""

    correlation_id: bytes
    events: list[Traced]
    notes: list[str]

    def facts(self) -> dict[str, Any]:
        return {
            "correlation_id": as_text(self.correlation_id),
            "events": [event.facts() for event in self.events],
            "notes": self.notes,
        }


def in_order(events: Iterable[Traced]) -> list[Traced]:
    """Return the events with children behind their parent, one deeper; deliveries, steps and siblings go by time."""
    of_message: dict[bytes, list[Traced]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.at, _rank(event), event.position, event.attempt)):
        of_message[event.id].append(event)
    children: dict[bytes, list[bytes]] = defaultdict(list)
    first: list[bytes] = []
    for id, deliveries in of_message.items():
        cause = deliveries[0].causation_id
        (first if cause is None or cause == id or cause not in of_message else children[cause]).append(id)
    ordered: list[Traced] = []
    seen: set[bytes] = set()
    # All are put in once more: events that cause only one another come last. A damaged chain is shown all the same.
    upcoming = [(id, 0) for id in reversed([*first, *of_message])]
    while upcoming:
        id, depth = upcoming.pop()
        if id not in seen:
            seen.add(id)
            ordered += [replace(event, depth=depth) for event in of_message[id]]
            upcoming += [(child, depth + 1) for child in reversed(children[id])]
    return ordered


def _rank(event: Traced) -> int:
    """Order events of one moment: the run, the delivery, its steps, and what waits after it."""
    if event.is_message:
        return 1 if event.due is None else 3
    return 0 if event.kind == RUN else 2


# -- runs of workflows ------------------------------------------------------------------------------------


async def with_runs(
    reading: Reading, events: list[Traced], run: bytes | None, *, now: int
) -> tuple[list[Traced], list[str]]:
    """Return the events with those of the runs among them, of one more run, and of their children; and sentences about what
    may be missing."""
    messages = {event.id: event for event in reversed(events) if event.name == runs.TYPE}
    keys = [*messages] if run is None or run in messages else [*messages, run]
    found, notes = list(events), []
    for place, key in enumerate(keys):  # which grows by their children
        if place == RUNS_MAX:
            notes.append(f"The chain has more than {RUNS_MAX:,} runs of workflows; the steps of the first are shown.")
            break
        for row in await reading.rows(runs.SQL["found"], key=key, now=now):
            steps = await runs.steps(reading, key, most=STEPS_MAX)
            found += _events(row, steps, messages.get(key))
            if len(steps) == STEPS_MAX:
                notes.append(f"Run {row.id} has more than {STEPS_MAX:,} steps; the first are shown.")
            if any(step.kind == CHILD for step in steps):
                children = [bytes(child.key) for child in await reading.rows(SQL["children"], key=key, most=RUNS_MAX)]
                keys += [child for child in children if child not in messages]
    return found, notes


def _events(row: Row, steps: list[Row], message: Traced | None) -> list[Traced]:
    parent = None if row.parent is None else bytes(row.parent)
    run = Traced(
        row.created_at,
        None if message is None else message.service,
        RUN,
        row.workflow,
        bytes(row.key),
        parent if message is None else message.causation_id,
        row.generation + 1,
        row.state,
        _span(row.created_at, row.ended_at),
        queue_of(row.workflow),
        "" if message is None else message.source,
        _error(row.error),
        row.due if row.state == WAITING else None,
        row.reason,
        run=row.id,
    )
    return [
        run,
        *(
            replace(
                run,
                at=step.started_at,
                kind=step.kind,
                name=step.name,
                attempt=step.attempts,
                status=step.state,
                micros=_span(step.started_at, step.ended_at),
                error=_error(step.error),
                due=step.due,
                reason=None,
                position=step.position,
            )
            for step in steps
        ),
    ]


def _span(began: int, ended: int | None) -> int | None:
    return None if ended is None else ended - began


def _error(error: str | None) -> str | None:
    return None if error is None else redacted(error)[:ERROR_TEXT_MAX]
