"""Blocking work for async handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a blocking function in a thread and waits for it. The function must not write or send: those join the unit
    of the handler that waits here."""
    return await asyncio.to_thread(function, *args, **kwargs)
