"""A run's markets into the tables: only what changed, in units of bounded size, and no market half new.

New markets are written first, then those that go on, those that ended last. If the run is cut off in between, each market
is as it was or as it is now, and the next run takes it from there: it recognises what was written by what is in it, so
everything gets the id that it would have got. Only a market with more changes than a unit holds is written in several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TypeVar

from penstock.data import chunks
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.cluster.identity import Ended, Identities, Identity
from penstock_systems.appstore.cluster.market import Market
from penstock_systems.appstore.cluster.relations import Relation
from penstock_systems.appstore.cluster.standing import Standing

ROWS_A_UNIT = 10_000  # of sixty characters and some numbers: well below what a unit holds

PUT_KEYWORD = """
insert into cluster_keywords (cluster_id, keyword, weight)
values (:id, :member, :weight)
on conflict (cluster_id, keyword) do update set weight = excluded.weight
"""
DROP_KEYWORD = "delete from cluster_keywords where cluster_id = :id and keyword = :member"
PUT_APP = """
insert into cluster_apps (cluster_id, track_id, weight)
values (:id, :member, :weight)
on conflict (cluster_id, track_id) do update set weight = excluded.weight
"""
DROP_APP = "delete from cluster_apps where cluster_id = :id and track_id = :member"
PUT_MARKET = """
insert into market_clusters (id, lineage_id, name, opportunity_score, demand, competitiveness, fragmentation,
  dissatisfaction, room, scores, coverage, franchise, apps, keywords, first_seen_at, computed_at)
values (:id, :lineage_id, :name, :opportunity, :demand, :competitiveness, :fragmentation, :dissatisfaction, :room, :scores,
  :coverage, :franchise, :apps, :keywords, :run_at, :run_at)
on conflict (id) do update set
  name = excluded.name, opportunity_score = excluded.opportunity_score, demand = excluded.demand,
  competitiveness = excluded.competitiveness, fragmentation = excluded.fragmentation,
  dissatisfaction = excluded.dissatisfaction, room = excluded.room, scores = excluded.scores, coverage = excluded.coverage,
  franchise = excluded.franchise, apps = excluded.apps, keywords = excluded.keywords, computed_at = excluded.computed_at,
  ended_at = null
"""
PUT_SNAPSHOT = """
insert into cluster_snapshots (cluster_id, snapshot_at, opportunity_score, demand, competitiveness, fragmentation, scores,
  coverage, apps, keywords)
values (:id, :run_at, :opportunity, :demand, :competitiveness, :fragmentation, :scores, :coverage, :apps, :keywords)
on conflict (cluster_id, snapshot_at) do update set
  opportunity_score = excluded.opportunity_score, demand = excluded.demand, competitiveness = excluded.competitiveness,
  fragmentation = excluded.fragmentation, scores = excluded.scores, coverage = excluded.coverage, apps = excluded.apps,
  keywords = excluded.keywords
