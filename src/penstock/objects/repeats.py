"""A call that a message makes again when it is delivered again: it has the same key, and gets the stored answer."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import Any, get_type_hints

import msgspec

from penstock.contracts.effects import OnceKey
from penstock.model.errors import BadMessage
from penstock.runtime.engine import Engine
from penstock.runtime.unit import Unit, current_unit

COUNTED_MIN = 1_000  # units whose calls are counted before those that have ended are forgotten


class Repeats:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Calls of the units that are open, and of some that were.
        self._counted: dict[int, tuple[Unit, Counter[str]]] = {}
        self._counted_max = COUNTED_MIN

    def key_of(
        self, key: tuple[str, str], method: str, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> OnceKey | None:
        """The same for the n-th such call of every delivery of a message; outside a handler a call has no key."""
        unit = current_unit.get()
        if unit is None or unit.engine is not self._engine:
            return None
        if unit.delivery is not None:
            if unit.key is None:
                return None  # saved midway without a key: as all of it, the call happens again on a repeat
            scope, before = unit.delivery.origin + unit.delivery.handler.encode(), f"{unit.key}>" if unit.key else ""
        elif unit.once is not None:
            scope, before = unit.once.scope, f"{unit.once.key}>"
        else:
            return None
        digest = blake2b(encoded([arguments, named], method), digest_size=8).hexdigest()
        call = f"{before}{'/'.join((*key, method, digest))}"
        return OnceKey(scope, f"{call}#{self._nth(unit, call)}")

    def _nth(self, unit: Unit, call: str) -> int:
        """Such calls alone are counted: a handler may make the others in another order the next time."""
        if len(self._counted) >= self._counted_max:
            self._counted = {id(each): (each, calls) for each, calls in self._counted.values() if not each.closed}
            self._counted_max = max(COUNTED_MIN, 2 * len(self._counted))
        _, calls = self._counted.setdefault(id(unit), (unit, Counter()))
        calls[call] += 1
        return calls[call]


def answer(stored: bytes, event: Any) -> Any:
    """Of the kind that the event says it returns, where that can be made of what was stored."""
    try:
        return msgspec.json.decode(stored, type=get_type_hints(event)["return"])
    except (KeyError, NameError, TypeError, msgspec.ValidationError):
        return msgspec.json.decode(stored)


def encoded(value: object, method: str) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadMessage(f"A value of the call {method!r} cannot be stored: {error}. Use plain values.") from error
