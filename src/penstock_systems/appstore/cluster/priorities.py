"""Lends priority to the apps and keywords of good markets, and takes back what others have: `feedback`, on the tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

from penstock_systems.appstore.app import db
from penstock_systems.appstore.cluster.crawled import PAGE_ROWS
from penstock_systems.appstore.cluster.feedback import APP, GOOD, KEYWORD, Boost, Change, Held, lent
from penstock_systems.appstore.cluster.market import Market
from penstock_systems.appstore.cluster.saving import Write, write_grouped

Kind = Literal["app", "keyword"]

HELD = db.hot(
    """
select subject, base, boost
from priority_boosts
where kind = :kind
and subject > :after
order by subject
limit :size
"""
)
# Somebody may have set a priority since it was read: then it stays as they set it, and the next run builds on that.
SET_APP = """
update app_registry
set enrich_priority = :priority
where track_id = :subject
and enrich_priority = :was
"""
SET_KEYWORD = """
update crawl_keywords
set priority = :priority
where keyword = :subject
and priority = :was
"""
LEND = """
insert into priority_boosts (kind, subject, boost, base, updated_at)
values (:kind, :subject, :boost, :base, :now)
on conflict (kind, subject) do update set
  boost = excluded.boost, base = excluded.base, updated_at = excluded.updated_at
"""
TAKE_BACK = "delete from priority_boosts where kind = :kind and subject = :subject"


class Boosted(NamedTuple):
    """How many have a boost from a good market now."""

    apps: int
    keywords: int


async def reprioritise(
    markets: Iterable[Market],
    app_priority: Callable[[int], int | None],
    keyword_priority: Callable[[str], int | None],
    *,
    now: str,
) -> Boosted:
    """The priorities are those that were read; there is none of what is not on the list."""
    good = [market for market in markets if market.score.opportunity > GOOD]
    apps = await _lend(
        _Lists("app", SET_APP, APP),
        app_priority,
        good={track_id for market in good for track_id in market.apps},
        held={int(subject): each async for subject, each in _held("app")},
        now=now,
    )
    keywords = await _lend(
        _Lists("keyword", SET_KEYWORD, KEYWORD),
        keyword_priority,
        good={keyword for market in good for keyword in market.keywords},
        held={subject: each async for subject, each in _held("keyword")},
        now=now,
    )
    return Boosted(apps, keywords)


class _Lists(NamedTuple):
    """What has a priority: apps, or keywords."""

    kind: Kind
    set_priority: str
    rule: Boost


Subject = TypeVar("Subject", int, str)


async def _lend(
    lists: _Lists,
    priority_of: Callable[[Subject], int | None],
    *,
    good: set[Subject],
    held: dict[Subject, Held],
    now: str,
) -> int:
    boosted = sum(priority_of(subject) is not None for subject in good)

    def groups() -> Iterator[list[Write]]:
        """One a subject: its priority and what it was lent are saved together."""
        for subject in sorted(good | held.keys()):
            was = priority_of(subject)
            if was is None:  # it is not on the list any more
                change: Change | None = Change(0, None) if subject in held else None
            else:
                change = lent(was, held.get(subject), good=subject in good, kind=lists.rule)
            if change is not None:
                yield _written(lists, subject, was, change, now)

    await write_grouped(groups())
    return boosted


def _written(lists: _Lists, subject: int | str, was: int | None, change: Change, now: str) -> list[Write]:
    key = {"kind": lists.kind, "subject": str(subject)}
    if change.held is None:
        kept: Write = (TAKE_BACK, key)
    else:
        kept = (LEND, key | {"boost": change.held.boost, "base": change.held.base, "now": now})
    if was is None or was == change.priority:
        return [kept]
    return [(lists.set_priority, {"subject": subject, "priority": change.priority, "was": was}), kept]


async def _held(kind: Kind) -> AsyncIterator[tuple[str, Held]]:
    async for page in db.pages(HELD, key="subject", size=PAGE_ROWS, after="", kind=kind):
        for subject, base, boost in page:
            yield subject, Held(base, boost)
