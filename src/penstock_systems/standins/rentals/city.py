"""A generated city: its flats, their advertisements on portals, and what happens to them, hour by hour."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import cos, pi, sin
from random import Random

PORTALS = {"yad2": 0.40, "stockholm": 0.19, "rentcast": 0.17, "olx": 0.18, "kijiji": 0.06}  # shares of the flats
ON_SEVERAL = 0.18  # on two portals or three
ON_THREE = 0.25  # of those
WITHOUT_PRICE = 0.16
MISREAD = 0.005
REPOSTED = 0.05
CUT, RAISED = 0.16, 0.03  # flats whose rent is lowered or raised once
PRESENT = 0.55  # flats that are offered at the beginning
NEVER = 1e9
LAT, LON = 50.06, 19.94
_AREAS = """Old Town,Harbour,Mill Quarter,Station,University,Gardens,North Bank,South Bank,Castle,Market,Brewery,
Orchard""".replace("\n", "").split(",")
_FIRST = """Ash Birch Cedar Elm Fir Hazel Lime Maple Oak Pine Rowan Willow Amber Copper Iron Silver Salt Stone River
Bridge""".split()
_SECOND = "Street,Lane,Road,Alley,Square,Walk".split(",")
_ADJECTIVES = """sunny quiet bright spacious renovated cosy modern furnished central charming light elegant practical
airy""".split()
_EXTRAS = "balcony lift garden terrace cellar parking bathtub fireplace dishwasher loggia".split()
_KINDS = ["apartment", "flat", "studio", "loft"]


@dataclass(slots=True)
class Flat:
    """One true flat. Hours count from the beginning of the city."""

    id: int
    lat: float
    lon: float
    area_name: str
    street: str
    number: int
    floor: int
    rooms: float
    area: float
    base: float
    fees: float
    appears: float
    ends: float
    changes: list[tuple[float, float]] = field(default_factory=list)  # hour, new base rent
    ads: list[Ad] = field(default_factory=list)

    def base_at(self, hour: float) -> float:
        """Return the rent at an hour, without fees."""
        place = bisect_right(self.changes, hour, key=lambda change: change[0])
        return self.changes[place - 1][1] if place else self.base


@dataclass(slots=True)
class Ad:
    """An advertisement of a flat on one portal."""

    id: int
    flat: Flat
    portal: str
    begins: float
    ends: float
    title: str
    picture: str
    lat: float
    lon: float
    has_price: bool
    is_business: bool
    misread: tuple[float, float, float] | None = None  # from, until, factor

    def base_at(self, hour: float) -> float | None:
        """Return the price that the portal shows without fees, None where it shows none."""
        if not self.has_price:
            return None
        price = self.flat.base_at(hour)
        if self.misread is not None and self.misread[0] <= hour < self.misread[1]:
            return round(price * self.misread[2])
        return price

    def changed_at(self, hour: float) -> float:
        """Return when the portal last showed something new about it."""
        known = [at for at, _ in self.flat.changes if self.begins < at <= hour]
        return max([self.begins, *known])


@dataclass(slots=True)
class City:
    seed: int
    days: float
    flats: list[Flat]
    ads: dict[str, list[Ad]]  # by portal, in the order of their ids

    def visible(self, portal: str, hour: float) -> Sequence[Ad]:
        return [ad for ad in self.ads[portal] if ad.begins <= hour < ad.ends]


def make_city(seed: int = 1, flats: int = 3_000, days: float = 5.0) -> City:
    """Return the city of a seed."""
    chance = Random(seed)
    streets = [f"{first} {second}" for first in _FIRST for second in _SECOND]
    chance.shuffle(streets)
    homes = [_make_flat(number, chance, streets, days) for number in range(1, flats + 1)]
    ads: list[Ad] = []
    for flat in homes:
        _advertise(flat, chance, ads, days)
    ads.sort(key=lambda ad: ad.begins)
    by_portal: dict[str, list[Ad]] = {portal: [] for portal in PORTALS}
    for ad in ads:
        by_portal[ad.portal].append(ad)
        ad.id = 1_000_000 + 7 * len(by_portal[ad.portal]) + len(ad.portal)
    return City(seed, days, homes, by_portal)


def _make_flat(id: int, chance: Random, streets: Sequence[str], days: float) -> Flat:
    street = chance.choice(streets)
    place = Random(f"{street}")
    quarter = place.randrange(len(_AREAS))
    number = chance.randrange(1, 90)
    bearing = place.random() * 2 * pi
    lat = LAT + (quarter // 4) * 0.02 + place.random() * 0.018 + number * 0.00009 * sin(bearing)
    lon = LON + (quarter % 4) * 0.03 + place.random() * 0.028 + number * 0.00014 * cos(bearing)
    rooms = chance.choice([1, 1.5, 2, 2, 2, 2.5, 3, 3, 3, 3.5, 4, 4, 5])
    area = round(16 + rooms * chance.uniform(12, 23), 1)
    level = 1.0 + 0.06 * (quarter % 7)
    base = float(round((area * chance.uniform(11, 17) * level + 120) / 5) * 5)
    fees = float(round(area * 2.2))
    appears = -1.0 if chance.random() < PRESENT else chance.uniform(0, 24 * days - 3)
    ends = max(appears, 0) + max(6.0, chance.expovariate(1 / (24 * 9)))
    flat = Flat(
        id, lat, lon, _AREAS[quarter], street, number, chance.randrange(0, 9), rooms, area, base, fees, appears, ends
    )
    draw = chance.random()
    if draw < CUT + RAISED:
        share = chance.uniform(-0.14, -0.025) if draw < CUT else chance.uniform(0.03, 0.10)
        at = chance.uniform(max(appears, 0) + 2, max(appears, 0) + 100)
        flat.changes.append((at, float(round(base * (1 + share)))))
    return flat


def _advertise(flat: Flat, chance: Random, ads: list[Ad], days: float) -> None:
    count = 1 if chance.random() >= ON_SEVERAL else 3 if chance.random() < ON_THREE else 2
    names, shares = list(PORTALS), list(PORTALS.values())
    portals: list[str] = []
    while len(portals) < count:
        found = chance.choices(names, shares)[0]
        if found not in portals:
            portals.append(found)
    words = [chance.choice(_ADJECTIVES), chance.choice(_KINDS), flat.street, chance.choice(_EXTRAS)]
    picture = f"{flat.id:05}{chance.randrange(10**6):06}"
    for place, portal in enumerate(portals):
        begins = flat.appears if not place or flat.appears < 0 else flat.appears + chance.uniform(0.2, 20)
        if begins >= flat.ends:
            continue
        title = (
            " ".join(words)
            if chance.random() < 0.75
            else f"{chance.choice(_ADJECTIVES)} {words[1]} near {flat.area_name}"
        )
        shown = picture if chance.random() < 0.6 else f"{flat.id:05}{chance.randrange(10**6):06}"
        ad = _make_ad(flat, portal, begins, title, shown, chance)
        if chance.random() < REPOSTED and portal != "stockholm":
            at = chance.uniform(max(begins, 0) + 3, max(begins, 0) + 80)
            if at < min(flat.ends, 24 * days):
                again = _make_ad(flat, portal, at, title, shown, chance)
                again.has_price, ad.ends = ad.has_price, at
                ads.append(again)
                flat.ads.append(again)
        ads.append(ad)
        flat.ads.append(ad)


def _make_ad(flat: Flat, portal: str, begins: float, title: str, picture: str, chance: Random) -> Ad:
    lat, lon = flat.lat + chance.gauss(0, 0.00009), flat.lon + chance.gauss(0, 0.00012)
    priced = chance.random() >= WITHOUT_PRICE
    ad = Ad(
        0, flat, portal, begins, flat.ends, title, picture, round(lat, 6), round(lon, 6), priced, chance.random() < 0.4
    )
    if chance.random() < MISREAD:
        start = chance.uniform(max(begins, 0), max(begins, 0) + 48)
        ad.misread = (start, start + chance.uniform(0.3, 1.6), chance.choice([0.1, 0.5, 3.0, 10.0]))
    return ad
