"""The events of a chain of messages, and their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.model.ids import as_text
from penstock.views import runs
from penstock.views.view import shaped

FIELDS = "at service kind name id causation_id attempt status duration_ms queue source error due reason resolution"
FIELDS += " replay_of depth run"
RUN = "run"  # the kind of a run; its steps have theirs


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
