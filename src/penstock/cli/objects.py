"""`penstock objects`: which objects there are, where each lives, what it has saved and when its alarm is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.cli import target as targets
from penstock.cli.operating import show_help
from penstock.cli.output import NotFound, Output, bytes_shown, fill, plain, table
from penstock.model.times import iso_z

if TYPE_CHECKING:
    from rich.console import Console

LISTED = """
select objects.class, objects.name, objects.epoch, objects.owner, objects.hint, objects.alarm_lost, objects.saved_at,
  length(objects.state) as bytes, timers.due as alarm
from penstock_objects as objects
left join penstock_timers as timers
on timers.kind = 'alarm'
and timers.name = objects.class || '/' || objects.name
where cast(:class as text) is null
or objects.class = :class
order by objects.class, objects.name
limit :most
"""
SHOWN = """
select objects.class, objects.name, objects.epoch, objects.owner, objects.hint, objects.alarm_lost, objects.saved_at,
  length(objects.state) as bytes, timers.due as alarm, objects.created_at, objects.state
from penstock_objects as objects
left join penstock_timers as timers
on timers.kind = 'alarm'
and timers.name = objects.class || '/' || objects.name
where objects.class = :class
and objects.name = :name
"""


@click.group(invoke_without_command=True)
@click.pass_context
def objects(ctx: click.Context) -> None:
    """Objects: list, show.

    Both only look: an object changes itself, when one of its methods is called.

    \b
    Example:
      penstock objects list
      penstock objects list Counter
      penstock objects show Counter main
    """
    show_help(ctx)


@objects.command("list")
@click.argument("class_name", required=False, metavar="[CLASS]")
@targets.target_argument
@targets.database_option
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.pass_obj
def list_objects(output: Output, class_name: str | None, target: str | None, database: str | None, limit: int) -> None:
    """Objects, of one class or of all, with their alarms.

    Changes nothing. `lost` means that its alarm failed for the last time: see `penstock dead list`.

    \b
    Example:
      penstock objects list
      penstock objects list Counter market.db --json
    """
    if target is None and class_name is not None and _names_a_target(class_name):
        class_name, target = None, class_name
    rows = _ask(targets.find(target, database), LISTED, **{"class": class_name, "most": limit})
    told = [_told(row) for row in rows]
    output.show({"objects": told}, lambda console: _draw(console, told))


@objects.command()
@click.argument("class_name", metavar="CLASS")
@click.argument("name", metavar="NAME")
@targets.target_argument
@targets.database_option
@click.pass_obj
def show(output: Output, class_name: str, name: str, target: str | None, database: str | None) -> None:
    """One object: what it saved last, where it lives, when its alarm is due.

    Changes nothing.

    \b
    Example:
      penstock objects show Counter main
      penstock objects show Counter main market.db --json
    """
    rows = _ask(targets.find(target, database), SHOWN, **{"class": class_name, "name": name})
    if not rows:
        raise NotFound(f"There is no object {class_name}/{name}. `penstock objects list` shows those there are.")
    told = _told(rows[0]) | {"created_at": iso_z(rows[0].created_at), "state": msgspec.json.decode(rows[0].state)}
    output.show(told, lambda console: _draw_one(console, told))


def _names_a_target(text: str) -> bool:
    """`penstock objects list market.db`: no class has a dot or a colon in its name."""
    return "." in text or ":" in text or "/" in text


def _ask(found: targets.Target, sql: str, **bound: Any) -> list[Any]:
    with targets.reading(found) as reading:
        return list(reading.ask(sql, **bound))


def _told(row: Any) -> dict[str, Any]:
    class_name, name, epoch, owner, hint, lost, saved_at, size, alarm, *_ = row
    return {
        "class": class_name,
        "name": name,
        "owner": owner,
        "epoch": epoch,
        "hint": hint,
        "alarm_at": None if alarm is None else iso_z(alarm),
        "alarm_lost": bool(lost),
        "saved_at": iso_z(saved_at),
        "bytes": size,
    }


def _alarm(each: dict[str, Any]) -> str:
    return "lost" if each["alarm_lost"] else each["alarm_at"] or "-"


def _owner(each: dict[str, Any]) -> str:
    return "-" if each["owner"] is None else f"worker {each['owner']}"


def _draw(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("There is no such object. One is made when a method of it is first called.")
        return
    drawn = table(("object", "left"), ("lives in", "left"), ("alarm", "left"), ("saved", "left"), ("size", "right"))
    rows = [
        (f"{each['class']}/{each['name']}", _owner(each), _alarm(each), each["saved_at"], bytes_shown(each["bytes"]))
        for each in found
    ]
    console.print(fill(drawn, rows))


def _draw_one(console: Console, each: dict[str, Any]) -> None:
    console.print(plain(f"{each['class']}/{each['name']}"))
    drawn = table(("", "left"), ("", "left"))
    facts = [
        ("lives in", _owner(each)),
        ("alarm", _alarm(each)),
        ("saved", each["saved_at"]),
        ("made", each["created_at"]),
        *((name, msgspec.json.encode(value).decode()) for name, value in each["state"].items()),
    ]
    console.print(fill(drawn, facts))
