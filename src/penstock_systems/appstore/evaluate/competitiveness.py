"""The competitiveness agent: how hard each of the given apps is to compete with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.data import chunks
from penstock_systems.appstore import scores
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.evaluate.ledger import Note, write

AGENT, VERSION = "competitiveness", "1"
IDS_A_LOOK = 25
APPS_A_LOOK = 500  # of a market

GIVEN = """
select track_id, rating_count, average_rating, rating_velocity_7d
from app_registry
where track_id in (
  :id0, :id1, :id2, :id3, :id4, :id5, :id6, :id7, :id8, :id9, :id10, :id11, :id12,
  :id13, :id14, :id15, :id16, :id17, :id18, :id19, :id20, :id21, :id22, :id23, :id24
)
and enrichment_source in ('scraper', 'itunes')
"""
MEMBERS = """
select app_registry.track_id, rating_count, average_rating, rating_velocity_7d
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :cluster_id
and cluster_apps.track_id > :after
and enrichment_source in ('scraper', 'itunes')
order by cluster_apps.track_id
limit :size
"""
SCORE = """
update app_registry
set competitiveness_score = :score, scored_at = :now
where track_id = :track_id
and (competitiveness_score is null or competitiveness_score <> :score)
"""


class Rated(msgspec.Struct, frozen=True):
    """What an app is judged by. New ratings a day are unknown until it was watched for some days."""

    track_id: int
    rating_count: int
    average_rating: float | None
    velocity: float | None


def judged(app: Rated) -> Note:
    """Pure: the same app is judged the same."""
    many, loved, growing = scores.competitiveness_parts(app.rating_count, app.average_rating, app.velocity)
    score = scores.competitiveness(app.rating_count, app.average_rating, app.velocity)
    stars = "no stars yet" if app.average_rating is None else f"{app.average_rating:.2f} stars"
    new = "an unknown number of" if app.velocity is None else f"{app.velocity:.1f}"
    told = f"{app.rating_count:,} ratings give {many:.1f}, {stars} {loved:.1f}, {new} new ratings a day {growing:.1f}."
    return Note(
        agent=AGENT,
        version=VERSION,
        subject_type="app",
        subject_id=str(app.track_id),
        score=round(score, scores.PLACES),
        explanation=told,
        inputs=msgspec.to_builtins(app),
    )


async def score_apps(track_ids: Iterable[int]) -> int:
    """Joins the unit: scores the given apps and no others. How many were processed."""
    processed = 0
    now = await db.now()
    for chunk in chunks(sorted(set(track_ids)), IDS_A_LOOK):
        padded = chunk + [chunk[-1]] * (IDS_A_LOOK - len(chunk))
        found = await db.rows(GIVEN, {f"id{place}": each for place, each in enumerate(padded)})
        processed += _write([Rated(*row) for row in found], now)
    return processed


async def score_markets(cluster_ids: Iterable[int]) -> int:
    """Scores the apps of the given markets, saving each market by itself. How many were processed."""
    processed = 0
    now = await db.now()
    for cluster_id in cluster_ids:
        async for page in db.pages(MEMBERS, key="track_id", size=APPS_A_LOOK, cluster_id=cluster_id):
            async with app.unit():
                processed += _write([Rated(*row) for row in page], now)
    return processed


def _write(apps: Sequence[Rated], now: str) -> int:
    notes = [judged(each) for each in sorted(apps, key=lambda each: each.track_id)]
    if notes:
        db.write_many(SCORE, [{"track_id": int(each.subject_id), "score": each.score, "now": now} for each in notes])
        write(notes, now)
    return len(notes)
