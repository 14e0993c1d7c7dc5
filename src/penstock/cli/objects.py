"""`penstock objects`: the objects there are, what each has saved and when its alarm is due."""

from __future__ import annotations

import click
import msgspec

from penstock.cli.command import Noun, all_option, limit_option, looking, looking_at
from penstock.cli.output import Answer, Facts, NotFound, Title, Verbatim, listed
from penstock.views import objects as view
from penstock.views.observer import Observer


@click.group(cls=Noun)
def objects() -> None:
    """List objects, or show the state of one.

    Neither changes anything: an object changes when one of its methods is called.

    Example:
      penstock objects list
      penstock objects list Counter
      penstock objects show Counter main
    """


@objects.command("list")
@click.argument("class_name", required=False, metavar="[CLASS]")
@looking_at("class_name")
@all_option
@limit_option(10_000)
async def list_objects(observer: Observer, class_name: str | None, internals: bool, limit: int) -> Answer:
    """List objects of one class or of all, with their alarms.

    An alarm is `lost` if its last attempt failed: see `penstock dead list`.

    Example:
      penstock objects list
      penstock objects list Counter market.db --json
    """
    rows = await view.OBJECTS.read(observer, class_name, limit=limit)
    return listed(view.OBJECTS, rows, internals=internals or class_name is not None)


@objects.command()
@click.argument("class_name", metavar="CLASS")
@click.argument("name", metavar="NAME")
@looking
async def show(observer: Observer, class_name: str, name: str) -> Answer:
    """Show one object: its saved state, its worker and its alarm.

    Example:
      penstock objects show Counter main
      penstock objects show Counter main market.db --json
    """
    row = await view.one(observer, class_name, name)
    if isinstance(row, str):
        raise NotFound(row)
    state = msgspec.json.format(msgspec.json.encode(row["state"]), indent=2).decode()
    return Answer(row, Title(f"{class_name}/{name}"), "", Facts(view.OBJECT, row), "", Title("state"), Verbatim(state))
