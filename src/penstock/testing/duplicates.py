"""Delivers one message twice and checks that its effects happen once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.model.errors import BadApp
from penstock.queues.queue import Queue
from penstock.testing.harness import TestApp

T = TypeVar("T")
Effects = Callable[[], Awaitable[int]]


class NotIdempotent(AssertionError):
    """One message had its effects more often than once."""


async def deliver_twice(
    shop: TestApp, queue: Queue[T], payload: T, *, effects: Effects, expected: int = 1, id: str | None = None
) -> None:
    """Sends one message under one id twice over, and lets its handler run twice; raises if the effects differ.

    `effects` counts what the handler does wherever that shows: rows of yours, calls of an outside service, messages it
    sent. It is asked before and after, and must have grown by `expected`. The worker dies once at the worst moment, when
    the handler has ended and nothing is saved, so the message comes back; then the same id is sent again.

        await deliver_twice(shop, orders, Order(number=7), effects=lambda: db.value("select count(*) from bills"))
    """
    if not queue.is_served:
        raise BadApp(f"No handler serves queue {queue.name!r}, so its handlers cannot be tested.")
    before = await effects()
    runs_before = len(shop.delivered(queue))
    await shop.crash(at="unit.sealed")
    id = await shop.send(queue, payload, id=id or shop.new_id())
    await shop.drain()
    await shop.send(queue, payload, id=id)
    await shop.drain()
    runs = len(shop.delivered(queue)) - runs_before
    if not runs:
        raise BadApp(f"The message was never delivered on queue {queue.name!r}. Is it paused?")
    found = await effects() - before
    if found != expected:
        raise NotIdempotent(
            f"The message {id} was delivered {runs} times on queue {queue.name!r} and had {found} effects, not {expected}. "
            "Write and send within the handler's own unit, give `async with app.unit(...)` a key, wrap outside calls in "
            "`app.once`, or hand the message's id on as their idempotency key."
        )
