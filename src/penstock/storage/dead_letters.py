"""Dead letters: stored in the commit that takes them from their queue, replayed in the commit that sends them again."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.contracts.effects import Edit, LetterAction, Replay, Resolve
from penstock.contracts.ledger import Death
from penstock.model.envelope import replay_id
from penstock.model.ids import derived
from penstock.model.loops import begin
from penstock.model.message import FLAGS, KEYED, checksum
from penstock.model.outcome import Again, Dead
from penstock.storage.session import Session
from penstock.storage.tally import DEAD, PURGED, SENT, Tally

NOTICE_TYPE = "message.died"


def settle_failure(
    session: Session,
    seq: int,
    token: int,
    settlement: Again | Dead,
    tally: Tally,
    *,
    now: int,
    number: int,
    crashed: int = 0,
    rounds: int = 0,
) -> bool:
    """Let a row that is held under its token wait, or make a dead letter of it. Return false if it is not held."""
    failure = settlement.failure
    facts: dict[str, Any] = {
        "seq": seq,
        "token": token,
        "now": now,
        "crashed": crashed,
        "charged": int(settlement.charged),
        "error_class": failure.error_class if failure else None,
        "error_message": failure.message if failure else None,
        "traceback": failure.traceback if failure else None,
    }
    if isinstance(settlement, Dead):
        return add_dead_letter(session, facts | {"reason": settlement.reason}, tally, now=now)
    due = now + int(settlement.seconds * 1_000_000)
    again = {"number": number, "due": due, "failed": int(settlement.charged), "rounds": rounds}
    return session.change("ledger.settle_again", facts | again) == 1


def add_dead_letter(session: Session, facts: dict[str, Any], tally: Tally, *, now: int) -> bool:
    """Makes a dead letter of a row that is still held under its token; false if it is not."""
    added = session.rows("dead.add", facts)
    if not added:
        return False
    ((letter, id, queue, correlation_id, hops, depth, flags, body, type_, source, attempts, reason, error),) = added
    session.change("dead.remove", {"seq": facts["seq"], "token": facts["token"]})
    tally.left(queue, DEAD, len(body))
    tally.deaths.append(Death(queue, id, type_, source, attempts, reason, error, correlation_id))
    loop = flags - (flags & FLAGS) or begin(type_, body, now=now)
    _give_notice(session, letter, id, queue, (correlation_id, hops, depth, loop), tally, now)
    return True


def _give_notice(
    session: Session, letter: int, id: bytes, queue: str, chain: tuple[bytes, int, int, int], tally: Tally, now: int
) -> None:
    """Send a message to the dead-letter handler of this queue, if it has one, in the same commit. It continues the chain
    of the dead message, so that a handler that sends the same again cannot do so for ever."""
    correlation_id, hops, depth, loop = chain
    body = msgspec.json.encode({"letter": letter})
    notice_id = derived(id, "died", str(letter))
    notice = {
        "id": notice_id,
        "queue": queue,
        "type": NOTICE_TYPE,
        "correlation_id": correlation_id,
        "causation_id": id,
        "hops": hops,
        "depth": depth,
        "flags": loop,
        "now": now,
        "checksum": checksum(notice_id, body),
        "body": body,
    }
    if session.change("dead.give_notice", notice):
        tally.entered(f"{queue}-dlq", len(body), now)


def apply_action(session: Session, wanted: LetterAction, tally: Tally, *, now: int) -> bool:
    """Carry out what a unit wants done with a dead letter; false where it is resolved already."""
    found = session.rows("dead.letter", {"letter": wanted.letter})
    if not found:
        return False
    id, queue, *_ = found[0]
    match wanted:
        case Replay():
            _replay(session, wanted, found[0], tally, now)
        case Resolve(letter, resolution, note):
            session.change("dead.resolve", {"letter": letter, "resolution": resolution, "note": note, "now": now})
            counts = tally.of(queue)
            counts[DEAD] -= 1
            counts[PURGED] += 1
        case Edit(letter, body):
            edited = {"letter": letter, "body": body, "now": now, "checksum": checksum(id, body)}
            session.change("dead.edit", edited)
    return True


def _replay(session: Session, wanted: Replay, found: tuple[Any, ...], tally: Tally, now: int) -> None:
    id, queue, type, source, replay_of, replay_count, body = found
    origin = replay_of or id
    new_id = replay_id(origin, replay_count + 1, wanted.letter)
    body = wanted.body if wanted.body is not None else body
    facts = {
        "letter": wanted.letter,
        "id": new_id,
        "replay_of": origin,
        "body": body,
        "checksum": checksum(new_id, body),
        "due": wanted.due,
        "flags": wanted.flags | KEYED,
        "kept": FLAGS,
    }
    session.change("sends.note_seen", {"id": new_id, "queue": queue, "type": type, "source": source, "now": now})
    session.change("dead.replay", facts)
    resolved = {"letter": wanted.letter, "resolution": wanted.resolution, "note": None, "now": now}
    session.change("dead.resolve", resolved)
    tally.entered(queue, len(body), wanted.due, sent=0)
    tally.of(queue)[DEAD] -= 1


def split(session: Session, seq: int, token: int, handlers: tuple[str, ...], tally: Tally, *, now: int) -> bool:
    """One row becomes one per handler, all of them waiting; false if the row is not held any more."""
    found = session.rows("dead.splitting", {"seq": seq, "token": token})
    if not found:
        return False
    ((queue, body_bytes),) = found
    for handler in handlers:
        if session.change("dead.split", {"seq": seq, "token": token, "handler": handler, "now": now}):
            tally.entered(queue, body_bytes, now)
    session.change("dead.remove", {"seq": seq, "token": token})
    tally.entered(queue, -body_bytes, now, sent=0)
    tally.of(queue)[SENT] -= 1
    return True
