"""`penstock dead edit`: another payload for a dead letter, from the command line, a file or an editor."""

from __future__ import annotations

import asyncio
import sys

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.choice import letter_named
from penstock.cli.letter import indented
from penstock.cli.operating import operating, plainly, refuse
from penstock.cli.output import Output, plain
from penstock.model.errors import BadParameter
from penstock.model.strict_json import BadJson, parse
from penstock.queues.letters import DeadLetter

PLAIN_TYPES = ("text", "bytes")  # bodies that are no JSON


@click.command()
@click.argument("id", metavar="ID")
@targets.target_argument
@targets.database_option
@click.option("--body", metavar="JSON", help="The new payload; `-` reads it from stdin. Without it an editor opens.")
@click.pass_obj
def edit(output: Output, id: str, target: str | None, database: str | None, body: str | None) -> None:
    """Give a dead letter another payload, to be replayed with.

    Without --body it opens in $EDITOR. Name the app (market.py) to have it checked against the class of the message; with
    the database alone it only has to be JSON. The letter stays dead until it is replayed.

    \b
    Example:
      penstock dead edit 12 market.py
      penstock dead edit 12 market.py --body '{"url": "https://shop.example/"}'
    """
    letter = letter_named(id)
    if letter is None:
        raise refuse(f"{id!r} is no dead letter. They have numbers, which `penstock dead list` shows.")
    if body is None and (output.json or not sys.stdin.isatty()):
        raise refuse("There is no terminal to open an editor in. Give the payload: --body JSON, or --body - for stdin.")
    found = targets.find(target, database)
    asyncio.run(_edit(output, found, letter, body))


async def _edit(output: Output, found: targets.Target, named: int | str, body: str | None) -> None:
    async with operating(found) as app:
        letter = await app.dead.get(named)
        if body is not None:
            new = sys.stdin.buffer.read() if body == "-" else body.encode("utf-8", "surrogateescape")
            await app.dead.edit(letter.id, _checked(letter, new))
        else:
            await _edit_in_editor(app, letter)
        queue = app.queues.get(letter.queue)
        checked = queue is not None and letter.type in {*(queue.accepts or ()), *queue.handlers}
        sentence = f"Letter {letter.id} has a new payload. `penstock dead replay {letter.id}` sends it back."
        if not checked:
            sentence += "\nIt was not checked against the class of the message, because no app was named that knows it."
        told = {"id": letter.id, "event_id": letter.event_id, "edited": True, "checked": checked}
        output.show(told, lambda console: console.print(plain(sentence)))


async def _edit_in_editor(app: App, letter: DeadLetter) -> None:
    text = indented(letter.body)
    while True:
        edited = click.edit(text, extension=".json")
        if edited is None or edited == text:
            raise refuse("The editor was left without a change. The letter is as it was.")
        try:
            with plainly():
                await app.dead.edit(letter.id, _checked(letter, edited.encode()))
            return
        except BadParameter as error:
            click.echo(str(error), err=True)
            if not click.confirm("Edit again?", default=True, err=True):
                raise
            text = edited


def _checked(letter: DeadLetter, body: bytes) -> bytes:
    if letter.type in PLAIN_TYPES:
        return body
    try:
        parse(body)
    except BadJson as error:
        raise BadParameter(f"{error} The letter was left as it is.", code="bad_message") from error
    return body.strip()
