"""The four agents: golden values, the given ids and no others, and nothing new the second time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages as stages  # what reacts to events is there once this is imported
from penstock_systems.appstore.evaluate import competitiveness, demand, design, fragmentation
from penstock_systems.appstore.evaluate.brief import Brief, brief_of
from tests.systems.appstore.conftest import START, Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, insert_apps, insert_keywords, write

NOW = f"{START:%Y-%m-%d %H:%M:%S}"
LEDGER = (
    "select agent, subject_type, subject_id, score, explanation, inputs from agent_ledger order by agent, subject_id"
)
HOSTILE = "=1+1 <b>\u05d0</b> 👩‍👩‍👧 '; drop table x; --"


async def enriched(it: Pipeline, track_id: int, rating_count: int, average: float | None = 4.5, **more: object) -> None:
    row = {"track_id": track_id, "rating_count": rating_count, "average_rating": average, "enriched_at": NOW}
    await insert_apps(it, {**row, "enrichment_source": "scraper", **more})


async def market(it: Pipeline, cluster_id: int, *track_ids: int, **more: object) -> None:
    times = {"first_seen_at": NOW, "computed_at": NOW}
    await insert(
        it, "market_clusters", {"id": cluster_id, "lineage_id": cluster_id, "name": "Budgets", **times, **more}
    )
    await insert(
        it, "cluster_apps", *({"cluster_id": cluster_id, "track_id": each, "weight": 1.0} for each in track_ids)
    )


async def ranked(it: Pipeline, keyword: str, *track_ids: int) -> None:
    rows = [{"keyword": keyword, "track_id": each, "rank": rank} for rank, each in enumerate(track_ids, 1)]
    await insert(it, "crawl_rankings", *({**row, "crawled_at": NOW} for row in rows))


# -- competitiveness ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B4-04", "B4-08", "G2-19")
async def test_three_ids_are_three_scores_and_a_second_time_changes_nothing(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for track_id in range(1, 6):
            await enriched(it, track_id, 10**track_id - 1, rating_velocity_7d=25.0)
        for _ in range(2):
            async with shared.app.unit():
                assert await competitiveness.score_apps([1, 2, 3, 3]) == 3
        rows = await it.sql("select track_id, competitiveness_score, scored_at from app_registry order by track_id")
        assert [(row.track_id, row.competitiveness_score) for row in rows] == [
            (1, round(50 / 6 + 27 + 5, 4)), (2, round(100 / 6 + 27 + 5, 4)), (3, 57.0), (4, None), (5, None),
        ]  # fmt: skip
        noted = await it.sql(LEDGER)
        assert [(row.agent, row.subject_id) for row in noted] == [("competitiveness", each) for each in "123"]
        assert "999 ratings give 25.0" in noted[2].explanation
        assert msgspec.json.decode(noted[2].inputs) == {
            "track_id": 3, "rating_count": 999, "average_rating": 4.5, "velocity": 25.0
        }  # fmt: skip


async def test_an_app_that_has_changed_is_judged_anew_and_one_that_has_not_is_left_alone(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await enriched(it, 1, 99)
        await enriched(it, 2, 99)
        async with shared.app.unit():
            await competitiveness.score_apps([1, 2])
        await it.running.advance(hours=1)
        await write(it, "update app_registry set rating_count = 999 where track_id = 1")
        async with shared.app.unit():
            await competitiveness.score_apps([1, 2])
        assert [row.subject_id for row in await it.sql(LEDGER)] == ["1", "1", "2"]
        rows = await it.sql("select scored_at from app_registry order by track_id")
        assert [row.scored_at > NOW for row in rows] == [True, False]


async def test_apps_of_which_nothing_is_known_yet_are_not_judged(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(it, {"track_id": 1, "rating_count": 9})
        await enriched(it, 2, 9, enrichment_source="failed")
        async with shared.app.unit():
            assert await competitiveness.score_apps([1, 2, 404]) == 0
        assert await it.sql(LEDGER) == []


async def test_more_ids_than_one_look_takes_are_all_scored(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(
            it, *({"track_id": each, "rating_count": each, "enrichment_source": "itunes"} for each in range(1, 131))
        )
        async with shared.app.unit():
            assert await competitiveness.score_apps(range(1, 131)) == 130
        scored = await it.sql("select track_id from app_registry where competitiveness_score is not null")
        assert len(scored) == 130


async def test_the_apps_of_a_market_are_scored_a_page_at_a_time(pipeline: Opened, monkeypatch: Any) -> None:
    monkeypatch.setattr(competitiveness, "APPS_A_LOOK", 3)
    async with crawling(pipeline) as it:
        for track_id in range(1, 9):
            await enriched(it, track_id, track_id)
        await market(it, 1, *range(1, 8))
        assert await competitiveness.score_markets([1, 404]) == 7
        assert len(await it.sql(LEDGER)) == 7


# -- demand ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B4-05", "B4-08", "G2-19")
async def test_the_given_keywords_are_weighed_by_the_apps_that_rank_for_them(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_keywords(it, "budget", "planner", "nobody", "not asked", HOSTILE)
        for track_id in range(1, 13):
            await enriched(it, track_id, 10**6 - 1 if track_id < 11 else 5)
        await ranked(it, "budget", *range(1, 13))
        await ranked(it, "planner", 1, 404)
        await ranked(it, "not asked", 1)
        await ranked(it, HOSTILE, 12)
        for _ in range(2):
            async with shared.app.unit():
                weighed = await demand.weigh(["budget", "planner", "nobody", "unknown word", HOSTILE])
        assert weighed == demand.Weighed(processed=5, clusters_found=2)
        rows = await it.sql("select keyword, demand from crawl_keywords")
        told = {row.keyword: row.demand for row in rows}
        assert (told["budget"], told["nobody"], told["not asked"]) == (100.0, 0.0, None)
        assert told["planner"] == pytest.approx(100 / (7_381 / 2_520), abs=1e-4)
        assert len(await it.sql(LEDGER)) == 5
        strongest = await it.sql("select agent, key, value from agent_memory")
        assert [tuple(row) for row in strongest] == [
            ("demand", "strongest keyword", '{"amount":100.0,"subject":"budget"}')
        ]


# -- fragmentation --------------------------------------------------------------------------------------------------


@pytest.mark.spec("B4-06", "B4-08", "G2-19")
async def test_a_monopoly_is_not_dispersed_and_ten_equals_are(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for track_id in range(1, 12):
            await enriched(it, track_id, 7 if track_id < 11 else 10**6)
        await market(it, 1, *range(1, 11))
        await market(it, 2, 11)
        await market(it, 3, 11, ended_at=NOW)
        await market(it, 4, 11)
        await market(it, 5)
        for _ in range(2):
            async with shared.app.unit():
                analysis = await fragmentation.analyze([2, 1, 3, 404, 5, 1])
        assert analysis.clusters_analyzed == 3
        told = [(scored.cluster_id, scored.score) for scored in analysis.scores]
        assert told == [(2, 0.0), (1, pytest.approx(90.0)), (5, 0.0)]
        rows = await it.sql("select id, fragmentation from market_clusters order by id")
        assert [(row.id, row.fragmentation) for row in rows] == [(1, 90.0), (2, 0.0), (3, None), (4, None), (5, 0.0)]
        assert [row.subject_id for row in await it.sql(LEDGER)] == ["1", "2", "5"]


# -- design ---------------------------------------------------------------------------------------------------------


async def dispersed(it: Pipeline) -> None:
    for track_id in (1, 2, 3):
        await enriched(it, track_id, 100, track_name=f"Budget {track_id}")
    scores = {"demand": 61.2, "competitiveness": 40.0}
    await market(it, 1, 1, 2, 3, fragmentation=66.7, **scores)
    await market(it, 2, 1, fragmentation=10.0, **scores)
    await market(it, 3, 1, **scores)
    await insert(it, "cluster_keywords", {"cluster_id": 1, "keyword": "budget planner", "weight": 2.0})
    at = {"reviewed_at": NOW, "seen_at": NOW, "rating": 1}
    bad = [{"review_id": f"r{n}", "track_id": 1, "title": "Too many ads", "sentiment": -0.8, **at} for n in range(3)]
    await insert(it, "app_reviews", *bad, {"review_id": "x", "track_id": 2, "title": "Love", "sentiment": 0.9, **at})


@pytest.mark.spec("B4-07", "B4-08", "G2-19")
async def test_a_dispersed_market_gets_one_concept_made_from_what_is_known_about_it(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await dispersed(it)
        first = await design.design([1, 2, 3, 404])
        assert (first.cluster_ids, first.concepts_generated) == ([1, 2], 1)
        assert (await design.design([1, 2])).concepts_generated == 0

        [concept] = await it.sql("select cluster_id, title, body, made_by from design_concepts")
        assert (concept.cluster_id, concept.title, concept.made_by) == (
            1,
            "A better app for budget planner",
            design.OFFLINE,
        )
        for word in ("61 of 100", "Budget 1", "Too many ads", "40 of 100"):
            assert word in concept.body
        assert "Love" not in concept.body
        assert [(row.agent, row.subject_id) for row in await it.sql(LEDGER)] == [("design", "1")]


async def test_a_market_that_has_moved_gets_a_new_concept_in_place_of_the_old(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await dispersed(it)
        await design.design([1])
        await write(it, "update market_clusters set demand = 61.3 where id = 1")
        assert (await design.design([1])).concepts_generated == 0
        await write(it, "update market_clusters set demand = 80 where id = 1")
        assert (await design.design([1])).concepts_generated == 1
        [concept] = await it.sql("select body from design_concepts")
        assert "80 of 100" in concept.body


@pytest.mark.spec("B4-08")
async def test_what_the_agents_remember_and_believe_is_read_by_the_designer(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await dispersed(it)
        bare = await brief_of(1)
        assert bare is not None
        assert (bare.demand_of_strongest, bare.ratings_decide) == (None, None)
        at = {"updated_at": NOW}
        strongest = '{"amount":80.0,"subject":"games"}'
        await insert(it, "agent_memory", {"agent": "demand", "key": "strongest keyword", "value": strongest, **at})
        belief = "many ratings make a high chart rank"
        await insert(it, "agent_core_beliefs", {"agent": "competitiveness", "belief": belief, "strength": 0.82, **at})
        brief = await brief_of(1)
        assert brief is not None
        assert (brief.demand_of_strongest, brief.ratings_decide) == (76, 0.8)
        body = design.drafted(brief).body
        assert "76 % of the strongest keyword" in body
        assert "ask for them from the first day" in body
        assert "can be found" in design.drafted(msgspec.structs.replace(brief, ratings_decide=0.1)).body


@pytest.mark.spec("B4-08")
async def test_what_an_event_teaches_an_agent_is_remembered_and_believed(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for rank in range(1, 41):
            await enriched(it, rank, 10_000 - 10 * rank)
        chart = {"collection": "topfreeapplications", "category": "6015", "snapshot_at": NOW}
        await insert(it, "chart_positions", *({"track_id": rank, "rank": rank, **chart} for rank in range(1, 41)))
        await insert_keywords(it, "budget")
        await ranked(it, "budget", 1, 2, 3)
        await market(it, 1, 1, 2, 3)

        await it.running.send(shared.events, shared.RankingsUpdated(keywords=["budget"]))
        await it.running.send(shared.events, shared.ClustersReady(cluster_ids=[1]))
        await it.running.advance(minutes=1)

        assert [tuple(row) for row in await it.sql("select agent, key from agent_memory")] == [
            ("demand", "strongest keyword")
        ]
        assert [tuple(row) for row in await it.sql("select agent, strength from agent_core_beliefs")] == [
            ("competitiveness", 1.0)
        ]


@pytest.mark.slow("postgres")
@pytest.mark.parametrize("text", ["", HOSTILE, "x" * 50_000, "\u202e\u05d0"])
def test_a_draft_is_bounded_whatever_the_names_are(text: str) -> None:
    brief = Brief(
        cluster_id=1, name=text, demand=1, competitiveness=2, fragmentation=77.0, demand_of_strongest=None,
        ratings_decide=None, keywords=(text,) * 8, apps=(text,) * 5, stars=None, complaints=(text,) * 3,
    )  # fmt: skip
    concept = design.drafted(brief)
    assert concept == design.drafted(brief)
    assert len(concept.title) <= design.TITLE_MAX
    assert len(concept.body) <= design.BODY_MAX


class Asked:
    """A model that answers as a test wants it."""

    is_offline = False

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.prompts: list[str] = []

    async def ask(self, *, prompt: str, **_: object) -> Any:
        self.prompts.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return type("Answer", (), {"value": self.answer, "model": "some-model"})()


@pytest.mark.parametrize(
    "answer, made_by",
    [
        ({"title": "Ledger\x00 for two", "body": "Build\n\nit.\u202e"}, "some-model"),
        ({"title": "No body"}, design.OFFLINE),
        (["not", "a", "dict"], design.OFFLINE),
        (ps.BudgetSpent("spent"), design.OFFLINE),
        (ps.Refused("policy"), design.OFFLINE),
        (ps.Unparsable("cut off"), design.OFFLINE),
    ],
)
@pytest.mark.spec("B4-07")
async def test_a_model_is_asked_once_and_the_template_stands_in_for_it(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, answer: Any, made_by: str
) -> None:
    async with crawling(pipeline) as it:
        await dispersed(it)
        model = Asked(answer)
        monkeypatch.setattr(design, "model", model)
        assert (await design.design([1])).concepts_generated == 1
        assert (await design.design([1])).concepts_generated == 0
        [concept] = await it.sql("select title, body, made_by from design_concepts")
        assert (concept.made_by, len(model.prompts)) == (made_by, 1)
        if made_by != design.OFFLINE:
            assert (concept.title, concept.body) == ("Ledger for two", "Build\n\nit.")


async def test_a_model_that_is_busy_costs_no_concept_that_was_paid_for(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        await dispersed(it)
        await market(it, 4, 1, 2, 3, fragmentation=80.0)
        model = Asked({"title": "One", "body": "Text"})
        monkeypatch.setattr(design, "model", model)
        await design.design([1])
        model.answer = ps.Throttled("429")
        with pytest.raises(ps.Throttled):
            await design.design([1, 4])
        model.answer = {"title": "Two", "body": "Text"}
        assert (await design.design([1, 4])).concepts_generated == 1
        assert len(model.prompts) == 3
        assert sorted(row.title for row in await it.sql("select title from design_concepts")) == ["One", "Two"]
