"""The debate: an advocate and a sceptic argue with the same figures, and a referee decides by a rule that is written here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from penstock_systems.appstore.opportunity.evidence import believed
from penstock_systems.appstore.opportunity.facts import MarketFacts
from penstock_systems.appstore.opportunity.opinions import REVIEWS_LEAST, Opinion, overall

Verdict = Literal["build", "watch", "avoid"]

BUILD_SCORE, WATCH_SCORE = 60.0, 45.0
OBJECTIONS_BUILD, OBJECTIONS_WATCH = 1, 3  # that a market may have at most
ARGUMENTS_A_SPEECH = 3

WANTED, UNWANTED = 60.0, 40.0  # demand
EASY, HARD = 45.0, 65.0  # competitiveness
OPEN, MONOPOLY, OLIGOPOLY = 70.0, 60.0, 85.0  # fragmentation; per cent of the ratings that the first, and three, hold
LOVED = 4.5  # stars
GIANT = 500_000  # ratings
UNHAPPY_MANY = 25.0  # per cent of reviews
WEAK_MANY = 3  # of the visible apps
HARDLY_KNOWN = 0.5  # less than half of what the figures say is believed


class Argument(msgspec.Struct, frozen=True):
    """`weight` orders the arguments of one side: the strongest is told first."""

    weight: float
    text: str


class Message(msgspec.Struct, frozen=True):
    agent: str
    text: str


class Debate(msgspec.Struct, frozen=True):
    messages: list[Message]
    summary: str
    verdict: Verdict
    score: float


def debate(facts: MarketFacts, said: Sequence[Opinion]) -> Debate:
    favour, against = pros(facts), cons(facts)
    score = believed(overall(said), facts.known)
    verdict = decided(score, len(against))
    ruling = _ruling(score, favour, against, verdict)
    messages = [
        Message("advocate", _speech(favour, f"The only argument for {facts.name} is its score of {facts.score:.0f}.")),
        Message("sceptic", _speech(against, "The figures give no reason against it.")),
    ]
    if favour and against:
        answer = favour[ARGUMENTS_A_SPEECH] if len(favour) > ARGUMENTS_A_SPEECH else favour[0]
        messages.append(Message("advocate", f"Against that: {answer.text}"))
    messages.append(Message("referee", ruling))
    return Debate(messages, ruling, verdict, score)


def decided(score: float, objections: int) -> Verdict:
    """Build what scores well and has hardly an objection; leave what scores badly or has many."""
    if score >= BUILD_SCORE and objections <= OBJECTIONS_BUILD:
        return "build"
    if score < WATCH_SCORE or objections > OBJECTIONS_WATCH:
        return "avoid"
    return "watch"


def pros(facts: MarketFacts) -> list[Argument]:
    found = []
    if facts.demand >= WANTED:
        found.append(Argument(facts.demand, f"There is demand for this: {facts.demand:.0f} of 100."))
    if len(facts.weak) >= WEAK_MANY:
        weak, seen = len(facts.weak), len(facts.visible)
        found.append(Argument(100 * weak / seen, f"{weak} of the {seen} most visible apps have fewer than 4 stars."))
    if facts.fragmentation >= OPEN:
        text = (
            f"No app leads: {facts.apps_count:,} apps share the ratings, and the first has {facts.first_share:.0f} %."
        )
        found.append(Argument(facts.fragmentation, text))
    if facts.competitiveness <= EASY:
        text = f"The existing apps can be beaten: their strength is {facts.competitiveness:.0f} of 100."
        found.append(Argument(100 - facts.competitiveness, text))
    if facts.reviews >= REVIEWS_LEAST and facts.unhappy_share >= UNHAPPY_MANY:
        text = f"{facts.unhappy} of {facts.reviews} reviews are unhappy{_about(facts)}."
        found.append(Argument(facts.unhappy_share + 30, text))
    if facts.velocity >= 1:
        text = f"It is active: the visible apps gain {facts.velocity:,.0f} new ratings a day."
        found.append(Argument(min(80.0, facts.velocity), text))
    if facts.change is not None and facts.change >= 1:
        found.append(
            Argument(40 + facts.change, f"It is getting better: its score rose by {facts.change:.1f} in a month.")
        )
    return sorted(found, key=lambda each: (-each.weight, each.text))


def cons(facts: MarketFacts) -> list[Argument]:
    found = []
    if facts.demand < UNWANTED:
        found.append(Argument(100 - facts.demand, f"Few users search for it: its demand is {facts.demand:.0f} of 100."))
    if facts.first_share > MONOPOLY:
        found.append(Argument(facts.first_share, f"One app has {facts.first_share:.0f} % of all ratings."))
    elif facts.three_share > OLIGOPOLY:
        found.append(Argument(facts.three_share, f"Three apps have {facts.three_share:.0f} % of all ratings."))
    if facts.competitiveness > HARD:
        text = f"The existing apps are strong: {facts.competitiveness:.0f} of 100."
        found.append(Argument(facts.competitiveness, text))
    if (leader := facts.leader) is not None and leader.ratings > GIANT:
        found.append(
            Argument(60.0, f"{leader.name} has {leader.ratings:,} ratings: a new app does not reach that soon.")
        )
    if facts.stars is not None and facts.stars >= LOVED:
        text = f"Its users are content: the visible apps have {facts.stars:.1f} stars on average."
        found.append(Argument(20 * facts.stars, text))
    if facts.change is not None and facts.change <= -1:
        text = f"It is getting worse: its score fell by {-facts.change:.1f} in a month."
        found.append(Argument(40 - facts.change, text))
    if facts.stars is None:
        found.append(Argument(30.0, "These apps have few ratings, so the opinion of their users is unknown."))
    elif facts.known < HARDLY_KNOWN:
        counts = f"{facts.apps_count:,} apps, {facts.keywords_count:,} keywords and {facts.ratings_total:,} ratings"
        found.append(Argument(30.0, f"All of this is based on little data: {counts}."))
    return sorted(found, key=lambda each: (-each.weight, each.text))


def reason(facts: MarketFacts, verdict: Verdict, score: float) -> str:
    """One sentence with the figures that decided."""
    told = [f"demand is {facts.demand:.0f} of 100", f"rivals are {facts.competitiveness:.0f} of 100 hard"]
    if facts.stars is not None:
        weak = f", {len(facts.weak)} of {len(facts.visible)} below 4" if facts.weak else ""
        told.append(f"the visible apps have {facts.stars:.1f} stars{weak}")
    if facts.ratings_total:
        told.append(f"the first of {facts.apps_count:,} apps holds {facts.first_share:.0f} % of the ratings")
    if facts.reviews:
        told.append(f"{facts.unhappy} of {facts.reviews} reviews are unhappy")
    return f"{verdict.capitalize()} ({score:.0f} of 100): {', '.join(told[:-1])}, and {told[-1]}."


def _speech(arguments: Sequence[Argument], otherwise: str) -> str:
    return " ".join(each.text for each in arguments[:ARGUMENTS_A_SPEECH]) or otherwise


def _ruling(score: float, favour: Sequence[Argument], against: Sequence[Argument], verdict: Verdict) -> str:
    counted = f"The agents give it {score:.0f} of 100; {len(favour)} figures speak for it and {len(against)} against."
    match verdict:
        case "build":
            return f"{counted} Build."
        case "watch":
            return f"{counted} Not enough to build, enough to watch."
    return f"{counted} Leave it."


def _about(facts: MarketFacts) -> str:
    return f", and speak of {', '.join(facts.complaints)}" if facts.complaints else ""