"""
# What a run wrote of where a market came from stays, also if the run was cut off and finds it again as its own.
PUT_LINEAGE = """
insert into cluster_lineages (lineage_id, cluster_id, run_at, overlap)
values (:lineage_id, :id, :run_at, :overlap)
on conflict (cluster_id, run_at) do nothing
"""
PUT_RELATION = """
insert into cluster_relations (a, b, kind, weight)
values (:a, :b, :kind, :weight)
on conflict (a, b, kind) do update set weight = excluded.weight
"""
ASK_TO_COMPLETE = """
update crawl_keywords
set typed_due = :run_at
where keyword = :keyword
and typed_at is null
and typed_due is null
"""
DROP_NEIGHBOUR = "delete from cluster_relations where a = :a and b = :b and kind = 'neighbour'"
END_MARKET = "update market_clusters set ended_at = :run_at where id = :id and ended_at is null"

Write = tuple[str, Mapping[str, object]]  # a statement, and what is bound to it


async def save(
    markets: Sequence[Market], found: Identities, relations: Sequence[Relation], before: Standing, *, run_at: str
) -> int:
    """How many rows were written."""
    origins = {each.a: each for each in relations if each.kind == "split"}
    new_first = sorted(zip(found.new, markets, strict=True), key=lambda each: (each[0].kind == "kept", each[0].id))
    groups: Iterable[list[Write]] = chain(
        (_market(who, market, origins.get(who.id), before, run_at) for who, market in new_first),
        (_ended(each, before, run_at) for each in found.ended),
        (_dropped(stray, before) for stray in _strays(found, before)),
        [_relations(relations, before)],
    )
    return await write_grouped(groups)


async def write_grouped(groups: Iterable[list[Write]]) -> int:
    """Writes each group within one unit, unless it is larger than a unit may be, and several groups where they fit."""
    rows = 0
    waiting: list[Write] = []
    for group in groups:
        if waiting and len(waiting) + len(group) > ROWS_A_UNIT:
            await _write(waiting)
            waiting = []
        waiting += group
        rows += len(group)
    await _write(waiting)
    return rows


async def _write(writes: Sequence[Write]) -> None:
    for portion in chunks(writes, ROWS_A_UNIT):
        alike: dict[str, list[Mapping[str, object]]] = {}
        for sql, row in portion:
            alike.setdefault(sql, []).append(row)
        async with app.unit():
            for sql, rows in alike.items():
                db.write_many(sql, rows)


def _market(who: Identity, market: Market, origin: Relation | None, before: Standing, run_at: str) -> list[Write]:
    keywords = _changes(PUT_KEYWORD, DROP_KEYWORD, who.id, before.keywords.get(who.id, {}), market.keywords)
    apps = _changes(PUT_APP, DROP_APP, who.id, before.apps.of(who.id), market.apps)
    sizes = {"id": who.id, "apps": len(market.apps), "keywords": len(market.keywords), "run_at": run_at}
    figures = sizes | asdict(market.score) | {"coverage": round(market.coverage, 4)}
    del figures["known"]
    snapshot = {name: value for name, value in figures.items() if name not in ("dissatisfaction", "room")}
    lineage = {"id": who.id, "lineage_id": who.lineage_id, "run_at": run_at, "overlap": who.overlap}
    # Where it comes from stands first: once its members are written, nobody could find that out again.
    return [
        (PUT_LINEAGE, lineage),
        *([] if origin is None else [(PUT_RELATION, origin._asdict())]),
        *keywords,
        *apps,
        (PUT_MARKET, figures | {"lineage_id": who.lineage_id, "name": market.name, "franchise": market.franchise}),
        (PUT_SNAPSHOT, snapshot),
        *((ASK_TO_COMPLETE, {"keyword": word, "run_at": run_at}) for word in market.typical),
    ]


def _ended(ended: Ended, before: Standing, run_at: str) -> list[Write]:
    """Its members are those of other markets now; what it was is in its snapshots."""
    return [*_dropped(ended.id, before), (END_MARKET, {"id": ended.id, "run_at": run_at})]


def _dropped(id: int, before: Standing) -> list[Write]:
    keywords = _changes(PUT_KEYWORD, DROP_KEYWORD, id, before.keywords.get(id, {}), {})
    return [*keywords, *_changes(PUT_APP, DROP_APP, id, before.apps.of(id), {})]


def _strays(found: Identities, before: Standing) -> list[int]:
    """Members of no market: a run was cut off in the middle of a very large one, which was never found again."""
    known = before.lineages.keys() | {each.id for each in found.new}
    return sorted((before.keywords.keys() | before.apps.spans.keys()) - known)


def _relations(relations: Sequence[Relation], before: Standing) -> list[Write]:
    near = {(each.a, each.b): each.weight for each in relations if each.kind == "neighbour"}
    gone = [(DROP_NEIGHBOUR, {"a": a, "b": b}) for a, b in before.neighbours if (a, b) not in near]
    new = [
        (PUT_RELATION, each._asdict())
        for each in relations
        if each.kind == "merge" or (each.kind == "neighbour" and before.neighbours.get((each.a, each.b)) != each.weight)
    ]
    return [*gone, *new]


Member = TypeVar("Member", str, int)


def _changes(
    put: str, drop: str, id: int, before: Mapping[Member, float], now: Mapping[Member, float]
) -> Iterator[Write]:
    for member in before:
        if member not in now:
            yield drop, {"id": id, "member": member}
    for member, weight in now.items():
        if before.get(member) != weight:
            yield put, {"id": id, "member": member, "weight": weight}
