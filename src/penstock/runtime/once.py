"""Work that is done once per message, however often its handler runs again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from penstock.model.errors import BadMessage
from penstock.runtime.engine import Engine
from penstock.runtime.unit import once_key, open_unit


async def run_once(engine: Engine, key: str, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    scoped = once_key(engine, key)
    saved = await engine.find_once(scoped)
    if saved is not None:
        return msgspec.json.decode(saved)
    async with open_unit(engine, key) as unit:
        result = await function(*arguments)
        try:
            unit.once_result = msgspec.json.encode(result)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise BadMessage(
                f"The result of {getattr(function, '__qualname__', function)} cannot be saved under {key!r}: {error}. "
                "Return plain values.",
                key=key,
            ) from error
    # What comes back is what a repeat would give: the stored form, also when another saved it first.
    stored = await engine.find_once(scoped) if unit.repeated else unit.once_result
    return None if stored is None else msgspec.json.decode(stored)
