"""The catalogue: apps laid out in markets and portfolios by arithmetic, so that a million of them cost nothing to hold.

An app is a number. One shuffle of the numbers lines the apps up in markets, the most popular of a market first; another
lines them up by developer. Both can be read both ways, so nothing is stored for each app.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from penstock_systems.standins.appstore.app import App, describe, price_of
from penstock_systems.standins.appstore.chance import Shuffle, bell, interpolated, mix, offsets_of, pick, share
from penstock_systems.standins.appstore.genres import (
    APP_STORE,
    GAME_GENRES,
    GAMES,
    GENRES,
    STOREFRONTS,
    genre_name,
    primary,
)
from penstock_systems.standins.appstore.words import AUDIENCES, BRAND_ENDINGS, KEYWORDS, MODIFIERS, SYLLABLES, TOPICS

PLANTED_SHARE = 0.7  # of the apps; the others belong to no market in particular
APPS_MAX = 1_300_000  # beyond it two developers would share a name
MARKETS_MAX = len(TOPICS) * (len(AUDIENCES) + 1)
APPS_KEPT = 4_096  # described apps held ready
TRACK_IDS = (1_000_000_000, 700_000_001)  # the first, and how many there are to be spread over
ARTIST_IDS = (300_000_000, 600_000_001)
PATTERNS = KEYWORDS * len(MODIFIERS)  # which keyword and which modifier are in a title

# How many developers of a thousand have how many apps, and how many apps in the store have at least n ratings.
PORTFOLIOS = [(1, 705), (2, 147), (3, 58), (4, 29), (5, 16), (6, 11), (8, 10), (10, 6), (14, 10), (30, 6), (121, 2)]
RATINGS = "8e-7 22.7e6,.0022 53742,.011 8532,.022 2471,.055 308,.109 46,.164 12,.218 5,.243 4,.279 3,.337 2,.45 1"
_CURVE = [(math.log(float(part)), math.log(float(n))) for part, n in (point.split() for point in RATINGS.split(","))]
_EMPTY_SHARE = 0.45  # fewer than half have any rating


@dataclass(frozen=True, slots=True)
class Market:
    """Apps that compete for the same keywords, and what a good pipeline should find out about them."""

    number: int
    name: str
    genre: int
    keywords: tuple[str, ...]
    start: int
    apps: int
    heat: float  # how many more ratings than usual, as a logarithm: the demand
    stars: float  # the mean of its apps: low means that people want better
    paid: float  # the share of apps with a price
    planted: bool

    @property
    def opening(self) -> float:
        """How good an opportunity was planted here: much demand, unhappy users."""
        return self.heat + 2.0 * (4.2 - self.stars)

    def pull(self, position: int) -> float:
        """How strongly the app at this position draws people: the logarithm of its ratings, and never equal for two."""
        part = (position + 0.5) / self.apps
        known = interpolated(_CURVE, math.log(part)) if part < _EMPTY_SHARE else 0.0
        return known + self.heat - part


class Catalogue:
    """Everything about every app, from one seed."""

    def __init__(self, apps: int = 3_000, markets: int = 20, seed: int = 1) -> None:
        if not 1 <= apps <= APPS_MAX or not 0 <= markets <= MARKETS_MAX:
            raise ValueError(f"A catalogue has 1 to {APPS_MAX:,} apps in 0 to {MARKETS_MAX:,} markets.")
        self.apps, self.seed = apps, seed
        self.fields = list(_fields(apps, markets, seed))
        self.markets = [field for field in self.fields if field.planted]
        self._starts = [field.start for field in self.fields]
        self._slots = Shuffle(apps, seed, 10)
        self._shelves = Shuffle(apps, seed, 11)
        self._track_ids = Shuffle(TRACK_IDS[1], seed, 12)
        self._artist_ids = Shuffle(ARTIST_IDS[1], seed, 13)
        self._brands = Shuffle(len(SYLLABLES) ** 3, seed, 14)
        sizes = [size for size, count in PORTFOLIOS for _ in range(count)]
        order = sorted(range(len(sizes)), key=lambda number: mix(seed, 15, number))
        self._portfolios = [0, *accumulate(sizes[number] for number in order)]
        self.app = lru_cache(APPS_KEPT)(self._app)

    # -- markets ----------------------------------------------------------------------------------------------------

    def place(self, index: int) -> tuple[Market, int]:
        """An app's market, and its position there: 0 is the most popular."""
        slot = self._slots.place(index)
        market = self.fields[bisect_right(self._starts, slot) - 1]
        return market, slot - market.start

    def at(self, market: Market, position: int) -> int:
        return self._slots.item(market.start + position)

    def pattern(self, market: Market, position: int) -> tuple[int, int]:
        """The keyword and the modifier in the title of the app at this position."""
        return divmod((position * 35 + mix(self.seed, 20, market.number)) % PATTERNS, len(MODIFIERS))

    def positions(self, market: Market, keyword: int, modifier: int) -> range:
        """Where the apps are that have both in their title, the most popular first."""
        code = keyword * len(MODIFIERS) + modifier - mix(self.seed, 20, market.number)
        return range(code * pow(35, -1, PATTERNS) % PATTERNS, market.apps, PATTERNS)

    def popular(self, genre: int) -> Iterator[int]:
        """The apps of a genre in the order of their pull; 36 is the whole store."""
        fields = [field for field in self.fields if genre in (APP_STORE, field.genre, primary(field.genre))]
        for _, index in heapq.merge(*map(self._ranked, fields), reverse=True):
            yield index

    def _ranked(self, market: Market) -> Iterator[tuple[float, int]]:
        return ((market.pull(position), self.at(market, position)) for position in range(market.apps))

    # -- developers -------------------------------------------------------------------------------------------------

    def developer(self, index: int) -> int:
        cycle, rest = divmod(self._shelves.place(index), self._portfolios[-1])
        return cycle * (len(self._portfolios) - 1) + bisect_right(self._portfolios, rest) - 1

    def portfolio(self, developer: int) -> list[int]:
        """A developer's apps; none if there is no such developer."""
        cycle, number = divmod(developer, len(self._portfolios) - 1)
        first, last = (cycle * self._portfolios[-1] + end for end in self._portfolios[number : number + 2])
        return [self._shelves.item(shelf) for shelf in range(first, min(last, self.apps))]

    def brand(self, developer: int) -> str:
        code = self._brands.place(developer % self._brands.size)
        syllables = (SYLLABLES[code // 90**power % 90] for power in range(3))
        return ("".join(syllables) + pick(BRAND_ENDINGS, self.seed, 21, developer)).capitalize()

    def branded(self, word: str) -> int | None:
        """The developer whose brand this is: a brand can be read back, which is how a search finds it."""
        try:
            code = sum(SYLLABLES.index(word[2 * power : 2 * power + 2]) * 90**power for power in range(3))
        except ValueError:
            return None
        developer = self._brands.item(code)
        return developer if self.brand(developer).casefold() == word else None

    # -- ids --------------------------------------------------------------------------------------------------------

    def track_id(self, index: int) -> int:
        return TRACK_IDS[0] + self._track_ids.place(index)

    def index(self, track_id: int) -> int | None:
        found = self._track_ids.item((track_id - TRACK_IDS[0]) % TRACK_IDS[1])
        return found if found < self.apps and self.track_id(found) == track_id else None

    def artist_id(self, developer: int) -> int:
        return ARTIST_IDS[0] + self._artist_ids.place(developer)

    def artist(self, artist_id: int) -> int | None:
        found = self._artist_ids.item((artist_id - ARTIST_IDS[0]) % ARTIST_IDS[1])
        known = self.artist_id(found) == artist_id and self.portfolio(found)
        return found if known else None

    # -- one app ----------------------------------------------------------------------------------------------------

    def price(self, index: int) -> float:
        return price_of(self.seed, index, self.place(index)[0].paid)

    def sold(self, index: int, day: int, country: str) -> bool:
        """Whether it is in this country's store on this day."""
        app = self.app(index)
        here = country == "us" or share(self.seed, 22, index, STOREFRONTS[country].id) < 0.9
        return here and app.released <= day < app.gone

    def _app(self, index: int) -> App:
        market, position = self.place(index)
        keyword, modifier = self.pattern(market, position)
        developer = self.developer(index)
        return describe(
            self.seed,
            index,
            track_id=self.track_id(index),
            developer=developer,
            brand=self.brand(developer),
            keywords=tuple(market.keywords[(keyword + step) % KEYWORDS] for step in (0, 1, 3)),
            modifier=modifier,
            genre=market.genre,
            paid=market.paid,
            ratings=market.pull(position) if (position + 0.5) / market.apps < _EMPTY_SHARE else None,
            stars=market.stars,
        )


def _fields(apps: int, markets: int, seed: int) -> Iterator[Market]:
    """The planted markets, and for each genre a field of apps that share nothing else."""
    topics = sorted(range(len(TOPICS)), key=lambda number: mix(seed, 1, number))
    rest = [(genre, part) for genre, (_, part) in GENRES.items() if part and genre != GAMES]
    rest += [(genre, GENRES[GAMES][1] / len(GAME_GENRES)) for genre in GAME_GENRES]
    weights = [math.exp(0.6 * bell(seed, 2, number)) for number in range(markets)]
    scale = sum(weights) / PLANTED_SHARE * (1 - PLANTED_SHARE) / sum(part for _, part in rest) if markets else 1.0
    starts = offsets_of([*weights, *(part * scale for _, part in rest)], apps)
    for number, (start, end) in enumerate(pairwise(starts)):
        planted = number < markets
        if planted:
            round_, turn = divmod(number, len(TOPICS))
            name, genre, words = TOPICS[topics[turn]]
            if round_:
                audience = AUDIENCES[round_ - 1].split()
                name, words = f"{name} for {audience[0]}", [*words[: KEYWORDS - len(audience)], *audience]
        else:
            genre = rest[number - markets][0]
            name = genre_name(genre)
            words = [*name.replace("&", " ").casefold().split(), *"everyday original classic modern urban tiny".split()]
            words = (words + "mobile basic".split())[:KEYWORDS]
            words += words[: KEYWORDS - len(words)]
        yield Market(
            number=number,
            name=name,
            genre=genre,
            keywords=tuple(words),
            start=start,
            apps=end - start,
            heat=bell(seed, 3, number) if planted else -0.5,
            stars=4.1 + 0.35 * bell(seed, 4, number) if planted else 3.9,
            paid=0.03 + 0.12 * share(seed, 5, number) ** 2,
            planted=planted,
        )
