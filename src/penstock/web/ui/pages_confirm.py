"""Pages before a dangerous action: what it will touch, what it will cost at most, and the form that does it."""

from __future__ import annotations

from shlex import quote
from typing import Any

from penstock.contracts.calls import NANOS
from penstock.views import queues as queue_views
from penstock.views import runs as run_views
from penstock.views.dead import letters
from penstock.views.view import Row
from penstock.web.ui import backlog
from penstock.web.ui.access import Role
from penstock.web.ui.page import SQL, Facts, NoSuchThing, Page, PageLook
from penstock.web.ui.pages_dead import NEWEST, causes_of, of_cause

SELECTED_MAX = 500  # letters that a page selects by their boxes
COMMAND_IDS_MAX = 100  # letters that a command names one by one
OPTIONS = {"queue": "queue", "type": "type", "reason": "died-of"}  # of the command, by the parameters of a page
CALLS = 1_000  # paid calls from which a mean price is taken


async def purge(look: PageLook) -> Facts:
    name = look.query.get("name", "")
    if await queue_views.queue_row(look.reading, name) is None:
        raise NoSuchThing(f"There is no queue {name!r}.")
    (row,) = await backlog.queues(look, name, most=1, internals=True)
    return {
        "heading": f"Purge queue {name}",
        "to": "/do/queues/purge",
        "back": ["queues", name],
        "says": f"{row['waiting']:,} waiting messages are deleted for good. Dead letters stay.",
        "typed": name,
        "fields": {"name": name, "planned": row["waiting"]},
        "button": f"Purge {row['waiting']:,} messages",
        "command": f"penstock queues purge {name}",
        "cost": None,
    }


async def terminate(look: PageLook) -> Facts:
    run = await _run(look)
    return {
        "heading": f"Terminate run {run.id}",
        "to": "/do/workflows/terminate",
        "back": ["runs", run.workflow, run.id],
        "says": "The run and its children end at once. A step that is running saves nothing more; earlier results are kept.",
        "typed": run.id,
        "fields": {"id": run.id, "workflow": run.workflow},
        "button": "Terminate the run",
        "command": f"penstock workflows terminate {run.id}",
        "cost": None,
    }


async def restart(look: PageLook) -> Facts:
    run, step = await _run(look), look.text("step")
    kept = "Results of earlier steps are kept." if step else "Every step runs again."
    return {
        "heading": f"Restart run {run.id}" + (f" from {step}" if step else ""),
        "to": "/do/workflows/restart",
        "back": ["runs", run.workflow, run.id],
        "says": f"{kept} Steps that run again use new idempotency keys, and children of those steps are terminated.",
        "typed": None,
        "fields": {"id": run.id, "workflow": run.workflow} | ({"step": step} if step else {}),
        "button": "Restart",
        "command": f"penstock workflows restart {run.id}" + (f" --from '{step}'" if step else ""),
        "cost": None,
    }


async def _run(look: PageLook) -> Any:
    id, workflow = look.query.get("id", ""), look.query.get("workflow", "")
    found = await run_views.find(look.reading, id, now=look.now, workflow=workflow)
    if not found:
        raise NoSuchThing(f"There is no run {id!r} of {workflow}.")
    return found[0]


async def reset(look: PageLook) -> Facts:
    name = look.query.get("name", "")
    return {
        "heading": f"Reset controller {name}",
        "to": "/do/controllers/reset",
        "back": ["pace", name],
        "says": "The rate and the limit that were learned, the counts and the items that were set aside are deleted.",
        "typed": name,
        "fields": {"name": name},
        "button": "Reset the controller",
        "command": f"penstock controllers reset {name} APP",
        "cost": None,
    }


# -- dead letters -------------------------------------------------------------------------------------------


async def discard(look: PageLook) -> Facts:
    numbers = _numbers(look)
    return _discarding(numbers, ["dead", numbers[0]] if len(numbers) == 1 else ["dead"])


