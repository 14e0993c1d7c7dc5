"""The case of a market: which fact against it is the strongest, where none of them decides alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from penstock_systems.appstore.founder import Figures
from penstock_systems.appstore.opportunity.advice import tips
from penstock_systems.appstore.opportunity.agents import bears, evidence, offline_claims
from penstock_systems.appstore.opportunity.case import case_of
from penstock_systems.appstore.opportunity.facts import AppFacts, KeywordFacts, MarketFacts

pytestmark = pytest.mark.only_on("sqlite")  # nothing here is kept anywhere

LEADER = AppFacts(track_id=1, name="Nap", seller="Bert", weight=1.0, ratings=4_000, stars=3.5, idle_days=500)
FIGURES = Figures(
    leader_ratings=4_000,
    follower_ratings=200,
    total_ratings=12_000,
    stars=3.6,
    apps_dated=50,
    young=5,
    entrants=2,
    young_gain=1.0,
    old_gain=0.5,
    gain=30.0,
    momentum=0.8,
    typed=(("sleep", 2), ("nap", 3), ("rain", 0)),
)
MARKET = MarketFacts(
    cluster_id=7,
    lineage_id=7,
    name="Sleep, nap",
    score=75.0,
    demand=80.0,
    competitiveness=30.0,
    fragmentation=60.0,
    room=90.0,
    apps_count=50,
    keywords_count=9,
    apps=[LEADER],
    strongest=[LEADER],
    keywords=[KeywordFacts(word, 50.0, letters) for word, letters in FIGURES.typed],
    ratings_total=12_000,
    ratings_first=4_000,
    figures=FIGURES,
)


def against(leader: AppFacts = LEADER, **figures: Any) -> str:
    facts = changed(MARKET, strongest=[leader], figures=replace(FIGURES, **figures))
    case, rows = case_of(facts), evidence(facts)
    assert not case.against.final
    assert all(bears(claim, rows) for claim in offline_claims(case)[-1:]), case.against
    return case.against.text


def test_of_several_objections_the_strongest_is_stated() -> None:
    assert against() == "Its strongest app, Nap, has 4,000 ratings to catch up with."
    assert (
        against(momentum=0.3)
        == "Interest slows: 30 ratings a day beside the leader, 30 % of the average over its apps' lives."
    )
    assert against(young=20) == "Many enter: 20 of its 50 apps came in the last two years."
    assert against(young=20, momentum=0.3).startswith("Interest slows")
    assert (
        against(typed=(("sleep", 2), ("nap", 0), ("rain", 0)))
        == "The store completes only 1 of its 3 typical keywords."
    )
    kept = changed(LEADER, stars=4.2, idle_days=12)
    assert against(kept) == "Nap has 4,000 ratings, 4.2 stars, and an update 12 days ago."


@pytest.mark.parametrize("letters", [0, 2])
def test_a_fact_may_cite_a_keyword_that_the_card_leaves_out(letters: int) -> None:
    typed = (("nap", letters), ("zanopi", 0), ("zanopi rain", 0))
    facts = changed(MARKET, figures=replace(FIGURES, typed=typed))

    case = case_of(facts)

    assert case.against.rows == ("keyword:nap", "keyword:zanopi", "keyword:zanopi rain")
    assert bears(offline_claims(case)[-1], evidence(facts))


def test_what_is_just_not_an_objection_is_not_stated() -> None:
    usual = against()
    assert against(momentum=0.5) == against(young=19) == usual
    assert against(young=20, apps_dated=67) == usual  # not quite three in ten
    assert against(typed=(("sleep", 2), ("nap", 0))) == usual
    for leader in (changed(LEADER, stars=4.2, idle_days=60), changed(LEADER, stars=3.9, idle_days=12)):
        assert against(leader) == usual


def test_growth_speaks_for_a_market_only_near_its_usual_pace() -> None:
    def told(momentum: float) -> bool:
        facts = changed(MARKET, figures=replace(FIGURES, momentum=momentum))
        return any("gain 30 ratings a day" in fact.text for fact in case_of(facts).favour)

    assert told(0.75)
    assert not told(0.74)  # three quarters of the average are no news to build on, though no objection yet


def test_a_card_names_the_letters_of_two_keywords_once_where_they_are_the_same() -> None:
    def told(*typed: tuple[str, int]) -> str:
        facts = changed(MARKET, figures=replace(FIGURES, typed=typed))
        return next(fact.text for fact in case_of(facts).favour if fact.text.startswith("Users type it"))

    assert told(("nap", 2), ("rain", 2)) == "Users type it: the store completes “nap” and “rain” after 2 letters."
    assert (
        told(("nap", 2), ("rain", 3)) == "Users type it: the store completes “nap” after 2 letters and “rain” after 3."
    )


def test_where_no_strong_app_is_kept_up_that_is_said() -> None:
    def told(abandoned: int) -> list[str]:
        figures = replace(FIGURES, leaders_known=5, leaders_abandoned=abandoned)
        return [fact.text for fact in case_of(changed(MARKET, figures=figures)).favour if fact.part == "rivals"]

    assert "4 of its 5 most rated apps had no update for a year." in told(4)
    assert "None of its 5 most rated apps had an update within a year." in told(5)


def test_the_title_gets_the_keyword_that_is_completed_first_and_none_that_is_never_completed() -> None:
    words = [KeywordFacts("paint diary", 90.0, 0), KeywordFacts("style", 80.0), KeywordFacts("bedroom", 20.0, 3)]

    assert tips(changed(MARKET, keywords=words))[0] == (
        'Put "bedroom" into the title: the store completes it after 3 letters. '
        'Then "style" into the subtitle: its demand is 80 of 100.'
    )
    assert not any("into the title" in tip for tip in tips(changed(MARKET, keywords=words[:1])))
