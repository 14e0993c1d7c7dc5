"""What is done about dead letters: sent back, put away, or noted as fixed by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.choice import Chosen, filters, given, matching, numbers, which
from penstock.cli.operating import confirm, operating, progress, refuse, yes_option
from penstock.cli.output import Output
from penstock.cli.why import look
from penstock.queues.letters import LISTED_MAX, REPLAY_LIMIT, REPLAYS_MAX, CanaryDied, Which

NAMED = 10  # letters that a sentence names
PORTION = 100  # letters dealt with between two moves of the bar

letters_argument = click.argument("words", metavar="[ID]... [APP | DATABASE]", nargs=-1)


# -- replay -----------------------------------------------------------------------------------------------


@click.command()
@letters_argument
@targets.database_option
@filters("--reason", "--died-of")
@click.option("--all", "everything", is_flag=True, help=f"All that match, up to {LISTED_MAX:,}; alone: of every queue.")
@click.option("--limit", type=click.IntRange(1, LISTED_MAX), help=f"At most so many, {REPLAY_LIMIT} unless --all.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Let so many begin in a second.")
@click.option("--canary", is_flag=True, help="Send one first, and the others only if it is handled.")
@click.option("--force", is_flag=True, help=f"Also those that were replayed {REPLAYS_MAX} times.")
@click.pass_obj
def replay(
    output: Output,
    /,
    words: tuple[str, ...],
    database: str | None,
    everything: bool,
    limit: int | None,
    rate: float | None,
    canary: bool,
    force: bool,
    **chosen: Any,
) -> None:
    """Send dead letters back to their queues, oldest first.

    Name letters, or choose them by what they have in common, or say --all. Each goes back once, with no attempt charged
    and the payload it was last edited to. With --canary a worker has to be running; if the first one dies again the
    others stay where they are, and the exit code is 1.

    \b
    Example:
      penstock dead replay 12 13
      penstock dead replay --queue found --limit 1000 --canary
      penstock dead replay --all --rate 5
    """
    letters, target = given(words)
    wanted = which(chosen)
    _refuse_both(letters, wanted, everything)
    found = targets.find(target, database)
    most = limit if limit is not None else LISTED_MAX if everything else REPLAY_LIMIT
    told = asyncio.run(_replay(output, found, letters, wanted, most, rate, canary=canary, force=force))
    output.show(told, lambda console: console.print(_replayed(told)))


def _refuse_both(letters: list[int | str], wanted: Which, everything: bool = False) -> None:
    filtered = everything or wanted != Which()
    if letters and filtered:
        raise refuse("Name letters, or choose them by options: not both.")
    if not letters and not filtered:
        raise refuse("Say which: numbers from `penstock dead list`, or what they have in common, such as --queue.")


async def _replay(
    output: Output,
    found: targets.Target,
    letters: list[int | str],
    wanted: Which,
    most: int,
    rate: float | None,
    *,
    canary: bool,
    force: bool,
) -> dict[str, Any]:
    async with operating(found) as app:
        if letters:
            choice = [Chosen(each.id, each.replay_count) for each in [await app.dead.get(each) for each in letters]]
        else:
            choice = await matching(found, wanted)
        worn = [] if force else [number for number, replays in choice if replays >= REPLAYS_MAX]
        whole = [number for number, _ in choice if number not in set(worn)]
        going = whole if letters else whole[:most]
        asked, done = len(going), 0
        if canary and going:
            with progress(output, f"waiting for letter {going[0]}, the canary", None):
                try:
                    done = await app.dead.replay(going[:1], canary=True, force=force)
                except CanaryDied as error:
                    if waits := error.facts.get("waits"):
                        raise CanaryDied(str(error), hint=(await look(found, waits))[0][0].finding.reason) from error
                    raise
            going = going[1:]
        # Those of one call begin at the rate that is asked for; a second call would begin at once, beside them.
        at_once = max(1, len(going)) if rate else PORTION
        done += await _in_portions(
            output, "replaying", going, lambda part: app.dead.replay(part, rate=rate, force=force), at_once
        )
        more = 0 if letters else max(0, len(whole) - most)
        return {"replayed": done, "dealt_with_before": asked - done, "left": more, "worn_out": worn}


def _replayed(told: dict[str, Any]) -> str:
    parts = [f"{told['replayed']:,} {_letters(told['replayed'])} went back." + _before(told["dealt_with_before"])]
    if told["left"]:
        parts.append(f"{told['left']:,} more match: say it again, or add --limit or --all.")
    if told["worn_out"]:
        named = ", ".join(str(each) for each in told["worn_out"][:NAMED])
        parts.append(
            f"{len(told['worn_out']):,} stayed, having gone back {REPLAYS_MAX} times before: {named}. --force sends them."
        )
    return " ".join(parts)


def _before(count: int) -> str:
    return f" {count:,} had been dealt with before." if count else ""


# -- discard, fixed ---------------------------------------------------------------------------------------


@click.command()
@letters_argument
@targets.database_option
@filters("--died-of")
@click.option("--reason", "why", metavar="TEXT", required=True, help="Why: somebody may want to read it.")
@click.option("--limit", type=click.IntRange(1, LISTED_MAX), default=LISTED_MAX, show_default=True)
@yes_option
@click.pass_obj
def discard(
    output: Output, /, words: tuple[str, ...], database: str | None, why: str, limit: int, yes: bool, **chosen: Any
) -> None:
    """Put dead letters away for good, with a reason.

    They stay readable (`penstock dead list --all`) and are never replayed. More than one is asked for first; `--yes`
    skips that.

    \b
    Example:
      penstock dead discard 12 --reason 'test data'
      penstock dead discard --queue found --died-of permanent --reason 'shop closed' --yes
    """
    letters, target = given(words)
    wanted = which(chosen)
    _refuse_both(letters, wanted)
    found = targets.find(target, database)
    if letters:
        going = asyncio.run(_numbers(found, letters))
    else:
        going = [each.number for each in asyncio.run(matching(found, wanted, most=limit))]
    if len(going) > 1:
        confirm(output, f"discard {len(going):,} dead letters", yes=yes)
    done = asyncio.run(_resolve(output, found, "discarding", going, lambda app, part: app.dead.discard(part, why)))
    sentence = f"{done:,} {_letters(done)} put away.{_before(len(going) - done)}"
    output.show({"discarded": done}, lambda console: console.print(sentence))


@click.command()
@letters_argument
@targets.database_option
@click.option("--note", metavar="TEXT", required=True, help="What was done: somebody may want to read it.")
@click.pass_obj
def fixed(output: Output, words: tuple[str, ...], database: str | None, note: str) -> None:
    """Note that somebody did by hand what dead letters were for.

    They are never replayed.

    \b
    Example:
      penstock dead fixed 12 13 --note 'entered by hand'
    """
    letters, target = given(words)
    if not letters:
        raise refuse("Say which: numbers from `penstock dead list`.")
    found = targets.find(target, database)
    going = asyncio.run(_numbers(found, letters))
    done = asyncio.run(_resolve(output, found, "noting", going, lambda app, part: app.dead.mark_fixed(part, note)))
    sentence = f"{done:,} {_letters(done)} noted as fixed.{_before(len(going) - done)}"
    output.show({"fixed": done}, lambda console: console.print(sentence))


async def _numbers(found: targets.Target, letters: list[int | str]) -> list[int]:
    async with operating(found) as app:
        return await numbers(app, letters)


async def _resolve(
    output: Output,
    found: targets.Target,
    doing: str,
    going: list[int],
    deal: Callable[[App, list[int]], Awaitable[int]],
) -> int:
    async with operating(found) as app:
        return await _in_portions(output, doing, going, lambda part: deal(app, part), PORTION)


async def _in_portions(
    output: Output, doing: str, going: list[int], deal: Callable[[list[int]], Awaitable[int]], portion: int
) -> int:
    done = 0
    with progress(output, f"{doing} dead letters", len(going)) as moved:
        for start in range(0, len(going), portion):
            done += await deal(going[start : start + portion])
            moved(start + portion)
    return done


def _letters(count: int) -> str:
    return "letter" if count == 1 else "letters"
