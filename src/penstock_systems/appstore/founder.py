"""The founder's scores, version 3: whether a newcomer could live in a market. Pure, each part from 0 to 100.

Demand comes from what users type, from the ratings that apps gain now, from who starts there, and from how much all apps but
the leader are used, beside the usual market of this store; not from how large the leader is. What is not known counts for
nothing, in neither direction. The parts are multiplied: a market without demand is no better for being easy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VERSION = "founder 3"

WEIGHTS = {"demand": 0.50, "ease": 0.27, "dissatisfaction": 0.10, "room": 0.13}
DEMAND = {"typed": 0.40, "growth": 0.25, "entrants": 0.10, "used": 0.25}
DISSATISFACTION = {"stars": 0.50, "reviews": 0.25, "abandoned": 0.25}
PART_LEAST = 2.0  # a part of nothing would make everything nothing
UNBELIEVED = 30.0  # what is left of the best score where there is hardly an app or a rating to know it from
APPS_HALF, RATINGS_HALF = 4, 1_000  # with so many, half of the rest is believed
DEMAND_UNKNOWN = (
    0.5  # of the rest is believed where nothing is known of what users type, nor of growth, nor of entrants
)

TYPED = (100.0, 100.0, 100.0, 88.0, 76.0, 64.0, 52.0, 40.0, 28.0)  # by the letters after which a term is completed
TYPED_LATE, TYPED_NEVER = 18.0, 0.0
TYPED_COUNTED = 3  # a market is typed as often as its three best keywords

STRONGEST = 3
STRENGTH = (0.6, 0.25, 0.15)  # of the three strongest apps
RATINGS_LOG_WEAK, RATINGS_LOG_STRONG = 3.0, 5.0  # a thousand ratings are no obstacle; a hundred thousand are a wall
WALL_RATINGS, WALL_HEIGHT = 20_000, 0.8  # beyond so many ratings of the leader, up to so much of the ease is lost
LEAD_LOG_FULL = 2.5  # three hundred times the ratings of the usual follower
LEAD_SHARE = 0.3  # of the difficulty; the rest is the strength of the three
FOLLOWERS = 10

STARS_CONTENT, STARS_MISERABLE = 4.6, 3.2
UNHAPPY_FULL = 0.5  # the share of reviews that counts in full
REVIEWS_LEAST = 10
ABANDONED_DAYS = 365
LEADERS = 5  # whose last version is looked at

YOUNG_DAYS, ENTRANT_DAYS = 730, 365
ENTRANTS_MANY = 12
GAIN_FULL = 100.0  # new ratings a day, beside the leader's
MOMENTUM_FULL = 0.5  # ratings gained a day now, beside the average over the life of the apps
AGE_DAYS_LEAST = 30
NOBODY_STARTED = 15.0  # the room where no app came in two years
USUAL_LEAST = 1_000.0  # ratings beside the leader's: no market is measured by fewer, however small the others are
USED_STEEPNESS = 1.5  # a fifth of the usual ratings is worth 8 of 100, the usual ones 50, five times as many 92


@dataclass(frozen=True, slots=True)
class Rival:
    """An app of the market. None where nothing is known."""

    track_id: int
    ratings: int
    stars: float | None = None
    velocity: float | None = None  # new ratings a day
    age_days: int | None = None
    idle_days: int | None = None  # since its last version
    reviews: int = 0
    unhappy: int = 0

    @property
    def lifetime(self) -> float | None:
        """New ratings a day, over its whole life."""
        return None if self.age_days is None else self.ratings / max(AGE_DAYS_LEAST, self.age_days)


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers behind the parts, as an opportunity states them."""

    leader_ratings: int = 0
    follower_ratings: int = 0  # of the usual one after the three strongest
    total_ratings: int = 0
    stars: float | None = None  # of the ten strongest, by how many gave them
    reviews: int = 0
    unhappy: int = 0
    leaders_known: int = 0
    leaders_abandoned: int = 0
    apps_dated: int = 0
    entrants: int = 0  # that came within a year
    young: int = 0  # that came within two years
    young_gain: float | None = None  # new ratings a day of one of them, on average
    old_gain: float | None = None
    gain: float | None = None  # new ratings a day, beside the leader's
    momentum: float | None = None
    typed: tuple[tuple[str, int], ...] = ()  # keywords and the letters after which the store completes them; 0: never


