"""Writes the audit of an operation in the transaction of its effect: what was there before, and what is there after."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from penstock.contracts.audit import Audit
from penstock.contracts.effects import LetterAction, SealedUnit
from penstock.contracts.ledger import Committed
from penstock.model.redaction import without_secrets
from penstock.storage.session import Session

T = TypeVar("T")
State = dict[str, Any]

COLUMNS = {  # of the statements in audit.sql
    "queue": ("paused", "parallel_tuned", "rate_tuned"),
    "cron": ("paused",),
    "run": ("state", "reason", "generation"),
    "controller": ("state",),
    "dead": ("resolution", "note", "replay_count", "body"),
}
VALUE_LENGTH_MAX = 500  # characters of one value as JSON
VALUES_MAX = 20
NAME_LENGTH_MAX = 300


def look(session: Session, audit: Audit) -> State:
    """Read what is kept about the thing that the operation changes; empty where it is not there."""
    columns = COLUMNS.get(audit.kind, ())
    rows: list[Any] = session.rows(f"audit.{audit.kind}", {"key": audit.key}) if columns else []
    found: State = dict(zip(columns, rows[0], strict=True)) if rows else {}
    if audit.kind == "controller" and found:
        found = msgspec.json.decode(found["state"])
    return found


def note(session: Session, audit: Audit, before: State, count: int) -> None:
    """Insert the row, or add to it. An operation that changed nothing leaves none."""
    after = look(session, audit)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not count or not (changed or audit.details):
        return
    row = {
        **audit._asdict(),
        "name": audit.name[:NAME_LENGTH_MAX],
        "before": _text({name: before[name] for name in changed if name in before}),
        "after": _text(audit.details | {name: after[name] for name in changed if name in after}),
        "count": count,
    }
    del row["key"], row["details"]
    session.change("audit.note", row)


def audited(session: Session, work: Callable[[], T]) -> Callable[[], T]:
    """The work of a transaction, with the audit that the session carries."""
    audit = session.audit
    if audit is None:
        return work

    def both() -> T:
        before = look(session, audit)
        result = work()
        note(session, audit, before, int(result) if isinstance(result, int) else int(bool(result)))
        return result

    return both


def carry(session: Session, audit: Audit | None, work: Callable[[], T]) -> T:
    """Run work whose transactions write this audit, if there is one."""
    session.audit = audit
    try:
        return work()
    finally:
        session.audit = None


def note_unit(session: Session, audit: Audit, before: State, unit: SealedUnit, committed: Committed) -> None:
    """Note the operation that a unit carries out: as many as the dead letters it dealt with, or the messages it sent."""
    acts = any(isinstance(effect, LetterAction) for effect in unit.effects)
    count = committed.answer(unit).letters if acts else max(1, len(unit.sends()))
    note(session, audit, before, count)


def _text(values: State) -> str | None:
    shown = {name: _bounded(value) for name, value in [*values.items()][:VALUES_MAX]}
    return msgspec.json.encode(shown).decode() if shown else None


def _bounded(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        value = bytes(value)
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(value)
    value = without_secrets(value)
    text = repr(value) if isinstance(value, bytes) else msgspec.json.encode(value).decode()
    return value if len(text) <= VALUE_LENGTH_MAX and not isinstance(value, bytes) else text[:VALUE_LENGTH_MAX] + "..."
