"""Who operates the engine: the command line and the HTTP server name the operator, administrative methods record it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from penstock.contracts.audit import Audit, Key
from penstock.model.ids import derived
from penstock.runtime.unit import Unit, current_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine


class Operator:
    """The person or token behind one command or one request."""

    def __init__(self, name: str, origin: str) -> None:
        self.name = name
        self.origin = origin
        self.operation = b""


_operator: ContextVar[Operator | None] = ContextVar("penstock_operator", default=None)


@contextmanager
def operated_by(name: str, origin: str) -> Iterator[None]:
    """Record administrative operations inside this block under the operator's name."""
    before = _operator.set(Operator(name, origin))
    try:
        yield
    finally:
        _operator.reset(before)


def audit(engine: Engine, verb: str, kind: str, name: str, key: Key | None = None, **details: Any) -> Audit | None:
    """Return the audit of an operation; None where no operator is behind it, as in a handler."""
    operator, unit = _operator.get(), current_unit.get()
    if operator is None or (unit is not None and unit.origin is not None):
        return None
    operator.operation = operator.operation or engine.ids.new()
    # One command replays letters in several commits: all of them share a row.
    id = derived(operator.operation, verb, kind, "" if kind == "dead" else name)
    now = engine.clock.now()
    return Audit(id, now, operator.name, operator.origin, verb, kind, name, name if key is None else key, details)


def record(unit: Unit, audit: Audit | None) -> None:
    """Write the audit in the commit of this unit."""
    if audit is not None:
        unit.effects.append(audit)
