"""Markets: which are planted, how large they are, what they share, and where the openings are that a pipeline should find."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from penstock_systems.standins.appstore.chance import interpolated, mix, offsets_of, share
from penstock_systems.standins.appstore.genres import GAME_GENRES, GAMES, GENRES, genre_name
from penstock_systems.standins.appstore.words import AUDIENCES, FRANCHISES, KEYWORDS, PLAIN_WORDS, TOPICS, Topic

PLANTED_SHARE = 0.7  # of the apps; the others belong to no market in particular
MARKETS_MAX = len(TOPICS) * (len(AUDIENCES) + 1)
PARETO = 1.5  # the exponent of the sizes: a few markets are huge, most are small
GENRE_SHARES = (0.62, 0.24, 0.14)  # how the apps of a market are spread over its genres
RATED_SHARE = 0.45  # fewer than half of the apps have any rating
FLAT_FROM = math.log(2_000)  # above it the apps of a planted market grow closer together: only a giant leads
FLATNESS = 0.35
USUAL_GROWTH = 0.0006  # of the ratings of an app of no market, a day

# How many apps of the store have at least n ratings.
RATINGS = "8e-7 22.7e6,.0022 53742,.011 8532,.022 2471,.055 308,.109 46,.164 12,.218 5,.243 4,.279 3,.337 2,.45 1"
_CURVE = [(math.log(float(part)), math.log(float(n))) for part, n in (point.split() for point in RATINGS.split(","))]

# niche: searched for, disliked, growing, and led by nobody. The others are traps, each of which looks like a niche but for
# one thing. giant: one app has nearly everybody. brand: what users search for is a franchise that has an owner. dying: its
# ratings are old, and nobody searches or starts there any more. fad: everybody started at once, and users have left.
Kind = Literal["niche", "giant", "brand", "dying", "fad", "field"]
TRAPS: tuple[Kind, ...] = ("giant", "brand", "dying", "fad")


@dataclass(frozen=True, slots=True)
class Climate:
    """What makes a market a niche or a trap. Ranges overlap wherever they are not what makes it one."""

    heat: float = -0.5  # how many more ratings than usual, as a logarithm
    lead: float = 0.0  # how far its first app is ahead of the others, as a logarithm
    stars: float = 4.0  # the mean of its apps: low means that people want better
    wish: float = 0.0  # how often its keywords are typed, as a logarithm
    growth: float = USUAL_GROWTH  # of the ratings of an app of usual age, a day
    young: float = 0.0  # the share of apps that came within a year, beyond those that always do
    settled_days: int = 0  # for so many days hardly anybody has come
    kept: float = 0.9  # the share of well-known apps that are still updated


@dataclass(frozen=True, slots=True)
class Market:
    """Apps that compete for the same keywords, and what a good pipeline should find out about them."""

    number: int
    name: str
    kind: Kind
    genres: tuple[int, ...]  # the commonest first
    keywords: tuple[str, ...]
    near: tuple[int, ...]  # the numbers of its neighbours, which it shares words with
    start: int
    apps: int
    climate: Climate
    paid: float  # the share of apps with a price
    franchise: str = ""  # the name that its apps are about, if it is a brand

    @property
    def planted(self) -> bool:
        return self.kind != "field"

    @property
    def genre(self) -> int:
        return self.genres[0]

    @property
    def niche(self) -> bool:
        return self.kind == "niche"

    @property
    def trap(self) -> bool:
        return self.kind in TRAPS

    @property
    def heat(self) -> float:
        return self.climate.heat

    @property
    def lead(self) -> float:
        return self.climate.lead

    def rated(self, position: int) -> bool:
        return position + 0.5 < self.apps * RATED_SHARE

    def pull(self, position: int) -> float:
        """How strongly the app at this position draws people: the logarithm of its ratings, and never equal for two."""
        part = (position + 0.5) / self.apps
        pull = self.heat - part + (interpolated(_CURVE, math.log(part)) if part < RATED_SHARE else 0.0)
        if self.planted and pull > FLAT_FROM:
            pull = FLAT_FROM + FLATNESS * (pull - FLAT_FROM)
        return pull + self.lead if position == 0 else pull


def plant(apps: int, markets: int, seed: int) -> list[Market]:
    """The planted markets, and after them for each genre a field of apps that share nothing else."""
    rest = [(genre, part) for genre, (_, part) in GENRES.items() if part and genre != GAMES]
    rest += [(genre, GENRES[GAMES][1] / len(GAME_GENRES)) for genre in GAME_GENRES]
    order = sorted(range(markets), key=lambda number: mix(seed, 2, number))
    weights = [(markets / (order[number] + 0.5)) ** (1 / PARETO) for number in range(markets)]
    scale = sum(weights) / PLANTED_SHARE * (1 - PLANTED_SHARE) / sum(part for _, part in rest) if markets else 1.0
    spans = list(pairwise(offsets_of([*weights, *(part * scale for _, part in rest)], apps)))
    planted = list(_planted(markets, seed, spans))
    return planted + [_field(markets + turn, genre, spans) for turn, (genre, _) in enumerate(rest)]


def _planted(markets: int, seed: int, spans: list[tuple[int, int]]) -> Iterator[Market]:
    topics = _ordered(seed)
    kinds = _kinds(markets, seed)
    for number in range(markets):
        round_, turn = divmod(number, len(topics))
        topic = topics[turn]
        name, words = topic.name, topic.words
        if round_:
            audience = AUDIENCES[round_ - 1].split()
            name, words = f"{name} for {audience[0]}", (*words[: KEYWORDS - len(audience)], *audience)
        here = range(round_ * len(topics), min(markets, (round_ + 1) * len(topics)))
        start, end = spans[number]
        franchise = FRANCHISES[number % len(FRANCHISES)] if kinds[number] == "brand" else ""
        if franchise:
            words = (franchise, *words[: KEYWORDS - 1])
        yield Market(
            number=number,
            name=name,
            kind=kinds[number],
            genres=topic.genres,
            keywords=words,
            near=tuple(
                other for other in here if other != number and topics[other % len(topics)].family == topic.family
            ),
            start=start,
            apps=end - start,
            climate=_climate(kinds[number], seed, number),
            paid=0.03 + 0.12 * share(seed, 5, number) ** 2,
            franchise=franchise,
        )


def _field(number: int, genre: int, spans: list[tuple[int, int]]) -> Market:
    name = genre_name(genre)
    words = (*name.replace("&", " ").casefold().split(), *PLAIN_WORDS)[:KEYWORDS]
    start, end = spans[number]
    return Market(
        number=number,
        name=name,
        kind="field",
        genres=(genre,),
        keywords=words,
        near=(),
        start=start,
        apps=end - start,
        climate=Climate(),
        paid=0.06,
    )


def _ordered(seed: int) -> list[Topic]:
    """The topics in the order they are planted in: family by family, because a market without neighbours is easy to tell."""
    families = list(dict.fromkeys(topic.family for topic in TOPICS))
    place = {family: mix(seed, 1, number) for number, family in enumerate(families)}
    return sorted(TOPICS, key=lambda topic: place[topic.family])


def _kinds(markets: int, seed: int) -> list[Kind]:
    """Half of the markets are niches, and an eighth is each kind of trap."""
    order = sorted(range(markets), key=lambda number: mix(seed, 6, number))
    kinds: list[Kind] = ["niche"] * markets
    for turn, number in enumerate(order[: markets // 2]):
        kinds[number] = TRAPS[turn % len(TRAPS)]
    return kinds


def _climate(kind: Kind, seed: int, number: int) -> Climate:
    def between(salt: int, low: float, high: float) -> float:
        return low + (high - low) * share(seed, salt, number)

    heat, stars, wish = between(3, 2.4, 3.8), between(4, 3.2, 3.8), between(7, 1.6, 3.8)
    growth, young, kept = between(8, 0.0005, 0.0015), between(9, 0.02, 0.2), between(16, 0.3, 0.8)
    match kind:
        case "giant":
            lead, stars = between(17, 4.0, 5.4), between(4, 3.5, 4.1)
            return Climate(heat=heat, lead=lead, stars=stars, wish=wish + 0.4, growth=growth, young=young)
        case "brand":
            return Climate(heat=heat, lead=0.6, stars=stars, wish=wish + 0.6, growth=growth, young=young, kept=kept)
        case "dying":
            growth, wish = between(8, 0.0, 0.0001), between(7, -2.0, 0.6)
            return Climate(heat=heat, stars=stars, wish=wish, growth=growth, settled_days=750, kept=kept / 4)
        case "fad":
            growth, wish, young = between(8, 0.00001, 0.00012), between(7, 0.8, 3.2), between(9, 0.6, 0.85)
            return Climate(heat=heat, stars=stars, wish=wish, growth=growth, young=young, kept=kept / 2)
    return Climate(heat=heat, stars=stars, wish=wish, growth=growth, young=young, kept=kept)
