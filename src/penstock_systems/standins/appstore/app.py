"""One app: its lasting facts, drawn from the seed and its number, and what follows from them on a given day."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

import msgspec

from penstock_systems.standins.appstore.chance import BELLS, salted, then
from penstock_systems.standins.appstore.genres import GAME_GENRES, GAMES, GENRES, STOREFRONTS
from penstock_systems.standins.appstore.markets import Climate
from penstock_systems.standins.appstore.stars import spread
from penstock_systems.standins.appstore.titles import subtitle, title, worded
from penstock_systems.standins.appstore.words import MODIFIERS, SELLERS

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)  # day 0 of the catalogue
_FIRST_ORDINAL = FIRST_DAY.toordinal()
DAY_SECONDS = 86_400
NEVER = 1 << 30  # a day that does not come
USUAL_AGE_DAYS, AGED_DAYS, YOUNG_GROWTH_MOST = 900, 60, 5.0  # the younger an app, the faster its count grows
LOVED_STARS = 4.6  # of an app that leads by far
ABANDONED_DAYS = (
    400,
    900,
)  # since the last version of a well-known app that nobody updates: at least, and how many more
FAN_TITLES = 6  # of seven apps of a franchise have its name in the title

PRICES = (
    [0.99] * 23
    + [2.99] * 22
    + [1.99] * 20
    + [4.99] * 13
    + [3.99] * 9
    + [6.99] * 5
    + [9.99] * 3
    + [5.99] * 2
    + [7.99, 299.99]
)
PURCHASES = (
    ("Remove Ads", (0.99, 1.99, 2.99)),
    ("Pro Weekly", (4.99, 6.99, 9.99)),
    ("Pro Monthly", (2.99, 4.99, 12.99)),
    ("Pro Yearly", (19.99, 29.99, 59.99)),
    ("Lifetime", (9.99, 49.99, 99.99)),
    ("Small Pack", (0.99, 1.99)),
    ("Large Pack", (4.99, 9.99, 19.99)),
    ("Huge Pack", (49.99, 99.99)),
    ("Themes & Icons", (0.99, 2.99)),
    ("Family Plan", (7.99, 12.99)),
    ("Student Plan", (1.99, 3.99)),
    ("Tip", (0.99, 4.99)),
)
# How many things there are to buy in an app; a page lists ten at most.
PURCHASE_COUNTS = [0] * 55 + [1] * 15 + [2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, 9, 9] + [10] * 8
LANGUAGES = "EN DE FR ES IT JA KO PT RU ZH TR NL SV HE AR PL HI EL DA FI NB".split()
LANGUAGE_SETS = [tuple(LANGUAGES[:count]) for count in [1] * 10 + [2, 3, 4, 6, 8, 10, 13, 16, 18, 21]]
AGES = ["4+"] * 80 + ["9+"] * 6 + ["12+"] * 8 + ["17+"] * 6
VERSION_PARTS = [1] * 8 + [2] * 31 + [3] * 61
SECOND_GENRES = [genre for genre, (_, part) in GENRES.items() if part]


class App(msgspec.Struct, frozen=True, gc=False):
    index: int
    track_id: int
    developer: int
    brand: str
    seller: str
    title: str
    subtitle: str | None
    keywords: tuple[str, ...]
    bundle_id: str
    genres: tuple[int, ...]
    price: float
    purchases: tuple[tuple[str, float], ...]
    released: int  # days from day 0
    gone: int  # the first day on which it is no longer in the store
    update_days: float  # between two versions
    abandoned: int  # the day after which none came
    version_parts: int
    ratings: float  # on day 0 in the largest store
    growth: float  # by which part of that its count grows a day
    stars: float
    languages: tuple[str, ...]
    size_bytes: int
    age: str
    website: bool
    screenshots: int
    franchise: str  # that it is about

    @property
    def slug(self) -> str:
        words = "".join(letter if letter.isalnum() else " " for letter in self.title.casefold()).split()
        return "-".join(words)

    def versions(self, day: float) -> int:
        """How many versions there have been."""
        return 1 + max(0, int((min(day, self.abandoned) - self.released) / self.update_days))

    def version(self, number: int) -> str:
        if self.version_parts == 3:
            return f"{1 + number // 12}.{number % 12 // 3}.{number % 3}"
        return f"{1 + number // 10}.{number % 10}" if self.version_parts == 2 else str(number + 1)

    def version_time(self, number: int) -> datetime:
        minute = (self.index * 7_919 + number * 104_729) % 1_440
        return FIRST_DAY + timedelta(days=self.released + int(number * self.update_days), minutes=minute)

    def version_text(self, number: int) -> str:
        """The same moment as the store writes it."""
        hours, minutes = divmod((self.index * 7_919 + number * 104_729) % 1_440, 60)
        day = date.fromordinal(_FIRST_ORDINAL + self.released + int(number * self.update_days))
        return f"{day.isoformat()}T{hours:02}:{minutes:02}:00Z"

    def rating_count(self, day: int, country: str = "us") -> int:
        grown = self.ratings * (1 + self.growth * max(0, day))
        return int(grown * STOREFRONTS[country].share + 1e-6)

    def histogram(self, day: int, country: str = "us") -> list[int]:
        """How many gave five stars, four, and so on down to one."""
        return spread(self.rating_count(day, country), self.stars, self.index, STOREFRONTS[country].id)


def price_of(seed: int, index: int, paid: float) -> float:
    luck = then(salted(seed, 30), index)
    return PRICES[luck % len(PRICES)] if (luck >> 32) / (1 << 32) < paid else 0.0


def life_of(seed: int, index: int) -> tuple[int, int]:
    """The day it comes and the day it leaves. Two in a hundred come within the year, six leave; some had left before."""
    coming = then(salted(seed, 35), index)
    leaving = ((then(coming, 1) >> 12) + 0.5) / (1 << 52)
    age = BELLS[(coming >> 40) % 4_096]
    released = 1 + coming // 100 % 365 if coming % 100 < 2 else -min(6_000, int(900 * math.exp(0.8 * age)))
    return released, max(released + 1, int(-math.log(leaving) * 365 / 0.06) - 60)


def describe(
    seed: int,
    index: int,
    *,
    track_id: int,
    developer: int,
    brand: str,
    keywords: tuple[str, ...],
    modifier: int,
    foreign: str | None,
    life: tuple[int, int],
    genre: int,
    paid: float,
    ratings: float | None,
    climate: Climate,
    leads: bool = False,
    franchise: str = "",
) -> App:
    """`foreign` is a word of another market that stands in its title instead of the modifier."""
    # Many small choices are cut from a few numbers, because a million apps are described at a time.
    words = then(salted(seed, 32), index)
    money, form, bent = then(words, 1), then(words, 2), then(words, 3)
    released = life[0]
    count = max(1.0, math.exp(ratings)) if ratings is not None and released <= 0 else 0.0
    loved = count > 1_000
    ahead = leads and climate.lead > 2
    if franchise and keywords[0] != franchise and (form >> 4) % 7 < FAN_TITLES:
        foreign = franchise.capitalize()
    wavering = max(0.15, 1.2 - 0.12 * math.log(count + 1))  # where few rated, the mean is anywhere
    gap, left, size = BELLS[(bent >> 12) % 4_096], BELLS[(bent >> 24) % 4_096], BELLS[(bent >> 36) % 4_096]
    return App(
        index=index,
        track_id=track_id,
        developer=developer,
        brand=brand,
        seller=f"{brand} {SELLERS[developer % len(SELLERS)]}",
        title=franchise.capitalize()
        if franchise and leads
        else title(words, brand, keywords[0], foreign or worded(words >> 44, modifier), released),
        subtitle=subtitle(words >> 28, keywords[-1], keywords[0], MODIFIERS[modifier]),
        keywords=keywords,
        bundle_id=f"com.{brand.casefold()}.{keywords[0]}-{track_id:x}",
        genres=_genres(genre, SECOND_GENRES[(form >> 56) % len(SECOND_GENRES)]),
        price=price_of(seed, index, paid),
        purchases=_purchases(money),
        released=released,
        gone=life[1],
        update_days=max(3.0, (22.0 if loved else 180.0) * math.exp(0.7 * gap)),
        abandoned=_abandoned(released, climate.kept, then(words, 4))
        if loved
        else released + (int(660 * math.exp(left)) if form % 8 > 2 else 0),
        version_parts=VERSION_PARTS[(form >> 8) % 100],
        ratings=count,
        growth=climate.growth * min(YOUNG_GROWTH_MOST, USUAL_AGE_DAYS / (max(0, -released) + AGED_DAYS)),
        stars=min(4.95, max(1.05, (LOVED_STARS if ahead else climate.stars) + wavering * BELLS[bent % 4_096])),
        languages=LANGUAGE_SETS[(form >> 20) % len(LANGUAGE_SETS)],
        size_bytes=int(97e6 * math.exp(0.95 * size)),
        age=AGES[(form >> 28) % 100],
        website=(form >> 36) % 1_000 < 477,
        screenshots=0 if (form >> 46) % 10 == 0 else 3 + (form >> 50) % 6,
        franchise=franchise,
    )


def _abandoned(released: int, kept: float, luck: int) -> int:
    """A well-known app is updated for ever, or was not for a year or more."""
    if (luck >> 32) / (1 << 32) < kept:
        return NEVER
    return max(released + 30, -ABANDONED_DAYS[0] - luck % ABANDONED_DAYS[1])


def _purchases(luck: int) -> tuple[tuple[str, float], ...]:
    first = luck // 100
    items = [PURCHASES[(first + 5 * step) % len(PURCHASES)] for step in range(PURCHASE_COUNTS[luck % 100])]
    return tuple([(name, prices[(luck >> 16 + 3 * turn) % len(prices)]) for turn, (name, prices) in enumerate(items)])


def _genres(genre: int, second: int) -> tuple[int, ...]:
    """The primary one first. A game's is Games, the kind of game comes second, and each has another at the end."""
    kinds = (GAMES, genre) if genre in GAME_GENRES else (genre,)
    return kinds if second in kinds else (*kinds, second)
