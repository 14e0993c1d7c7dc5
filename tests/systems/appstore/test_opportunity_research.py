"""What is made of a market: figures from the database, arguments from the figures, and a model only for the words."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
import pytest

import penstock as ps
from penstock.config import parse
from penstock.outbound.models import Model
from penstock.outbound.paid import Gateway
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages as stages  # what reacts to events is there once this is imported
from penstock_systems.appstore.opportunity import asking
from penstock_systems.appstore.opportunity.advice import playbook, tips
from penstock_systems.appstore.opportunity.asking import OFFLINE, given, invented
from penstock_systems.appstore.opportunity.debate import cons, debate, decided, pros, reason
from penstock_systems.appstore.opportunity.evidence import MIDDLE, believed, evidence
from penstock_systems.appstore.opportunity.facts import AppFacts, KeywordFacts, MarketFacts, middle
from penstock_systems.appstore.opportunity.gathering import complaints
from penstock_systems.appstore.opportunity.methods import RULES, method_scores
from penstock_systems.appstore.opportunity.opinions import WEIGHTS, opinions, overall
from penstock_systems.appstore.opportunity.references import references
from penstock_systems.standins.chat import Chat
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, leap
from tests.systems.appstore.market_rows import HOSTILE
from tests.systems.appstore.test_cluster_task import changed, fill
from tests.systems.appstore.test_opportunity_harness import NOW, plant, tasks, tell


def app(number: int, ratings: int, stars: float | None = 4.2, **more: Any) -> AppFacts:
    name, weight = f"App {number}", 1.0 / number
    return AppFacts(track_id=number, name=name, seller="Somebody", weight=weight, ratings=ratings, stars=stars, **more)


def market(**more: Any) -> MarketFacts:
    """Wanted, disliked, and nobody's."""
    usual: dict[str, Any] = {
        "cluster_id": 7,
        "lineage_id": 3,
        "name": "Sleep, noise",
        "score": 74.0,
        "demand": 72.0,
        "competitiveness": 38.0,
        "fragmentation": 84.0,
        "apps_count": 40,
        "keywords_count": 31,
        "apps": [app(at, 1_000 - 50 * at, 3.4, reviews=10, unhappy=4, price=0.0, languages=1) for at in range(1, 11)],
        "keywords": [KeywordFacts("sleep", 81.0), KeywordFacts("white noise", 64.0)],
        "ratings_total": 9_000,
        "ratings_first": 950,
        "ratings_three": 2_700,
        "complaints": ["subscription", "ads"],
        "neighbours": ["Meditation, calm"],
    }
    return MarketFacts(**usual | more)


LED = market(
    demand=35.0,
    competitiveness=80.0,
    fragmentation=15.0,
    apps=[app(1, 900_000, 4.8), app(2, 500, 4.7), app(3, 20, 4.6)],
    ratings_total=900_520,
    ratings_first=900_000,
    ratings_three=900_520,
    complaints=[],
)
UNKNOWN = market(
    demand=0.0,
    competitiveness=0.0,
    fragmentation=0.0,
    apps=[],
    keywords=[],
    apps_count=0,
    keywords_count=0,
    ratings_total=0,
    ratings_first=0,
    ratings_three=0,
    complaints=[],
    neighbours=[],
)
MARKETS = (market(), LED, UNKNOWN)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


def everything_said(facts: MarketFacts) -> str:
    said = opinions(facts)
    held = debate(facts, said)
    methods = method_scores(facts)
    parts = [each.says for each in said] + [each.text for each in held.messages]
    parts += [each.reason for each in methods] + tips(facts) + [reason(facts, held.verdict, held.score)]
    return "\n".join([*parts, playbook(facts, held.verdict, methods, {}, tips(facts))])


@pytest.mark.spec("B6-02", "G2-44")
@pytest.mark.slow("postgres")
def test_what_is_wanted_disliked_and_nobodys_is_built_and_what_has_a_leader_is_left() -> None:
    good, bad = (debate(facts, opinions(facts)) for facts in (market(), LED))
    assert (good.verdict, bad.verdict) == ("build", "avoid")
    assert good.score > 60 > 45 > bad.score
    assert [each.agent for each in good.messages] == ["advocate", "sceptic", "referee"]
    assert [each.agent for each in debate(market(change=-3.0), []).messages] == [
        "advocate",
        "sceptic",
        "advocate",
        "referee",
    ]
    assert good.messages[-1].text == good.summary


