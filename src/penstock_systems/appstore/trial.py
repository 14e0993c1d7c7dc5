"""The trial of the pipeline: ten apps of one chart, followed through all five stages."""

from __future__ import annotations

import asyncio

from penstock_systems.appstore.app import EnrichWanted, app, db, wishes
from penstock_systems.appstore.cluster.task import something_changed

LOOKS, LOOK_SECONDS = 120, 10.0  # twenty minutes: four cycles of the crawl

FOLLOWED = """
select track_id from chart_position_history order by snapshot_at, rank, track_id limit 10
"""
ENRICHED = """
select track_id from app_registry where track_id = :track_id and enriched_at is not null and enrichment_source <> 'failed'
"""
SCORED = """
select subject_id from agent_ledger
where subject_type = 'app' and subject_id = :track_id and agent = 'competitiveness' limit 1
"""
CLUSTERED = """
select cluster_apps.track_id from cluster_apps join market_clusters on market_clusters.id = cluster_apps.cluster_id
where cluster_apps.track_id = :track_id and market_clusters.ended_at is null limit 1
"""
EVALUATED = """
select cluster_apps.track_id from cluster_apps
join opportunity_evaluations on opportunity_evaluations.cluster_id = cluster_apps.cluster_id
where cluster_apps.track_id = :track_id limit 1
"""


async def crawl(items: list[int]) -> None:
    await app.crons.trigger("crawl")


async def want(items: list[int]) -> None:
    async with app.unit():
        wishes.send(EnrichWanted(track_ids=items))


async def cluster(items: list[int]) -> None:
    """The first searches come with the second cycle: before them there is nothing to cluster, and a run would rest until the
    next six-hour mark."""
    for _ in range(LOOKS):
        if await something_changed():
            break
        await asyncio.sleep(LOOK_SECONDS)
    await app.crons.trigger("cluster")


@app.trial.stage("crawl", within="1h", push=crawl)
async def crawled(items: list[int]) -> list[int]:
    return await db.column(FOLLOWED)


@app.trial.stage("enrich", within="6h", push=want, least=8)
async def enriched(items: list[int]) -> list[int]:
    """An app may have gone from the store since its chart was made."""
    return [item for item in items if await db.value(ENRICHED, track_id=item) is not None]


@app.trial.stage("evaluate", within="1h", least=8)
async def evaluated(items: list[int]) -> list[int]:
    return [item for item in items if await db.value(SCORED, track_id=str(item)) is not None]


@app.trial.stage("cluster", within="7h", push=cluster, least=1)
async def clustered(items: list[int]) -> list[int]:
    """An app that ranks for nothing that others rank for belongs to no market."""
    return [item for item in items if await db.value(CLUSTERED, track_id=item) is not None]


@app.trial.stage("opportunity", within="12h", least=1)
async def judged(items: list[int]) -> list[int]:
    return [item for item in items if await db.value(EVALUATED, track_id=item) is not None]
