"""Dead letters: listed, grouped by cause, edited, sent back or discarded. `app.dead` is one of these."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.effects import Bindable, Edit, LetterAction, Replay, Resolve
from penstock.model.envelope import class_named, decoder, encode, replay_id
from penstock.model.errors import BadMessage, NoSuchLetter, PenstockError, TooLarge
from penstock.model.ids import as_text, from_text
from penstock.model.stack import error_line, normalised
from penstock.model.times import from_micros, to_micros
from penstock.queues.queue import Queue
from penstock.runtime.audit import audit, record
from penstock.runtime.engine import Engine
from penstock.runtime.unit import open_unit, require_unit

LISTED_MAX = 10_000
REPLAY_LIMIT = 10
REPLAYS_MAX = 3  # of one message: what died four times wants a person, not another round
FOREVER = 2**31  # replays: longer than any operator waits
PORTION = 500  # letters dealt with in one commit
CANARY_SECONDS = 60.0
EXAMPLES_MAX = 3  # messages that stand for a cause
CANARY_LOOK_SECONDS = 0.25

_COLUMNS = """
select seq, id, handler, queue, type, source, correlation_id, causation_id, replay_of, replay_count, sent_at, body,
  attempts, crashes, reason, error_class, error_message, first_failed_at, failed_at, edited_at, replayed_at, resolved_at,
  resolution, note, hops, depth, flags, traceback
from penstock_dead
"""
_MATCHING = """
(cast(:queue as text) is null or queue = :queue)
and (cast(:type as text) is null or type = :type)
and (cast(:source as text) is null or source = :source)
and (cast(:reason as text) is null or reason = :reason)
and (cast(:since as bigint) is null or failed_at >= :since)
and (cast(:until as bigint) is null or failed_at < :until)
and (
  cast(:text as text) is null
  or exists (
    select 1
    from dead_messages as other
    where other.id = penstock_dead.seq
    and replace(lower(coalesce(other.error_message, '') || other.payload), lower(cast(:text as text)), '')
      <> lower(coalesce(other.error_message, '') || other.payload)
  )
)
and (:resolved = 1 or resolution is null)
"""
# Said outright where it holds: a condition that may be null is no way into the index, and all letters are walked.
_OF_QUEUE = "resolution is null\nand queue = :queue\nand "
_OLDEST_FIRST = "order by failed_at, seq\nlimit :most"
LIST = f"{_COLUMNS}where {_MATCHING}{_OLDEST_FIRST}"
LIST_OF_QUEUE = f"{_COLUMNS}where {_OF_QUEUE}{_MATCHING}{_OLDEST_FIRST}"
# Without bodies: ten thousand letters to send back are no reason to hold ten thousand bodies.
_PICKED = """
select seq, id, handler, queue, replay_of, replay_count, resolution
from penstock_dead
"""
_FEW_REPLAYS = "and replay_count < :replays_under\n"
PICK = f"{_PICKED}where {_MATCHING}{_FEW_REPLAYS}{_OLDEST_FIRST}"
PICK_OF_QUEUE = f"{_PICKED}where {_OF_QUEUE}{_MATCHING}{_FEW_REPLAYS}{_OLDEST_FIRST}"
PICK_ONE = f"{_PICKED}where seq = :letter"
ONE = f"{_COLUMNS}where seq = :letter"
BY_ID = f"{_COLUMNS}where id = :id\norder by seq desc\nlimit 1"
GROUPS = f"""
select queue, type, reason, error_class, error_message, count(*) as letters, min(failed_at) as first_at,
  max(failed_at) as last_at
from penstock_dead
where {_MATCHING}group by queue, type, reason, error_class, error_message
order by letters desc, queue, type, reason, error_class, error_message
limit :most
"""
WAITING = """
select error_class, error_message, traceback
from penstock_messages
where id = :id
and queue = :queue
and handler = :handler
limit 1
"""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is not retried any more, with all that is known about its failure."""

    id: int
    event_id: str
    handler: str
    queue: str
    type: str
    source: str
    correlation_id: str
    causation_id: str | None
    replay_of: str | None
    replay_count: int
    sent_at: datetime
    body: bytes
    attempts: int
    crashes: int
    reason: str
    error_class: str | None
    error_message: str | None
    first_failed_at: datetime | None
    failed_at: datetime
    edited_at: datetime | None
    replayed_at: datetime | None
    resolved_at: datetime | None
    resolution: str | None
    note: str | None
    hops: int
    depth: int
    flags: int
    traceback: str | None

    @property
    def dlq(self) -> str:
        """The name under which it is listed: `found-dlq` for a letter of the queue `found`."""
        return f"{self.queue}-dlq"

    def facts(self) -> dict[str, Any]:
        """The five facts that an alert contains."""
        return {name: getattr(self, name) for name in ("attempts", "queue", "type", "source", "event_id")}


