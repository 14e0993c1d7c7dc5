"""Dead letters: buried in the commit that takes them from their queue, and dug up in the commit that sends them back."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.contracts.deaths import Death
from penstock.contracts.ledger import Also, Edit, Replay, Resolve
from penstock.model.envelope import replay_id
from penstock.model.ids import derived
from penstock.model.message import KEYED, checksum
from penstock.storage.sqlite.sending import SQL as SENDING
from penstock.storage.sqlite.session import Session
from penstock.storage.sqlite.tally import DEAD, PURGED, SENT, Tally
from penstock.storage.statements import load

SQL = load("penstock.storage.sqlite", "dead.sql")
NOTICE_TYPE = "message.died"


def bury(session: Session, facts: dict[str, Any], tally: Tally, *, now: int) -> bool:
    """Makes a dead letter of a row that is still held under its token; false if it is not."""
    execute = session.connection.execute
    buried: list[Any] = execute(SQL["bury"], facts).fetchall()
    if not buried:
        return False
    ((letter, id, queue, correlation_id, hops, depth, body_bytes, type_, source, attempts, reason, error),) = buried
    execute(SQL["remove"], {"seq": facts["seq"], "token": facts["token"]})
    tally.left(queue, DEAD, body_bytes)
    tally.deaths.append(Death(queue, id, type_, source, attempts, reason, error, correlation_id))
    _give_notice(session, letter, id, queue, (correlation_id, hops, depth), tally, now)
    return True


def _give_notice(
    session: Session, letter: int, id: bytes, queue: str, chain: tuple[bytes, int, int], tally: Tally, now: int
) -> None:
    """Where somebody handles dead letters of this queue, each death is a message to him, in the same commit. It goes on
    with the chain of what died, so that a handler that sends the same again cannot go round for ever."""
    correlation_id, hops, depth = chain
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
        "now": now,
        "checksum": checksum(notice_id, body),
        "body": body,
    }
    session.connection.execute(SQL["give_notice"], notice)
    if session.connection.changes():
        tally.entered(f"{queue}-dlq", len(body), now)


def exhume(session: Session, also: Also, tally: Tally, *, now: int) -> None:
    """Carries out what a unit wants done with dead letters. One that somebody else has dealt with is left alone."""
    also.resolved = 0
    for wanted in also.letters:
        match wanted:
            case Replay():
                done = _replay(session, wanted, tally, now)
            case Resolve():
                done = _resolve(session, wanted, tally, now)
            case Edit():
                done = _edit(session, wanted, now)
        also.resolved += done


def _replay(session: Session, wanted: Replay, tally: Tally, now: int) -> bool:
    execute = session.connection.execute
    found: list[Any] = execute(SQL["letter"], {"letter": wanted.letter}).fetchall()
    if not found:
        return False
    ((id, queue, type, source, replay_of, replay_count, body),) = found
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
    }
    execute(SENDING["note_seen"], {"id": new_id, "queue": queue, "type": type, "source": source, "now": now})
    execute(SQL["replay"], facts)
    execute(SQL["resolve"], {"letter": wanted.letter, "resolution": wanted.resolution, "note": None, "now": now})
    tally.entered(queue, len(body), wanted.due, sent=0)
    tally.of(queue)[DEAD] -= 1
    return True


def _resolve(session: Session, wanted: Resolve, tally: Tally, now: int) -> bool:
    found: list[Any] = session.connection.execute(SQL["letter"], {"letter": wanted.letter}).fetchall()
    if not found:
        return False
    queue = found[0][1]
    resolved = {"letter": wanted.letter, "resolution": wanted.resolution, "note": wanted.note, "now": now}
    session.connection.execute(SQL["resolve"], resolved)
    counts = tally.of(queue)
    counts[DEAD] -= 1
    counts[PURGED] += 1
    return True


def _edit(session: Session, wanted: Edit, now: int) -> bool:
    found: list[Any] = session.connection.execute(SQL["letter"], {"letter": wanted.letter}).fetchall()
    if not found:
        return False
    edited = {"letter": wanted.letter, "body": wanted.body, "now": now, "checksum": checksum(found[0][0], wanted.body)}
    session.connection.execute(SQL["edit"], edited)
    return True


def split(session: Session, seq: int, token: int, handlers: tuple[str, ...], tally: Tally, *, now: int) -> bool:
    """One row becomes one per handler, all of them waiting; false if the row is not held any more."""
    execute = session.connection.execute
    found: list[Any] = execute(SQL["splitting"], {"seq": seq, "token": token}).fetchall()
    if not found:
        return False
    ((queue, body_bytes),) = found
    for handler in handlers:
        execute(SQL["split"], {"seq": seq, "token": token, "handler": handler, "now": now})
        if session.connection.changes():
            tally.entered(queue, body_bytes, now)
    execute(SQL["remove"], {"seq": seq, "token": token})
    tally.entered(queue, -body_bytes, now, sent=0)
    tally.of(queue)[SENT] -= 1
    return True
