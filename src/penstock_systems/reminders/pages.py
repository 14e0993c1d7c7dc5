"""The pages of the reminders in the dashboard: lists by state, a form, deliveries, causes of failures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from penstock.pages import ActionResult, Column, Input, Section
from penstock_systems.reminders import listing, operations, reminders
from penstock_systems.reminders.app import app, settings
from penstock_systems.reminders.commands_shared import at_of, rule_of
from penstock_systems.reminders.listing import State

Span = Annotated[str, Input("For how long", "1h, 2d")]
LIST = [
    Column("title", "reminder", link="/reminders/{id}"),
    Column("state", "state", "state"),
    Column("when", "when", "time"),
    Column("user", "person"),
    Column("last_error", "last error", "prose"),
]
FACTS = [
    *(Column("state", "state", "state"), Column("why", "why", "prose"), Column("when", "when", "exact_time")),
    *(Column("user", "person"), Column("channels", "channels", of=lambda row: ", ".join(row["channels"]))),
    *(Column("zone", "zone"), Column("rule", "repeats", of=lambda row: " ".join((row["rule"] or {}).values()))),
]
DELIVERIES = [
    *(Column("fire_seq", "fire", "count"), Column("channel", "channel"), Column("status", "status", "state")),
    *(Column("attempt", "attempt", "count"), Column("sent_at", "sent", "time"), Column("error", "error", "prose")),
]
CAUSES = [
    Column("cause", "cause"),
    Column("reminders", "reminders", "count"),
    Column("first_at", "first", "time"),
    Column("last_at", "last", "time"),
]


def iso(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def listed(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "when": iso(at_of(row))}


@app.page("/reminders", "Reminders", LIST, empty="No reminder is in this state.", every=5, group="Reminders")
async def show_list(state: State = "pending", user: str = "", cursor: str = "") -> Section:
    found = await (listing.list_user(user, cursor=cursor) if user else listing.list_state(state, cursor=cursor))
    following = {"state": state, "user": user, "cursor": found["cursor"]} if found["cursor"] else None
    return Section(rows=[listed(row) for row in found["reminders"]], next=following)


@app.page("/reminders/{id}", "Reminder", FACTS, every=5, group="Reminders")
async def show_one(id: str) -> list[Section]:
    row, why = listed(await reminders.show(id)), await listing.why(id)
    deliveries = [{**each, "sent_at": iso(each["sent_at"])} for each in await listing.list_deliveries(id)]
    times = [Column("local", "local time"), Column("utc", "UTC")]
    return [
        Section(title=row["title"], facts={**row, "why": why}, body=row["body"]),
        Section(title="Next occurrences", rows=row["upcoming"], columns=times, empty="It is not due again."),
        Section(title="Deliveries", rows=deliveries, columns=DELIVERIES, empty="It was not sent yet."),
    ]


@app.page("/reminder-causes", "Given up", CAUSES, empty="No reminder was given up.", every=5, group="Reminders")
async def show_causes() -> list[dict[str, Any]]:
    rows = await listing.list_causes()
    return [{**row, "first_at": iso(row["first_at"]), "last_at": iso(row["last_at"])} for row in rows]


async def upcoming(
    at: str = "", zone: str = "", rule: str = "", until: str = "", count: int | None = None
) -> list[str]:
    """Return the next occurrences of what is typed."""
    found = reminders.preview(rule_of(rule or None), at or None, zone or settings.zone, until or None, count)
    return [f"{each['local']} ({each['utc']})" for each in found]


@show_list.action("New reminder", preview=upcoming)
async def add(
    title: str,
    body: Annotated[str, Input("Text", lines=3)] = "",
    user: Annotated[str, Input("Person")] = "me",
    email: Annotated[str, Input("Address", "Instead of the person's own")] = "",
    at: Annotated[str, Input("First time", "2026-12-24T18:00, or: in 2h")] = "",
    zone: Annotated[str, Input("Time zone", "Such as Europe/Berlin")] = "",
    rule: Annotated[str, Input("Repeats", "0 9 * * 1-5, every 3 days, or FREQ=MONTHLY;BYDAY=-1FR")] = "",
    until: Annotated[str, Input("Until", "The last day")] = "",
    count: Annotated[int | None, Input("Number of occurrences")] = None,
    urgent: Annotated[bool, Input("Urgent: also in quiet hours")] = False,
) -> ActionResult:
    schedule: dict[str, Any] = {"at": at or None, "zone": zone or None, "until": until or None, "count": count}
    person: dict[str, Any] = {"user": user, "email": email or None, "urgent": urgent}
    given = reminders.NewReminder(title=title, body=body, rule=rule_of(rule or None), **schedule, **person)
    made = await reminders.create(given)
    return ActionResult(f"Added the reminder {title}.", f"/reminders/{made['id']}")


@show_one.action("Snooze")
async def snooze(id: str, span: Span) -> str:
    found = await operations.snooze(id, span)
    return f"It is due {listing.moment(found['next_fire_at'])}. {found.get('note', '')}"


@show_one.action("Acknowledge")
async def acknowledge(id: str) -> str:
    await operations.acknowledge(id)
    return "Acknowledged: it is not repeated until its next occurrence."


@show_one.action("Requeue")
async def requeue(id: str) -> str:
    await operations.requeue(id)
    return "It is due now. Channels that have succeeded are left alone."


@show_one.action("Resolve")
async def resolve(
    id: str, fire: int, channel: str, outcome: Annotated[Literal["sent", "given_up"], Input("It was")] = "sent"
) -> str:
    await operations.resolve(id, fire, channel, outcome)
    return f"Fire {fire} by {channel} is {outcome.replace('_', ' ')}."


@show_one.action("Cancel", confirm="Nothing of it is sent any more.", dangerous=True)
async def cancel(id: str) -> ActionResult:
    found = await reminders.cancel(id)
    return ActionResult(f"Cancelled the reminder {found['title']}.", "/reminders")


@show_causes.action("Requeue all", on="row", confirm="All reminders of this cause are sent again, at most 500.")
async def requeue_cause(cause: str) -> str:
    found = await operations.requeue_cause(cause)
    return f"Requeued {found['requeued']} reminders."
