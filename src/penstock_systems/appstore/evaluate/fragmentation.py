"""The fragmentation agent: how dispersed each of the given markets is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock_systems.appstore import scores
from penstock_systems.appstore.app import db
from penstock_systems.appstore.evaluate.demand import Ranked
from penstock_systems.appstore.evaluate.ledger import Note, digest, write

AGENT, VERSION = "fragmentation", "1"
APPS_MAX = 5_000  # of a market, the best known first: what comes after has no share to speak of
LEADERS = 10  # that a judgement names

MARKET = "select name from market_clusters where id = :cluster_id and ended_at is null"
MEMBERS = """
select app_registry.track_id, rating_count
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :cluster_id
order by rating_count desc, app_registry.track_id
limit :most
"""
SCORE = """
update market_clusters
set fragmentation = :score
where id = :cluster_id
and (fragmentation is null or fragmentation <> :score)
"""


class Scored(msgspec.Struct, frozen=True):
    cluster_id: int
    score: float


class Analysis(msgspec.Struct, frozen=True):
    """What a run found, in the order in which it was asked."""

    scores: list[Scored]

    @property
    def clusters_analyzed(self) -> int:
        return len(self.scores)


def judged(cluster_id: int, apps: Sequence[Ranked]) -> Note:
    """Pure: the apps come with the best known first."""
    counts = [app.rating_count for app in apps]
    total = sum(counts)
    share = f" of which the leader has {100 * counts[0] / total:.1f} %" if total else ""
    return Note(
        agent=AGENT,
        version=VERSION,
        subject_type="cluster",
        subject_id=str(cluster_id),
        score=round(scores.fragmentation(counts), scores.PLACES),
        explanation=f"{len(apps)} apps share {total:,} ratings{share}.",
        inputs={
            "cluster_id": cluster_id,
            "apps": len(apps),
            "ratings": total,
            "leaders": [app.track_id for app in apps[:LEADERS]],
            "counts": digest(counts),
        },
    )


async def analyze(cluster_ids: Iterable[int]) -> Analysis:
    """Joins the unit: scores the given markets and no others. One that has ended is left as it was."""
    now = await db.now()
    notes = []
    for cluster_id in dict.fromkeys(cluster_ids):
        if await db.value(MARKET, cluster_id=cluster_id) is None:
            continue
        found = await db.rows(MEMBERS, cluster_id=cluster_id, most=APPS_MAX)
        notes.append(judged(cluster_id, [Ranked(*row) for row in found]))
    if notes:
        db.write_many(SCORE, [{"cluster_id": int(each.subject_id), "score": each.score} for each in notes])
        write(notes, now)
    return Analysis([Scored(int(each.subject_id), each.score or 0.0) for each in notes])
