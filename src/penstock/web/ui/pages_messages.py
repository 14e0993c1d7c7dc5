"""The pages of messages: search, one message with its chain on a time axis, and why it waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from penstock.model.errors import BadParameter
from penstock.model.ids import as_text, from_text
from penstock.model.times import iso_z
from penstock.views import queues as queue_views
from penstock.views import runs
from penstock.views import trace as tracing
from penstock.views.answers import look as answers_of
from penstock.views.chain import Traced
from penstock.views.dead import indented
from penstock.views.view import Row, span_text
from penstock.views.why import SQL as WHY
from penstock.web.ui.gantt import Bar, bars_of, marks, seconds_of
from penstock.web.ui.page import SQL, Facts, NoSuchThing, Page, PageLook
from penstock.web.ui.pages_dead import letter_rows

EVENTS = 200  # of a chain that are drawn
WAITS = ("ready", "delayed", "leased", "waiting", "retrying")
NUMBER = re.compile(r"#?([0-9]{1,18})")


async def trace(look: PageLook) -> Facts:
    """Return the chain of a message; the message itself is `chosen`."""
    text = look.parts["id"]
    wanted = tracing.parsed(text, names_a_chain=True)
    found = await tracing.trace(look.reading, look.reading, wanted, now=look.now)
    run = None
    if found is None:
        for run in await runs.find(look.reading, text, now=look.now):
            found = await tracing.trace_of_run(look.reading, look.reading, run, now=look.now)
    if found is None:
        kept = span_text(look.reading.target.config.limits.history_seconds)
        raise NoSuchThing(
            f"Nothing is known of {text}. It was never sent, it settled in the last second, or it is older than the history, "
            f"which is kept for {kept}."
        )
    chosen = bytes(run.key) if run is not None else wanted
    events = found.events
    if chosen == found.correlation_id and not any(event.id == chosen for event in events):
        chosen = events[0].id
    bodies = await look.reading.rows(SQL["message_body"], id=chosen)
    bodies = bodies or await look.reading.rows(SQL["dead_body"], id=chosen)
    bars = _bars(events[:EVENTS], look.now)
    states = [event.status for event in events]
    waits = any(event.id == chosen and event.status in WAITS for event in events)
    return {
        **found.facts(),
        "chosen": as_text(chosen),
        "message": next((event.facts() for event in reversed(events) if event.id == chosen), None),
        "why": [answer.row() for answer in await answers_of(look.reading, as_text(chosen))] if waits else [],
        "bars": [bar.row() for bar in bars],
        "marks": marks(seconds_of(bars)),
        "states": {state: states.count(state) for state in dict.fromkeys(states)},
        "notes": found.notes,
        "more": max(0, len(events) - EVENTS),
        "payload": indented(bodies[0].body) if bodies else None,
        "letters": [
            {"id": row.seq, "reason": row.reason, "resolution": row.resolution}
            for row in await look.reading.rows(WHY["ended_dead"], id=chosen, most=20)
        ],
    }


def _named(event: Traced) -> str:
    if not event.is_message and event.kind != "run":
        return f"{event.kind} {event.name}"
    return event.name if (event.attempt or 1) == 1 else f"{event.name}, attempt {event.attempt}"


def _bars(events: Sequence[Traced], now: int) -> list[Bar]:
    found = []
    for event in events:
        ends = event.at + event.micros if event.micros is not None else now if event.status in WAITS else event.at
        found.append(
            Bar(
                name=_named(event),
                state=event.status,
                begins=event.at,
                ends=max(ends, event.at),
                depth=event.depth + (0 if event.is_message or event.kind == "run" else 1),
                id=as_text(event.id),
                note=event.queue,
                is_open=event.micros is None and event.status in WAITS,
            )
        )
    return bars_of(found)


async def why(look: PageLook) -> Facts:
    text = look.parts["id"]
    found = [answer.row() for answer in await answers_of(look.reading, text)]
    if not found:
        raise NoSuchThing(f"Nothing is known of {text}. It was never sent, it was purged or it expired.")
    return {"id": text, "answers": found}


# -- search -------------------------------------------------------------------------------------------------


async def search(look: PageLook) -> Facts:
    """Return where a text leads: `hits` are things of exactly this name; `goto` is the one that there is."""
    text = look.text("q")
    if text is None:
        return {"q": "", "hits": [], "goto": None, "letters": [], "searched": None, "next": None}
    hits = [each async for each in _hits(look, text)]
    letters: list[Row] = []
    searched, following = None, None
    if not hits:
        letters, searched, following = await _letters_with(look, text)
    return {
        "q": text,
        "hits": hits,
        "goto": hits[0]["path"] if len(hits) == 1 else None,
        "letters": letters,
        "searched": searched,
        "next": following,
    }


async def _hits(look: PageLook, text: str) -> Any:
    """Yield what has this name: a handful of probes by unique keys."""
    reading = look.reading
    if number := NUMBER.fullmatch(text):
        for row in await reading.rows(SQL["letter_numbered"], letter=int(number[1])):
            yield _hit("dead letter", str(row.seq), ["dead", row.seq])
    id = _id_of(text)
    if id is not None and await tracing.trace(reading, reading, id, now=look.now) is not None:
        yield _hit("message", as_text(id), ["trace", as_text(id)])
    if await queue_views.queue_row(reading, text) is not None:
        yield _hit("queue", text, ["queues", text])
    for run in await runs.find(reading, text, now=look.now):
        yield _hit("run", f"{run.workflow} {run.id}", ["runs", run.workflow, run.id])
    kind, _, name = text.partition("/")
    if name and await reading.rows(SQL["object_state"], **{"class": kind, "name": name}):
        yield _hit("object", text, ["objects", kind, name])
    for row in await reading.rows(SQL["crons"], most=500):
        if row.name == text:
            yield _hit("cron task", text, ["cron", text])
    if id is None and await tracing.trace(reading, reading, tracing.parsed(text, names_a_chain=True), now=look.now):
        yield _hit("chain", text, ["trace", text])


def _hit(kind: str, name: str, path: list[object]) -> Row:
    return {"kind": kind, "name": name, "path": [str(part) for part in path]}


def _id_of(text: str) -> bytes | None:
    try:
        return from_text(text)
    except (ValueError, BadParameter):
        return None


async def _letters_with(look: PageLook, text: str) -> tuple[list[Row], Row, int | None]:
    """Search the errors of dead letters, in a window that the next request continues."""
    before = look.number("before", look.now + 1)
    bound = {"before": before, "window": WINDOW}
    found = await look.reading.rows(SQL["dead_with_text"], **bound, text=text, most=50)
    (window,) = await look.reading.rows(SQL["dead_window_end"], **bound)
    ended = window.scanned < WINDOW
    searched = {"letters": window.scanned, "back_to": None if window.failed_at is None else iso_z(window.failed_at)}
    return letter_rows(found), searched, None if ended else window.failed_at - 1


WINDOW = 2_000  # dead letters that one search goes through

PAGES = (
    Page("/search", "Search", search, "search.html"),
    Page("/trace/{id:path}", "Message", trace, "trace.html", every=2.0),
    Page("/why/{id:path}", "Why", why, "why.html", every=2.0),
)
