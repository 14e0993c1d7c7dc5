"""`penstock reminders`: add, find and operate reminders from a shell, beside the workers."""

from __future__ import annotations

from typing import Any

import click

from penstock.commands import Answer, Command, Noun, database_option
from penstock_systems.reminders import commands_operating
from penstock_systems.reminders.commands_shared import rule_of, say, schedule_options, show, times, use


@click.group(cls=Noun)
def reminders() -> None:
    """Add, find and operate reminders.

    Without --database they are in the database that PENSTOCK_DATABASE or penstock.toml names, or in reminders.db in this
    folder, which `penstock run reminders` creates.

    Example:
      penstock reminders add "Rent" --email ann@example.org --at 2026-12-01T09:00
      penstock reminders next
      penstock reminders why 019d...
    """


@reminders.command(cls=Command)
@click.argument("title")
@schedule_options
@click.option("--body", default="", help="The text below the title.")
@click.option("--user", default="me", show_default=True, help="The person whose reminder it is.")
@click.option("--channel", "channels", multiple=True, help="email, webhook, telegram ...; repeatable.")
@click.option("--email", metavar="ADDRESS", help="Instead of the person's own address.")
@click.option("--webhook", metavar="URL", help="The address or the id of an endpoint.")
@click.option("--urgent", is_flag=True, help="Sent in quiet hours too, and never in a digest.")
@click.option("--nag", "nag_every", metavar="SPAN", help="Repeat it this often until it is acknowledged, such as 10m.")
@click.option("--key", help="A second reminder with this key is not added.")
@database_option
def add(title: str, database: str | None, rule: str | None, channels: tuple[str, ...], **given: Any) -> Answer:
    """Add a reminder, and show when it is due.

    Example:
      penstock reminders add "Call the bank" --email ann@example.org --at "in 2h"
      penstock reminders add Backup --email a@b.org --at "in 2h" --rule FREQ=DAILY
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders.reminders import NewReminder, create

        named = {name: value for name, value in given.items() if value is not None}
        return await create(NewReminder(title=title, rule=rule_of(rule), channels=list(channels) or None, **named))

    made = use(database, work)
    verb = "Added" if made["is_new"] else "There is already"
    lines = [f"{verb} reminder {made['id']}.", *times(made["upcoming"])]
    if secret := made.get("webhook_secret"):
        lines.append(f"The secret of the endpoint {made['endpoint']}: {secret}")
    return say(made, *lines, f"See what becomes of it with: penstock reminders why {made['id']}")


@reminders.command("list", cls=Command)
@click.option(
    "--state",
    type=click.Choice(["pending", "due", "retrying", "parked", "done", "cancelled", "unknown"]),
    default="pending",
    show_default=True,
)
@click.option("--user", help="Those of one person that are still due.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--cursor", default="", help="Where the last page ended.")
@database_option
def list_(state: Any, user: str | None, limit: int, cursor: str, database: str | None) -> Answer:
    """List reminders by state, oldest first.

    Example:
      penstock reminders list --state parked
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders import listing

        if user is not None:
            return await listing.list_user(user, cursor=cursor, most=limit)
        return await listing.list_state(state, cursor=cursor, most=limit)

    found = use(database, work, writes=False)
    return show(found, found["reminders"], f"No reminder is {state}." if user is None else f"{user} has none.")


@reminders.command("next", cls=Command)
@click.option("--limit", type=click.IntRange(1, 500), default=10, show_default=True)
@database_option
def next_(limit: int, database: str | None) -> Answer:
    """Show the reminders that are due next.

    Example:
      penstock reminders next
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders import listing

        return await listing.list_state("pending", most=limit)

    found = use(database, work, writes=False)
    return show(found, found["reminders"], "No reminder is due. Add one with: penstock reminders add")


@reminders.command(cls=Command)
@click.argument("id")
@database_option
def why(id: str, database: str | None) -> Answer:
    """Say where a reminder is, and why.

    Example:
      penstock reminders why 019d...
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders import listing

        return {"why": await listing.why(id), "deliveries": await listing.list_deliveries(id)}

    found = use(database, work, writes=False)
    return say(found, found["why"])


@reminders.command(cls=Command)
@click.argument("id")
@database_option
def cancel(id: str, database: str | None) -> Answer:
    """Cancel a reminder.

    Example:
      penstock reminders cancel 019d...
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders.reminders import cancel

        return await cancel(id)

    found = use(database, work)
    return say(found, f"Cancelled reminder {found['title']!r}.")


@reminders.command(cls=Command)
@click.argument("id")
@click.argument("span", metavar="SPAN")
@database_option
def snooze(id: str, span: str, database: str | None) -> Answer:
    """Send a reminder later, or once more. Its schedule stays.

    Example:
      penstock reminders snooze 019d... 1h
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders import listing, operations

        return {**(found := await operations.snooze(id, span)), "text": listing.moment(found["next_fire_at"])}

    found = use(database, work)
    return say(found, f"Reminder {id} is due {found['text']}. {found.get('note', '')}".strip())


@reminders.command(cls=Command)
@click.argument("id")
@database_option
def ack(id: str, database: str | None) -> Answer:
    """Acknowledge a reminder: it is not repeated any more.

    Example:
      penstock reminders ack 019d...
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders import operations

        return await operations.acknowledge(id)

    return say(use(database, work), f"Acknowledged reminder {id}.")


for verb in commands_operating.VERBS:
    reminders.add_command(verb)
