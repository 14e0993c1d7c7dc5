"""Markets: which are planted, how large they are, what they share, and where the openings are that a pipeline should find."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from penstock_systems.standins.appstore.chance import interpolated, mix, offsets_of, share
from penstock_systems.standins.appstore.genres import GAME_GENRES, GAMES, GENRES, genre_name
from penstock_systems.standins.appstore.words import AUDIENCES, KEYWORDS, PLAIN_WORDS, TOPICS, Topic

PLANTED_SHARE = 0.7  # of the apps; the others belong to no market in particular
MARKETS_MAX = len(TOPICS) * (len(AUDIENCES) + 1)
PARETO = 1.5  # the exponent of the sizes: a few markets are huge, most are small
GENRE_SHARES = (0.62, 0.24, 0.14)  # how the apps of a market are spread over its genres
RATED_SHARE = 0.45  # fewer than half of the apps have any rating
FLAT_FROM = math.log(2_000)  # above it the apps of a niche grow closer together: none of them leads
FLATNESS = 0.35

# How many apps of the store have at least n ratings.
RATINGS = "8e-7 22.7e6,.0022 53742,.011 8532,.022 2471,.055 308,.109 46,.164 12,.218 5,.243 4,.279 3,.337 2,.45 1"
_CURVE = [(math.log(float(part)), math.log(float(n))) for part, n in (point.split() for point in RATINGS.split(","))]

# niche: wanted, disliked and led by nobody. led: one app has nearly everybody. quiet: nobody asks for it.
Kind = Literal["niche", "led", "quiet", "field"]


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
    heat: float  # how many more ratings than usual, as a logarithm: the demand
    lead: float  # how far its first app is ahead of the others, as a logarithm
    stars: float  # the mean of its apps: low means that people want better
    paid: float  # the share of apps with a price

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
    def opening(self) -> float:
        """How good an opportunity was planted here: much demand, unhappy users, nobody far ahead."""
        return self.heat + 2.0 * (4.2 - self.stars) - self.lead

    def rated(self, position: int) -> bool:
        return position + 0.5 < self.apps * RATED_SHARE

    def pull(self, position: int) -> float:
        """How strongly the app at this position draws people: the logarithm of its ratings, and never equal for two."""
        part = (position + 0.5) / self.apps
        pull = self.heat - part + (interpolated(_CURVE, math.log(part)) if part < RATED_SHARE else 0.0)
        if self.kind == "niche" and pull > FLAT_FROM:
            return FLAT_FROM + FLATNESS * (pull - FLAT_FROM)
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
        heat, lead, stars = _climate(kinds[number], seed, number)
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
            heat=heat,
            lead=lead,
            stars=stars,
            paid=0.03 + 0.12 * share(seed, 5, number) ** 2,
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
        heat=-0.5,
        lead=0.0,
        stars=4.0,
        paid=0.06,
    )


def _ordered(seed: int) -> list[Topic]:
    """The topics in the order they are planted in: family by family, because a market without neighbours is easy to tell."""
    families = list(dict.fromkeys(topic.family for topic in TOPICS))
    place = {family: mix(seed, 1, number) for number, family in enumerate(families)}
    return sorted(TOPICS, key=lambda topic: place[topic.family])


def _kinds(markets: int, seed: int) -> list[Kind]:
    """Half of the markets are niches, a quarter is led by one app and a quarter quiet."""
    order = sorted(range(markets), key=lambda number: mix(seed, 6, number))
    kinds: list[Kind] = ["niche"] * markets
    for turn, number in enumerate(order[: markets // 2]):
        kinds[number] = "led" if turn % 2 else "quiet"
    return kinds


def _climate(kind: Kind, seed: int, number: int) -> tuple[float, float, float]:
    """The heat, the lead and the stars."""
    warm, loved = share(seed, 3, number), share(seed, 4, number)
    match kind:
        case "niche":
            return 3.2 + warm, 0.0, 3.2 + 0.5 * loved
        case "led":
            return 0.2 + 0.6 * warm, 2.5 + warm, 4.4 + 0.2 * loved
    return -3.4 + 0.6 * warm, 0.0, 4.2 + 0.3 * loved
