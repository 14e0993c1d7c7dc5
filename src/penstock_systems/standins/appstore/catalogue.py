"""The catalogue: apps laid out in markets and portfolios by arithmetic, so that a million of them cost nothing to hold.

An app is a number. One shuffle of the numbers lines the apps up in markets, the most popular of a market first; another
lines them up by developer. Both can be read both ways, so nothing is stored for each app.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, product

from penstock_systems.standins.appstore.app import NEVER, App, describe, life_of, price_of
from penstock_systems.standins.appstore.chance import Shuffle, mix, salted, share, then
from penstock_systems.standins.appstore.genres import APP_STORE, STOREFRONTS, primary
from penstock_systems.standins.appstore.markets import GENRE_SHARES, MARKETS_MAX, Market, plant
from penstock_systems.standins.appstore.words import ENDINGS, KEYWORDS, MODIFIERS, QUALITIES, THINGS

APPS_MAX = 1_300_000  # beyond it two developers would share a name
APPS_KEPT = 4_096  # described apps held ready
LIVES_KEPT = 16_384
CARED_FOR_KEPT = 8_192
PULLS_KEPT = 2_048  # of the most popular apps of each market
TRACK_IDS = (1_000_000_000, 700_000_001)  # the first, and how many there are to be spread over
ARTIST_IDS = (300_000_000, 600_000_001)
PATTERNS = KEYWORDS * len(MODIFIERS)  # which keyword and which modifier are in a title
CYCLES = 3  # rounds of the patterns of a market in which somebody looks for one keyword
STEP = 37  # from one position's pattern to the next one's: coprime to the number of patterns
ASIDE = (1, 3, 6)  # an app also cares for the keywords that stand so far after the one in its title
FOREIGN = (13, 5)  # one app in eleven has a word of a neighbouring market in its title: those at 5, 16, 27 and so on
SOLD_ABROAD = 0.9
LEADING = (
    -1_500,
    NEVER,
)  # the days between which the leader of a market is there: without it the market would be another

YOUNG_DAYS = (20, 340)  # the age of an app that came within a year: from, and how many more
PAIRS = len(QUALITIES) * len(THINGS)
_PAIRS = {first + second: place for place, (first, second) in enumerate(product(QUALITIES, THINGS))}

# How many developers of a thousand have how many apps.
PORTFOLIOS = [(1, 705), (2, 147), (3, 58), (4, 29), (5, 16), (6, 11), (8, 10), (10, 6), (14, 10), (30, 6), (121, 2)]


class Catalogue:
    """Everything about every app, from one seed. The markets named in `without` are not there, and all else is the same."""

    def __init__(self, apps: int = 3_000, markets: int = 20, seed: int = 1, *, without: tuple[str, ...] = ()) -> None:
        if not 1 <= apps <= APPS_MAX or not 0 <= markets <= MARKETS_MAX:
            raise ValueError(f"A catalogue has 1 to {APPS_MAX:,} apps in 0 to {MARKETS_MAX:,} markets.")
        self.apps, self.seed = apps, seed
        self.fields = plant(apps, markets, seed)
        planted = [field for field in self.fields if field.planted]
        self._left_out = frozenset(field.number for field in planted if field.name in without)
        if len(self._left_out) < len(set(without)):
            names = ", ".join(field.name for field in planted)
            raise ValueError(f"Not every market of {without} is planted here, so it cannot be left out: {names} are.")
        self.markets = [field for field in planted if field.number not in self._left_out]
        self._starts = [field.start for field in self.fields]
        self._turns = [mix(seed, 20, field.number) % PATTERNS for field in self.fields]
        self._back = pow(STEP, -1, PATTERNS)
        self.slots = Shuffle(apps, seed, 10)
        self._shelves = Shuffle(apps, seed, 11)
        self._track_ids = Shuffle(TRACK_IDS[1], seed, 12)
        self._artist_ids = Shuffle(ARTIST_IDS[1], seed, 13)
        sizes = [size for size, count in PORTFOLIOS for _ in range(count)]
        order = sorted(range(len(sizes)), key=lambda number: mix(seed, 15, number))
        self._portfolios = [0, *accumulate(sizes[number] for number in order)]
        developers = (apps // self._portfolios[-1] + 1) * len(sizes)
        self._brands = Shuffle(PAIRS if developers <= PAIRS else PAIRS * len(ENDINGS), seed, 14)
        self._pulls: dict[int, array[float]] = {}
        self.app = lru_cache(APPS_KEPT)(self.described)
        self.life = lru_cache(LIVES_KEPT)(self._life)

    # -- markets ----------------------------------------------------------------------------------------------------

    def place(self, index: int) -> tuple[Market, int]:
        """An app's market, and its position there: 0 is the most popular."""
        slot = self.slots.place(index)
        market = self.fields[bisect_right(self._starts, slot) - 1]
        return market, slot - market.start

    def at(self, market: Market, position: int) -> int:
        return self.slots.item(market.start + position)

    def here(self, market: Market) -> bool:
        """Whether the market was not left out."""
        return market.number not in self._left_out

    def pulls(self, market: Market) -> array[float]:
        """The pull of its most popular apps, in order."""
        found = self._pulls.get(market.number)
        if found is None:
            found = array("d", (market.pull(position) for position in range(min(PULLS_KEPT, market.apps))))
            self._pulls[market.number] = found
        return found

    def pull(self, market: Market, position: int) -> float:
        pulls = self.pulls(market)
        return pulls[position] if position < len(pulls) else market.pull(position)

    def turn(self, market: Market) -> int:
        """Where the patterns of its titles begin."""
        return self._turns[market.number]

    def pattern(self, market: Market, position: int) -> tuple[int, int]:
        """The keyword and the modifier in the title of the app at this position."""
        return divmod((position * STEP + self._turns[market.number]) % PATTERNS, len(MODIFIERS))

    def titled(self, market: Market) -> tuple[tuple[int, ...], ...]:
        """For each keyword where the first apps are that have it in their title."""
        return _titled(self._turns[market.number])

    def positions(self, market: Market, keyword: int, modifier: int) -> range:
        """Where the apps are that have both in their title, the most popular first."""
        code = keyword * len(MODIFIERS) + modifier - self._turns[market.number]
        return range(code * self._back % PATTERNS, market.apps, PATTERNS)

    def foreign(self, market: Market, position: int) -> str | None:
        """The word of a neighbouring market in the title of the app at this position, if there is one."""
        turn, rest = divmod(position, FOREIGN[0])
        if rest != FOREIGN[1] or not market.near:
            return None
        turn, neighbour = divmod(turn, len(market.near))
        return self.fields[market.near[neighbour]].keywords[turn % KEYWORDS]

    def strays(self, market: Market, keyword: int) -> Iterator[tuple[Market, range]]:
        """Where the apps of its neighbours are that have this keyword in their title."""
        for number in market.near:
            other = self.fields[number]
            place, count = other.near.index(market.number), len(other.near)
            first = FOREIGN[0] * (place + count * keyword) + FOREIGN[1]
            yield other, range(first, other.apps, FOREIGN[0] * count * KEYWORDS)

    def genre(self, market: Market, position: int) -> int:
        if len(market.genres) == 1:
            return market.genres[0]
        part = then(salted(self.seed, 1_000 + market.number), position) / (1 << 64)
        return market.genres[(part > GENRE_SHARES[0]) + (part > GENRE_SHARES[0] + GENRE_SHARES[1])]

    def popular(self, genre: int, part: float = 1.0) -> Iterator[int]:
        """The apps of a genre in the order of their pull, also those left out; 36 is the whole store.

        `part` is how much of each market is looked at, from the most popular app on."""
        ranked = (self._ranked(field, genre, part) for field in self.fields)
        for _, index in heapq.merge(*ranked, reverse=True):
            yield index

    def _ranked(self, market: Market, genre: int, part: float) -> Iterator[tuple[float, int]]:
        if genre == APP_STORE or any(genre in (one, primary(one)) for one in market.genres):
            for position in range(math.ceil(market.apps * part)):
                own = self.genre(market, position)
                if genre in (APP_STORE, own, primary(own)):
                    yield market.pull(position), self.at(market, position)

    # -- developers -------------------------------------------------------------------------------------------------

    def developer(self, index: int) -> int:
        cycle, rest = divmod(self._shelves.place(index), self._portfolios[-1])
        return cycle * (len(self._portfolios) - 1) + bisect_right(self._portfolios, rest) - 1

    def portfolio(self, developer: int) -> list[int]:
        """A developer's apps; none if there is no such developer."""
        cycle, number = divmod(developer, len(self._portfolios) - 1)
        first, last = (cycle * self._portfolios[-1] + end for end in self._portfolios[number : number + 2])
        apps = (self._shelves.item(shelf) for shelf in range(first, min(last, self.apps)))
        return [index for index in apps if self.exists(index)]

    def brand(self, developer: int) -> str:
        ending, pair = divmod(self._brands.place(developer % self._brands.size), PAIRS)
        quality, thing = divmod(pair, len(THINGS))
        return (QUALITIES[quality] + THINGS[thing] + ENDINGS[ending]).capitalize()

    def branded(self, word: str) -> int | None:
        """The developer whose brand this is: a brand can be read back, which is how a search finds it."""
        ending = word[-2:] if word not in _PAIRS else ""
        pair = _PAIRS.get(word.removesuffix(ending))
        if pair is None or ending not in ENDINGS:
            return None
        code = ENDINGS.index(ending) * PAIRS + pair
        return self._brands.item(code) if code < self._brands.size else None

    # -- ids --------------------------------------------------------------------------------------------------------

    def track_id(self, index: int) -> int:
        return TRACK_IDS[0] + self._track_ids.place(index)

    def index(self, track_id: int) -> int | None:
        found = self._track_ids.item((track_id - TRACK_IDS[0]) % TRACK_IDS[1])
        return found if found < self.apps and self.track_id(found) == track_id and self.exists(found) else None

    def artist_id(self, developer: int) -> int:
        return ARTIST_IDS[0] + self._artist_ids.place(developer)

    def artist(self, artist_id: int) -> int | None:
        found = self._artist_ids.item((artist_id - ARTIST_IDS[0]) % ARTIST_IDS[1])
        known = self.artist_id(found) == artist_id and self.portfolio(found)
        return found if known else None

    # -- one app ----------------------------------------------------------------------------------------------------

    def exists(self, index: int) -> bool:
        return not self._left_out or self.here(self.place(index)[0])

    def price(self, index: int) -> float:
        return price_of(self.seed, index, self.place(index)[0].paid)

    def sold(self, index: int, day: int, country: str) -> bool:
        """Whether it is in this country's store on this day."""
        return self.offered(index, day, country) and self.exists(index)

    def offered(self, index: int, day: int, country: str) -> bool:
        """Whether it would be, if its market was not left out."""
        released, gone = self.life(index)
        here = country == "us" or share(self.seed, 22, index, STOREFRONTS[country].id) < SOLD_ABROAD
        return here and released <= day < gone

    def _life(self, index: int) -> tuple[int, int]:
        return self._life_at(index, *self.place(index))

    def _life_at(self, index: int, market: Market, position: int) -> tuple[int, int]:
        if market.climate.lead and position == 0:
            return LEADING
        released, gone = life_of(self.seed, index)
        if share(self.seed, 36, index) < market.climate.young:
            released = -int(YOUNG_DAYS[0] + YOUNG_DAYS[1] * share(self.seed, 37, index))
        elif released > -market.climate.settled_days:
            released -= market.climate.settled_days
        return released, max(released + 1, gone)

    def described(self, index: int) -> App:
        """An app that nobody will soon ask for again: `app` keeps some."""
        market, position = self.place(index)
        keyword, modifier = self.pattern(market, position)
        developer = self.developer(index)
        return describe(
            self.seed,
            index,
            track_id=self.track_id(index),
            developer=developer,
            brand=self.brand(developer),
            keywords=_cared_for(market.keywords, keyword),
            modifier=modifier,
            foreign=self.foreign(market, position),
            life=self._life_at(index, market, position),
            genre=self.genre(market, position),
            paid=market.paid,
            ratings=self.pull(market, position) if market.rated(position) else None,
            climate=market.climate,
            leads=position == 0,
            franchise=market.franchise,
        )


@lru_cache(CARED_FOR_KEPT)
def _cared_for(keywords: tuple[str, ...], first: int) -> tuple[str, ...]:
    """What an app is about: the keyword in its title, and those that it also cares for."""
    return tuple(keywords[(first + step) % KEYWORDS] for step in (0, *ASIDE))


@lru_cache(PATTERNS)
def _titled(turn: int) -> tuple[tuple[int, ...], ...]:
    found: list[list[int]] = [[] for _ in range(KEYWORDS)]
    for position in range(CYCLES * PATTERNS):
        found[(position * STEP + turn) % PATTERNS // len(MODIFIERS)].append(position)
    return tuple(map(tuple, found))
