"""`penstock reminders requeue`, `counts`, `preview`, `import`, `person`, `endpoints`: the verbs of operators."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from penstock.commands import Answer, Command, database_option, refuse
from penstock_systems.reminders.commands_shared import draw, rule_of, say, schedule_options, times, use

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@click.command(cls=Command)
@click.argument("id", required=False)
@click.option("--cause", help="All parked reminders of one cause; `penstock reminders causes` lists them.")
@database_option
def requeue(id: str | None, cause: str | None, database: str | None) -> Answer:
    """Send a parked reminder again, or one with a channel on hold.

    Example:
      penstock reminders requeue 019d...
      penstock reminders requeue --cause "email: domain not verified"
    """
    if (id is None) == (cause is None):
        raise refuse("Name a reminder, or a cause with --cause.")

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders import operations

        return await operations.requeue_cause(str(cause)) if id is None else await operations.requeue(id)

    found = use(database, work)
    return say(found, f"Requeued {'1 reminder' if id else found['requeued']}. See: penstock reminders list --state due")


@click.command(cls=Command)
@database_option
def causes(database: str | None) -> Answer:
    """Group the reminders that were given up by their cause.

    Example:
      penstock reminders causes
    """

    async def work() -> list[dict[str, Any]]:
        from penstock_systems.reminders import listing

        return await listing.list_causes()

    rows = use(database, work, writes=False)
    lines = [f"{row['reminders']:>6}  {row['cause']}" for row in rows] or ["No reminder was given up."]
    return say({"causes": rows}, *lines)


@click.command(cls=Command)
@database_option
def counts(database: str | None) -> Answer:
    """Count reminders by state.

    Example:
      penstock reminders counts
    """

    async def work() -> dict[str, int]:
        from penstock_systems.reminders import listing

        return await listing.count()

    found = use(database, work, writes=False)
    return say(found, *(f"{name:<9} {number:>9,}" for name, number in found.items()))


@click.command(cls=Command)
@schedule_options
def preview(at: str | None, zone: str | None, rule: str | None, until: str | None, count: int | None) -> Answer:
    """Show the next five times of a schedule. Nothing is saved.

    Example:
      penstock reminders preview --at 2026-03-28T02:30 --rule "every 1 day"
    """
    from penstock_systems.reminders.app import settings
    from penstock_systems.reminders.reminders import preview

    found = preview(rule_of(rule), at, zone or settings.zone, until, count)
    return say({"upcoming": found}, *times(found))


@click.command("import", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--user", default="me", show_default=True)
@database_option
def import_(file: Path, user: str, database: str | None) -> Answer:
    """Add a reminder for each event of a calendar file. A second import of the file adds nothing.

    Example:
      penstock reminders import birthdays.ics
    """

    body = file.read_bytes()

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders.calendar_import import import_calendar

        return await import_calendar(body, user)

    found = use(database, work)
    skipped = [f"Skipped {each['title']!r}: {each['reason']}" for each in found["skipped"]]
    return say(found, f"Imported {found['imported']} reminders.", *skipped)


@click.command(cls=Command)
@click.argument("id")
@click.option("--email", metavar="ADDRESS")
@click.option("--zone", metavar="ZONE")
@click.option("--quiet", metavar="FROM-TO", help="Quiet hours, such as 22:00-07:00.")
@click.option("--digest", "digest_at", metavar="TIME", help="One mail a day at this time, such as 08:00.")
@database_option
def person(
    id: str,
    email: str | None,
    zone: str | None,
    quiet: str | None,
    digest_at: str | None,
    database: str | None,
) -> Answer:
    """Create or change a person: address, time zone, quiet hours, digest.

    Example:
      penstock reminders person ann --zone Europe/Berlin --quiet 22:00-07:00
    """

    async def work() -> dict[str, Any]:
        from penstock_systems.reminders.people import Person, set_person

        begins, _, ends = (quiet or "").partition("-")
        given = {
            "email": email,
            "zone": zone,
            "quiet_from": begins or None,
            "quiet_to": ends or None,
            "digest_at": digest_at,
        }
        return await set_person(id, Person(**{name: value for name, value in given.items() if value is not None}))

    found = use(database, work)
    return say(found, f"{id}: {found['email'] or 'no address'}, {found['zone']}.")


@click.command(cls=Command)
@click.argument("verb", type=click.Choice(["list", "test", "enable", "rotate", "replay"]))
@click.argument("id", required=False)
@click.option("--since", metavar="DAY", help="With replay: what was missed since this day. By default everything.")
@database_option
def endpoints(verb: str, id: str | None, since: str | None, database: str | None) -> Answer:
    """List the endpoints of webhooks, or test, enable, rotate or replay one.

    Example:
      penstock reminders endpoints list
      penstock reminders endpoints replay ep-1f2e... --since 2026-03-01
    """
    if (verb == "list") == (id is not None) or (since is not None and not _DATE.fullmatch(since)):
        raise refuse(
            "Write `endpoints list`, or a verb and the id of an endpoint; --since is a day such as 2026-03-01."
        )

    async def work() -> Any:
        from penstock_systems.reminders import endpoints_admin as admin
        from penstock_systems.reminders.schedule import local_time, moment_of

        if id is None:
            return {"endpoints": await admin.list_endpoints()}
        if verb == "replay":
            after = 0 if since is None else moment_of(local_time(f"{since}T00:00", "UTC", 0), "UTC")
            return await admin.replay(id, after)
        return await getattr(admin, verb)(id)

    found = use(database, work, writes=verb not in ("list", "test"))
    if id is None:
        rows = [[each["id"], each["state"], str(each["failures"]), each["url"]] for each in found["endpoints"]]
        return Answer(found, draw(["ID", "State", "Failures", "Address"], rows))
    return say(found, *(f"{name}: {value}" for name, value in found.items()))


VERBS = (requeue, causes, counts, preview, import_, person, endpoints)
