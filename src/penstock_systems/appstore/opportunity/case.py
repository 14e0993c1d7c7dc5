"""The case of a market: what speaks for it, the strongest thing against it, and which apps to beat. Pure; every sentence
holds its figures, and names the rows that they come from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

import msgspec

from penstock_systems.appstore import founder
from penstock_systems.appstore.opportunity.facts import AppFacts, MarketFacts, share

Verdict = Literal["build", "watch", "avoid"]
Part = Literal["demand", "rivals", "users", "room"]

OFFLINE = "offline analyst 5"  # who decides without a model
FAVOUR, BEATEN = 3, 3  # facts for it, and apps to beat, that are told
BUILD_SCORE, WATCH_SCORE = 70.0, 50.0
EARLY = 0.5  # below this coverage a market is judged early
TYPED_EARLY = 4  # letters: a keyword that is completed after so few is often typed
GIANT, WEAK_LEADER = 50_000, 10_000  # ratings
# Of the usual pace at which ratings come. Between the last two, interest is no argument on either side.
LEAVING, STEADY, HOLDING = 0.2, founder.MOMENTUM_FULL, 0.75
CROWD_SHARE, CROWD_LEAST = 0.3, 20  # apps of the last two years, of all
TYPED_FEW, TYPED_KNOWN = 1 / 3, 3  # of the typical keywords that are known
KEPT_DAYS, KEPT_STARS = 60, 4.0  # a leader that is kept up
YOUNG_FARE, YOUNG_FAIL = 60.0, 35.0  # of room
UNHAPPY_MANY = 25.0  # per cent of reviews
WEAK_STARS, LOVED_STARS = 3.9, 4.4
CONTENT = 50.0  # of dissatisfaction: below it users are content enough to be an objection
ABANDONED_MANY = 2  # of the five strongest
DISLIKED_LEAST, DISLIKED_SHARE = 5, 40.0  # reviews, and per cent of them that complain
DAYS_A_YEAR = 365


class Fact(msgspec.Struct, frozen=True):
    """`rows` are the ids of the evidence; a fact that is `final` decides against a market alone."""

    part: Part
    weight: float
    text: str
    rows: tuple[str, ...]
    final: bool = False


class Beaten(msgspec.Struct, frozen=True):
    """An app to beat, and why it can be beaten."""

    track_id: int
    name: str
    ratings: int
    stars: float | None
    why: str
    url: str | None = None


class Case(msgspec.Struct, frozen=True):
    verdict: Verdict
    early: bool
    favour: tuple[Fact, ...]
    against: Fact
    beat: tuple[Beaten, ...]


def case_of(facts: MarketFacts) -> Case:
    objections = sorted(_against(facts), key=lambda each: (not each.final, -each.weight, each.text))
    favour = sorted(_favour(facts), key=lambda each: (-each.weight, each.text))[:FAVOUR]
    early = facts.coverage < EARLY
    return Case(
        verdict=decided(facts.score, final=objections[0].final, early=early),
        early=early,
        favour=tuple(favour),
        against=objections[0],
        beat=tuple(_beaten(facts))[:BEATEN],
    )


def decided(score: float, *, final: bool, early: bool) -> Verdict:
    """Nothing is built against a final objection, and not yet where most keywords were never searched."""
    if final or score < WATCH_SCORE:
        return "avoid"
    return "build" if score >= BUILD_SCORE and not early else "watch"


def reason(case: Case) -> str:
    """One sentence on each side."""
    first = case.favour[0].text if case.favour else "No figure speaks for it."
    return f"{case.verdict.capitalize()}. {first} Against it: {case.against.text}"


def _favour(facts: MarketFacts) -> Iterator[Fact]:
    figures, market = facts.figures, facts.row
    typed = sorted((each for each in figures.typed if 0 < each[1] <= TYPED_EARLY), key=lambda each: (each[1], each[0]))
    if typed:
        completed = _after_letters(typed[:2])
        rows = tuple(f"keyword:{word}" for word, _ in typed[:2])
        yield Fact("demand", 60 + 10 * min(3, len(typed)), f"Users type it: the store completes {completed}.", rows)
    if figures.gain is not None and figures.momentum is not None and figures.gain >= 1 and figures.momentum >= HOLDING:
        pace = f"{100 * figures.momentum:.0f} % of the average over their lives"
        text = f"Interest holds: its apps beside the leader gain {figures.gain:,.0f} ratings a day, {pace}."
        yield Fact("demand", 50 + min(40.0, 20 * math.log10(1 + figures.gain)), text, (market,))
    if facts.room is not None and facts.room >= YOUNG_FARE and figures.young_gain is not None:
        beside = "" if figures.old_gain is None else f", older ones {figures.old_gain:.1f}"
        young = f"{figures.young} apps of the last two years gain {figures.young_gain:.1f} ratings a day each"
        text = f"Newcomers find users: {young}{beside}."
        yield Fact("room", facts.room * 0.8, text, (market,))
    if facts.reviews >= founder.REVIEWS_LEAST and facts.unhappy_share >= UNHAPPY_MANY:
        about = f", most about “{facts.complaints[0].term}”" if facts.complaints else ""
        text = f"{facts.unhappy} of {facts.reviews} recent reviews complain{about}."
        rows = tuple(f"review:{each.review_id}" for each in facts.complaints[:1])
        yield Fact("users", 45 + facts.unhappy_share / 2, text, (market, *rows))
    elif figures.stars is not None and figures.stars <= WEAK_STARS:
        text = f"Its ten most rated apps have {figures.stars:.1f} stars on average."
        yield Fact("users", 100 * (founder.STARS_CONTENT - figures.stars), text, (market,))
    if figures.leaders_abandoned >= ABANDONED_MANY:
        stale, known = figures.leaders_abandoned, figures.leaders_known
        text = f"{stale} of its {known} most rated apps had no update for a year."
        if stale == known:
            text = f"None of its {known} most rated apps had an update within a year."
        rows = tuple(
            f"app:{app.track_id}"
            for app in facts.strongest[: founder.LEADERS]
            if (app.idle_days or 0) > founder.ABANDONED_DAYS
        )
        yield Fact("rivals", 40 + 10 * figures.leaders_abandoned, text, rows)
    leader = facts.leader
    if leader is not None and figures.leader_ratings < WEAK_LEADER:
        text = f"The strongest app, {leader.name}, has {leader.ratings:,} ratings."
        yield Fact("rivals", 70 - facts.competitiveness / 2, text, (f"app:{leader.track_id}",))


def _after_letters(typed: Sequence[tuple[str, int]]) -> str:
    """“a” and “b” after 2 letters; “a” after 2 letters and “c” after 3."""
    grouped = [(letters, [word for word, _ in group]) for letters, group in groupby(typed, key=lambda each: each[1])]
    parts = [f"{' and '.join(f'“{word}”' for word in words)} after {letters}" for letters, words in grouped]
    return " and ".join([f"{parts[0]} letters", *parts[1:]])


def _against(facts: MarketFacts) -> Iterator[Fact]:
    figures, market, leader = facts.figures, facts.row, facts.leader
    if facts.franchise:
        text = f"Its users look for {facts.franchise.capitalize()}, which has an owner."
        yield Fact("rivals", 100, text, (market,), final=True)
    if leader is not None and figures.leader_ratings > GIANT:
        beside = figures.leader_ratings / max(1, figures.follower_ratings)
        text = f"{leader.name} has {leader.ratings:,} ratings, {beside:,.0f} times the usual follower."
        yield Fact("rivals", 95, text, (f"app:{leader.track_id}",), final=True)
    if figures.momentum is not None and figures.momentum < LEAVING:
        text = f"Its users leave: ratings come at {100 * figures.momentum:.0f} % of the pace of former times."
        yield Fact("demand", 90, text, (market,), final=True)
    if figures.typed and not any(letters for _, letters in figures.typed):
        text = f"The store completes none of its {len(figures.typed)} typical keywords."
        yield Fact("demand", 80, text, tuple(f"keyword:{word}" for word, _ in figures.typed), final=True)
    if figures.apps_dated and not figures.young:
        yield Fact("room", 70, f"None of its {figures.apps_dated} apps came in the last two years.", (market,))
    elif facts.room is not None and facts.room < YOUNG_FAIL:
        text = f"Newcomers hardly gain ratings: {figures.young_gain or 0:.1f} a day each."
        yield Fact("room", 65, text, (market,))
    elif figures.young >= max(CROWD_LEAST, CROWD_SHARE * figures.apps_dated):
        text = f"Many enter: {figures.young} of its {figures.apps_dated} apps came in the last two years."
        yield Fact("room", 58, text, (market,))
    if figures.momentum is not None and LEAVING <= figures.momentum < STEADY:
        pace = f"{figures.gain or 0:,.0f} ratings a day beside the leader"
        text = f"Interest slows: {pace}, {100 * figures.momentum:.0f} % of the average over its apps' lives."
        yield Fact("demand", 62, text, (market,))
    completed = sum(letters > 0 for _, letters in figures.typed)
    if len(figures.typed) >= TYPED_KNOWN and 0 < completed <= TYPED_FEW * len(figures.typed):
        text = f"The store completes only {completed} of its {len(figures.typed)} typical keywords."
        yield Fact("demand", 57, text, tuple(f"keyword:{word}" for word, _ in figures.typed))
    if facts.coverage < EARLY:
        text = f"It is early: {100 * facts.coverage:.0f} % of what its score rests on is known."
        yield Fact("demand", 60, text, (market,))
    if figures.stars is not None and figures.stars >= LOVED_STARS:
        text = f"Its users are content: {figures.stars:.1f} stars on average."
        yield Fact("users", 55, text, (market,))
    idle = None if leader is None else leader.idle_days
    if leader is not None and idle is not None and idle < KEPT_DAYS and (leader.stars or 0.0) >= KEPT_STARS:
        kept = f"{leader.stars:.1f} stars, and an update {idle} days ago"
        text = f"{leader.name} has {leader.ratings:,} ratings, {kept}."
        yield Fact("rivals", 50, text, (f"app:{leader.track_id}",))
    yield _weakest(facts)


def _weakest(facts: MarketFacts) -> Fact:
    """There is always something: the part that is lowest."""
    parts: dict[Part, float] = {"demand": facts.demand}
    parts |= {} if facts.leader is None else {"rivals": 100 - facts.competitiveness}
    content = facts.dissatisfaction is not None and facts.dissatisfaction < CONTENT
    parts |= {"users": facts.dissatisfaction or 0.0} if content else {}
    parts |= {} if facts.room is None else {"room": facts.room}
    part = min(parts, key=lambda name: (parts[name], name))
    leader = facts.leader
    match part:
        case "rivals" if leader is not None:
            text = f"Its strongest app, {leader.name}, has {leader.ratings:,} ratings to catch up with."
            return Fact(part, 40, text, (f"app:{leader.track_id}",))
        case "users" if facts.figures.stars is not None:
            text = f"Its users are fairly content: {facts.figures.stars:.1f} stars on average."
        case "room":
            text = f"Young apps fare worse than old ones: room is {facts.room or 0:.0f} of 100."
        case _:
            text = f"Demand is its weakest side: {_demand(facts.figures)}."
    return Fact(part, 40, text, (facts.row,))


def _demand(figures: founder.Figures) -> str:
    used = f"all its apps beside the leader have {figures.total_ratings - figures.leader_ratings:,} ratings"
    return used if figures.gain is None else f"{used}, and gain {figures.gain:,.0f} a day"


def _beaten(facts: MarketFacts) -> Iterator[Beaten]:
    """The most rated apps that have a weakness; without one, the three strongest."""
    weak = [(app, why) for app in facts.strongest if (why := weaknesses(app))]
    if not weak:
        weak = [(app, ["no weakness is known"]) for app in facts.strongest[:BEATEN]]
    for app, why in weak:
        yield Beaten(app.track_id, app.name, app.ratings, app.stars, "; ".join(why), app.url)


def weaknesses(app: AppFacts) -> list[str]:
    found = []
    if app.stars is not None and app.stars < WEAK_STARS:
        found.append(f"{app.stars:.1f} stars")
    if app.idle_days is not None and app.idle_days > founder.ABANDONED_DAYS:
        found.append(f"no update for {app.idle_days / DAYS_A_YEAR:.1f} years")
    if app.reviews >= DISLIKED_LEAST and share(app.unhappy, app.reviews) >= DISLIKED_SHARE:
        found.append(f"{app.unhappy} of {app.reviews} recent reviews complain")
    return found