@dataclass(frozen=True, slots=True)
class Prospect:
    """The parts are None where nothing is known."""

    demand: float | None
    difficulty: float
    dissatisfaction: float | None
    room: float | None
    score: float
    known: float  # which part of the weights rests on something, those of demand's own parts included
    figures: Figures


def prospect(
    rivals: Iterable[Rival],
    typed: Sequence[tuple[str, int]] = (),
    *,
    usual: float = USUAL_LEAST,
    ratings_decide: float = 1.0,
) -> Prospect:
    """`usual` is how many ratings the apps of the usual market have beside its leader. `ratings_decide`, from 0 to 1, is how
    strongly ratings are believed to make a rank: where they do not, strong apps are less of an obstacle."""
    ranked = sorted(rivals, key=lambda app: (-app.ratings, app.track_id))
    figures = figured(ranked, typed)
    wanted = _demand(figures, usual)
    demand, difficulty = _mean(wanted, DEMAND), _difficulty(ranked, figures) * (0.5 + 0.5 * ratings_decide)
    dissatisfaction, room = _dissatisfaction(figures), _room(figures)
    parts = {"demand": demand, "ease": 100 - difficulty, "dissatisfaction": dissatisfaction, "room": room}
    known = {name: max(PART_LEAST, part) for name, part in parts.items() if part is not None}
    whole = math.fsum(WEIGHTS[name] for name in known)
    score = 100 * math.prod((part / 100) ** (WEIGHTS[name] / whole) for name, part in known.items())
    sure = math.fsum(DEMAND[name] for name, part in wanted.items() if part is not None)
    score = _believed(score, len(ranked), figures.total_ratings, sure)
    whole -= WEIGHTS["demand"] * (1 - sure)
    return Prospect(demand, difficulty, dissatisfaction, room, score, whole, figures)


def _believed(score: float, apps: int, ratings: int, sure: float) -> float:
    """A good score of few apps with few ratings rests on little, and so does one of which only the ratings are known. A bad
    one stays: not to be known makes nothing better."""
    known = min(apps / (apps + APPS_HALF), ratings / (ratings + RATINGS_HALF))
    known *= DEMAND_UNKNOWN + (1 - DEMAND_UNKNOWN) * sure
    return min(score, UNBELIEVED + (score - UNBELIEVED) * known)


