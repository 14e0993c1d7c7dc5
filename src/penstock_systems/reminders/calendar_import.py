"""Reads an iCalendar file into reminders: one for each event, with its rule and its time zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import penstock as ps
from penstock_systems.reminders.app import settings
from penstock_systems.reminders.people import find_person
from penstock_systems.reminders.reminders import NewReminder, create

BYTES_MAX = 1_000_000
EVENTS_MAX = 500
DEPTH_MAX = 10  # of components in each other
_LINE = re.compile(r"([A-Za-z0-9-]+)((?:;[^:\";=]+=(?:\"[^\"]*\"|[^:\";]*))*):(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\([\\;,nN])")
_TRIGGER = re.compile(
    r"-P(?:([0-9]{1,4})W)?(?:([0-9]{1,5})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,8})M)?(?:([0-9]{1,9})S)?)?"
)
ALL_DAY_HOUR = 9  # when a reminder of an event without a time is due


class Property(NamedTuple):
    name: str
    parameters: dict[str, str]
    value: str


async def import_calendar(body: bytes, user: str) -> dict[str, Any]:
    """Create the reminders of a calendar; return their ids and why others were skipped. A second import adds nothing."""
    if len(body) > BYTES_MAX:
        raise ps.HttpError(413, f"The calendar has {len(body):,} bytes, more than {BYTES_MAX:,}.", name="too_large")
    try:
        events = read_events(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ps.HttpError(422, f"The calendar is not UTF-8 (byte {error.start}).", name="bad_calendar") from error
    if not events:
        raise ps.HttpError(422, "The body has no event. Send a calendar with BEGIN:VEVENT.", name="bad_calendar")
    if len(events) > EVENTS_MAX:
        raise ps.HttpError(413, f"The calendar has {len(events):,} events, more than {EVENTS_MAX:,}.", name="too_large")
    person = await find_person(user)
    zone = settings.zone if person is None else person.zone
    made: list[str] = []
    skipped: list[dict[str, str]] = []
    seen: set[str] = set()
    for event in events:
        title = _text(event, "SUMMARY") or "Untitled"
        try:
            given = reminder_of(event, user, zone)
            if given.key in seen:
                raise ps.errors.BadParameter("It changes one occurrence of another event. Add it by hand.", field="UID")
            seen.add(str(given.key))
            made.append((await create(given))["id"])
        except ps.PenstockError as error:
            skipped.append({"title": title[:100], "reason": str(error)})
    return {"imported": len(made), "ids": made, "skipped": skipped}


def read_events(text: str) -> list[list[Property]]:
    """The properties of each VEVENT. Those of its alarms are called VALARM.TRIGGER."""
    lines = re.sub(r"\r?\n[ \t]", "", text).splitlines()
    events: list[list[Property]] = []
    inside: list[str] = []
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        name, value = found[1].upper(), found[3]
        if name == "BEGIN":
            if len(inside) == DEPTH_MAX:
                raise ps.HttpError(422, f"The calendar nests more than {DEPTH_MAX} components.", name="bad_calendar")
            inside.append(value.strip().upper())
            if inside[-1] == "VEVENT":
                events.append([])
        elif name == "END":
            inside = inside[:-1]
        elif "VEVENT" in inside:
            parameters = dict(re.findall(r";([^=;:]+)=(\"[^\"]*\"|[^:;]*)", found[2]))
            prefix = "" if inside[-1] == "VEVENT" else f"{inside[-1]}."
            events[-1].append(
                Property(prefix + name, {key.upper(): each.strip('"') for key, each in parameters.items()}, value)
            )
    return events


def reminder_of(event: list[Property], user: str, zone: str) -> NewReminder:
    """What an event asks for. An alarm before it moves an event that happens once to the time of the alarm."""
    start = next((each for each in event if each.name == "DTSTART"), None)
    if start is None:
        raise ps.errors.BadParameter("It has no DTSTART.", field="DTSTART")
    rules = [each.value for each in event if each.name == "RRULE"]
    if len(rules) > 1 or any(each.name == "RDATE" for each in event):
        raise ps.errors.BadParameter("It has several rules or RDATE. Write one rule.", field="RRULE")
    at, zone = _local(start, zone)
    uid = _text(event, "UID") or f"{_text(event, 'SUMMARY')} {start.value}"
    before = timedelta() if rules else _before(event)
    excluded = [each for found in event if found.name == "EXDATE" for each in found.value.split(",")]
    try:
        text = (at - before).isoformat()
    except OverflowError as error:
        raise ps.errors.BadParameter("The time of its alarm is before the year 1.", field="TRIGGER") from error
    if start.value.endswith("Z") and not rules:
        text += "+00:00"
    return NewReminder(
        title=(_text(event, "SUMMARY") or "Untitled")[:200],
        body=_text(event, "DESCRIPTION")[:8_000],
        user=user,
        at=text,
        zone=zone,
        rule={"rrule": rules[0]} if rules else None,
        except_dates=[f"{each[:4]}-{each[4:6]}-{each[6:8]}" for each in excluded],
        key=f"ics {user} {uid}"[:200],
    )


def _local(start: Property, zone: str) -> tuple[datetime, str]:
    text = start.value.strip()
    try:
        if len(text) == 8:
            day = datetime.strptime(text, "%Y%m%d")  # noqa: DTZ007
            return day.replace(hour=ALL_DAY_HOUR), zone
        at = datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007
    except ValueError as error:
        raise ps.errors.BadParameter(f"DTSTART cannot be {text[:40]!r}.", field="DTSTART") from error
    return at, "UTC" if text.endswith("Z") else start.parameters.get("TZID", zone)


def _before(event: list[Property]) -> timedelta:
    trigger = next((each.value for each in event if each.name == "VALARM.TRIGGER"), "")
    found = _TRIGGER.fullmatch(trigger)
    if found is None:
        return timedelta()
    weeks, days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _text(event: list[Property], name: str) -> str:
    value = next((each.value for each in event if each.name == name), "")
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value).replace("\0", "").strip()
