"""The searches of one cycle: groups in parallel, no keyword twice, and none any more once the store has had enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

import penstock as ps
from penstock_systems.appstore.app import db, settings
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.moments import after
from penstock_systems.appstore.store.facts import Found

PARALLEL = 10  # searches of a group
PAUSE_SECONDS = 1.0  # between groups
RESULTS = 25
CACHED_HOURS = 1.0  # for so long nobody asks the store again

CACHED = """
select key
from keyword_cache
where key in (:key0, :key1, :key2, :key3, :key4, :key5, :key6, :key7, :key8, :key9)
and expires_at > :now
"""


class Hit(msgspec.Struct, frozen=True):
    """An answer, in rank order."""

    keyword: str
    apps: list[Found]


class Miss(msgspec.Struct, frozen=True):
    """A search that failed by the keyword's own fault, as far as one can tell."""

    keyword: str
    error: Exception


class Answers(msgspec.Struct, frozen=True):
    """What became of a group. A keyword in none of the lists was left as it is: it costs no attempt."""

    hits: list[Hit]
    misses: list[Miss]
    fresh: list[str]  # answered within the hour: what was found then holds


Search = Callable[[str], Awaitable[list[Found]]]


class Searches:
    """Shared by all tasks of a cycle."""

    def __init__(self, search: Search, budget: Budget) -> None:
        self._search = search
        self._budget = budget
        self._taken: set[str] = set()
        self.closed: str | None = None  # why nothing is searched any more
        self.is_down = False  # because nobody got through, rather than because it was enough

    @property
    def is_open(self) -> bool:
        return self.closed is None and self._budget.is_open

    async def group(self, keywords: Sequence[str]) -> Answers:
        """Searches for at most ten keywords at once. One that another task has taken in this cycle is left to it."""
        wanted = [keyword for keyword in dict.fromkeys(keywords[:PARALLEL]) if keyword not in self._taken]
        self._taken.update(wanted)
        fresh = await cached(wanted)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._one(each)) for each in wanted if each not in fresh]
        ended = [task.result() for task in running]
        hits = [each for each in ended if isinstance(each, Hit)]
        misses = [each for each in ended if isinstance(each, Miss)]
        if not hits and len(misses) > 1 and all(isinstance(each.error, ps.Unavailable) for each in misses):
            # Nobody got through: that is the store's fault and no keyword's.
            self.closed, self.is_down = str(misses[0].error), True
            misses = []
        return Answers(hits, misses, [keyword for keyword in wanted if keyword in fresh])

    async def _one(self, keyword: str) -> Hit | Miss | None:
        if not self.is_open:
            return None
        try:
            async with self._budget.cut():
                return Hit(keyword, await self._search(keyword))
        except TimeoutError:
            self.closed = "The time limit of the cycle is reached."
        except ps.Throttled as error:
            self.closed = str(error)
        except Exception as error:
            return Miss(keyword, error)
        return None


async def cached(keywords: Sequence[str]) -> set[str]:
    """Which of at most ten keywords were answered within the hour."""
    if not keywords:
        return set()
    padded = [_key(each) for each in keywords] + [_key(keywords[-1])] * (PARALLEL - len(keywords))
    found = set(await db.column(CACHED, {f"key{n}": key for n, key in enumerate(padded)}, now=await db.now()))
    return {each for each in keywords if _key(each) in found}


def keep(hit: Hit, now: str) -> None:
    """Joins the unit: the answer's ids in their order, for an hour."""
    ids = msgspec.json.encode([each.track_id for each in hit.apps]).decode()
    expires_at = after(now, hours=CACHED_HOURS)
    db.upsert("keyword_cache", {"key": _key(hit.keyword), "value": ids, "expires_at": expires_at}, key="key")


def _key(keyword: str) -> str:
    return f"search/{settings.country}/{keyword}"
