"""Compares what was collected with what is true of the city."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import cos, hypot, radians
from statistics import median
from typing import Any

from penstock_systems.rentals.app import app, db
from penstock_systems.rentals.demo.course import PEOPLE, Course
from penstock_systems.rentals.searches import Filter
from penstock_systems.standins.rentals import Ad, Flat

LISTINGS = """
select id, source, item_id, home_id, status, first_seen_at
from listings
where id > :after
order by id
limit :size
"""
NOTICES = """
select id, search_id, home_id, listing_id, reason, old, new, created_at, sent_at
from notices
where id > :after
and reason <> 'summary'
order by id
limit :size
"""
SEEN_HOURS = 2.0  # an advertisement that is shown for less need not be found
TOLERANCE = 0.015  # of a price, for portals that round


@dataclass(slots=True)
class Judged:
    """What the page at the end claims."""

    figures: dict[str, Any] = field(default_factory=dict)
    truth: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  # a few examples


async def judge(course: Course, hours: float) -> Judged:
    ads = {_listing_id(ad): ad for portal in course.city.ads.values() for ad in portal}
    listings = [row async for page in db.pages(LISTINGS, key="id", after="") for row in page]
    judged = Judged()
    _find(judged, course, listings, ads, hours)
    flats = _join(judged, listings, ads, hours)
    notices = [row async for page in db.pages(NOTICES, key="id", after="") for row in page]
    _notices(judged, course, notices, flats, ads)
    _delays(judged, course, notices, ads)
    await _sources(judged, course)
    return judged


def _listing_id(ad: Ad) -> str:
    match ad.portal:
        case "yad2":
            return f"yad2:y{ad.id:x}"
        case "rentcast":
            return f"rentcast:{ad.flat.street}-{ad.id}".replace(" ", "-")
        case _:
            return f"{ad.portal}:{ad.id}"


def _find(judged: Judged, course: Course, listings: list[Any], ads: Mapping[str, Ad], hours: float) -> None:
    found = {ads[row.id].flat.id for row in listings if row.id in ads}
    shown = {flat.id for flat in course.city.flats if any(_was_shown(ad, hours) for ad in flat.ads)}
    judged.truth |= {"flats": len(course.city.flats), "flats_shown": len(shown), "advertisements": len(ads)}
    judged.figures |= {
        "flats_found": len(found & shown),
        "flats_found_share": round(len(found & shown) / len(shown), 4),
        "listings": len(listings),
        "listings_unknown_to_the_city": sum(row.id not in ads for row in listings),
    }


def _was_shown(ad: Ad, hours: float) -> bool:
    return min(ad.ends, hours) - max(ad.begins, 0) >= SEEN_HOURS


def _join(judged: Judged, listings: list[Any], ads: Mapping[str, Ad], hours: float) -> dict[str, Flat]:
    """Judge homes with several listings, and return the flat that each home stands for."""
    homes: dict[str, list[Ad]] = defaultdict(list)
    home_of: dict[str, str] = {}
    for row in listings:
        if row.id in ads and row.home_id:
            homes[row.home_id].append(ads[row.id])
            home_of[row.id] = row.home_id
    flats: dict[str, Flat] = {}
    joined = right = 0
    for home, members in homes.items():
        flat, count = Counter(ad.flat.id for ad in members).most_common(1)[0]
        flats[home] = next(ad.flat for ad in members if ad.flat.id == flat)
        joined += len(members) - 1
        right += count - 1
    apart: dict[int, set[str]] = defaultdict(set)
    for id, home in home_of.items():
        apart[ads[id].flat.id].add(home)
    possible = sum(
        len(found) - 1
        for flat in {each.flat.id: each.flat for each in ads.values()}.values()
        if (found := [ad for ad in flat.ads if _listing_id(ad) in home_of])
    )
    judged.truth["joins_possible"] = possible
    judged.figures |= {
        "joins": joined,
        "joins_right": right,
        "joins_wrong": joined - right,
        "joins_right_share": round(right / joined, 4) if joined else 1.0,
        "joins_missed": sum(len(found) - 1 for found in apart.values()),
        "homes": len(homes),
    }
    return flats


def _notices(
    judged: Judged, course: Course, notices: list[Any], flats: Mapping[str, Flat], ads: Mapping[str, Ad]
) -> None:
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    met: set[tuple[str, int]] = set()
    for row in sorted(notices, key=lambda each: each.created_at):
        flat, hour = flats.get(row.home_id), course.hour(row.created_at)
        why = "the home is unknown"
        if flat is not None:
            why = _mistake(row, flat, ads.get(row.listing_id), hour, met)
            if row.reason == "new":
                met.add((row.search_id, flat.id))
        if why:
            wrong[row.reason] += 1
            if len(judged.wrong) < 40:
                judged.wrong.append(f"{row.search_id} {row.reason} {row.listing_id} {row.old} -> {row.new}: {why}")
        else:
            right[row.reason] += 1
    for reason in ("new", "cheaper", "back", "gone"):
        judged.figures |= {f"notices_{reason}": right[reason] + wrong[reason], f"notices_{reason}_wrong": wrong[reason]}
    total = right["cheaper"] + wrong["cheaper"]
    judged.figures["price_notices_wrong_share"] = round(wrong["cheaper"] / total, 4) if total else 0.0
    judged.figures["notices"] = len(notices)
    judged.figures["notices_wrong"] = sum(wrong.values())
    of_search = {(row.search_id, flats[row.home_id].id): flats[row.home_id] for row in notices if row.home_id in flats}
    cuts = {
        key
        for key, flat in of_search.items()
        if any(
            at < course.portals.hour - 1 and new < flat.base * 0.98 and _is_seen(flat, at) for at, new in flat.changes
        )
    }
    told = {
        (row.search_id, flats[row.home_id].id) for row in notices if row.reason == "cheaper" and row.home_id in flats
    }
    judged.truth["price_cuts_of_notified_homes"] = len(cuts)
    judged.figures["price_cuts_notified"] = len(cuts & told)


def _mistake(row: Any, flat: Flat, ad: Ad | None, hour: float, met: set[tuple[str, int]]) -> str:
    """Return why a notice is wrong, or nothing."""
    match row.reason:
        case "new":
            if (row.search_id, flat.id) in met:
                return "it was notified before"
            return "" if ad is not None and _fits(PEOPLE[row.search_id].filter, ad, hour) else "it does not match"
        case "cheaper":
            if ad is None or row.new is None or row.old is None:
                return "no such advertisement"
            truth = _prices(flat, ad, hour)
            if not any(abs(row.new - price) <= TOLERANCE * price + 1 for price in truth):
                return f"the price is {truth}"
            before = [price for at in _moments(flat, hour) for price in _prices(flat, ad, at)]
            return "" if max(before) > row.new * 1.01 else "it was never dearer"
        case "gone":
            live = [each for each in flat.ads if each.begins <= hour - 0.2 and each.ends > hour]
            return "it is still offered" if live else ""
        case _:
            return "" if any(each.begins <= hour < each.ends for each in flat.ads) else "it is not offered"


def _is_seen(flat: Flat, at: float) -> bool:
    """Whether a price that changes then was shown before, and is after."""
    return any(ad.has_price and ad.begins < at - 1 and ad.ends > at + 1 for ad in flat.ads)


def _moments(flat: Flat, hour: float) -> list[float]:
    return [0.0, *[at - 0.01 for at, _ in flat.changes if at < hour]]


def _prices(flat: Flat, ad: Ad, hour: float) -> list[float]:
    """Return what the flat truly costs, as this portal counts."""
    base = flat.base_at(hour)
    return [base + flat.fees if ad.portal == "stockholm" else base]


def _fits(wanted: Filter, ad: Ad, hour: float) -> bool:
    flat = ad.flat
    [price] = _prices(flat, ad, hour)
    if wanted.near is not None:
        lat, lon, kilometres = wanted.near
        away = hypot(flat.lat - lat, (flat.lon - lon) * cos(radians(lat))) * 111.32
        if away > kilometres + 0.1:
            return False
    rooms_known = ad.portal != "olx" or float(flat.rooms).is_integer()
    return (
        (wanted.max_price is None or price <= wanted.max_price * (1 + TOLERANCE))
        and (not rooms_known or wanted.min_rooms is None or flat.rooms >= wanted.min_rooms)
        and (not rooms_known or wanted.max_rooms is None or flat.rooms <= wanted.max_rooms)
        and (wanted.min_area is None or flat.area >= wanted.min_area - 0.6)
    )


def _delays(judged: Judged, course: Course, notices: list[Any], ads: Mapping[str, Ad]) -> None:
    minutes = sorted(
        (course.hour(row.created_at) - ads[row.listing_id].begins) * 60
        for row in notices
        if row.reason == "new" and row.listing_id in ads and ads[row.listing_id].begins > 0
    )
    judged.figures |= {
        "minutes_to_notice_p50": round(median(minutes), 1) if minutes else None,
        "minutes_to_notice_p95": round(minutes[int(len(minutes) * 0.95)], 1) if minutes else None,
        "messages": len(course.inbox.messages),
    }


async def _sources(judged: Judged, course: Course) -> None:
    portals = course.portals
    needed = portals.course.region_needed_from
    seen = course.changed_seen
    runs = await app.sources.runs("yad2", 1_000)
    since = [row for row in runs if needed <= course.hour(row.started_at) <= (seen if seen is not None else needed)]
    judged.figures |= {
        "hours_to_report_the_changed_portal": None if seen is None else round(seen - needed, 2),
        "runs_to_report_the_changed_portal": len(since) if seen is not None else None,
        "requests": sum(portals.requests.values()),
        "requests_refused": sum(portals.refused.values()),
        "requests_challenged": sum(portals.challenged.values()),
        "bans": len(portals.banned),
        "alerts": len(course.alerts),
    }
    judged.truth |= {
        "requests": dict(portals.requests),
        "refused": dict(portals.refused),
        "banned": sorted(portals.banned),
    }
