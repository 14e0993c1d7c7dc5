"""Which dead letters a command means: by their numbers, by the ids of messages, or by a filter."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.operating import refuse
from penstock.model.errors import BadConfig
from penstock.model.times import from_micros, parse_span
from penstock.queues.letters import LISTED_MAX, Which, picking

Command = TypeVar("Command", bound=Callable[..., Any])

_NUMBER = re.compile(r"#?([0-9]{1,18})")
_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def filters(*reason_names: str) -> Callable[[Command], Command]:
    """The options that choose letters, each of which is a field of `Which`."""
    options = [
        click.option("--queue", metavar="NAME", help="Of this queue."),
        click.option("--type", metavar="TYPE", help="Messages of this type."),
        click.option("--source", metavar="APP", help="Sent by this app."),
        click.option(
            *reason_names, "reason", metavar="REASON", help="exhausted, permanent, malformed, unknown_type ..."
        ),
        click.option("--since", metavar="WHEN", help="Died then or later: 2h (ago), 2026-11-15, 2026-11-15T09:30."),
        click.option("--until", metavar="WHEN", help="Died before then."),
        click.option("--text", metavar="TEXT", help="With this text in the error or the body."),
    ]

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


def which(given: dict[str, Any]) -> Which:
    """The filter that the options make."""
    moments = {name: None if given[name] is None else moment(given[name]) for name in ("since", "until")}
    return Which(**{**given, **moments})


def moment(text: str) -> datetime:
    """A time of the calendar, in UTC unless it says otherwise, or a span before now."""
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        return from_micros(time.time_ns() // 1_000 - int(parse_span(text) * 1_000_000))
    except BadConfig:
        raise refuse(
            f"{text!r} is no time. Write 2026-11-15, 2026-11-15T09:30, or a span before now like 2h."
        ) from None


class Given(NamedTuple):
    """What stood on the command line: letters, and perhaps an app or a database behind them."""

    letters: list[int | str]
    target: str | None


def given(words: Sequence[str]) -> Given:
    letters: list[int | str] = []
    for place, word in enumerate(words, start=1):
        letter = letter_named(word)
        if letter is None:
            if place < len(words):
                raise refuse(f"{word!r} is no dead letter. They have numbers, which `penstock dead list` shows.")
            return Given(letters, word)
        letters.append(letter)
    return Given(letters, None)


def letter_named(word: str) -> int | str | None:
    """The number of a letter, or the id of its message; None if it is neither."""
    if number := _NUMBER.fullmatch(word):
        return int(number[1])
    return word if _ID.fullmatch(word) else None


async def numbers(app: App, letters: Sequence[int | str]) -> list[int]:
    """The numbers of letters, each once. Raises NoSuchLetter for one that is not there."""
    return list(dict.fromkeys([(await app.dead.get(letter)).id for letter in letters]))


class Chosen(NamedTuple):
    """A letter without its body: numbers are enough to deal with thousands of them."""

    number: int
    replay_count: int


async def matching(found: targets.Target, wanted: Which, *, most: int = LISTED_MAX) -> list[Chosen]:
    """The letters that nobody has dealt with and that the filter means, the oldest of them first."""
    with targets.reading(found) as reading:
        pick, bound = picking(wanted, most)
        return [Chosen(row.seq, row.replay_count) for row in await reading.rows(pick, **bound)]