class Group(msgspec.Struct, frozen=True):
    """Dead letters with one cause. `message` has no values in it; `examples` are the most frequent messages with values."""

    queue: str
    type: str
    reason: str
    error_class: str | None
    message: str | None
    letters: int
    first_at: datetime
    last_at: datetime
    examples: list[str]


class DeadLetterFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which dead letters: what is None does not matter. `text` is looked for in errors and bodies."""

    queue: str | None = None
    type: str | None = None
    source: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None

    def bound(self, *, resolved: bool = False, most: int = LISTED_MAX) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("queue", "type", "source", "reason", "text")}
        if named["queue"] is not None:
            named["queue"] = named["queue"].removesuffix("-dlq")
        moments = {
            name: None if at is None else to_micros(at) for name, at in (("since", self.since), ("until", self.until))
        }
        return named | moments | {"resolved": int(resolved), "most": max(0, min(most, LISTED_MAX))}


Letters = DeadLetterFilter | Sequence[int] | int  # a description, numbers, or one number


def picking(which: DeadLetterFilter, limit: int, *, replays_under: int = FOREVER) -> tuple[str, dict[str, Any]]:
    """Return the query for the oldest unresolved letters that match, and its parameters."""
    bound = which.bound(most=limit) | {"replays_under": replays_under}
    return (PICK if bound["queue"] is None else PICK_OF_QUEUE), bound


class _Picked(NamedTuple):
    """What has to be known of a letter to deal with it."""

    id: int
    event_id: bytes
    handler: str
    queue: str
    replay_of: bytes | None
    replay_count: int
    resolution: str | None


class CanaryDied(PenstockError):
    """The first letter died again, so the other letters were not replayed. Fix the cause, then replay again."""


class DeadLetters:
    def __init__(self, opened: Callable[[], Awaitable[Engine]], queues: dict[str, Queue[Any]]) -> None:
        self._opened = opened
        self._queues = queues

    # -- looking ----------------------------------------------------------------------------------------

    async def list(
        self, which: DeadLetterFilter | None = None, *, limit: int = 100, resolved: bool = False
    ) -> Sequence[DeadLetter]:
        """Oldest first; those that were dealt with only if asked for."""
        bound = (which or DeadLetterFilter()).bound(resolved=resolved, most=limit)
        listed = LIST if resolved or bound["queue"] is None else LIST_OF_QUEUE
        engine = await self._opened()
        return [letter_of(row) for row in (await engine.read("", listed, bound, rows_max=LISTED_MAX)).values]

    async def get(self, letter: int | str) -> DeadLetter:
        """By its number, or the last one by the message's id."""
        engine = await self._opened()
        if isinstance(letter, int):
            rows = await engine.read("", ONE, {"letter": letter}, rows_max=1)
        else:
            rows = await engine.read("", BY_ID, {"id": from_text(letter)}, rows_max=1)
        if not rows.values:
            raise NoSuchLetter(f"There is no dead letter {letter}. `penstock dead list` lists all.")
        return letter_of(rows.values[0])

    async def groups(self, which: DeadLetterFilter | None = None) -> Sequence[Group]:
        """Return how many died of each cause, the most frequent first. Messages that differ only in numbers and quoted values
        are one cause; the most frequent of them are its examples."""
        engine = await self._opened()
        found = await engine.read("", GROUPS, (which or DeadLetterFilter()).bound(), rows_max=LISTED_MAX)
        causes: dict[tuple[Any, Any, Any, Any, Any], list[tuple[Any, ...]]] = {}
        for queue, type, reason, error_class, message, *counted in found.values:
            cause = queue, type, reason, error_class, message and normalised(message)
            causes.setdefault(cause, []).append((message, *counted))
        groups = [
            Group(
                *cause,
                sum(letters for _, letters, _, _ in rows),
                from_micros(min(first for _, _, first, _ in rows)),
                from_micros(max(last for *_, last in rows)),
                [f"{message} ({letters:,})" for message, letters, _, _ in rows[:EXAMPLES_MAX]] if rows[0][0] else [],
            )
            for cause, rows in causes.items()
        ]
        return sorted(groups, key=lambda group: -group.letters)

    def payload(self, letter: DeadLetter) -> Any:
        """Its body as its handler would have got it; raises ValueError or a msgspec error where it does not fit."""
        queue = self._queues.get(letter.queue)
        accepted = None if queue is None else (queue.accepts or {}).get(letter.type)
        handlers = () if queue is None else queue.handlers.get(letter.type, ())
        if accepted is None and handlers:
            accepted = handlers[0].payload_class
        return decoder(accepted or class_named(letter.type))(letter.body)

    # -- dealing with them ------------------------------------------------------------------------------

    async def replay(
        self,
        which: Letters,
        *,
        limit: int = REPLAY_LIMIT,
        rate: float | None = None,
        canary: bool = False,
        force: bool = False,
    ) -> int:
        """Sends letters back to their queues, oldest first, at most `limit` of them, and says how many.

        `rate` lets that many begin in a second. With `canary` one goes first, and the rest only if it was handled. A message
        that was replayed three times is left out unless forced."""
        if rate is not None and not 0 < rate < inf:
            raise BadMessage(f"A rate of {rate} letters a second is not possible: it must be more than 0.", rate=rate)
        engine = await self._opened()
        letters = await self._chosen(which, limit, replays_under=FOREVER if force else REPLAYS_MAX)
        if canary and letters:
            await self._send_canary(engine, letters[0])
            return 1 + await self._replay(engine, letters[1:], rate)
        return await self._replay(engine, letters, rate)

    async def _replay(self, engine: Engine, letters: Sequence[_Picked], rate: float | None) -> int:
        now = engine.clock.now()
        wanted = [
            Replay(letter.id, now + (int(index / rate * 1_000_000) if rate else 0))
            for index, letter in enumerate(letters)
        ]
        return await self._carry_out("replay", wanted)

    async def _send_canary(self, engine: Engine, letter: _Picked) -> None:
        if not await self._replay(engine, [letter], None):
            raise NoSuchLetter(f"Dead letter {letter.id} was changed by another operator in the meantime.")
        sent = replay_id(letter.replay_of or letter.event_id, letter.replay_count + 1, letter.id)
        row: dict[str, Bindable] = {"id": sent, "queue": letter.queue, "handler": letter.handler}
        for _ in range(int(CANARY_SECONDS / CANARY_LOOK_SECONDS)):
            waiting: list[Any] = (await engine.read("", WAITING, row, rows_max=1)).values
            if not waiting:
                break
            await asyncio.sleep(CANARY_LOOK_SECONDS)
        else:
            failed = f" Its last attempt failed: {error_line(*waiting[0])}." if waiting[0][0] else ""
            raise CanaryDied(
                f"Letter {letter.id} was replayed as {as_text(sent)} and was not processed within {CANARY_SECONDS:.0f} s; "
                f"the other letters were not replayed.{failed}",
                hint=f"`penstock why {as_text(sent)}` prints what it waits for.",
                waits=None if failed else as_text(sent),
            )
        died: list[Any] = (await engine.read("", BY_ID, {"id": sent}, rows_max=1)).values
        if died:
            again = letter_of(died[0])
            raise CanaryDied(
                f"Letter {letter.id} was replayed and died again ({again.reason}: {again.error_class}: "
                f"{again.error_message}); the other letters were not replayed. Fix the cause, then replay again.",
                letter=again.id,
            )

    async def discard(self, which: Letters, reason: str, *, limit: int = LISTED_MAX) -> int:
        """Deals with letters by leaving them dead, and says how many. They are never replayed."""
        return await self._resolve(which, "discarded", reason, limit)

    async def mark_fixed(self, which: Letters, note: str, *, limit: int = LISTED_MAX) -> int:
        """Resolve the letters as fixed: an operator has done their work by hand."""
        return await self._resolve(which, "fixed", note, limit)

    async def _resolve(self, which: Letters, resolution: str, note: str, limit: int) -> int:
        if not note.strip():
            raise BadMessage("Give a reason: it is stored with the dead letter.")
        wanted = [Resolve(each.id, resolution, note) for each in await self._chosen(which, limit)]
        return await self._carry_out("discard" if resolution == "discarded" else resolution, wanted)

    async def edit(self, letter: int, payload: object) -> None:
        """Gives a letter another body, checked against its queue's type, to be replayed with."""
        found = await self.get(letter)
        body = self._checked(await self._opened(), found, payload)
        if not await self._carry_out("edit", [Edit(letter, body)]):
            raise NoSuchLetter(f"Dead letter {letter} was already {found.resolution} and cannot be edited.")

    def _checked(self, engine: Engine, letter: DeadLetter, payload: object) -> bytes:
        body = payload if isinstance(payload, bytes) else encode(payload)
        most = engine.limits.body_bytes_max - engine.limits.body_overhead_bytes
        if len(body) > most:
            raise TooLarge(
                f"A body of {len(body):,} bytes is too large: at most {most:,}. The letter was not changed.",
                bytes=len(body),
                bytes_max=most,
            )
        try:
            self.payload(msgspec.structs.replace(letter, body=body))
        except Exception as error:  # whatever a class of the user's raises when it is made: it does not fit
            raise BadMessage(
                f"The payload is not a valid {letter.type}: {error}. The letter was not changed.", letter=letter.id
            ) from error
        return body

    async def repair(self, letter: DeadLetter, payload: object, *, flags: int = 0) -> None:
        """Send the letter back to its queue with another payload, in the current unit."""
        engine = await self._opened()
        replay = Replay(letter.id, engine.clock.now(), "fixed", self._checked(engine, letter, payload), flags)
        require_unit(engine.app).effects.append(replay)

    async def _chosen(self, which: Letters, limit: int, *, replays_under: int = FOREVER) -> Sequence[_Picked]:
        """Take all letters that are named by number; of a filter, at most `limit` of the oldest that match."""
        engine = await self._opened()
        if isinstance(which, DeadLetterFilter):
            pick, bound = picking(which, limit, replays_under=replays_under)
            rows = await engine.read("", pick, bound, rows_max=LISTED_MAX)
            return [_Picked(*row) for row in rows.values]
        given: Any = which
        picked = []
        for number in dict.fromkeys([given] if isinstance(given, int | float | str) else given):
            if type(number) is not int:
                raise NoSuchLetter(f"{number!r} is not the number of a dead letter. `penstock dead list` shows them.")
            rows = await engine.read("", PICK_ONE, {"letter": number}, rows_max=1)
            if not rows.values:
                raise NoSuchLetter(f"There is no dead letter {number}. `penstock dead list` lists all.")
            picked.append(_Picked(*rows.values[0]))
        return [letter for letter in picked if letter.resolution is None and letter.replay_count < replays_under]

    async def _carry_out(self, verb: str, wanted: Sequence[LetterAction]) -> int:
        """In commits of a bounded size; a letter that is already resolved is neither changed nor counted."""
        engine = await self._opened()
        done = 0
        for start in range(0, len(wanted), PORTION):
            async with open_unit(engine, None) as unit:
                portion = wanted[start : start + PORTION]
                unit.effects += portion
                letters = [each.letter for each in portion]
                record(unit, audit(engine, f"dead {verb}", "dead", str(letters[0]), letters[0], letters=letters))
            done += unit.answer.letters
        return done


_TIMES = ("sent_at", "first_failed_at", "failed_at", "edited_at", "replayed_at", "resolved_at")
_IDS = ("correlation_id", "causation_id", "replay_of")


def letter_of(row: Sequence[Any]) -> DeadLetter:
    seq, id, *rest = row
    facts = dict(zip(DeadLetter.__struct_fields__[2:], rest, strict=True))
    for name in _TIMES:
        facts[name] = None if facts[name] is None else from_micros(facts[name])
    for name in _IDS:
        facts[name] = None if facts[name] is None else as_text(facts[name])
    return DeadLetter(id=seq, event_id=as_text(id), **facts)
