"""Runs of workflows as they stand, read from their rows: whoever looks changes nothing and needs no code of theirs.

A run is found by its key, which follows from its workflow and its id; which workflows there are, their queues tell.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.data.usage import Reading
from penstock.model.errors import NoSuchRun
from penstock.model.ids import from_text
from penstock.model.redaction import redacted
from penstock.model.row import Row
from penstock.model.run import (
    CHILD,
    NEVER_SECONDS,
    PAUSED,
    PENDING,
    QUEUED,
    RETRYING,
    RUNNING,
    SIGNAL,
    SLEEP,
    STATES,
    WAITING,
    is_made,
    key_of,
)
from penstock.model.times import iso_z

TYPE = "workflow.run"  # of the message of a run
WORKFLOWS_MAX = 10_000  # as many as an app may have queues
LISTED_MAX = 10_000
STEPS_PAGE = 1_000
ASKED = "asked"  # why a run is paused: somebody wanted it so
ERROR_TEXT_MAX = 500

NAMES = """
select name
from penstock_queues
where name like 'workflow.%'
and accepts = 'workflow.run'
order by name
limit :most
"""
FOUND = """
select runs.key, runs.workflow, runs.id, runs.reason, runs.input, runs.result, runs.error, runs.traceback, runs.generation,
  runs.priority, runs.correlation_id, runs.created_at, runs.ended_at, runs.parent, parents.id as parent_id,
  case
    when runs.state <> 'active' then runs.state
    when messages.worker is not null then 'running'
    when messages.due > :now then 'waiting'
    else 'queued'
  end as state,
  case when messages.worker is null then messages.due end as due
from penstock_runs as runs
left join penstock_runs as parents
on parents.key = runs.parent
left join penstock_messages as messages
on messages.id = runs.key
and messages.queue = 'workflow.' || runs.workflow
and messages.handler = ''
where runs.key = :key
"""
# With the last step that each has begun.
LISTED = """
select runs.key, runs.workflow, runs.id, runs.state, runs.reason, runs.error, runs.priority, runs.correlation_id,
  runs.created_at, runs.ended_at, runs.due, steps.name as step
from (
  select key, workflow, id, state, reason, error, priority, correlation_id, created_at, ended_at, due
  from (
    select penstock_runs.key, penstock_runs.workflow, penstock_runs.id, penstock_runs.reason, penstock_runs.error,
      penstock_runs.priority, penstock_runs.correlation_id, penstock_runs.created_at, penstock_runs.ended_at,
      case
        when penstock_runs.state <> 'active' then penstock_runs.state
        when messages.worker is not null then 'running'
        when messages.due > :now then 'waiting'
        else 'queued'
      end as state,
      case when messages.worker is null then messages.due end as due
    from penstock_runs
    left join penstock_messages as messages
    on messages.id = penstock_runs.key
    and messages.queue = 'workflow.' || penstock_runs.workflow
    and messages.handler = ''
    where (cast(:workflow as text) is null or penstock_runs.workflow = :workflow)
    and (cast(:stored as text) is null or penstock_runs.state = :stored)
  ) as every_run
  where cast(:state as text) is null
  or state = :state
  order by created_at desc, id
  limit :most
) as runs
left join penstock_steps as steps
on steps.run = runs.key
and steps.position = (
  select max(position)
  from penstock_steps
  where run = runs.key
)
order by runs.created_at desc, runs.id
"""
PARKED = """
select key, workflow, id
from penstock_runs
where state = 'paused'
and reason <> 'asked'
and (cast(:workflow as text) is null or workflow = :workflow)
order by created_at
limit :most
"""
STEPS = """
select position, name, kind, state, attempts, started_at, ended_at, due, result, error, traceback
from penstock_steps
where run = :run
and position > :after
order by position
limit :most
"""
SIGNALS = """
select name, sent_at
from penstock_signals
where run = :run
order by seq
limit :most
"""


async def names(reading: Reading) -> list[str]:
    """The workflows that an app with this database has ever had."""
    found = await reading.rows(NAMES, most=WORKFLOWS_MAX)
    return [row.name.removeprefix("workflow.") for row in found]


async def find(reading: Reading, id: str, *, now: int, workflow: str | None = None) -> list[Row]:
    """The runs of this id: one, unless several workflows have a run of one name. The id of a run's message will do too."""
    known = [name for name in await names(reading) if workflow is None or name == workflow]
    rows = [row for key in _keys(id, known) for row in await reading.rows(FOUND, key=key, now=now)]
    return [row for row in rows if workflow is None or row.workflow == workflow]


