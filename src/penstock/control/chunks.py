"""Runs items in chunks: so many at once, a pause between chunks, and one answer per item in the order they came in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Fulfilled(Generic[Value]):
    value: Value


@dataclass(frozen=True, slots=True)
class Rejected:
    error: Exception


async def in_chunks(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Value]],
    *,
    concurrency: int = 8,
    delay_seconds: float = 0.2,
) -> list[Fulfilled[Value] | Rejected]:
    """A failing item harms no other. A cancelled one does, since it is the whole tick that is being stopped."""
    results: list[Fulfilled[Value] | Rejected] = []
    for start in range(0, len(items), concurrency):
        if start:
            await asyncio.sleep(delay_seconds)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_settled(work, item)) for item in items[start : start + concurrency]]
        results += [task.result() for task in tasks]
    return results


async def _settled(work: Callable[[Item], Awaitable[Value]], item: Item) -> Fulfilled[Value] | Rejected:
    try:
        return Fulfilled(await work(item))
    except Exception as error:
        return Rejected(error)