def figured(ranked: Sequence[Rival], typed: Sequence[tuple[str, int]]) -> Figures:
    """The apps come with the most rated first."""
    followers = [app.ratings for app in ranked[STRONGEST : STRONGEST + FOLLOWERS]]
    rest = ranked[1:]
    dated = [app for app in ranked if app.age_days is not None]
    young = [app for app in dated if (app.age_days or 0) <= YOUNG_DAYS]
    old = [app for app in rest if app.age_days is not None and app.age_days > YOUNG_DAYS]
    watched = [app for app in rest if app.velocity is not None and app.lifetime is not None]
    lifetime = math.fsum(app.lifetime or 0.0 for app in watched)
    gain = math.fsum(max(0.0, app.velocity or 0.0) for app in watched)
    leaders = [app for app in ranked[:LEADERS] if app.idle_days is not None]
    weights = [(math.log10(1 + app.ratings), app.stars) for app in ranked[:FOLLOWERS] if app.stars and app.ratings]
    weight = math.fsum(each for each, _ in weights)
    return Figures(
        leader_ratings=ranked[0].ratings if ranked else 0,
        follower_ratings=sorted(followers)[len(followers) // 2] if followers else 0,
        total_ratings=sum(app.ratings for app in ranked),
        stars=math.fsum(each * stars for each, stars in weights) / weight if weight else None,
        reviews=sum(app.reviews for app in ranked[:FOLLOWERS]),
        unhappy=sum(app.unhappy for app in ranked[:FOLLOWERS]),
        leaders_known=len(leaders),
        leaders_abandoned=sum((app.idle_days or 0) > ABANDONED_DAYS for app in leaders),
        apps_dated=len(dated),
        entrants=sum((app.age_days or 0) <= ENTRANT_DAYS for app in young),
        young=len(young),
        young_gain=_mean_gain(young),
        old_gain=_mean_gain(old),
        gain=gain if watched else None,
        momentum=gain / lifetime if lifetime > 0 else None,
        typed=tuple(typed),
    )


def _mean_gain(apps: Sequence[Rival]) -> float | None:
    known = [max(0.0, app.velocity) for app in apps if app.velocity is not None]
    return math.fsum(known) / len(known) if known else None


def _demand(figures: Figures, usual: float) -> dict[str, float | None]:
    typed = sorted((typed_score(letters) for _, letters in figures.typed), reverse=True)[:TYPED_COUNTED]
    steady = None if figures.momentum is None else min(1.0, figures.momentum / MOMENTUM_FULL)
    return {
        "typed": math.fsum(typed) / len(typed) if typed else None,
        "growth": None
        if figures.gain is None
        else (1.0 if steady is None else steady) * _log_share(figures.gain, GAIN_FULL),
        "entrants": _log_share(figures.entrants, ENTRANTS_MANY) if figures.apps_dated else None,
        "used": _used((figures.total_ratings - figures.leader_ratings) / max(USUAL_LEAST, usual)),
    }


def _used(times: float) -> float:
    """How much the apps of a market are used, that have so many times the usual ratings beside their leader."""
    steep = math.pow(max(0.0, times), USED_STEEPNESS)
    return 100 * steep / (1 + steep)


def typed_score(letters: int) -> float:
    """How often a keyword is typed, by the letters after which the store completes it; 0 letters: it never does."""
    if not letters:
        return TYPED_NEVER
    return TYPED[letters] if letters < len(TYPED) else TYPED_LATE


def _difficulty(ranked: Sequence[Rival], figures: Figures) -> float:
    strengths = [_strength(app.ratings) for app in ranked[:STRONGEST]]
    held = math.fsum(weight * strength for weight, strength in zip(STRENGTH, strengths, strict=False))
    lead = math.log10((1 + figures.leader_ratings) / (1 + figures.follower_ratings)) / LEAD_LOG_FULL
    base = (1 - LEAD_SHARE) * held + LEAD_SHARE * held * min(1.0, max(0.0, lead))
    wall = min(1.0, max(0.0, math.log10((1 + figures.leader_ratings) / WALL_RATINGS)))
    return 100 * (base + (1 - base) * WALL_HEIGHT * wall)


def _strength(ratings: int) -> float:
    part = (math.log10(1 + ratings) - RATINGS_LOG_WEAK) / (RATINGS_LOG_STRONG - RATINGS_LOG_WEAK)
    return min(1.0, max(0.0, part))


def _dissatisfaction(figures: Figures) -> float | None:
    parts = {
        "stars": None
        if figures.stars is None
        else _bounded(100 * (STARS_CONTENT - figures.stars) / (STARS_CONTENT - STARS_MISERABLE)),
        "reviews": _bounded(100 * figures.unhappy / figures.reviews / UNHAPPY_FULL)
        if figures.reviews >= REVIEWS_LEAST
        else None,
        "abandoned": 100 * figures.leaders_abandoned / figures.leaders_known if figures.leaders_known else None,
    }
    return _mean(parts, DISSATISFACTION)


def _room(figures: Figures) -> float | None:
    """How young apps fare beside older ones, as long as the market itself is not left by its users."""
    if not figures.apps_dated:
        return None
    if not figures.young:
        return NOBODY_STARTED
    if figures.young_gain is None or figures.momentum is None:
        return None
    beside = figures.young_gain / figures.old_gain if figures.old_gain else 1.0
    return 100 * min(1.0, beside) * min(1.0, figures.momentum / MOMENTUM_FULL)


def _mean(parts: dict[str, float | None], weights: dict[str, float]) -> float | None:
    known = {name: part for name, part in parts.items() if part is not None}
    whole = math.fsum(weights[name] for name in known)
    return math.fsum(weights[name] * part for name, part in known.items()) / whole if whole else None


def _log_share(value: float, full: float) -> float:
    return min(100.0, 100 * math.log1p(max(0.0, value)) / math.log1p(full))


def _bounded(score: float) -> float:
    return min(100.0, max(0.0, score))
