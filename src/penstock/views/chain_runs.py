"""Runs of workflows in a trace: each run with its steps and how long they took, beside the deliveries of its message.

A run has the key of its message, so its rows are found from what is traced.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.data.usage import Reading
from penstock.model.redaction import redacted
from penstock.model.row import Row
from penstock.model.run import CHILD, WAITING, queue_of
from penstock.model.sql_files import load
from penstock.views import runs
from penstock.views.chain import RUN, Traced

SQL = load("penstock.views", "trace.sql")
RUNS_MAX = 500  # of one chain, whose rows are read; some 50 ms
STEPS_MAX = 1_000  # of one run
ERROR_TEXT_MAX = 300


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
