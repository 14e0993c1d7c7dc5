"""The demand agent: how much each of the given keywords is wanted, from the apps that rank for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from penstock.data import chunks
from penstock_systems.appstore import scores
from penstock_systems.appstore.app import db
from penstock_systems.appstore.evaluate.ledger import Note, write
from penstock_systems.appstore.evaluate.memory import Most, remember_most

AGENT, VERSION = "demand", "1"
STRONGEST = "strongest keyword"  # what it remembers
KEYWORDS_A_LOOK = 25

RANKED = """
select keyword, crawl_rankings.rank, crawl_rankings.track_id, coalesce(rating_count, 0) as rating_count
from crawl_rankings
left join app_registry on app_registry.track_id = crawl_rankings.track_id
where keyword in (
  :word0, :word1, :word2, :word3, :word4, :word5, :word6, :word7, :word8, :word9, :word10, :word11, :word12,
  :word13, :word14, :word15, :word16, :word17, :word18, :word19, :word20, :word21, :word22, :word23, :word24
)
and crawl_rankings.rank <= :ranks
order by keyword, crawl_rankings.rank, crawl_rankings.track_id
"""
WEIGH = """
update crawl_keywords
set demand = :demand
where keyword = :keyword
and (demand is null or demand <> :demand)
"""


class Ranked(msgspec.Struct, frozen=True):
    """An app on its rank."""

    track_id: int
    rating_count: int


class Weighed(msgspec.Struct, frozen=True):
    """What a run found: `clusters_found` groups of keywords, each led by another app."""

    processed: int
    clusters_found: int


def judged(keyword: str, apps: Sequence[Ranked]) -> Note:
    """Pure: the apps come in the order of their ranks."""
    counts = [app.rating_count for app in apps]
    score = round(scores.demand(counts), scores.PLACES)
    leader = f", the first of them {counts[0]:,}" if counts else ""
    return Note(
        agent=AGENT,
        version=VERSION,
        subject_type="keyword",
        subject_id=keyword,
        score=score,
        explanation=f"{len(apps)} apps rank for it and have {sum(counts):,} ratings together{leader}.",
        inputs={"keyword": keyword, "apps": [[app.track_id, app.rating_count] for app in apps]},
    )


async def weigh(keywords: Iterable[str]) -> Weighed:
    """Joins the unit: weighs the given keywords and no others."""
    now = await db.now()
    notes: list[Note] = []
    leaders: set[int] = set()
    for chunk in chunks(sorted(set(keywords)), KEYWORDS_A_LOOK):
        ranked = await _ranked(chunk)
        notes += [judged(keyword, ranked[keyword]) for keyword in chunk]
        leaders.update(apps[0].track_id for apps in ranked.values() if apps)
    if notes:
        db.write_many(WEIGH, [{"keyword": each.subject_id, "demand": each.score} for each in notes])
        write(notes, now)
        strongest = max(Most(each.score or 0.0, each.subject_id) for each in notes)
        remember_most(AGENT, STRONGEST, strongest, now)
    return Weighed(len(notes), len(leaders))


async def _ranked(keywords: Sequence[str]) -> dict[str, list[Ranked]]:
    padded = [*keywords, *[keywords[-1]] * (KEYWORDS_A_LOOK - len(keywords))]
    given = {f"word{place}": each for place, each in enumerate(padded)}
    ranked: dict[str, list[Ranked]] = defaultdict(list)
    for row in await db.rows(RANKED, given, ranks=scores.RANKS_COUNTED):
        ranked[row.keyword].append(Ranked(row.track_id, row.rating_count))
    return ranked