@pytest.mark.slow("postgres")
def test_many_unhappy_reviews_are_a_reason_to_build() -> None:
    def unhappy(count: int, reviews: int = 10) -> bool:
        apps = [app(at, 1_000, reviews=reviews, unhappy=count) for at in range(1, 11)]
        return any("reviews are unhappy" in each.text for each in pros(market(apps=apps)))

    assert unhappy(9)
    assert unhappy(4)
    assert not unhappy(0)
    assert not unhappy(0, reviews=0)


@pytest.mark.slow("postgres")
@pytest.mark.parametrize(
    "score, objections, verdict",
    [(80, 0, "build"), (60, 1, "build"), (60, 2, "watch"), (59, 0, "watch"), (44, 0, "avoid"), (80, 4, "avoid")],
)
def test_a_verdict_follows_from_the_score_and_the_objections(score: float, objections: int, verdict: str) -> None:
    assert decided(score, objections) == verdict


@pytest.mark.slow("postgres")
def test_who_knows_nothing_says_nothing_and_the_others_decide() -> None:
    said = opinions(UNKNOWN)
    assert {each.agent for each in said} == {"demand", "rivals", "room"}
    assert {each.agent for each in opinions(market())} == set(WEIGHTS)
    assert overall([]) == 0.0
    assert "few ratings" in " ".join(each.text for each in cons(UNKNOWN))
    assert pros(UNKNOWN) == [] or all("0 of 100" in each.text for each in pros(UNKNOWN))


@pytest.mark.slow("postgres")
def test_a_good_score_that_rests_on_little_is_believed_less_and_a_bad_one_gains_nothing() -> None:
    known = market()
    for little in ({"apps_count": 3}, {"keywords_count": 2}, {"ratings_total": 80, "ratings_first": 20}):
        small = market(**little)
        assert small.known < 0.5 < known.known < 1.0
        assert MIDDLE < debate(small, opinions(small)).score < debate(known, opinions(known)).score
        assert any("based on little data" in each.text for each in cons(small))
    assert believed(80.0, 0.0) == MIDDLE
    assert believed(80.0, 1.0) == 80.0
    assert [believed(30.0, each) for each in (0.0, 0.5, 1.0)] == [30.0, 30.0, 30.0]
    assert evidence(apps=10, keywords=1_000) == evidence(apps=1_000, keywords=5) == 0.5
    assert evidence(apps=0, keywords=9, ratings=9) == evidence(apps=-1, keywords=9) == 0.0
    assert evidence(apps=90, keywords=45, ratings=0) == 0.0


@pytest.mark.slow("postgres")
def test_the_reason_is_one_sentence_with_the_figures_that_decided() -> None:
    facts = market()
    told = reason(facts, "build", 71.2)
    assert told == (
        "Build (71 of 100): demand is 72 of 100, rivals are 38 of 100 hard, the visible apps have 3.4 stars, 10 of 10 below "
        "4, the first of 40 apps holds 11 % of the ratings, and 40 of 100 reviews are unhappy."
    )
    assert reason(UNKNOWN, "avoid", 0.0) == "Avoid (0 of 100): demand is 0 of 100, and rivals are 0 of 100 hard."


@pytest.mark.slow("postgres")
@pytest.mark.parametrize("facts", MARKETS)
def test_no_figure_is_invented(facts: MarketFacts) -> None:
    """Every number that is said is one that was read, rounded, or a score that was computed from those."""
    known = numbers(msgspec.json.encode(given(facts)).decode())
    said = opinions(facts)
    computed = [each.score for each in method_scores(facts)] + [believed(overall(said), facts.known)]
    counted = {"4", "100", "1", "2", "3", str(len(pros(facts))), str(len(cons(facts))), str(len(facts.visible))}
    shown = {number.replace(",", "") for number in known} | counted
    shown |= {f"{float(number.replace(',', '')):.0f}" for number in known} | {f"{each:.0f}" for each in computed}
    shown |= {f"{float(number.replace(',', '')):.1f}" for number in known}
    shown |= {f"{middle([each.ratings for each in facts.visible]):.0f}"}
    shown |= {"0", str(sum(each.languages == 1 for each in facts.visible)), str(len(facts.neighbours))}
    assert {number.replace(",", "") for number in numbers(everything_said(facts))} <= shown


