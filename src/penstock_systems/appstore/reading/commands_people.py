"""`penstock appstore star`, `unstar`, `stars`, `list`, `track`, `untrack`: what people mark, collect and watch."""

from __future__ import annotations

from collections.abc import Sequence

import click

import penstock as ps
from penstock.commands import NotFound, Noun, Output, database_option, plain, refuse
from penstock_systems.appstore import keywords
from penstock_systems.appstore.reading import people
from penstock_systems.appstore.reading.commands_shared import change, listing, look, show_list, user_option
from penstock_systems.appstore.reading.drawing import APPS, LISTS, PUBLISHERS
from penstock_systems.appstore.reading.queries import SQL
from penstock_systems.appstore.reading.shown import calm

ids_argument = click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
publisher_option = click.option("--publisher", is_flag=True, help="The ids are ids of developers, not of apps.")


@click.command()
@ids_argument
@publisher_option
@user_option
@database_option
@click.pass_obj
def star(output: Output, ids: tuple[int, ...], publisher: bool, user: str, database: str | None) -> None:
    """Star apps, or publishers. Starred apps have a snapshot each day.

    \b
    Example:
      penstock appstore star 101002 101005
      penstock appstore star --publisher 1012 --user ada
    """

    async def deed(app: ps.App) -> None:
        if not publisher:
            await _known(app, ids)
        await people.star(app, ids, user=user, publishers=publisher)

    change(database, deed)
    _say(output, "starred", ids, user, "starred")


@click.command()
@ids_argument
@publisher_option
@user_option
@database_option
@click.pass_obj
def unstar(output: Output, ids: tuple[int, ...], publisher: bool, user: str, database: str | None) -> None:
    """Take stars back.

    \b
    Example:
      penstock appstore unstar 101002
    """
    change(database, lambda app: people.unstar(app, ids, user=user, publishers=publisher))
    _say(output, "unstarred", ids, user, "no longer starred")


@click.command()
@publisher_option
@user_option
@listing
@click.pass_obj
def stars(output: Output, publisher: bool, user: str, most: int, as_csv: bool, database: str | None) -> None:
    """What was starred, the newest first.

    \b
    Example:
      penstock appstore stars
      penstock appstore stars --publisher --json
    """
    none = f"{calm(user, 60)} has no starred apps. `penstock appstore star ID` stars one."
    if publisher:
        found = look(database, lambda reading: people.publishers(reading, user=user, most=most))
        show_list(output, "publishers", found, PUBLISHERS, as_csv=as_csv, none=none)
    else:
        found = look(database, lambda reading: people.stars(reading, user=user, most=most))
        show_list(output, "stars", found, APPS, as_csv=as_csv, none=none)


@click.group("list", cls=Noun)
def list_() -> None:
    """Lists of apps: show, add, remove.

    \b
    Example:
      penstock appstore list add rivals 101002 101005
      penstock appstore list show rivals --csv > rivals.csv
    """


@list_.command()
@click.argument("name")
@ids_argument
@user_option
@database_option
@click.pass_obj
def add(output: Output, name: str, ids: tuple[int, ...], user: str, database: str | None) -> None:
    """Put apps on a list. Its first app makes it.

    \b
    Example:
      penstock appstore list add rivals 101002
    """
    if not calm(name) or calm(name, people.LIST_NAME_MOST) != name:
        raise refuse(f"A list's name has one to {people.LIST_NAME_MOST} printable characters.")

    async def deed(app: ps.App) -> None:
        await _known(app, ids)
        await people.put_on_list(app, name, ids, user=user)

    change(database, deed)
    _say(output, "added", ids, user, f"on the list {name}")


@list_.command()
@click.argument("name")
@ids_argument
@user_option
@database_option
@click.pass_obj
def remove(output: Output, name: str, ids: tuple[int, ...], user: str, database: str | None) -> None:
    """Take apps off a list. It is gone with its last app.

    \b
    Example:
      penstock appstore list remove rivals 101002
    """
    change(database, lambda app: people.take_off_list(app, name, ids, user=user))
    _say(output, "removed", ids, user, f"no longer on the list {name}")


@list_.command()
@click.argument("name", required=False)
@user_option
@listing
@click.pass_obj
def show(output: Output, name: str | None, user: str, most: int, as_csv: bool, database: str | None) -> None:
    """What is on a list; without a name, which lists there are.

    \b
    Example:
      penstock appstore list show
      penstock appstore list show rivals
    """
    if name is None:
        found = look(database, lambda reading: people.lists(reading, user=user, most=most))
        none = "There is no list yet. `penstock appstore list add NAME ID` makes one."
        show_list(output, "lists", found, LISTS, as_csv=as_csv, none=none)
        return
    found = look(database, lambda reading: people.on_list(reading, name, user=user, most=most))
    if not found:
        raise NotFound(
            f"{calm(user, 60)} has no list {calm(name, 60)!r}.", hint="`penstock appstore list show` lists them all."
        )
    show_list(output, "apps", found, APPS, as_csv=as_csv, none="")


@click.command()
@click.argument("words", metavar="KEYWORD...", nargs=-1, required=True)
@user_option
@database_option
@click.pass_obj
def track(output: Output, words: tuple[str, ...], user: str, database: str | None) -> None:
    """Watch keywords.

    Each day keeps a snapshot of them and of who ranks for them.

    \b
    Example:
      penstock appstore track 'habit tracker' 'plant care'
    """
    said = [_keyword(word) for word in words]
    change(database, lambda app: people.track(app, said, user=user))
    output.show({"tracked": said}, lambda console: console.print(plain(f"Tracked: {', '.join(said)}.")))


@click.command()
@click.argument("words", metavar="KEYWORD...", nargs=-1, required=True)
@database_option
@click.pass_obj
def untrack(output: Output, words: tuple[str, ...], database: str | None) -> None:
    """Watch keywords no longer. Snapshots that there are stay.

    \b
    Example:
      penstock appstore untrack 'plant care'
    """
    said = [_keyword(word) for word in words]
    change(database, lambda app: people.untrack(app, said))
    output.show({"untracked": said}, lambda console: console.print(plain(f"No longer tracked: {', '.join(said)}.")))


def _keyword(word: str) -> str:
    """As the crawl writes it: one spelling for one keyword."""
    said = keywords.normal(word)
    if said is None:
        raise refuse(f"{calm(word, 60)!r} is not a keyword: it contains no word, or too many.")
    return said


async def _known(app: ps.App, ids: Sequence[int]) -> None:
    for id in ids:
        if not await app.db.rows(SQL["app"], id=id):
            raise NotFound(f"No app {id} is known here.", hint="`penstock appstore apps` lists the known ones.")


def _say(output: Output, deed: str, ids: Sequence[int], user: str, sentence: str) -> None:
    named = ", ".join(map(str, ids))
    output.show(
        {deed: list(ids), "user": user},
        lambda console: console.print(plain(f"{named} {'is' if len(ids) == 1 else 'are'} {sentence}.")),
    )
