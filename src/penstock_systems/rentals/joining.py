"""Whether two listings offer the same home: a gate, vetoes, and at least one corroboration. Pure."""

from __future__ import annotations

from math import cos, hypot, radians
from typing import NamedTuple, Protocol

from penstock_systems.rentals.listings import words_of

METERS_MAX = 75.0
AREA_SHARE, AREA_LEAST = 0.02, 1.0
AREA_EXACT = 0.6  # square metres that rounding makes
PRICE_SHARE = 0.02
PRICE_SHARE_BY_AREA = 0.03  # where only the neighbourhood is known
TITLE_SHARE = 0.45  # of the words of both
METERS_A_DEGREE = 111_320.0


class Offer(Protocol):
    """What is compared of a listing."""

    source: str
    title: str
    price_base: float | None
    price_total: float | None
    currency: str | None
    rooms: float | None
    area_m2: float | None
    floor: float | None
    neighborhood: str | None
    street: str | None
    house_number: str | None
    lat: float | None
    lon: float | None
    phone: str | None
    image: str | None
    deal: str
    status: str


class Evidence(NamedTuple):
    score: float
    why: str


def same_home(one: Offer, other: Offer) -> Evidence | None:
    """Return why two listings offer the same home, or None."""
    if not _passes(one, other) or _vetoes(one, other):
        return None
    close = price_gap(one, other)
    place = _place(one, other, close)
    if place is None:
        return None
    found = [place]
    if close is not None and close <= PRICE_SHARE:
        found.append("price")
    if _same_address(one, other):
        found.append("address")
    if title_share(one.title, other.title) >= TITLE_SHARE:
        found.append("title")
    if one.image and one.image == other.image:
        found.append("picture")
    if one.phone and one.phone == other.phone:
        found.append("phone")
    # A portal seldom offers one home twice at a time: then more has to speak for it.
    needed = 2 if one.source == other.source else 1
    if len(found) - 1 < needed:
        return None
    return Evidence(round(len(found) / 6, 2), ", ".join(found))


def _passes(one: Offer, other: Offer) -> bool:
    if one.deal != other.deal or "unknown" in (one.deal, other.deal):
        return False
    if one.rooms is not None and other.rooms is not None and one.rooms != other.rooms:
        return False
    if one.area_m2 is None or other.area_m2 is None:
        return False
    most = max(AREA_LEAST, AREA_SHARE * max(one.area_m2, other.area_m2))
    return abs(one.area_m2 - other.area_m2) <= most


def _vetoes(one: Offer, other: Offer) -> bool:
    same_street = bool(one.street) and words_of(one.street) == words_of(other.street)
    numbers = one.house_number is not None and other.house_number is not None
    if same_street and numbers and one.house_number != other.house_number:
        return True
    if one.street and other.street and not same_street and numbers:
        return True
    if one.floor is not None and other.floor is not None and one.floor != other.floor:
        return True
    return one.source == other.source and one.status != "gone" and other.status != "gone" and one.title != other.title


def _same_address(one: Offer, other: Offer) -> bool:
    """Whether the address is the same, and the floor too; or, where a floor is unknown, rooms and size exactly."""
    if not (one.street and one.house_number and one.house_number == other.house_number):
        return False
    if words_of(one.street) != words_of(other.street):
        return False
    if one.floor is not None and one.floor == other.floor:
        return True
    sizes = one.area_m2 is not None and other.area_m2 is not None and abs(one.area_m2 - other.area_m2) <= AREA_EXACT
    return sizes and one.rooms is not None and one.rooms == other.rooms


def _place(one: Offer, other: Offer, close: float | None) -> str | None:
    away = meters(one, other)
    if away is not None:
        return f"{away:.0f} m" if away <= METERS_MAX else None
    if one.street and one.house_number and words_of(one.street) == words_of(other.street):
        return "street" if one.house_number == other.house_number else None
    if one.neighborhood and words_of(one.neighborhood) == words_of(other.neighborhood):
        return "neighbourhood" if close is not None and close <= PRICE_SHARE_BY_AREA else None
    return None


def meters(one: Offer, other: Offer) -> float | None:
    """Return how far apart two listings are, None where one has no coordinates."""
    if one.lat is None or one.lon is None or other.lat is None or other.lon is None:
        return None
    return distance(one.lat, one.lon, other.lat, other.lon)


def distance(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    north = (lat - other_lat) * METERS_A_DEGREE
    east = (lon - other_lon) * METERS_A_DEGREE * cos(radians(lat))
    return hypot(north, east)


def price_gap(one: Offer, other: Offer) -> float | None:
    """Return by which share prices of one kind differ, None where they cannot be compared."""
    if one.currency != other.currency:
        return None
    for name in ("price_base", "price_total"):
        first, second = getattr(one, name), getattr(other, name)
        if first and second:
            return float(abs(first - second) / max(first, second))
    return None


def title_share(one: str, other: str) -> float:
    """Return the share of words that two titles have in common."""
    first, second = set(words_of(one)), set(words_of(other))
    return len(first & second) / len(first | second) if first and second else 0.0
