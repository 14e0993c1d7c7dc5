"""The founder's scores: what each part follows from, and what no market may gain by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.clusters_truth import crawl
from penstock_systems.appstore.cluster.crawled import KeywordFacts
from penstock_systems.appstore.cluster.franchises import is_owned
from penstock_systems.appstore.cluster.markets import computed, coverage
from penstock_systems.appstore.crawl import keyword_list
from penstock_systems.appstore.evaluate import memory
from penstock_systems.appstore.evaluate.beliefs import RATINGS_EXPLAIN_RANK
from penstock_systems.appstore.evaluate.competitiveness import AGENT
from penstock_systems.appstore.founder import Prospect, Rival, prospect, typed_score
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.crawling import crawling, cycle, day, insert, insert_keywords, run_task, write
from tests.systems.appstore.test_cluster_task import THEMES, changed, fill

USUAL = 4_000.0  # ratings beside the leader's, of the usual market
TYPED = (("sleep sounds", 3), ("white noise", 4), ("rain", 3))


def market(leader: int = 5_000, **changes: Any) -> list[Rival]:
    """Twenty apps that gain ratings, a quarter of them young; `changes` hold for all."""
    usual: dict[str, Any] = {"stars": 3.5, "age_days": 900, "idle_days": 40, "reviews": 20, "unhappy": 9}
    rivals = [Rival(at, leader // (at + 1), velocity=leader / (at + 1) / 900, **usual) for at in range(20)]
    young = [replace(app, age_days=200, velocity=app.ratings / 200) for app in rivals[5:10]]
    return [replace(app, **changes) for app in rivals[:5] + young + rivals[10:]]


def score(rivals: list[Rival], typed: tuple[tuple[str, int], ...] = TYPED) -> Prospect:
    return prospect(rivals, typed, usual=USUAL)


@pytest.mark.spec("B5-03")
def test_a_good_market_scores_seventy_and_each_thing_that_makes_a_trap_costs_it_that() -> None:
    good = score(market())
    assert good.score >= 70
    traps = {
        "giant": [replace(app, ratings=900_000) if app.track_id == 0 else app for app in market()],
        "left": market(velocity=0.0),
        "nobody starts": market(age_days=2_000),
        "content": market(stars=4.8, unhappy=0),
    }
    for name, rivals in traps.items():
        assert score(rivals).score < good.score - 5, name
    assert score(market(), tuple((word, 0) for word, _ in TYPED)).score < good.score - 5
    assert score(traps["left"]).score < 50 > score(traps["giant"]).score


def test_demand_is_not_what_the_incumbents_were_rated() -> None:
    """Ten times the ratings of the leader make a market no more wanted."""
    usual, strong = score(market()), [replace(app, ratings=40_000) if app.track_id == 0 else app for app in market()]
    assert score(strong).demand == pytest.approx(usual.demand, abs=0.5)
    assert score(strong).difficulty > usual.difficulty + 15


def test_a_market_that_is_small_beside_the_usual_one_is_a_hobby_however_weak_its_leader_is() -> None:
    unmeasured = {"velocity": None, "age_days": None, "idle_days": None, "reviews": 0, "unhappy": 0}
    hobby, real = score(market(400, **unmeasured), ()), score(market(9_000, **unmeasured), ())
    assert hobby.difficulty < real.difficulty
    assert hobby.score < 40 < 55 < real.score
    # The same market is a large one where the others are small.
    assert prospect(market(400, **unmeasured), usual=500).score > hobby.score + 10


def test_what_is_not_known_counts_in_neither_direction() -> None:
    unknown = market(velocity=None, age_days=None, idle_days=None, reviews=0, unhappy=0)
    found = score(unknown, ())
    assert found.room is None
    assert found.demand is not None  # that users rate these apps is known
    assert found.known < 1.0 == score(market()).known
    assert prospect([]).demand == 0.0


def test_a_market_whose_demand_is_only_guessed_from_ratings_is_believed_less() -> None:
    """It comes after one of the same apps that users are known to type and that is known to grow."""
    guessed = score(market(velocity=None), ())
    assert guessed.score < score(market()).score - 5
    assert guessed.known < 0.7


def test_few_apps_with_few_ratings_are_believed_less_and_a_bad_score_gains_nothing() -> None:
    few = score(market(leader=60)[:3])
    assert few.score < 60 < score(market()).score
    bad = score(market(velocity=0.0, age_days=2_000)[:3], (("x", 0),))
    assert bad.score < 30


def test_an_abandoned_leader_is_a_reason_to_start() -> None:
    kept, left = score(market()), score(market(idle_days=500))
    assert left.figures.leaders_abandoned == 5 > kept.figures.leaders_abandoned == 0
    assert (left.dissatisfaction or 0) > (kept.dissatisfaction or 0)


def test_a_belief_that_ratings_do_not_decide_makes_strong_apps_less_of_an_obstacle() -> None:
    usual, believed = prospect(market(), TYPED), prospect(market(), TYPED, ratings_decide=0.2)
    assert believed.difficulty < usual.difficulty
    assert believed.score > usual.score


def test_the_earlier_a_keyword_is_completed_the_more_it_is_typed() -> None:
    scores = [typed_score(letters) for letters in (2, 3, 5, 8, 20, 0)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 100.0
    assert scores[-1] == 0.0


@pytest.mark.spec("B4-08")
async def test_a_belief_is_kept_with_its_evidence_and_changes_a_later_score(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it, ["sleep"])
        difficulty = []
        for at, strength in enumerate((0.9, 0.85, 0.2)):
            async with it.running.unit():
                now = f"2026-01-0{at + 1} 12:00:00"
                memory.believe(AGENT, RATINGS_EXPLAIN_RANK, strength, f"finding {at}", now)
                memory.believe(AGENT, RATINGS_EXPLAIN_RANK, strength, f"finding {at}", now)  # the same one again
            await changed(it)
            await run_task(it, "cluster")
            difficulty += [row.competitiveness for row in await it.sql("select competitiveness from market_clusters")]
        assert difficulty[0] > difficulty[1] > difficulty[2]
        [held] = await it.sql("select belief, strength, evidence, since, confirmed, refuted from agent_core_beliefs")
        assert (held.strength, held.evidence, held.since) == (0.2, "finding 2", "2026-01-03 12:00:00")
        assert (held.confirmed, held.refuted) == (2, 1)


# -- franchises ---------------------------------------------------------------------------------------------------


def test_a_name_is_written_like_one_in_every_sentence_and_a_word_is_not() -> None:
    texts = [
        "Made by fans of Blokoria. Every skin for Blokoria is free. BLOKORIA!",
        "The largest map of Blokoria: find your way through blokoria.",
        "All you need to play Blokoria with friends.",
    ]
    assert is_owned("blokoria", texts)
    assert not is_owned("blokoria", texts[:2])  # too few who write it
    budgets = ["Plan your Budget here.", "Keep a budget. Your budget, your rules.", "The budget that works, a budget."]
    assert not is_owned("budget", budgets)
    assert not is_owned("roller", ["Roller Coaster Builder. THE ROLLER COASTER. Roller Rush!"] * 9)  # headings
    assert not is_owned("gps", ["All of the GPS you need, and more GPS."] * 9)
    assert not is_owned("halloween", ["Sounds for Halloween, made for Halloween."] * 9)
    assert not is_owned("a(b", ["whatever a(b"] * 5)


async def test_a_market_of_a_franchise_is_set_apart(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it, ["sleep", "money"])
        await write(it, "update app_registry set track_name = 'Osmoria ' || track_name where track_id < 2000")
        told = "Made for Osmoria players, by people who love Osmoria."
        await write(it, "update app_registry set description = :told", told=told)

        await run_task(it, "cluster")
        rows = await it.sql("select name, franchise from market_clusters order by id limit 10")
        assert sorted(str(row.franchise) for row in rows) == ["None", "osmoria"]


# -- what feeds them ------------------------------------------------------------------------------------------------


async def test_the_store_is_asked_to_complete_the_typical_keywords_of_each_market(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        words = [word for known in it.store.truth().markets[:1] for word in known.keywords[:6]]
        await insert_keywords(it, *({"keyword": word, "status": "searched", "typed_due": "2026"} for word in words))
        asked = it.store.truth().books["hints"]
        assert (await cycle(it))["keywords_completed"] == len(words)
        rows = await it.sql("select keyword, typed, typed_at, typed_due from crawl_keywords order by keyword limit 10")
        assert {row.typed_due for row in rows} == {None}
        assert all(0 <= row.typed <= len(row.keyword) for row in rows)
        before = asked.answered
        assert before > 0
        await write(it, "update crawl_keywords set typed_due = '2026'")
        await cycle(it)
        assert asked.answered == before  # a prefix is asked for once a week
        await fill(it, ["sleep"])
        await run_task(it, "cluster")
        due = await it.sql("select keyword from crawl_keywords where typed_due is not null limit 20")
        assert {row.keyword for row in due} <= set(THEMES["sleep"])


async def test_keywords_of_many_titles_are_searched_first(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for words in (["alpha", "zebra"], ["zebra", "yak"], ["zebra"]):
            async with it.running.unit():
                keyword_list.add(words, source="test", now="2026-01-01 00:00:00")
        assert [row.keyword for row in await keyword_list.pending(3)] == ["zebra", "alpha", "yak"]


async def test_the_ratings_of_apps_in_markets_are_counted_every_day(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        catalogue = it.store.catalogue
        sold = [index for index in range(200) if catalogue.sold(index, 0, "us") and catalogue.app(index).ratings > 100]
        ids = [catalogue.track_id(index) for index in sold[:5]]
        seen = {"first_seen_at": "2025-01-01 00:00:00", "last_seen_at": "2025-01-01 00:00:00"}
        await insert(it, "app_registry", *({"track_id": id, "rating_count": 1, **seen} for id in ids))
        row = {"id": 1, "lineage_id": 1, "name": "A", "opportunity_score": 80.0}
        await insert(it, "market_clusters", row | {"first_seen_at": "2025", "computed_at": "2025"})
        await insert(it, "cluster_apps", *({"cluster_id": 1, "track_id": id, "weight": 1.0} for id in ids))
        assert (await day(it))["ratings"] == {"apps": 5, "found": 5, "status": "done"}
        rows = await it.sql("select rating_count, version_released_at from app_registry order by track_id limit 9")
        assert all(row.rating_count > 100 and row.version_released_at for row in rows)
        assert (await it.sql("select count(*) as n from app_snapshots"))[0].n == 5


def test_a_market_is_known_as_far_as_the_keywords_of_its_titles_were_searched() -> None:
    facts = KeywordFacts(waiting={"white noise": 3, "zurx": 1})
    assert coverage(["White noise"], facts, {"white", "noise"}) == pytest.approx(2 / 3, abs=1e-3)
    assert coverage(["Zurx"], facts, set()) == 1.0  # a keyword of one title is a name
    assert coverage([], facts, set()) == 1.0


def test_the_same_crawl_by_the_article_is_scored_as_the_article_says() -> None:
    known = crawl(1, apps=600, markets=6, keywords=300).crawled
    ours, theirs = computed(known).markets, computed(known, scores="article").markets
    assert {each.score.scores for each in ours} == {"founder 3"}
    assert {each.score.scores for each in theirs} == {"article 1"}
    assert [each.name for each in ours] == [each.name for each in theirs]
    assert [each.score for each in ours] != [each.score for each in theirs]
