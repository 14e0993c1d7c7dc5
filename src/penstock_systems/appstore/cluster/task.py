"""Clustering, every six hours: lays out in markets what was crawled, lends priority to good ones, and tells of them."""

from __future__ import annotations

import logging
from dataclasses import replace

import msgspec

import penstock as ps
from penstock.data import cut
from penstock_systems.appstore.app import SERVICE, ClustersReady, app, db, events, settings
from penstock_systems.appstore.cluster.crawled import Crawled, crawled
from penstock_systems.appstore.cluster.franchises import with_franchises
from penstock_systems.appstore.cluster.identity import Identities, identities
from penstock_systems.appstore.cluster.market import Computed
from penstock_systems.appstore.cluster.priorities import reprioritise
from penstock_systems.appstore.cluster.relations import relations
from penstock_systems.appstore.cluster.saving import save
from penstock_systems.appstore.cluster.standing import standing
from penstock_systems.appstore.evaluate.beliefs import RATINGS_EXPLAIN_RANK
from penstock_systems.appstore.evaluate.competitiveness import AGENT
from penstock_systems.appstore.evaluate.memory import strength

NAME = "cluster"
TOP = 200  # markets that are told of, the best first
READS_A_MONTH = 1_000_000_000  # a dollar's worth: with 2.8 million rankings, 120 runs would read three fifths of it
ERROR_CHARACTERS_MAX = 500

CHANGED = """
select max(value) as value
from crawl_state
where name in ('rankings_changed_at', 'figures_changed_at')
"""
LAST_DONE = db.hot(
    """
select started_at
from pipelines
where name = 'cluster'
and status = 'done'
order by started_at desc
limit 1
"""
)
BEGIN = """
insert into pipelines (id, name, status, started_at)
values (:id, 'cluster', 'running', :now)
on conflict (id) do update set status = 'running', started_at = excluded.started_at, finished_at = null, error = null
"""
# A run that died with its process could not say so itself.
CUT_OFF = """
update pipelines
set status = 'failed', finished_at = :now, error = 'the process ended before the run did'
where name = 'cluster'
and status = 'running'
and id <> :id
"""
END = "update pipelines set status = :status, finished_at = :now, error = :error where id = :id"
STEP = """
insert into pipeline_steps (pipeline_id, name, status, counts, started_at, finished_at)
values (:id, :name, 'done', :counts, :started_at, :finished_at)
on conflict (pipeline_id, name) do update set
  status = excluded.status, counts = excluded.counts, started_at = excluded.started_at, finished_at = excluded.finished_at
"""

points = app.metrics("platform_metrics", service=SERVICE)
_log = logging.getLogger("penstock_systems.appstore")


class Stats(msgspec.Struct, kw_only=True):
    """What a run did."""

    keywords: int = 0
    apps: int = 0
    clusters_found: int = 0
    clusters_new: int = 0
    clusters_ended: int = 0
    apps_boosted: int = 0
    keywords_boosted: int = 0
    clusters_told: int = 0


async def something_changed() -> bool:
    """Return whether a ranking, or a figure by which markets are scored, has changed since the last finished run began."""
    changed = await db.first(CHANGED)
    last = await db.first(LAST_DONE)
    return changed is not None and changed.value is not None and (last is None or changed.value >= last.started_at)


@app.cron(
    "0 */6 * * *",
    name=NAME,
    reason="a day's crawl changes a market a little; four runs a day find a new market early enough",
    when=something_changed,
    ceiling=ps.Ceiling(rows_read=READS_A_MONTH),
)
async def cluster(tick: ps.Tick) -> Stats:
    """A run that is cut off is begun anew, and ends with what it would have ended with."""
    run_at = f"{tick.scheduled_at:%Y-%m-%d %H:%M:%S}"
    id = f"cluster {run_at}"
    now = await db.now()
    async with app.unit():
        db.write(CUT_OFF, id=id, now=now)
        db.write(BEGIN, id=id, now=now)
    try:
        return await _run(run_at, Noted(id, now))
    except Exception as error:
        told = cut(f"{type(error).__name__}: {error}".replace("\0", ""), ERROR_CHARACTERS_MAX)
        async with app.unit():
            db.write(END, id=id, status="failed", now=await db.now(), error=told)
        raise


async def _run(run_at: str, noted: Noted) -> Stats:
    """Clusters, then lends priority, then tells: what is told of is there, and its apps are already on their way up."""
    found, before = await crawled(), await standing()
    sizes = {"rankings": len(found.places.rank), "apps": len(found.registry.track_id)}
    await noted.step("read", **sizes, keywords=len(found.places.keywords))
    believed = await strength(AGENT, RATINGS_EXPLAIN_RANK)
    made = await ps.in_thread(_markets, found, 1.0 if believed is None else believed)
    if settings.scores == "founder":
        made = replace(made, markets=await with_franchises(made.markets))
    await noted.step("compute", markets=len(made.markets), resolution=round(made.resolution, 2))
    who = identities(
        before.known, before.membership(), [list(each.keywords) for each in made.markets], first_free=before.first_free
    )
    rows = await save(made.markets, who, relations(made.near, who), before, run_at=run_at)
    await noted.step("save", rows=rows)
    boosted = await reprioritise(
        made.markets, found.registry.priority_of, found.keywords.priority.get, now=await db.now()
    )
    await noted.step("reprioritise", apps=boosted.apps, keywords=boosted.keywords)
    stats = Stats(
        keywords=made.keywords,
        apps=made.apps,
        clusters_found=len(who.new),
        clusters_new=sum(each.kind != "kept" for each in who.new),
        clusters_ended=len(who.ended),
        apps_boosted=boosted.apps,
        keywords_boosted=boosted.keywords,
        clusters_told=_tell(made, who),
    )
    noted.end()
    doubles = (stats.clusters_found, stats.clusters_new, stats.apps_boosted, stats.keywords_boosted)
    points.write(blobs=(SERVICE, "cron", NAME), doubles=doubles, index=SERVICE)
    _log.info("cluster.finished", extra={"facts": msgspec.to_builtins(stats)})
    return stats


def _markets(found: Crawled, ratings_decide: float) -> Computed:
    """In a thread. The libraries that this needs are looked for here: everything else runs without them."""
    from penstock_systems.appstore.cluster.markets import computed

    return computed(found, finer=settings.cluster_resolution, scores=settings.scores, ratings_decide=ratings_decide)


def _tell(made: Computed, who: Identities) -> int:
    """Joins the run's unit: the best markets, if there is any."""
    scores = {each.id: market.score.opportunity for each, market in zip(who.new, made.markets, strict=True)}
    best = sorted(scores, key=lambda id: (-scores[id], id))[:TOP]
    if best:
        events.send(ClustersReady(cluster_ids=best))
    return len(best)


class Noted:
    """The steps of a run and when each was done, saved with its end."""

    def __init__(self, id: str, now: str) -> None:
        self._id = id
        self._since = now
        self._steps: list[dict[str, object]] = []

    async def step(self, name: str, **counts: float) -> None:
        now = await db.now()
        times = {"started_at": self._since, "finished_at": now}
        self._steps.append({"id": self._id, "name": name, "counts": db.json(counts), **times})
        self._since = now

    def end(self) -> None:
        """Joins the run's unit."""
        db.write_many(STEP, self._steps)
        db.write(END, id=self._id, status="done", now=self._since, error=None)
