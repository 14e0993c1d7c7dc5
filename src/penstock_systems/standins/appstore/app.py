"""One app: its lasting facts, drawn from the seed and its number, and what follows from them on a given day."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from penstock_systems.standins.appstore.chance import bell, coded, mix, share
from penstock_systems.standins.appstore.genres import GAME_GENRES, GAMES, GENRES, STOREFRONTS
from penstock_systems.standins.appstore.words import MODIFIERS, SELLERS, TRANSLATIONS

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)  # day 0 of the catalogue
DAY_SECONDS = 86_400
TITLE_CHARACTERS_MAX = 30
NEVER = 1 << 30  # a day that does not come
RATINGS_A_DAY = 0.0006  # by how much the count grows
SAMPLED_RATINGS_MAX = 20  # so few are drawn one by one

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
    ("Tip", (0.99, 4.99)),
)
LANGUAGES = "EN DE FR ES IT JA KO PT RU ZH TR NL SV HE AR PL HI EL DA FI NB".split()
AGES = ["4+"] * 80 + ["9+"] * 6 + ["12+"] * 8 + ["17+"] * 6
STARS = {5: 0.70, 4: 0.14, 3: 0.06, 2: 0.03, 1: 0.07}  # the J that most histograms have


@dataclass(frozen=True, slots=True)
class App:
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
    stars: float
    languages: tuple[str, ...]
    size_bytes: int
    age: str
    website: bool
    screenshots: int

    @property
    def slug(self) -> str:
        words = "".join(letter if letter.isalnum() else " " for letter in self.title.casefold()).split()
        return "-".join(words)

    def versions(self, day: int) -> int:
        """How many versions there have been."""
        return 1 + max(0, int((min(day, self.abandoned) - self.released) / self.update_days))

    def version(self, number: int) -> str:
        parts = (1 + number // 12, number % 12 // 3, number % 3)
        return [str(number + 1), f"{1 + number // 10}.{number % 10}", ".".join(map(str, parts))][self.version_parts - 1]

    def version_time(self, number: int) -> datetime:
        minute = mix(self.index, number) % 1_440
        return FIRST_DAY + timedelta(days=self.released + int(number * self.update_days), minutes=minute)

    def rating_count(self, day: int, country: str = "us") -> int:
        grown = self.ratings * (1 + RATINGS_A_DAY * max(0, day))
        return int(grown * STOREFRONTS[country].share + 1e-6)

    def histogram(self, day: int, country: str = "us") -> list[int]:
        """How many gave five stars, four, and so on down to one."""
        total, odds = self.rating_count(day, country), _tilted(self.stars)
        if total <= SAMPLED_RATINGS_MAX:
            ends = list(accumulate(odds))
            drawn = [share(self.index, coded(country), number) for number in range(total)]
            places = [next((place for place, end in enumerate(ends) if part < end), 4) for part in drawn]
            return [places.count(place) for place in range(5)]
        counts = [int(total * part) for part in odds]
        counts[0] += total - sum(counts)
        return counts


def average(histogram: list[int]) -> float:
    """The mean number of stars to five places, as Apple gives it; 0 without ratings."""
    total = sum(histogram)
    return round(sum(count * (5 - place) for place, count in enumerate(histogram)) / total, 5) if total else 0.0


def price_of(seed: int, index: int, paid: float) -> float:
    return PRICES[mix(seed, 31, index) % len(PRICES)] if share(seed, 30, index) < paid else 0.0


def describe(
    seed: int,
    index: int,
    *,
    track_id: int,
    developer: int,
    brand: str,
    keywords: tuple[str, ...],
    modifier: int,
    genre: int,
    paid: float,
    ratings: float | None,
    stars: float,
) -> App:
    chance = random.Random(mix(seed, 32, index))
    count = max(1.0, math.exp(ratings)) if ratings is not None else 0.0
    loved = count > 1_000
    released = chance.randint(1, 365) if chance.random() < 0.02 else -min(6_000, int(chance.lognormvariate(6.8, 0.8)))
    count = 0.0 if released > 0 else count
    bought = chance.choice((0, 0, 0, 0, 0, 1, 2, 3, 5, 8))
    names = chance.sample(PURCHASES, bought)
    named = MODIFIERS[modifier]
    native = chance.random() < 0.12
    if native:
        named = chance.choice(TRANSLATIONS)[modifier % len(TRANSLATIONS[0])]
    spread = max(0.15, 1.2 - 0.12 * math.log(count + 1))
    return App(
        index=index,
        track_id=track_id,
        developer=developer,
        brand=brand,
        seller=f"{brand} {SELLERS[developer % len(SELLERS)]}",
        title=_title(chance, brand, keywords[0].capitalize(), named.capitalize()),
        subtitle=None if chance.random() < 0.2 else _subtitle(chance, keywords[-1], keywords[0], MODIFIERS[modifier]),
        keywords=keywords,
        bundle_id=f"com.{brand.casefold()}.{keywords[0]}-{track_id:x}",
        genres=_genres(chance, genre),
        price=price_of(seed, index, paid),
        purchases=tuple((name, chance.choice(prices)) for name, prices in names),
        released=released,
        # Six in a hundred leave within a year; some had left before day 0.
        gone=max(released + 1, int(-math.log(share(seed, 33, index)) * 365 / 0.06) - 60),
        update_days=max(3.0, chance.lognormvariate(3.1 if loved else 5.2, 0.7)),
        abandoned=NEVER if loved else released + int(chance.choice((0, 1, 1)) * chance.lognormvariate(6.5, 1.0)),
        version_parts=chance.choices((1, 2, 3), (8, 31, 61))[0],
        ratings=count,
        stars=min(4.95, max(1.05, stars + spread * bell(seed, 34, index))),
        languages=tuple(LANGUAGES[: min(len(LANGUAGES), int(chance.paretovariate(0.8)))]),
        size_bytes=int(chance.lognormvariate(math.log(97e6), 0.95)),
        age=chance.choice(AGES),
        website=chance.random() < 0.477,
        screenshots=0 if chance.random() < 0.1 else chance.randint(3, 8),
    )


def _title(chance: random.Random, brand: str, keyword: str, modifier: str) -> str:
    wide = chance.choice(("{0}: {1} {2}", "{0} - {1} {2}", "{1} {2} {0}", "{2} {1}: {0}", "{0} {1} {2}"))
    for form in (wide, "{0}: {1}", "{0}"):
        if len(title := form.format(brand, keyword, modifier)) <= TITLE_CHARACTERS_MAX:
            return title
    return brand[:TITLE_CHARACTERS_MAX]


def _subtitle(chance: random.Random, first: str, second: str, modifier: str) -> str:
    form = chance.choice(("{0} & {1} {2}", "simple {1} {2}", "{0}, {1} and more", "your {0} {2}"))
    text = form.format(first, second, modifier).capitalize()
    return text if len(text) <= TITLE_CHARACTERS_MAX else second.capitalize()


def _genres(chance: random.Random, genre: int) -> tuple[int, ...]:
    kinds = (GAMES, genre) if genre in GAME_GENRES else (genre,)
    second = chance.choice([other for other, (_, part) in GENRES.items() if part and other not in kinds])
    return (*kinds, second)


def _tilted(mean: float) -> list[float]:
    """The usual histogram bent until its mean is the one asked for, five stars first."""
    low, high = -8.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2
        weights = {star: part * math.exp(middle * star) for star, part in STARS.items()}
        total = sum(weights.values())
        if sum(star * weight for star, weight in weights.items()) / total < mean:
            low = middle
        else:
            high = middle
    return [weight / total for weight in weights.values()]