@pytest.mark.slow("postgres")
def test_reference_apps_have_the_role_that_fits_them() -> None:
    apps = [
        app(1, 9_000, 4.7),
        app(2, 8_000, 3.1),
        app(3, 10, 4.9, velocity=55.0),
        app(4, 5, 4.1, reviews=10, unhappy=8),
        app(5, 4, 4.0, reviews=3, unhappy=3),
        app(6, 7_000, 4.5, velocity=1.0),
    ]
    roles = {each.app.track_id: each.role for each in references(market(apps=apps))}
    assert roles == {2: "weak leader", 1: "leader", 6: "leader", 3: "rising", 4: "disliked"}
    assert references(UNKNOWN) == []


@pytest.mark.slow("postgres")
@pytest.mark.parametrize("facts", MARKETS)
def test_every_method_has_a_score_and_a_reason(facts: MarketFacts) -> None:
    found = method_scores(facts)
    assert {each.method_id for each in found} == set(RULES)
    assert all(0 <= each.score <= 100 and each.reason for each in found)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.slow("postgres")
def test_methods_follow_the_figures() -> None:
    good, led = ({each.method_id: each.score for each in method_scores(facts)} for facts in (market(), LED))
    assert good["unhappy-users"] > led["unhappy-users"]
    assert good["store-search"] > led["store-search"]
    assert good["languages"] == 100.0


@pytest.mark.slow("postgres")
def test_tips_and_plan_name_keywords_rivals_and_complaints() -> None:
    told = "\n".join(tips(market()))
    assert 'Put "sleep" into the title: its demand is 81 of 100.' in told
    assert '"subscription", "ads"' in told
    assert "App 1: 950 people rated it, with 3.4 stars" in told
    assert len(tips(UNKNOWN)) == 1
    methods = method_scores(market())
    plan = playbook(market(), "build", methods, {methods[0].method_id: "The first way"}, tips(market()))
    assert "Month 1: The first way" in plan
    assert "Month 3:" in plan


@pytest.mark.slow("postgres")
def test_a_keyword_that_may_be_somebodys_name_is_not_recommended() -> None:
    words = [("zanopi sleep", 90.0), ("sleep", 80.0), ("sleep sounds", 70.0), ("rain sounds", 60.0), ("rain", 50.0)]
    told = tips(market(keywords=[KeywordFacts(*each) for each in words]))[0]
    assert told == 'Put "sleep" into the title: its demand is 80 of 100. Then "rain sounds" into the subtitle, with 60.'


class Said(NamedTuple):
    rating: int
    title: str
    body: str
    sentiment: float | None = None


@pytest.mark.slow("postgres")
def test_complaints_are_words_of_the_unhappy_and_not_of_everybody() -> None:
    unhappy = [Said(1, "Crashes", "It crashes every morning when I sleep", -0.9)] * 3
    happy = [Said(5, "Nice", "I use it every morning when I wake", 0.9)] * 3
    assert complaints([*unhappy, *happy], without={"sleep"}) == ["crashes"]
    assert complaints(happy, without=set()) == []
    assert complaints([Said(2, "Slow", "Slow")] * 2, without=set()) == ["slow"]  # nobody has judged the tone


# -- the workflow ---------------------------------------------------------------------------------------------

TABLES = (
    "opportunity_evaluations",
    "opportunity_reference_apps",
    "opportunity_method_scores",
    "debate_reports",
    "debate_messages",
    "market_tips",
    "marketing_playbooks",
)
COUNTS = {
    "opportunity_evaluations": "select count(*) as n from opportunity_evaluations",
    "opportunity_reference_apps": "select count(*) as n from opportunity_reference_apps",
    "opportunity_method_scores": "select count(*) as n from opportunity_method_scores",
    "debate_reports": "select count(*) as n from debate_reports",
    "debate_messages": "select count(*) as n from debate_messages",
    "market_tips": "select count(*) as n from market_tips",
    "marketing_playbooks": "select count(*) as n from marketing_playbooks",
}


async def counts(it: Pipeline) -> dict[str, int]:
    return {table: (await it.sql(sql))[0].n for table, sql in COUNTS.items()}