def _discarding(numbers: list[int], back: list[Any]) -> Facts:
    many = f"{len(numbers):,} dead letters" if len(numbers) != 1 else f"dead letter {numbers[0]}"
    return {
        "heading": f"Discard {many}",
        "to": "/do/dead/discard",
        "back": back,
        "says": "They are never replayed, and stay readable with the reason.",
        "typed": None,
        "fields": {"id": numbers},
        "reason": True,
        "button": f"Discard {many}",
        "command": f"penstock dead discard {' '.join(map(str, numbers[:20]))} --reason '...'",
        "cost": None,
    }


async def replay(look: PageLook) -> Facts:
    scope = look.query.get("scope", "ids")
    if scope == "discard-ids":
        return _discarding(_numbers(look), ["dead"])
    numbers, options = await _of_filter(look) if scope == "filter" else (_numbers(look), "")
    first = await letters(look.reading).get(numbers[0])
    listed = " ".join(map(str, numbers)) if len(numbers) <= COMMAND_IDS_MAX else ""
    command = f"penstock dead replay {options or listed} --canary" if options or listed else None
    return {
        "heading": f"Replay {len(numbers):,} dead letters" if len(numbers) > 1 else f"Replay dead letter {numbers[0]}",
        "to": "/do/dead/bulk",
        "back": ["dead"],
        "says": "They go back to their queues, the oldest first, with the payloads they were last edited to.",
        "typed": None,
        "fields": {"id": numbers},
        "replays": True,
        "button": f"Replay {len(numbers):,}",
        "command": command,
        "cost": await _cost(look, len(numbers), first.queue),
    }


def _numbers(look: PageLook) -> list[int]:
    numbers = [int(text) for text in look.ids if text.isascii() and text.isdecimal() and len(text) < 19][:SELECTED_MAX]
    if not numbers:
        raise NoSuchThing("No dead letter was selected. Tick some, or open a cause first.")
    return numbers


async def _of_filter(look: PageLook) -> tuple[list[int], str]:
    """Return the letters of a cause, and the options that name the same letters at the command line; "" where none do."""
    causes, read = await causes_of(look, look.text("queue"))
    numbers = sorted(row.seq for cause in of_cause(causes, look) for row in cause["rows"])
    if not numbers:
        raise NoSuchThing("No dead letter has this cause any more.")
    named = {name: value for name in OPTIONS if (value := look.text(name))}
    alike = sum(each["letters"] for each in causes if all(each[name] == value for name, value in named.items()))
    options = " ".join(f"--{OPTIONS[name]} {quote(value)}" for name, value in named.items())
    is_same = bool(named) and read < NEWEST and alike == len(numbers)
    return numbers, f"{options} --limit {len(numbers)}" if is_same else ""


async def _cost(look: PageLook, letters: int, queue: str) -> Row | None:
    """Return what paid calls of a replay may cost: the mean of the last calls, for each letter one."""
    rows = await look.reading.rows(SQL["calls"], since=0, until=look.now + 1, most=CALLS)
    if not rows:
        return None
    mean = sum(row.cost for row in rows) / len(rows) / NANOS
    return {"each": mean, "total": mean * letters, "calls": len(rows), "queue": queue}


PAGES = (
    Page("/confirm/queues/purge", "Purge", purge, "confirm.html", Role.ADMIN),
    Page("/confirm/workflows/terminate", "Terminate", terminate, "confirm.html", Role.OPERATOR),
    Page("/confirm/workflows/restart", "Restart", restart, "confirm.html", Role.OPERATOR),
    Page("/confirm/controllers/reset", "Reset", reset, "confirm.html", Role.ADMIN),
    Page("/confirm/dead/discard", "Discard", discard, "confirm.html", Role.OPERATOR),
    Page("/confirm/dead/replay", "Replay", replay, "confirm.html", Role.OPERATOR),
)