async def the_run(reading: Reading, id: str, *, now: int, workflow: str | None = None) -> Row:
    """The one run of this id. Raises NoSuchRun, with what to do about it."""
    found = await find(reading, id, now=now, workflow=workflow)
    if len(found) == 1:
        return found[0]
    if found:
        several = " and ".join(row.workflow for row in found)
        raise NoSuchRun(f"There are runs {id!r} of {several}. Say which with --workflow.", id=id)
    of = ", ".join(await names(reading)) if workflow is None else workflow
    raise NoSuchRun(
        f"There is no run {id!r} of {of or 'any workflow'}. `penstock workflows list` shows those there are.", id=id
    )


def _keys(id: str, workflows: list[str]) -> list[bytes]:
    if not workflows:
        return []  # nor need there be any table to look into
    keys = [key_of(workflows[0], id)] if is_made(id) else [key_of(name, id) for name in workflows]
    try:
        keys.append(from_text(id))
    except ValueError:
        pass
    return list(dict.fromkeys(keys))


async def listed(
    reading: Reading, workflow: str | None, state: str | None, *, now: int, limit: int = LISTED_MAX
) -> list[Row]:
    """Newest first."""
    known = await names(reading)
    if workflow is not None and workflow not in known:
        raise NoSuchRun(f"There is no workflow {workflow!r}. There are: {', '.join(known) or 'none'}.")
    if not known:
        return []
    assert state is None or state in STATES
    stored = "active" if state in (QUEUED, RUNNING, WAITING) else state
    return await reading.rows(LISTED, workflow=workflow, stored=stored, state=state, now=now, most=limit)


async def parked(reading: Reading, workflow: str | None) -> list[Row]:
    """Runs that wait for somebody to look at them, the oldest first: the code does not fit what they have recorded."""
    if not await names(reading):
        return []
    return await reading.rows(PARKED, workflow=workflow, most=LISTED_MAX)


async def steps(reading: Reading, key: bytes, *, most: int | None = None) -> list[Row]:
    """All that a run has recorded, or the first so many, in the order in which they began."""
    found: list[Row] = []
    while most is None or len(found) < most:
        page = STEPS_PAGE if most is None else min(STEPS_PAGE, most - len(found))
        more = await reading.rows(STEPS, run=key, after=found[-1].position if found else -1, most=page)
        found += more
        if len(more) < page:
            break
    return found


async def unheard(reading: Reading, key: bytes) -> list[Row]:
    """Signals that came and that the run has not waited for yet."""
    return await reading.rows(SIGNALS, run=key, most=STEPS_PAGE)


# -- what a run waits for ---------------------------------------------------------------------------------


class Wait(NamedTuple):
    """`when` is when it ends by itself, None if it does not."""

    state: str
    reason: str
    when: int | None


async def wait_of(reading: Reading, key: bytes, *, now: int) -> Wait | None:
    """Why the run of a message is not at work. None if it is no run, or a worker will take it in its turn."""
    for run in await reading.rows(FOUND, key=key, now=now):
        return waits_for(run, await steps(reading, key))
    return None


def waits_for(run: Row, recorded: list[Row]) -> Wait | None:
    who = f"Run {run.id} of {run.workflow}"
    if run.state == PAUSED:
        again = f"`penstock workflows resume {run.id}` lets it go on."
        if run.reason == ASKED:
            return Wait(PAUSED, f"{who} is paused. {again}", None)
        first = (run.error or run.reason).partition("\n")[0].rstrip(":.")
        shown = f"`penstock workflows show {run.id}` shows it in full."
        return Wait(PAUSED, f"{who} is parked. {first}. {shown} Once that is mended, {again}", None)
    if run.state != WAITING:
        return None
    return Wait(WAITING, f"{who} waits: {open_steps(recorded)}.", soon(run.due, run.created_at))


def open_steps(recorded: list[Row]) -> str:
    """What is to happen before a run that waits goes on."""
    said = [_said(step) for step in recorded if step.state in (PENDING, RETRYING)]
    return "; ".join(said) or "its next step is to begin"


def _said(step: Row) -> str:
    until = "" if step.due is None else f" until {iso_z(step.due)}"
    if step.state == RETRYING:
        return f"step {step.name} failed and is tried again at {iso_z(step.due)}, after {error_line(step.error)}"
    if step.kind == SLEEP:
        return f"{step.name} sleeps{until}"
    if step.kind == SIGNAL:
        return f"{step.name} waits for a signal" + (until or ", without a time-out")
    return f"{step.name} waits for its child" if step.kind == CHILD else f"step {step.name} is to begin"


def soon(due: int | None, created_at: int) -> int | None:
    """A due time that means something: a run that only a signal or a person wakes is due in a thousand years."""
    return None if due is None or due - created_at > NEVER_SECONDS * 500_000 else due


def error_line(error: str | None) -> str:
    return " ".join(redacted(error or "").split())[:ERROR_TEXT_MAX]