async def evaluations(it: Pipeline) -> list[Any]:
    return await it.sql(
        "select id, cluster_id, lineage_id, name, verdict, score, reason, facts, made_by, run_id, created_at "
        "from opportunity_evaluations order by id limit 100"
    )


@pytest.mark.spec("B6-02", "B8-T22", "B8-T23", "B8-T25", "B8-T26", "B8-T27", "B8-T42")
async def test_without_a_key_every_table_gets_its_rows_and_they_say_who_made_them(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await insert(
            it,
            "app_reviews",
            *(
                {
                    "review_id": f"r{at}",
                    "track_id": 100,
                    "rating": 1,
                    "title": "Crashes",
                    "body": "It crashes since the update.",
                    "sentiment": -0.8,
                    "reviewed_at": NOW,
                    "seen_at": NOW,
                }
                for at in range(12)
            ),
        )
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert await counts(it) == {
            "opportunity_evaluations": 1,
            "opportunity_reference_apps": 4,
            "opportunity_method_scores": 10,
            "debate_reports": 1,
            "debate_messages": 4,
            "market_tips": 2,
            "marketing_playbooks": 1,
        }
        [found] = await evaluations(it)
        assert (found.id, found.run_id, found.made_by) == ("market-1-2026-01-01", "market-1-2026-01-01", OFFLINE)
        assert "12 of 12 reviews are unhappy" in found.reason
        facts = msgspec.json.decode(found.facts)
        assert facts["complaints"] == ["crashes", "since", "update"]  # nobody is happy here
        assert facts["unhappy_per_cent"] == 100
        [report] = await it.sql("select transcript, summary from debate_reports")
        assert report.transcript.startswith("Advocate: ")
        assert report.transcript.endswith(f"Referee: {report.summary}")


@pytest.mark.spec("B4-02", "G2-18", "B5-05")
async def test_from_rankings_to_an_evaluation_without_a_hand_in_between(pipeline: Opened) -> None:
    """Clusters are told of, agents judge them, and the best are looked into."""
    async with crawling(pipeline) as it:
        await fill(it)
        await changed(it)
        await shared.app.crons.trigger("cluster")
        await it.running.advance(hours=1)
        done = await tasks(it)
        assert done, "the chain ends in a workflow"
        assert set(done.values()) == {"done"}
        found = await evaluations(it)
        scores = await it.sql(
            "select id, opportunity_score from market_clusters order by opportunity_score desc, id limit 9"
        )
        assert {row.cluster_id for row in found} == {row.id for row in scores}
        assert all(row.verdict in ("build", "watch", "avoid") and row.reason for row in found)


async def test_the_same_facts_make_the_same_rows_to_the_byte(pipeline: Opened) -> None:
    ends = []
    for _ in range(2):
        async with crawling(pipeline) as it:
            await plant(it, 75.0, 72.0)
            await tell(it, 2, 1)
            await it.running.advance(minutes=5)
            rows = [tuple(row) for row in await evaluations(it)]
            said = await it.sql(
                "select report_id, seq, agent, text from debate_messages order by report_id, seq limit 99"
            )
            ends.append((rows, [tuple(row) for row in said]))
    assert ends[0] == ends[1]


async def test_hostile_names_are_data_wherever_they_are_written(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        for at, title in enumerate(HOSTILE):
            row = {"track_id": 5_000 + at, "track_name": title, "rating_count": 10_000 + at, "average_rating": 2.0}
            await insert(it, "app_registry", row | {"first_seen_at": NOW, "last_seen_at": NOW})
            await insert(it, "cluster_apps", {"cluster_id": 1, "track_id": 5_000 + at, "weight": 1.0})
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert await tasks(it) == {"market-1-2026-01-01": "done"}
        assert (await counts(it))["debate_messages"] >= 3


# -- with a model ---------------------------------------------------------------------------------------------

SETTINGS = """
[models.analyst]
base_url = "https://models.example/v1"
model = "small-1"
key_env = "PIPELINE_MODEL_KEY"
usd_per_million_prompt_tokens = 1.0
usd_per_million_completion_tokens = 4.0
"""
KEYS = re.compile(r"^- (.+?): ", re.MULTILINE)


def answered(monkeypatch: pytest.MonkeyPatch, reply: Any, budgets: ps.Budgets | None = None) -> Chat:
    """The analyst asks a stand-in from now on, within these budgets."""
    chat = Chat(reply=reply)
    monkeypatch.setenv("PIPELINE_MODEL_KEY", chat.manners.key)
    config = parse(SETTINGS, "penstock.toml").models["analyst"]
    gateway = asking.gateway if budgets is None else Gateway(shared.app._opened, "pipeline-research", budgets)
    model = Model("analyst", config, gateway, None, shared.app.http)
    model.client.mount("https://models.example", chat.app)
    monkeypatch.setattr(asking, "model", model)
    return chat


def texts(asked: dict[str, Any], text: str) -> str:
    """An answer that has every key that was asked for."""
    prompt = asked["messages"][-1]["content"]
    return msgspec.json.encode({key: f"{text} ({key})" for key in KEYS.findall(prompt)}).decode()


@pytest.mark.spec("B6-03", "B6-02")
async def test_a_model_writes_the_words_and_every_call_is_in_the_ledger(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = answered(monkeypatch, lambda asked: texts(asked, "It is wanted: 60 of 100"))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        [found] = await evaluations(it)
        assert found.made_by == "small-1-stand-in"
        assert found.reason == "It is wanted: 60 of 100 (reason)"
        calls = await it.sql("select service, run, state from api_calls_ledger limit 100")
        assert [(row.service, row.run, row.state) for row in calls] == [
            ("pipeline-research", "market-1-2026-01-01", "settled")
        ] * 3
        assert len(chat.book.asked) == 3
        plain = "\n".join(str(asked["messages"]) for asked in chat.book.asked)
        assert "never instructions" in plain


@pytest.mark.parametrize(
    "reply",
    [
        lambda asked: texts(asked, "Its market is worth 340 million dollars"),
        lambda asked: '{"reason": "only this"}',
        lambda asked: "[1, 2]",
        lambda asked: "I am sorry, I cannot do that.",
    ],
)
async def test_an_answer_that_is_no_good_is_replaced_by_the_offline_analysts(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, reply: Any
) -> None:
    chat = answered(monkeypatch, reply)
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        [found] = await evaluations(it)
        assert chat.book.answered == 3
        assert found.made_by == OFFLINE
        assert found.reason.startswith(("Build", "Watch", "Avoid"))


@pytest.mark.spec("B6-03")
async def test_a_run_that_would_cost_more_than_it_may_asks_nobody_and_says_so(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = answered(monkeypatch, lambda asked: texts(asked, "It is wanted"), ps.Budgets(run=0.000_001))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert await tasks(it) == {"market-1-2026-01-01": "budget_exceeded"}
        assert chat.book.requests == 0


@pytest.mark.spec("B6-03")
async def test_a_day_that_pays_for_one_question_makes_three_days_of_three(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question may cost a little less than the budget, and what is left after one is too little for another."""
    chat = answered(monkeypatch, lambda asked: texts(asked, "It is wanted. " * 20), ps.Budgets(day=0.005))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        asked = []
        for _ in range(3):
            await it.running.advance(minutes=5)
            asked.append((chat.book.answered, (await tasks(it))["market-1-2026-01-01"]))
            await leap(it, days=1)
        assert asked == [(1, "running"), (2, "running"), (3, "done")]


async def test_a_key_that_is_refused_is_told_of_and_the_offline_analyst_does_the_work(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chat = answered(monkeypatch, lambda asked: texts(asked, "It is wanted"))
    monkeypatch.setenv("PIPELINE_MODEL_KEY", "sk-of-somebody-else")
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert chat.book.answered == 0
        assert [row.made_by for row in await evaluations(it)] == [OFFLINE]
    told = [record for record in caplog.records if record.message == "analyst.refused"]
    assert len(told) == 3
    assert "sk-of-somebody-else" not in str([record.__dict__ for record in told])


@pytest.mark.slow("postgres")
def test_a_figure_that_was_not_given_is_noticed() -> None:
    figures = '{"demand": 72.456, "ratings": 12345}'
    assert not invented("Demand is 72, and 12,345 people rated three of its 10 apps 72.5.", figures)
    assert invented("Demand is 73.", figures)
    assert invented("It grows by 40 % a year.", figures)
