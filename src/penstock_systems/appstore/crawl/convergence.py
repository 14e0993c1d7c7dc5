"""How much of what searches find is known already. When it is nearly all, titles are no longer turned into keywords."""

from __future__ import annotations

import msgspec

from penstock_systems.appstore.app import db

DEPTH_MAX = 3  # a keyword so far from a chart or a seed leads no further
SEARCHES = 1_000  # that are looked at, the last ones
KNOWN_ENOUGH = 0.95
BUCKET = 100  # searches that are added up
STATE = "convergence"

READ = "select value from crawl_state where name = :name"


class Bucket(msgspec.Struct):
    """Some searches: how many, what they found, and how much of that was known."""

    searches: int = 0
    found: int = 0
    known: int = 0


class Window(msgspec.Struct):
    """The last thousand searches, a hundred at a time; the oldest hundred goes when a new one is full."""

    buckets: list[Bucket] = msgspec.field(default_factory=list)

    def add(self, *, found: int, known: int) -> None:
        if not self.buckets or self.buckets[-1].searches >= BUCKET:
            self.buckets.append(Bucket())
            while sum(each.searches for each in self.buckets[1:]) >= SEARCHES:
                self.buckets.pop(0)
        last = self.buckets[-1]
        last.searches += 1
        last.found += found
        last.known += known

    @property
    def searches(self) -> int:
        return sum(each.searches for each in self.buckets)

    @property
    def known_share(self) -> float:
        """1 while nothing was found: a world without results holds nothing new."""
        found = sum(each.found for each in self.buckets)
        return sum(each.known for each in self.buckets) / found if found else 1.0

    @property
    def is_converged(self) -> bool:
        return self.searches >= SEARCHES and self.known_share >= KNOWN_ENOUGH

    def leads_on(self, depth: int) -> bool:
        """Whether what a keyword of this depth finds is worth new keywords."""
        return depth < DEPTH_MAX and not self.is_converged

    def save(self, now: str) -> None:
        """Joins the unit."""
        value = msgspec.json.encode(self.buckets).decode()
        db.upsert("crawl_state", {"name": STATE, "value": value, "updated_at": now}, key="name")


async def load() -> Window:
    """As it was saved; anew if what is there cannot be read."""
    value = await db.value(READ, name=STATE)
    try:
        return Window(msgspec.json.decode(value or "[]", type=list[Bucket]))
    except msgspec.MsgspecError:
        return Window()
