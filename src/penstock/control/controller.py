"""What users write: a class that picks items, works on each, and hears of the finished ones."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import msgspec

Item = TypeVar("Item")

IDLE_BACKOFF = (1.0, 120.0)
FLUSH_SECONDS = 2.0


class Controller(Generic[Item]):
    """Derive from it and register it with `@app.controller("name")`."""

    name: str = ""
    # False where the items' own table tells when one that failed is due again: then none is set aside for good.
    sets_aside: ClassVar[bool] = True

    async def pick(self, limit: int) -> list[Item]:
        """At most `limit` items that wait, the most important first. Items in work are left out by the controller."""
        raise NotImplementedError

    async def work(self, item: Item) -> object:
        """Does one item in a unit of its own. Throttled slows the controller; Gone skips the item."""
        raise NotImplementedError

    async def after(self, done: list[Item]) -> object:
        """Gets every finished item once; what it writes and sends commits with that."""
        return None

    def key_of(self, item: Item) -> str:
        """What an item is remembered by: its JSON, unless the class says otherwise."""
        return msgspec.json.encode(item).decode()

    def item_of(self, key: str) -> Item:
        """The item that a key stands for: the way back from `key_of`."""
        item: Item = msgspec.json.decode(key)
        return item


class Definition(msgspec.Struct, frozen=True):
    """A controller as an app registers it. `version` is the code's: a new one is given time and begins carefully.
    `idle_backoff` is the first and the longest wait after a pick that found nothing; finished items wait `flush_seconds`."""

    controller: Controller[Any]
    mode: str = "pilot"
    version: str = "1"
    parallel: int = 32
    rate: tuple[float, float] = (0.001, 1_000.0)
    timeout_seconds: float = 60.0
    idle_backoff: tuple[float, float] = IDLE_BACKOFF
    flush_seconds: float = FLUSH_SECONDS
    hint: str | None = None

    def rest_seconds(self, streak: int) -> float:
        """After so many looks in a row that found nothing more."""
        first, longest = self.idle_backoff
        return min(longest, first * 2.0 ** min(streak - 1, 20))
