"""The pages of dead letters: by cause, in a list, and one with its story."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from penstock.model.errors import NoSuchLetter
from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.model.stack import located, normalised, place_of
from penstock.model.times import iso_z
from penstock.views import dead as view
from penstock.views.dead import indented
from penstock.views.view import Column, Row, View, short
from penstock.web.ui.page import LISTED, SQL, Facts, NoSuchThing, Page, PageLook, continued

NEWEST = 1_000  # letters from which causes are counted
HOUR = 3_600_000_000
ERROR_SHOWN = 200
CAUSES_SHOWN = 25
CAUSE = ("type", "reason", "error_class", "cause")  # what an address may say of a cause, besides its queue

LETTERS = View(
    "letters",
    (
        Column("id", "letter"),
        Column("failed_at", "died", "time"),
        Column("queue", "queue"),
        Column("type", "type"),
        Column("reason", "reason"),
        Column("error", "error", "prose"),
        Column("attempts", "attempts", "count"),
    ),
    empty="No dead letters match.",
)


async def newest(look: PageLook, queue: str | None, before: int, most: int, skip: int = 0) -> Sequence[Any]:
    """Return unresolved letters that died by then, newest first, without the first `skip`."""
    name = "dead_before" if queue is None else "dead_of_queue_before"
    bound = {} if queue is None else {"queue": queue}
    return await look.reading.rows(SQL[name], before=before, most=most, skip=skip, **bound)


async def causes_of(look: PageLook, queue: str | None = None, *, most: int = NEWEST) -> tuple[list[Row], int]:
    """Return the causes of the newest letters, the most frequent first, and how many letters were read. Errors that differ
    only in numbers and quoted values are one cause."""
    rows = await newest(look, queue, look.now + 1, most)
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        cause = row.queue, row.type, row.reason, row.error_class, row.error_message and normalised(row.error_message)
        found.setdefault(cause, []).append(row)
    causes = [_cause(cause, letters, look.now) for cause, letters in found.items()]
    return sorted(causes, key=lambda cause: -cause["letters"]), len(rows)


def _cause(cause: tuple[Any, ...], letters: Sequence[Any], now: int) -> Row:
    queue, type, reason, error_class, _ = cause
    hours = [sum(now - (back + 1) * HOUR < row.failed_at <= now - back * HOUR for row in letters) for back in range(24)]
    return {
        "letters": len(letters),
        "queue": queue,
        "type": type,
        "reason": reason,
        "error_class": error_class,
        "cause": sha256(repr(cause).encode()).hexdigest()[:12],
        "error": error_of(letters[0]),
        "first_at": iso_z(min(row.failed_at for row in letters)),
        "last_at": iso_z(max(row.failed_at for row in letters)),
        "last_hour": sum(row.failed_at > now - HOUR for row in letters),
        "hours": hours[::-1],
        "example": letters[0].seq,
        "rows": letters,
    }


def error_of(row: Any, most: int = ERROR_SHOWN) -> str | None:
    """Return the error of a message or letter in one line, without secrets."""
    return None if row.error_class is None else short(redacted(f"{row.error_class}: {row.error_message}"), most)


def located_error(row: Any, most: int = ERROR_SHOWN) -> str | None:
    """Return the error of a message with the line of code that raised it."""
    error = error_of(row, most)
    return None if error is None else located(error, row.traceback)


async def placed(look: PageLook, cause: Row) -> Row:
    """Return a cause with the line of code that its newest error came from."""
    rows = await look.reading.rows(SQL["dead_traceback"], seq=cause["example"])
    return cause | {"place": place_of(rows[0].traceback) if rows else None}


def of_cause(rows: list[Row], look: PageLook) -> list[Row]:
    """Keep the causes that the address names."""
    wanted = {name: look.text(name) for name in CAUSE}
    return [row for row in rows if all(value is None or row[name] == value for name, value in wanted.items())]


async def dead(look: PageLook) -> Facts:
    queue = look.text("queue")
    causes, read = await causes_of(look, queue)
    shown = of_cause(causes, look)
    before, skip = look.number("before", look.now + 1), look.number("skip", 0)
    if len(shown) != len(causes):
        chosen = [row for cause in shown for row in cause["rows"] if row.failed_at <= before]
        rows: Sequence[Any] = sorted(chosen, key=lambda row: -row.failed_at)[skip : skip + LISTED + 1]
    else:
        rows = await newest(look, queue, before, LISTED + 1, skip)
    last = [
        {"at": iso_z(row.resolved_at), "resolution": row.resolution, "queue": row.queue}
        for row in (await look.reading.rows(SQL["dead_resolved_last"]) if not rows else ())
    ]
    return {
        "causes": [
            {name: value for name, value in (await placed(look, cause)).items() if name != "rows"}
            for cause in shown[:CAUSES_SHOWN]
        ],
        "more_causes": max(0, len(shown) - CAUSES_SHOWN),
        "letters": letter_rows(rows[:LISTED]),
        "counted": read,
        "is_all": read < NEWEST,
        "queue": queue,
        "next": continued(look, [row.failed_at for row in rows], LISTED) if len(rows) > LISTED else None,
        "last_resolved": last[0] if last else None,
    }


def letter_rows(rows: Sequence[Any]) -> list[Row]:
    return [
        {
            "id": row.seq,
            "event_id": as_text(bytes(row.id)),
            "queue": row.queue,
            "type": row.type,
            "reason": row.reason,
            "error": error_of(row),
            "attempts": row.attempts,
            "failed_at": iso_z(row.failed_at),
            "replay_count": row.replay_count,
            "edited": row.edited_at is not None,
        }
        for row in rows
    ]


FACTS = tuple(column for column in view.ONE if column.name != "error_message")  # that is the sentence of the page


async def letter(look: PageLook) -> Facts:
    text = look.parts["id"]
    try:
        found = await view.letters(look.reading).get(int(text) if text.isdecimal() and len(text) < 19 else text)
    except (NoSuchLetter, ValueError) as error:
        raise NoSuchThing(f"There is no dead letter {text}.") from error
    row = view.row_of(found)
    queue = None if look.reading.app is None else look.reading.app.queues.get(found.queue)
    is_checked = queue is not None and found.type in {*(queue.accepts or ()), *queue.handlers}
    place = place_of(found.traceback)
    return {"letter": row, "payload": indented(found.body), "is_checked": is_checked, "place": place}


async def bulk(look: PageLook) -> Facts:
    return {"jobs": list(look.jobs)}


PAGES = (
    Page("/bulk", "Bulk replays", bulk, "bulk.html", every=2.0),
    Page("/dead", "Dead letters", dead, "dead.html", listing=LETTERS, every=5.0),
    Page("/dead/{id}", "Dead letter", letter, "letter.html", views={"columns": FACTS}),
)
