"""What is made of a market: figures from the database, arguments from the figures, and a model only for the words."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock.config import parse
from penstock.outbound.models import Model
from penstock.outbound.paid import Gateway
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages as stages  # what reacts to events is there once this is imported
from penstock_systems.appstore.founder import Figures
from penstock_systems.appstore.keywords import of_several
from penstock_systems.appstore.opportunity import agents
from penstock_systems.appstore.opportunity.advice import playbook, tips
from penstock_systems.appstore.opportunity.agents import AGENTS, Claim, bears, offline_claims
from penstock_systems.appstore.opportunity.case import BUILD_SCORE, OFFLINE, WATCH_SCORE, case_of, decided, reason
from penstock_systems.appstore.opportunity.complaints import Complaint, Said, complaints
from penstock_systems.appstore.opportunity.facts import AppFacts, KeywordFacts, MarketFacts
from penstock_systems.appstore.opportunity.methods import RULES, method_scores
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


FIGURES = Figures(
    leader_ratings=950,
    follower_ratings=600,
    total_ratings=9_000,
    stars=3.4,
    leaders_known=5,
    leaders_abandoned=3,
    apps_dated=40,
    entrants=4,
    young=7,
    young_gain=1.4,
    old_gain=0.9,
    gain=31.0,
    momentum=0.8,
    typed=(("sleep", 3), ("white noise", 4), ("rain", 0)),
)


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
        "dissatisfaction": 62.0,
        "room": 88.0,
        "figures": FIGURES,
        "complaints": [
            Complaint("subscription", 9, "A subscription just for rain?", "r1", 1, "App 1", "2026-01-01"),
            Complaint("ads", 4, "Ads everywhere.", "r2", 2, "App 2", "2026-01-02"),
        ],
        "neighbours": ["Meditation, calm"],
    }
    made = usual | more
    return MarketFacts(**made | {"strongest": sorted(made["apps"], key=lambda each: -each.ratings)})


LED = market(
    score=31.0,
    dissatisfaction=10.0,
    figures=Figures(leader_ratings=900_000, follower_ratings=20, stars=4.8),
    room=20.0,
    demand=35.0,
    competitiveness=80.0,
    fragmentation=15.0,
    apps=[app(1, 900_000, 4.8), app(2, 500, 4.7), app(3, 20, 4.6)],
    ratings_total=900_520,
    ratings_first=900_000,
    complaints=[],
)
UNKNOWN = market(
    score=0.0,
    dissatisfaction=None,
    room=None,
    figures=Figures(),
    demand=0.0,
    competitiveness=0.0,
    fragmentation=0.0,
    apps=[],
    keywords=[],
    apps_count=0,
    keywords_count=0,
    ratings_total=0,
    ratings_first=0,
    complaints=[],
    neighbours=[],
)
MARKETS = (market(), LED, UNKNOWN)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


@pytest.mark.spec("B6-02", "G2-44")
@pytest.mark.slow("postgres")
def test_what_is_wanted_disliked_and_without_a_leader_is_built_and_what_has_a_giant_is_left() -> None:
    good, bad = case_of(market()), case_of(LED)
    assert (good.verdict, bad.verdict) == ("build", "avoid")
    assert len(good.favour) == 3
    assert bad.against.final
    assert "App 1 has 900,000 ratings" in bad.against.text
    assert [each.track_id for each in good.beat] == [1, 2, 3]
    assert good.beat[0].why == "3.4 stars; 4 of 10 recent reviews complain"


@pytest.mark.slow("postgres")
@pytest.mark.parametrize(
    "changes, told",
    [
        ({"franchise": "blokoria"}, "Blokoria, which has an owner"),
        ({"figures": replace(FIGURES, momentum=0.05)}, "Its users leave"),
        ({"figures": replace(FIGURES, typed=(("a", 0), ("b", 0)))}, "completes none of its 2 typical keywords"),
    ],
)
def test_one_final_objection_decides_against_any_score(changes: dict[str, Any], told: str) -> None:
    case = case_of(market(score=95.0, **changes))
    assert case.verdict == "avoid"
    assert told in case.against.text


@pytest.mark.slow("postgres")
@pytest.mark.parametrize(
    "score, final, early, verdict",
    [
        (BUILD_SCORE, False, False, "build"),
        (BUILD_SCORE, False, True, "watch"),
        (BUILD_SCORE - 0.1, False, False, "watch"),
        (WATCH_SCORE - 0.1, False, False, "avoid"),
        (99, True, False, "avoid"),
    ],
)
def test_a_verdict_follows_from_the_score_and_the_objections(
    score: float, final: bool, early: bool, verdict: str
) -> None:
    assert decided(score, final=final, early=early) == verdict


@pytest.mark.slow("postgres")
def test_a_market_of_which_nothing_is_known_has_an_objection_and_no_praise() -> None:
    case = case_of(UNKNOWN)
    assert (case.verdict, case.favour, case.beat) == ("avoid", (), ())
    assert case.against.text == "Demand is its weakest side: all its apps beside the leader have 0 ratings."
    early = case_of(market(coverage=0.3))
    assert (early.early, early.verdict) == (True, "watch")
    assert early.against.text == "It is early: 30 % of what its score rests on is known."


@pytest.mark.slow("postgres")
def test_the_reason_is_the_strongest_fact_on_each_side() -> None:
    facts = market()
    assert reason(case_of(facts)) == (
        "Build. Interest holds: its apps beside the leader gain 31 ratings a day, 80 % of the average over their lives. "
        "Against it: Its strongest app, App 1, has 950 ratings to catch up with."
    )
    assert reason(case_of(UNKNOWN)).startswith("Avoid. No figure speaks for it.")


@pytest.mark.slow("postgres")
@pytest.mark.parametrize("facts", MARKETS)
def test_every_fact_names_rows_that_are_there_and_holds_no_number_but_theirs(facts: MarketFacts) -> None:
    case = case_of(facts)
    rows = agents.evidence(facts)
    for fact in (*case.favour, case.against):
        assert fact.rows
        assert set(fact.rows) <= set(rows), fact
    claims = [each for each in offline_claims(case) if "times the usual follower" not in each.text]
    market_row = {facts.row: {**rows[facts.row], "counted": [facts.reviews, facts.unhappy]}}
    for claim in claims:
        assert bears(msgspec.structs.replace(claim, rows=(*claim.rows, facts.row)), {**rows, **market_row}), claim


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
def test_the_worst_app_is_named_as_the_disliked_one() -> None:
    apps = [app(1, 9_000, 4.7), *(app(at, 5, 4.1, reviews=10, unhappy=unhappy) for at, unhappy in ((2, 6), (3, 9)))]
    [worst, *_] = [each.app.track_id for each in references(market(apps=apps)) if each.role == "disliked"]
    assert worst == 3


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
def test_a_keyword_with_a_word_of_one_developer_alone_is_left_out_unless_users_type_it() -> None:
    apps = [
        SimpleNamespace(track_id=at, track_name=name, seller_name=seller)
        for at, (name, seller) in enumerate(
            [("Zanopi: Rain Sounds", "Z"), ("Zanopi Sleep", "Z"), ("Sleep Rain Sounds", None)]
        )
    ]
    words = ["zanopi sleep", "sleep", "rain sounds", "zanopi", "rain"]
    rows = [SimpleNamespace(keyword=word, typed=None) for word in words]
    assert [row.keyword for row in of_several(rows, apps)] == ["sleep", "rain sounds", "rain"]
    rows[3].typed = 4
    assert "zanopi" in [row.keyword for row in of_several(rows, apps)]
    assert of_several(rows[:2], apps) == rows[:2]  # too few are left


def review(number: int, rating: int, title: str, body: str, sentiment: float | None = None) -> Said:
    return Said(
        f"r{number}", number % 3, f"App {number % 3}", rating, title, body, sentiment, f"2026-01-{number % 28 + 1:02}"
    )


@pytest.mark.slow("postgres")
def test_complaints_are_terms_of_the_unhappy_and_not_of_everybody_each_with_a_quote() -> None:
    unhappy = [
        review(at, 1, "Bad", "Since this morning the login fails after the update. I use it a lot for sleep.", -0.9)
        for at in range(6)
    ]
    happy = [review(at, 5, "Nice", "I use it a lot every morning when I wake, for sleep.", 0.9) for at in range(6, 20)]
    found = complaints([*unhappy, *happy], without={"sleep"})
    assert found[0].term == "login fails"
    assert found[0].reviews == 6
    assert "login fails" in found[0].quote
    assert (found[0].app, found[0].at) == ("App 2", "2026-01-06")  # the newest says it
    assert "sleep" not in " ".join(each.term for each in found)
    assert "morning" not in [each.term for each in found]
    assert complaints(happy) == []


@pytest.mark.slow("postgres")
def test_words_of_any_text_are_no_complaint() -> None:
    unhappy = [
        review(at, 1, "", "They have never done anything about it, still the same after this.") for at in range(9)
    ]
    assert complaints(unhappy) == []


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
        facts = msgspec.json.decode(found.facts)
        assert facts["favour"][0]["text"].startswith("12 of 12 recent reviews complain")
        assert facts["complaints"][0]["quote"]
        assert facts["against"]["rows"] == ["market:1"]
        [report] = await it.sql("select transcript, summary from debate_reports")
        assert report.transcript.startswith("Users: 12 of 12 recent reviews complain")
        assert report.transcript.endswith(f"Judge: {report.summary}")


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


def answered(monkeypatch: pytest.MonkeyPatch, reply: Any, budgets: ps.Budgets | None = None) -> Chat:
    """The analyst asks a fake model from now on, within these budgets."""
    chat = Chat(reply=reply)
    monkeypatch.setenv("PIPELINE_MODEL_KEY", chat.manners.key)
    config = parse(SETTINGS, "penstock.toml").models["analyst"]
    gateway = agents.gateway if budgets is None else Gateway(shared.app._opened, "pipeline-research", budgets)
    model = Model("analyst", config, gateway, None, shared.app.http)
    model.client.mount("https://models.example", chat.app)
    monkeypatch.setattr(agents, "model", model)
    return chat


def replied(asked: dict[str, Any], text: str, rows: list[str], verdict: str = "build") -> str:
    """The same claim from every agent, and a verdict from the judge."""
    if "You are the judge" in asked["messages"][-1]["content"]:
        return msgspec.json.encode({"verdict": verdict, "reason": text, "rows": rows}).decode()
    return msgspec.json.encode({"claims": [{"text": text, "rows": rows}]}).decode()


@pytest.mark.spec("B6-03", "B6-02")
async def test_four_agents_and_a_judge_are_asked_with_the_evidence_by_id(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = answered(monkeypatch, lambda asked: replied(asked, "Its demand is 60 of 75.", ["market:1"], "watch"))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        [found] = await evaluations(it)
        assert (found.made_by, found.verdict) == ("small-1-stand-in", "watch")
        assert found.reason == "Its demand is 60 of 75."
        calls = await it.sql("select service, run, state from api_calls_ledger limit 100")
        assert [(row.service, row.run, row.state) for row in calls] == [
            ("pipeline-research", "market-1-2026-01-01", "settled")
        ] * 5
        prompts = [str(asked["messages"]) for asked in chat.book.asked]
        assert all("never instructions" in prompt and "market:1" in prompt for prompt in prompts)
        assert sum("app:100" in prompt for prompt in prompts) == len(AGENTS)
        said = await it.sql("select agent, text from debate_messages order by seq limit 9")
        assert [row.agent for row in said] == [*AGENTS, "judge"]
        assert said[0].text == "Its demand is 60 of 75. [market:1]"


@pytest.mark.spec("B6-03")
async def test_an_agent_hears_those_before_it_and_disputes_a_claim_that_was_made(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(asked: dict[str, Any]) -> str:
        prompt = asked["messages"][-1]["content"]
        if "You are the judge" in prompt:
            return replied(asked, "The first claim does not hold.", ["market:1"], "avoid")
        claim = {"text": "Many want it.", "rows": ["market:1"], "disputes": 1}  # the first to speak can dispute nothing
        if AGENTS["sceptic"] in prompt:
            claim = {"text": "Its demand is 60 of 75.", "rows": ["market:1"], "disputes": 1}
        elif AGENTS["rivals"] in prompt:
            claim |= {"disputes": 99}
        return msgspec.json.encode({"claims": [claim]}).decode()

    chat = answered(monkeypatch, reply)
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        prompts = [asked["messages"][-1]["content"] for asked in chat.book.asked]
        heard = [prompt.count('"agent":') for prompt in prompts]
        assert heard == [0, 1, 2, 3, 4]
        said = await it.sql("select agent, text from debate_messages order by seq limit 9")
        assert [row.text for row in said] == [
            "Many want it. [market:1]",
            "Against “Many want it.”: Many want it. [market:1]",
            "Against “Many want it.”: Its demand is 60 of 75. [market:1]",
            "Many want it. [market:1]",
            "The first claim does not hold.",
        ]
        assert [row.agent for row in said] == [*AGENTS, "judge"]


@pytest.mark.parametrize(
    "text, rows",
    [
        ("Its market is worth 340 million dollars.", ["market:1"]),
        ("Its demand is 60.", []),
        ("Its demand is 60.", ["market:2"]),
        ("Its demand is 60.", ["market:1", "app:999999"]),
    ],
)
async def test_a_claim_without_a_row_or_with_a_wrong_number_is_struck_and_the_figures_decide(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, text: str, rows: list[str]
) -> None:
    answered(monkeypatch, lambda asked: replied(asked, text, rows))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        [found] = await evaluations(it)
        assert found.made_by == OFFLINE
        said = await it.sql("select text from debate_messages limit 9")
        assert not any(text in row.text for row in said)


@pytest.mark.parametrize("reply", ["[1, 2]", "I am sorry.", '{"claims": 3}', '{"claims": [4, {"text": 5}]}'])
async def test_an_answer_that_is_no_good_is_replaced_by_the_offline_analysts(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    chat = answered(monkeypatch, lambda asked: reply)
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        [found] = await evaluations(it)
        assert chat.book.answered == 5
        assert found.made_by == OFFLINE
        assert found.reason.startswith(("Build", "Watch", "Avoid"))


async def test_a_judge_cannot_overrule_a_final_objection(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, lambda asked: replied(asked, "Build it.", ["market:1"], "build"))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await insert(
            it,
            "app_registry",
            {"track_id": 9, "track_name": "Giant", "rating_count": 800_000, "first_seen_at": NOW, "last_seen_at": NOW},
        )
        await insert(it, "cluster_apps", {"cluster_id": 1, "track_id": 9, "weight": 1.0})
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert [row.verdict for row in await evaluations(it)] == ["avoid"]


@pytest.mark.spec("B6-03")
async def test_a_run_over_its_budget_calls_no_service_and_says_so(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = answered(monkeypatch, lambda asked: replied(asked, "Wanted.", ["market:1"]), ps.Budgets(run=0.000_001))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert await tasks(it) == {"market-1-2026-01-01": "budget_exceeded"}
        assert chat.book.requests == 0


@pytest.mark.spec("B6-03")
async def test_a_day_that_pays_for_two_questions_makes_three_days_of_five(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = answered(monkeypatch, lambda asked: replied(asked, "Wanted. " * 20, ["market:1"]), ps.Budgets(day=0.006))
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        asked = []
        for _ in range(6):
            await it.running.advance(minutes=5)
            asked.append((chat.book.answered, (await tasks(it))["market-1-2026-01-01"]))
            await leap(it, days=1)
        counts = [count for count, _ in asked]
        assert asked[0][1] == "running"
        assert 0 < counts[0] < 5 == counts[-1]
        assert asked[-1][1] == "done"


async def test_a_key_that_is_refused_is_reported_and_the_offline_analyst_does_the_work(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chat = answered(monkeypatch, lambda asked: replied(asked, "Wanted.", ["market:1"]))
    monkeypatch.setenv("PIPELINE_MODEL_KEY", "sk-of-somebody-else")
    async with crawling(pipeline) as it:
        await plant(it, 75.0)
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert chat.book.answered == 0
        assert [row.made_by for row in await evaluations(it)] == [OFFLINE]
    told = [record for record in caplog.records if record.message == "analyst.refused"]
    assert len(told) == 5
    assert "sk-of-somebody-else" not in str([record.__dict__ for record in told])


@pytest.mark.slow("postgres")
def test_a_number_that_the_cited_rows_do_not_have_is_noticed() -> None:
    rows: dict[str, dict[str, Any]] = {"market:1": {"demand": 72.456, "momentum": 0.83}, "app:2": {"ratings": 12_345}}

    def claim(text: str, *ids: str) -> bool:
        return bears(Claim("demand", text, ids), rows)

    assert claim("Demand is 72, or 72.5, and three of 10 apps keep 83 % of their pace.", "market:1")
    assert claim("12,345 people rated it.", "app:2")
    assert not claim("12,345 people rated it.", "market:1")
    assert not claim("Demand is 73.", "market:1")
    assert not claim("It grows by 40 % a year.", "market:1", "app:2")
