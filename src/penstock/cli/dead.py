"""`penstock dead`: messages that will not be tried again, listed, sorted by cause, looked at, and dealt with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.cli import letter as letters
from penstock.cli import target as targets
from penstock.cli.choice import filters, letter_named, which
from penstock.cli.dealing import discard, fixed, replay
from penstock.cli.editing import edit
from penstock.cli.letter_reading import reading_letters
from penstock.cli.operating import refuse, show_help
from penstock.cli.output import Output, fill, plain, table
from penstock.model.times import iso_z, to_micros
from penstock.queues.letters import LISTED_MAX, DeadLetter, DeadLetters, Group, Which

if TYPE_CHECKING:
    from rich.console import Console

ERROR_DRAWN = 200  # characters; `dead show` has all of it

# What a table shows at which width of the terminal. The last column takes what is left.
COLUMNS = {
    100: ("id", "died", "queue", "type", "reason", "tries", "error"),
    60: ("id", "died", "queue", "reason", "error"),
    0: ("id", "queue", "reason"),
}
GROUP_COLUMNS = {
    100: ("letters", "queue", "type", "reason", "first", "last", "error"),
    60: ("letters", "queue", "reason", "last", "error"),
    0: ("letters", "queue", "reason"),
}
NUMBERS = {"id", "tries", "letters", "died", "first", "last"}


@click.group(invoke_without_command=True)
@click.pass_context
def dead(ctx: click.Context) -> None:
    """Dead letters: list, groups, show, edit, replay, discard, fixed.

    A message that failed too often, or that can never succeed, becomes a dead letter with a number. Look at what they
    died of, mend the cause, send one back, then the rest.

    \b
    Example:
      penstock dead groups
      penstock dead show 12
      penstock dead replay --queue found --canary --limit 1000
      penstock dead discard --queue found --until 2026-11-01 --reason 'shop closed'
    """
    show_help(ctx)


for verb in (edit, replay, discard, fixed):
    dead.add_command(verb)


# -- many -------------------------------------------------------------------------------------------------


@dead.command("list")
@targets.target_argument
@targets.database_option
@filters("--reason", "--died-of")
@click.option("--limit", type=click.IntRange(1, LISTED_MAX), default=100, show_default=True)
@click.option("--all", "resolved", is_flag=True, help="Also those that were dealt with.")
@click.pass_obj
def list_letters(
    output: Output, /, target: str | None, database: str | None, limit: int, resolved: bool, **chosen: Any
) -> None:
    """Dead letters that nobody has dealt with, oldest first.

    \b
    Example:
      penstock dead list
      penstock dead list --queue found --since 2h
      penstock dead list --reason permanent --text 'no such page' --json
    """
    wanted = which(chosen)
    with reading_letters(targets.find(target, database)) as dead_letters:
        listed = asyncio.run(_list(dead_letters, wanted, limit, resolved))
    told = {"dead": [letters.told(each) for each in listed]}
    output.show(told, lambda console: _draw_list(console, listed, limit, filtered=wanted != Which()))


async def _list(dead_letters: DeadLetters, wanted: Which, limit: int, resolved: bool) -> Sequence[DeadLetter]:
    return await dead_letters.list(wanted, limit=limit, resolved=resolved)


def _draw_list(console: Console, listed: Sequence[DeadLetter], limit: int, *, filtered: bool) -> None:
    if not listed:
        console.print("None of the dead letters match." if filtered else "There are no dead letters.")
        return
    now = datetime.now(UTC)
    _draw_table(console, COLUMNS, [_cells(each, now) for each in listed])
    if len(listed) >= limit:
        console.print(f"\nThe oldest {limit:,} are shown; `--limit` shows more, `penstock dead groups` counts all.")
    else:
        console.print(f"\n{len(listed):,} in all. `penstock dead show ID` tells everything about one.")


def _cells(letter: DeadLetter, now: datetime) -> dict[str, str]:
    return {
        "id": str(letter.id),
        "died": letters.ago(letter.failed_at, now),
        "queue": letter.queue,
        "type": letter.type,
        "reason": letter.reason + (f" ({letter.resolution})" if letter.resolution else ""),
        "tries": f"{letter.attempts:,}",
        "error": letters.error_shown(letter.error_class, letter.error_message, ERROR_DRAWN),
    }


@dead.command()
@targets.target_argument
@targets.database_option
@filters("--reason", "--died-of")
@click.pass_obj
def groups(output: Output, /, target: str | None, database: str | None, **chosen: Any) -> None:
    """How many died of what, the most frequent first.

    \b
    Example:
      penstock dead groups
      penstock dead groups --since 1d --json
    """
    wanted = which(chosen)
    with reading_letters(targets.find(target, database)) as dead_letters:
        found = asyncio.run(_groups(dead_letters, wanted))
    told = {"groups": [_told_group(group) for group in found]}
    output.show(told, lambda console: _draw_groups(console, found, filtered=wanted != Which()))


async def _groups(dead_letters: DeadLetters, wanted: Which) -> Sequence[Group]:
    return await dead_letters.groups(wanted)


def _told_group(group: Group) -> dict[str, Any]:
    moments = {name: iso_z(to_micros(getattr(group, name))) for name in ("first_at", "last_at")}
    return msgspec.structs.asdict(group) | moments


def _draw_groups(console: Console, found: Sequence[Group], *, filtered: bool) -> None:
    if not found:
        console.print("None of the dead letters match." if filtered else "There are no dead letters.")
        return
    now = datetime.now(UTC)
    _draw_table(console, GROUP_COLUMNS, [_group_cells(group, now) for group in found])
    first = plain(found[0].queue)
    console.print(f"\n`penstock dead list --queue {first}` shows them one by one, `penstock dead show ID` everything.")


def _group_cells(group: Group, now: datetime) -> dict[str, str]:
    return {
        "letters": f"{group.letters:,}",
        "queue": group.queue,
        "type": group.type,
        "reason": group.reason,
        "first": letters.ago(group.first_at, now),
        "last": letters.ago(group.last_at, now),
        "error": letters.error_shown(group.error_class, _examples(group), ERROR_DRAWN),
    }


def _examples(group: Group) -> str | None:
    """Return the one message of a cause, or its pattern with the most frequent messages."""
    if len(group.examples) == 1:
        return group.examples[0].rpartition(" (")[0]
    return group.message and f"{group.message}: {', '.join(group.examples)}"


def _draw_table(console: Console, columns: dict[int, tuple[str, ...]], cells: list[dict[str, str]]) -> None:
    titles = next(titles for least, titles in columns.items() if console.width >= least)
    drawn = table(*((title, "right" if title in NUMBERS else "left") for title in titles))
    console.print(fill(drawn, ([row[title] for title in titles] for row in cells)))


# -- one --------------------------------------------------------------------------------------------------


@dead.command()
@click.argument("id", metavar="ID")
@targets.target_argument
@targets.database_option
@click.pass_obj
def show(output: Output, id: str, target: str | None, database: str | None) -> None:
    """Everything about one dead letter: error, story, payload.

    ID is its number, or the id of the message, of which it is then the last death.

    \b
    Example:
      penstock dead show 12
      penstock dead show 019a8c3e-7f00-7abc-8def-0123456789ab market.db --json
    """
    named = letter_named(id)
    if named is None:
        raise refuse(f"{id!r} is no dead letter. They have numbers, which `penstock dead list` shows.")
    with reading_letters(targets.find(target, database)) as dead_letters:
        letter = asyncio.run(_get(dead_letters, named))
    output.show(letters.told(letter), lambda console: letters.draw(console, letter, datetime.now(UTC)))


async def _get(dead_letters: DeadLetters, named: int | str) -> DeadLetter:
    return await dead_letters.get(named)
