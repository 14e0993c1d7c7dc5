"""Which event calls which agent. Each route can be repeated, in any order, and changes nothing the second time."""

from __future__ import annotations

from penstock.data import chunks
from penstock_systems.appstore.app import (
    IDS_A_MESSAGE,
    AppEnriched,
    ClustersReady,
    DesignDone,
    FragmentationDone,
    RankingsUpdated,
    db,
    events,
)
from penstock_systems.appstore.evaluate import beliefs, competitiveness, demand, fragmentation
from penstock_systems.appstore.evaluate.design import design


@events.handler(AppEnriched)
async def app_enriched(event: AppEnriched) -> None:
    await competitiveness.score_apps(event.track_ids)


@events.handler(RankingsUpdated)
async def rankings_updated(event: RankingsUpdated) -> None:
    await demand.weigh(event.keywords)


@events.handler(ClustersReady)
async def clusters_ready(event: ClustersReady) -> None:
    """First how strong the apps of these markets are, then how they share them."""
    await competitiveness.score_markets(event.cluster_ids)
    await beliefs.learn_from_charts(await db.now())
    analysis = await fragmentation.analyze(event.cluster_ids)
    if analysis.clusters_analyzed:
        ids = [scored.cluster_id for scored in analysis.scores]
        events.send_all([FragmentationDone(cluster_ids=some) for some in chunks(ids, IDS_A_MESSAGE)])


@events.handler(FragmentationDone)
async def fragmentation_done(event: FragmentationDone) -> None:
    """Also markets without a concept are passed on: whether to look into one is not decided here."""
    designed = await design(event.cluster_ids)
    if designed.cluster_ids:
        ids = designed.cluster_ids
        events.send_all([DesignDone(cluster_ids=some) for some in chunks(ids, IDS_A_MESSAGE)])
