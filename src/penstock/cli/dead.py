"""`penstock dead`: messages that will not be retried: listed, grouped by cause, edited, replayed, discarded or fixed."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import click

from penstock.app import App
from penstock.cli.command import (
    Noun,
    beside,
    confirm,
    limit_option,
    looking,
    operating,
    operating_on,
    refuse,
    this_output,
    yes_option,
)
from penstock.cli.output import Answer, Facts, Listed, Title, Verbatim, progress
from penstock.cli.trace import waits_for
from penstock.model.errors import BadConfig, BadMessage, BadParameter
from penstock.model.strict_json import BadJson, parse
from penstock.model.times import from_micros, parse_span
from penstock.queues.letters import (
    LISTED_MAX,
    REPLAY_LIMIT,
    REPLAYS_MAX,
    CanaryDied,
    DeadLetter,
    DeadLetterFilter,
    picking,
)
from penstock.views import dead as view
from penstock.views.dead import indented
from penstock.views.observer import Observer
from penstock.views.view import Row, View, counted

NAMED = 10  # letters that a sentence names
PAYLOAD_SHOWN = 4_000  # characters; `--json` has all of them
PLAIN_TYPES = ("text", "bytes")  # bodies that are not JSON
PORTION = 100  # letters handled between two moves of the bar
NUMBER = re.compile(r"#?([0-9]{1,18})")
ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def filters(*reason_names: str) -> Callable[[Any], Any]:
    """The options that choose letters, each of which is a field of `DeadLetterFilter`."""
    reasons = "exhausted, permanent, malformed, unknown_type ..."
    options = [
        click.option("--queue", metavar="NAME", help="Of this queue."),
        click.option("--type", metavar="TYPE", help="Messages of this type."),
        click.option("--source", metavar="APP", help="Sent by this app."),
        click.option(*reason_names, "reason", metavar="REASON", help=reasons),
        click.option("--since", metavar="WHEN", help="Died since then: 2h (ago), 2026-11-15, 2026-11-15T09:30."),
        click.option("--until", metavar="WHEN", help="Died before then."),
        click.option("--text", metavar="TEXT", help="With this text in the error or the body."),
    ]

    def apply(command: Any) -> Any:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return apply


def which(given: dict[str, Any]) -> DeadLetterFilter:
    """Return the filter that the options make."""
    return DeadLetterFilter(**{**given, **{name: given[name] and moment(given[name]) for name in ("since", "until")}})


def moment(text: str) -> datetime:
    """Return a date and time, in UTC unless it names a zone, or a span before now."""
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        return from_micros(time.time_ns() // 1_000 - int(parse_span(text) * 1_000_000))
    except BadConfig:
        wrong = f"{text!r} is not a time. Write 2026-11-15, 2026-11-15T09:30, or a span before now like 2h."
        raise refuse(wrong) from None


def numbered(word: str) -> int | str:
    """Return the number of a letter, or the id of its message."""
    if number := NUMBER.fullmatch(word):
        return int(number[1])
    if ID.fullmatch(word):
        return word
    raise refuse(f"{word!r} is not a dead letter. `penstock dead list` shows their numbers.")


@click.group(cls=Noun)
def dead() -> None:
    """List dead letters, and edit, replay or discard them.

    A message that failed too often, or that can never succeed, becomes a dead letter with a number. Find the cause, correct
    it, replay one letter, then the rest.

    Example:
      penstock dead groups
      penstock dead show 12
      penstock dead replay --queue found --canary --limit 1000
      penstock dead discard --queue found --until 2026-11-01 --reason 'closed'
    """


@dead.command("list")
@looking
@filters("--reason", "--died-of")
@limit_option(LISTED_MAX)
@click.option("--all", "resolved", is_flag=True, help="Also those that were replayed, discarded or fixed.")
async def list_letters(observer: Observer, limit: int, resolved: bool, **given: Any) -> Answer:
    """List dead letters that wait for a decision, oldest first.

    Example:
      penstock dead list
      penstock dead list --queue found --since 2h
      penstock dead list --reason permanent --text 'no such page' --json
    """
    wanted = which(given)
    rows = await view.DEAD.read(observer, wanted, limit=limit, resolved=resolved)
    more = f"The oldest {limit:,} are shown; --limit shows more. Count all with: penstock dead groups"
    if len(rows) < limit:
        more = f"{counted(len(rows), 'dead letter')}. See one with: penstock dead show ID"
    return _found(view.DEAD, rows, wanted, more)


@dead.command()
@looking
@filters("--reason", "--died-of")
async def groups(observer: Observer, **given: Any) -> Answer:
    """Count dead letters by cause, the most frequent first.

    Example:
      penstock dead groups
      penstock dead groups --since 1d --json
    """
    wanted = which(given)
    rows = await view.GROUPS.read(observer, wanted)
    next_step = f"List them with: penstock dead list --queue {rows[0]['queue']}" if rows else ""
    return _found(view.GROUPS, rows, wanted, next_step)


def _found(shown: View, rows: list[Row], wanted: DeadLetterFilter, more: str) -> Answer:
    none = "No dead letters match." if wanted != DeadLetterFilter() else shown.empty
    return Answer({shown.name: rows}, *([Listed(shown, rows), "", more] if rows else [none]))


@dead.command()
@click.argument("id", metavar="ID")
@looking
async def show(observer: Observer, id: str) -> Answer:
    """Show everything about one dead letter: error, history and payload.

    ID is its number, or the id of the message, which then means its last death.

    Example:
      penstock dead show 12
      penstock dead show 019a8c3e-7f00-7abc-8def-0123456789ab market.db --json
    """
    letter = await view.letters(observer).get(numbered(id))
    row, text = view.row_of(letter), indented(letter.body)
    parts: list[object] = [
        Title(f"dead letter {letter.id}, {letter.type} of queue {letter.queue}", letter.resolution or "")
    ]
    parts += ["", Facts(view.ONE, row)]
    if letter.traceback:
        parts += ["", Title("traceback"), Verbatim(letter.traceback.rstrip())]
    parts += ["", Title("payload" + (" (edited)" if letter.edited_at else "")), Verbatim(text[:PAYLOAD_SHOWN])]
    if len(text) > PAYLOAD_SHOWN:
        parts.append(f"... and {len(text) - PAYLOAD_SHOWN:,} more characters; --json has all of them.")
    if letter.resolution is None:
        parts += [
            "",
            f"Correct it with: penstock dead edit {letter.id}",
            f"Retry it with: penstock dead replay {letter.id}",
        ]
    return Answer(row, *parts)


# -- edit -------------------------------------------------------------------------------------------------


@dead.command()
@click.argument("id", metavar="ID")
@operating
@click.option("--body", metavar="JSON", help="The new payload; `-` reads it from stdin. Without it an editor opens.")
async def edit(app: App, id: str, body: str | None) -> Answer:
    """Change the payload with which a dead letter is replayed.

    Without --body it opens in $EDITOR. Name the app (market.py) to check it against the class of the message; with the
    database alone it only has to be JSON. The letter stays dead until it is replayed.

    Example:
      penstock dead edit 12 market.py
      penstock dead edit 12 market.py --body '{"url": "https://shop.example/"}'
    """
    if body is None and (this_output().json or not sys.stdin.isatty()):
        raise refuse("There is no terminal to open an editor in. Give the payload: --body JSON, or --body - for stdin.")
    letter = await app.dead.get(numbered(id))
    if body is None:
        await _edit_in_editor(app, letter)
    else:
        new = sys.stdin.buffer.read() if body == "-" else body.encode("utf-8", "surrogateescape")
        await app.dead.edit(letter.id, _checked(letter, new))
    queue = app.queues.get(letter.queue)
    checked = queue is not None and letter.type in {*(queue.accepts or ()), *queue.handlers}
    parts = [f"Changed the payload of dead letter {letter.id}. Retry it with: penstock dead replay {letter.id}"]
    if not checked:
        parts.append("It was not checked against the class of the message, because no app was named that knows it.")
    return Answer({"id": letter.id, "event_id": letter.event_id, "edited": True, "checked": checked}, *parts)


async def _edit_in_editor(app: App, letter: DeadLetter) -> None:
    text = indented(letter.body)
    while True:
        edited = click.edit(text, extension=".json")
        if edited is None or edited == text:
            raise refuse("The editor was closed without a change. The letter is as it was.")
        try:
            await app.dead.edit(letter.id, _checked(letter, edited.encode()))
            return
        except (BadMessage, BadParameter) as error:
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


# -- replay, discard, fixed -------------------------------------------------------------------------------


@dead.command()
@operating_on("[ID]...", least=0)
@filters("--reason", "--died-of")
@click.option("--all", "everything", is_flag=True, help=f"All that match, up to {LISTED_MAX:,}; alone: of every queue.")
@click.option(
    "--limit", type=click.IntRange(1, LISTED_MAX), help=f"The maximum number of letters, {REPLAY_LIMIT} unless --all."
)
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="The maximum number of letters per second.")
@click.option("--canary", is_flag=True, help="Replay one first, and the others only if it succeeds.")
@click.option("--force", is_flag=True, help=f"Also replay letters that were replayed {REPLAYS_MAX} times.")
async def replay(
    app: App,
    names: list[str],
    everything: bool,
    limit: int | None,
    rate: float | None,
    canary: bool,
    force: bool,
    **given: Any,
) -> Answer:
    """Send dead letters back to their queues, oldest first.

    Name letters, select them with the options below, or use --all. Each is sent back once, with no attempt charged and
    with its edited payload. With --canary a worker has to be running; if the first letter dies again the others
    stay where they are, and the exit code is 1.

    Example:
      penstock dead replay 12 13
      penstock dead replay --queue found --limit 1000 --canary
      penstock dead replay --all --rate 5
    """
    most = limit if limit is not None else LISTED_MAX if everything else REPLAY_LIMIT
    chosen = await _chosen(app, names, which(given), everything=everything)
    worn = [number for number, replays in chosen if replays >= REPLAYS_MAX and not force]
    whole = [number for number, _ in chosen if number not in set(worn)]
    going = whole if names else whole[:most]
    asked, done = len(going), 0
    if canary and going:
        with progress(this_output(), f"waiting for dead letter {going[0]}, the canary", None):
            try:
                done = await app.dead.replay(going[:1], canary=True, force=force)
            except CanaryDied as error:
                if waits := error.facts.get("waits"):
                    raise CanaryDied(str(error), hint=await waits_for(app, waits)) from error
                raise
        going = going[1:]
    # Those of one call start at the rate that is asked for; a second call would start at once, beside them.
    at_once = max(1, len(going)) if rate else PORTION
    done += await _in_portions("replaying", going, lambda part: app.dead.replay(part, rate=rate, force=force), at_once)
    left = 0 if names else max(0, len(whole) - most)
    parts = [f"Replayed {counted(done, 'dead letter')}.{_before(asked - done)}"]
    if left:
        parts.append(f"{left:,} more match: repeat the command, or add --limit or --all.")
    if worn:
        named = ", ".join(str(each) for each in worn[:NAMED])
        parts.append(f"{len(worn):,} stayed, replayed {REPLAYS_MAX} times before: {named}. Add --force to replay them.")
    if done:
        parts.append("See how they fare with: penstock dead list")
    return Answer(
        {"replayed": done, "dealt_with_before": asked - done, "left": left, "worn_out": worn}, " ".join(parts)
    )


@dead.command()
@operating_on("[ID]...", least=0)
@filters("--died-of")
@click.option("--reason", "why", metavar="TEXT", required=True, help="Why they are discarded; it is kept with them.")
@limit_option(LISTED_MAX, LISTED_MAX)
@yes_option
async def discard(app: App, names: list[str], why: str, limit: int, yes: bool, **given: Any) -> Answer:
    """Discard dead letters for good, with a reason.

    They stay readable (`penstock dead list --all`) and are never replayed. More than one needs a yes, or --yes.

    Example:
      penstock dead discard 12 --reason 'test data'
      penstock dead discard --queue found --reason 'shop closed' --yes
    """
    going = [number for number, _ in (await _chosen(app, names, which(given)))]
    going = going if names else going[:limit]
    if len(going) > 1:
        confirm(this_output(), f"discard {counted(len(going), 'dead letter')}", yes=yes)
    done = await _in_portions("discarding", going, lambda part: app.dead.discard(part, why))
    after = " They stay readable with: penstock dead list --all" if done else ""
    return Answer({"discarded": done}, f"Discarded {counted(done, 'dead letter')}.{_before(len(going) - done)}{after}")


@dead.command()
@operating_on("ID...")
@click.option("--note", metavar="TEXT", required=True, help="What was done; it is kept with them.")
async def fixed(app: App, names: list[str], note: str) -> Answer:
    """Record that what dead letters were for was done by hand.

    They are never replayed.

    Example:
      penstock dead fixed 12 13 --note 'entered by hand'
    """
    going = [number for number, _ in await _chosen(app, names, DeadLetterFilter())]
    done = await _in_portions("recording", going, lambda part: app.dead.mark_fixed(part, note))
    return Answer({"fixed": done}, f"Recorded {counted(done, 'dead letter')} as fixed.{_before(len(going) - done)}")


async def _chosen(
    app: App, names: Sequence[str], wanted: DeadLetterFilter, *, everything: bool = False
) -> list[tuple[int, int]]:
    """Return each letter once, as its number and how often it was replayed: by name, or the oldest that match."""
    filtered = everything or wanted != DeadLetterFilter()
    if names and filtered:
        raise refuse("Name letters, or choose them by options: not both.")
    if names:
        found = [await app.dead.get(each) for each in [numbered(name) for name in names]]
        return list({letter.id: (letter.id, letter.replay_count) for letter in found}.values())
    if not filtered:
        raise refuse(
            "Name letters by their numbers in `penstock dead list`, or choose them by an option such as --queue."
        )
    pick, bound = picking(wanted, LISTED_MAX)
    with beside(app) as observer:
        return [(row.seq, row.replay_count) for row in await observer.rows(pick, **bound)]


async def _in_portions(
    doing: str, going: list[int], handle: Callable[[list[int]], Awaitable[int]], portion: int = PORTION
) -> int:
    done = 0
    with progress(this_output(), f"{doing} dead letters", len(going)) as moved:
        for start in range(0, len(going), portion):
            done += await handle(going[start : start + portion])
            moved(start + portion)
    return done


def _before(count: int) -> str:
    return f" {count:,} had been resolved before." if count else ""
