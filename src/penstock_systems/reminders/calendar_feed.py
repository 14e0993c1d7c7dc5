"""The calendar feed: what a person's reminders do in the next 90 days, one event for each occurrence."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import penstock as ps
from penstock.recurrence import Occurrence
from penstock_systems.reminders.app import db, now_ms
from penstock_systems.reminders.people import find_person
from penstock_systems.reminders.schedule import stored_recurrence

DAYS = 90
EVENTS_MAX = 1_000
ROWS_MAX = 1_000
LINE_OCTETS = 75
DAY_MS = 86_400_000
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\u0085\u2028\u2029]")

UPCOMING = """
select id, title, body, next_fire_at, occurrence_at, count_done, extra, recurrence_rule, timezone, starts, updated_at
from notifications
where user_id = :user
and next_fire_at <= :until
and is_digest = 0
order by next_fire_at, id
limit :most
"""


async def make_calendar(user: str, epoch: str) -> str:
    """The feed of a person; raise HttpError 404 if its token was revoked."""
    person = await find_person(user)
    if person is None or str(person.token_epoch) != epoch:
        raise ps.HttpError(404, "This calendar does not exist any more.", name="not_found")
    now = now_ms()
    events: list[tuple[int, Any]] = []
    for row in await db.rows(UPCOMING, user=user, until=now + DAYS * DAY_MS, most=ROWS_MAX):
        events += [(at, row) for at in _occurrences(row, now)]
    events.sort(key=lambda event: (event[0], event[1].id))
    return write_calendar(events[:EVENTS_MAX], now)


def _occurrences(row: Any, now: int) -> list[int]:
    recurrence, until = stored_recurrence(row), now + DAYS * DAY_MS
    found = [row.next_fire_at]
    if recurrence is None:
        return found
    since = Occurrence(row.occurrence_at * 1000, row.count_done) if row.count_done else None
    after = row.next_fire_at
    while len(found) < EVENTS_MAX:
        following = recurrence.next_after(after * 1000, since)
        if following is None or following.at > until * 1000:
            break
        after, since = following.at // 1000, following if following.number else None
        found.append(after)
    return found


def write_calendar(events: list[tuple[int, Any]], now: int) -> str:
    """Events as an iCalendar file (RFC 5545)."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Penstock//Reminders//EN", "X-WR-CALNAME:Reminders"]
    for at, row in events:
        lines += ["BEGIN:VEVENT", f"UID:{row.id}-{at}@penstock", f"DTSTAMP:{stamp(now)}", f"DTSTART:{stamp(at)}"]
        lines += ["DURATION:PT15M", f"SUMMARY:{escaped(row.title)}"]
        lines += [f"DESCRIPTION:{escaped(row.body)}"] if row.body else []
        lines += ["TRANSP:TRANSPARENT", "END:VEVENT"]
    return "".join(f"{folded(line)}\r\n" for line in [*lines, "END:VCALENDAR"])


def stamp(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y%m%dT%H%M%SZ}"


def escaped(text: str) -> str:
    """A value without what ends a line or separates values."""
    text = _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def folded(line: str) -> str:
    """A line of at most 75 octets, continued on lines that begin with a space; no character is cut."""
    parts: list[str] = []
    part, octets = "", 0
    for character in line:
        size = len(character.encode("utf-8", "replace"))
        if octets + size > LINE_OCTETS - bool(parts):
            parts.append(part)
            part, octets = "", 0
        part, octets = part + character, octets + size
    return "\r\n ".join([*parts, part])
