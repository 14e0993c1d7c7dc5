"""`penstock audit`: what operators changed, who they were, and what was there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.cli import target as targets
from penstock.cli.output import Output, fill, table
from penstock.model.times import iso_z, text_of_micros

if TYPE_CHECKING:
    from rich.console import Console

LISTED_MAX = 10_000
VALUE_DRAWN = 40  # characters of a value before and after

LIST = """
select at, actor, origin, verb, kind, name, before, after, count
from penstock_audit
where (cast(:name as text) is null or name = :name or name like '%/' || :name)
and (cast(:verb as text) is null or verb = :verb or verb like :verb || ' %')
order by at desc
limit :most
"""


@click.command()
@targets.target_argument
@targets.database_option
@click.option("--object", "name", metavar="NAME", help="Of this queue, cron task, run, controller or dead letter.")
@click.option("--verb", metavar="VERB", help='Of this command, such as "queues pause", or of this noun, such as dead.')
@click.option("--limit", type=click.IntRange(1, LISTED_MAX), default=50, show_default=True)
@click.pass_obj
def audit(
    output: Output, target: str | None, database: str | None, name: str | None, verb: str | None, limit: int
) -> None:
    """List what operators changed, newest first.

    Each administrative command and HTTP call writes one entry in the commit of its effect: who (user and host, or the
    name of the token), from where, what, and the values before and after. A command that changes nothing writes none.

    \b
    Example:
      penstock audit market.py
      penstock audit market.py --object orders
      penstock audit market.db --verb "dead replay" --json
    """
    with targets.reading(targets.find(target, database)) as reading:
        rows = reading.ask(LIST, name=name, verb=verb, most=limit)
    found = [
        {**row.asdict(), "at": iso_z(row.at), "before": _json(row.before), "after": _json(row.after)} for row in rows
    ]
    output.show({"audit": found}, lambda console: _draw(console, [row.at for row in rows], found))


def _json(text: str | None) -> dict[str, Any]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _draw(console: Console, times: list[int], found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("No operator has changed anything that matches.")
        return
    drawn = table(("at", "left"), ("who", "left"), ("what", "left"), ("changed", "left"))
    rows = [
        (text_of_micros(at), f"{each['actor']} ({each['origin']})", f"{each['verb']} {each['name']}", _changed(each))
        for at, each in zip(times, found, strict=True)
    ]
    console.print(fill(drawn, rows))


def _changed(each: dict[str, Any]) -> str:
    before, after = each["before"], each["after"]
    parts = [
        f"{name}: {_short(before[name])} to {_short(after.get(name))}" if name in before else f"{name}: {_short(value)}"
        for name, value in (dict.fromkeys(before) | after).items()
    ]
    return ", ".join(parts) + (f" ({each['count']:,})" if each["count"] > 1 else "")


def _short(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_DRAWN else text[: VALUE_DRAWN - 3] + "..."
