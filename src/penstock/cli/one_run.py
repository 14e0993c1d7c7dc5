"""One run of a workflow: what it was started with, how each step went, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.cli import target as targets
from penstock.cli.one_queue import facts
from penstock.cli.output import NotFound, age_shown, code_name, fill, plain, printable, table
from penstock.cli.sending import PRIORITIES
from penstock.data import runs
from penstock.model.errors import NoSuchRun
from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.model.row import Row
from penstock.model.run import COMPLETE, ENDED, PAUSED, PENDING, WAITING
from penstock.model.times import iso_z, text_of_micros

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLOURS = {
    "complete": "green",
    "running": "green",
    "done": "green",
    "errored": "red",
    "failed": "red",
    "terminated": "yellow",
    "timed_out": "yellow",
    "retrying": "yellow",
    "paused": "yellow",
}
VALUE_DRAWN, ERROR_DRAWN = 60, 160  # characters of a step's result and error
INPUT_DRAWN = 1_000


class RunFound(NamedTuple):
    row: Row
    steps: list[Row]
    signals: list[Row]
    now: int


async def look(found: targets.Target, id: str, workflow: str | None) -> RunFound:
    with targets.reading(found) as reading:
        now = reading.now()
        try:
            row = await runs.the_run(reading, id, now=now, workflow=workflow)
        except NoSuchRun as error:
            raise NotFound(str(error), code=code_name(error)) from error
        key = bytes(row.key)
        return RunFound(row, await runs.steps(reading, key), await runs.unheard(reading, key), now)


# -- for programs -----------------------------------------------------------------------------------------


def told(found: RunFound) -> dict[str, Any]:
    """Whole: a replay check can be made from it."""
    row = found.row
    return {
        "id": row.id,
        "workflow": row.workflow,
        "state": row.state,
        "steps": [told_step(step) for step in found.steps],
        "input": _json(row.input),
        "result": _json(row.result),
        "error": error_told(row.error),
        "traceback": row.traceback,
        "reason": row.reason,
        "waits_for": runs.open_steps(found.steps) if row.state == WAITING else None,
        **told_briefly(row),
        "parent": row.parent_id,
        "restarts": row.generation,
        "signals": [{"name": each.name, "sent_at": iso_z(each.sent_at)} for each in found.signals],
    }


def told_briefly(row: Row) -> dict[str, Any]:
    """What is told of one run and of each of many."""
    due = runs.soon(row.due, row.created_at) if row.state == WAITING else None
    return {
        "correlation_id": as_text(bytes(row.correlation_id)),
        "message_id": as_text(bytes(row.key)),
        "priority": [*PRIORITIES][row.priority],
        "created_at": iso_z(row.created_at),
        "ended_at": _iso(row.ended_at),
        "due_at": _iso(due),
    }


def told_step(step: Row) -> dict[str, Any]:
    return {
        "name": step.name,
        "state": step.state,
        "attempts": step.attempts,
        "started_at": iso_z(step.started_at),
        "ended_at": _iso(step.ended_at),
        "kind": step.kind,
        "position": step.position,
        "due_at": _iso(step.due),
        "result": None if step.state == PENDING else _json(step.result),
        "error": error_told(step.error),
        "traceback": step.traceback,
    }


def error_told(error: str | None) -> str | None:
    return None if error is None else redacted(error)


def _json(body: Any) -> msgspec.Raw | None:
    """As it was stored, to the last digit."""
    return None if body is None else msgspec.Raw(bytes(body))


def _iso(micros: int | None) -> str | None:
    return None if micros is None else iso_z(micros)


# -- for people -------------------------------------------------------------------------------------------


def draw(console: Console, found: RunFound) -> None:
    row = found.row
    state = f"[{COLOURS.get(row.state, 'cyan')}]{row.state}[/]"
    console.print(f"[bold]{plain(row.workflow)}[/] {plain(row.id)}: {state}\n")
    console.print(fill(facts(), _facts(found)))
    if row.error is not None:
        console.print()
        console.print(plain(redacted(row.error)), soft_wrap=True)
    console.print()
    if found.steps:
        console.print(_steps(found))
    else:
        console.print("No step of it has begun.")
    for name, text in [*((step.name, step.traceback) for step in found.steps), ("", row.traceback)]:
        if text and row.state != COMPLETE:
            console.print(f"\n[bold]traceback{f' of step {plain(name)}' if name else ''}[/]")
            console.out("\n".join(map(printable, text.splitlines())), highlight=False)
    if row.state == PAUSED:
        console.print(f"\n`penstock workflows resume {plain(row.id)}` lets it go on.")
    elif row.state in ENDED and row.state != COMPLETE:
        console.print(
            f"\n`penstock workflows restart {plain(row.id)}` does it anew; `--from STEP` keeps what was before."
        )


def _facts(found: RunFound) -> list[tuple[str, str]]:
    row, now = found.row, found.now
    due = runs.soon(row.due, row.created_at)
    shown = [("input", shortened(row.input, INPUT_DRAWN))]
    if row.result is not None:
        shown.append(("result", shortened(row.result, INPUT_DRAWN)))
    if row.state == WAITING:
        shown.append(("waits", runs.open_steps(found.steps)))
    if row.state == WAITING and due is not None:
        shown.append(("goes on", f"{text_of_micros(due)} UTC, in {_since(now, due)}"))
    shown.append(("began", f"{text_of_micros(row.created_at)} UTC, {_since(row.created_at, now)} ago"))
    if row.ended_at is not None:
        shown.append(("ended", f"{text_of_micros(row.ended_at)} UTC, after {_since(row.created_at, row.ended_at)}"))
    if row.parent_id is not None:
        shown.append(("child of", row.parent_id))
    if row.generation:
        shown.append(("restarted", f"{row.generation:,} times"))
    if found.signals:
        shown.append(("not heard yet", ", ".join(each.name for each in found.signals)))
    return [*shown, ("chain", as_text(bytes(row.correlation_id)))]


def _since(earlier: int, later: int) -> str:
    return age_shown(max(0, later - earlier) / 1_000_000)


def _steps(found: RunFound) -> Table:
    """Columns in which nothing stands are left out."""
    titles = ("step", "kind", "state", "attempts", "started", "took", "waits until", "result", "error")
    numbers = ("attempts", "started", "took", "waits until")
    rows = [_drawn(step, found.row.created_at) for step in found.steps]
    used = [place for place, _ in enumerate(titles) if any(row[place] for row in rows)]
    drawn = table(*((titles[place], "right" if titles[place] in numbers else "left") for place in used))
    for column in drawn.columns:
        column.no_wrap = column.no_wrap or column.header in ("kind", "state")  # one word each: never in two
    return fill(drawn, [[row[place] for place in used] for row in rows])


def _drawn(step: Row, began: int) -> tuple[Any, ...]:
    from rich.text import Text

    return (
        step.name,
        step.kind,
        Text(step.state.replace("_", " "), COLOURS.get(step.state, "cyan")),
        f"{step.attempts:,}" if step.attempts else "",
        _clock(step.started_at, began),
        "" if step.ended_at is None else took_shown(step.ended_at - step.started_at),
        "" if step.due is None else _clock(step.due, began),
        "" if step.result in (None, b"null") or step.state == PENDING else shortened(step.result, VALUE_DRAWN),
        _cut(" ".join(redacted(step.error or "").split()), ERROR_DRAWN),
    )


def _clock(at: int, began: int) -> str:
    """The time of the day, with the day where it is another than that on which the run began."""
    text = text_of_micros(at)
    return text[11:] if text[:10] == text_of_micros(began)[:10] else text


def took_shown(micros: int) -> str:
    if micros < 1_000_000:
        return f"{micros / 1_000:.1f} ms"
    return f"{micros / 1_000_000:.1f} s" if micros < 60_000_000 else age_shown(micros / 1_000_000)


def shortened(body: Any, most: int) -> str:
    return _cut(redacted(bytes(body).decode(errors="replace")), most)


def _cut(text: str, most: int) -> str:
    text = printable(text)
    return text if len(text) <= most else text[: most - 3] + "..."
