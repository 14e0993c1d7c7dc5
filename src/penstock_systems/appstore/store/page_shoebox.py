"""The form that pages had until 2025 and still have in caches: JSON whose values are JSON again, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, decoded, field, listed, pieces
from penstock_systems.appstore.store.facts import Found, PageFacts
from penstock_systems.appstore.store.histogram import ratings_of
from penstock_systems.appstore.store.page_data import ICON, REVIEWS_MAX, SIMILAR_MAX, VERSIONS_MAX, picture, version_of
from penstock_systems.appstore.store.prices import purchases_of
from penstock_systems.appstore.store.review import review
from penstock_systems.appstore.store.text import address, cleaned, prose
from penstock_systems.appstore.store.values import identity, stars, whole

BOXES_MAX = 50


class _Box(msgspec.Struct):
    d: list[msgspec.Raw] = []


def parse_shoebox(script: bytes, track_id: int) -> Read[PageFacts]:
    app = next((app for app in _apps(script, track_id) if identity(field(app, "id")) == track_id), None)
    if app is None:
        raise ps.Unparsable(
            f"The shoebox in the page of app {track_id} does not contain it.", reason="wrong_app", track_id=track_id
        )
    told, ios = field(app, "attributes"), field(app, "attributes", "platformAttributes", "ios")
    average = stars(field(told, "userRating", "value"))
    total = whole(field(told, "userRating", "ratingCount"))
    counts = field(told, "userRating", "ratingCountList")
    bought, unread = purchases_of((field(item, "name"), _offer(item)) for item in _related(app, "top-in-apps"))
    history = [version_of(*_version(item)) for item in listed(field(ios, "versionHistory"))]
    read = [_review(item) for item in _related(app, "reviews", whole_items=True)]
    similar, others = (_founds(app, name, track_id) for name in ("customers-also-bought-apps", "developer-other-apps"))
    facts = PageFacts(
        track_id=track_id,
        title=cleaned(field(told, "name")),
        subtitle=cleaned(field(ios, "subtitle")),
        developer=cleaned(field(told, "artistName")),
        bundle_id=cleaned(field(ios, "bundleId")),
        description=prose(field(ios, "description", "standard")) or prose(field(told, "description", "standard")),
        ratings=ratings_of(counts, average=average, total=total, best_first=False),
        average=average,
        purchases=bought,
        similar=similar[0],
        more_by_developer=others[0],
        versions=tuple({one.version: one for one in history if one is not None}.values())[:VERSIONS_MAX],
        reviews=tuple({one.review_id: one for one in read if one is not None}.values())[:REVIEWS_MAX],
        genre=cleaned(field(told, "genreDisplayName")),
        content_rating=cleaned(field(told, "contentRatingsBySystem", "appsApple", "name")),
        seller=cleaned(field(ios, "seller")),
        icon=picture(field(ios, "artwork", "url"), ICON),
        rating_count=total,
        form="shoebox",
    )
    return Read(facts, unread + history.count(None) + read.count(None) + similar[1] + others[1])


def _apps(script: bytes, track_id: int) -> Iterator[object]:
    """The boxes are named after the requests that filled them, which nobody can know: all are opened."""
    boxes = decoded(script, dict[str, Any], f"The shoebox in the page of app {track_id}")
    for box in list(boxes.values())[:BOXES_MAX]:
        if isinstance(box, str):
            try:
                yield from pieces(decoded(box.encode(), _Box, "A box").d).facts
            except ps.Unparsable:
                continue  # another box may hold the app


def _related(app: object, name: str, *, whole_items: bool = False) -> list[Any]:
    items = listed(field(app, "relationships", name, "data"))
    return items if whole_items else [field(item, "attributes") for item in items]


def _offer(item: object) -> Any:
    return next((field(offer, "priceFormatted") for offer in listed(field(item, "offers"))), None)


def _version(item: object) -> tuple[Any, Any, Any]:
    released = field(item, "releaseTimestamp") or field(item, "releaseDate")
    return field(item, "versionDisplay"), released, field(item, "releaseNotes")


def _review(item: object) -> Any:
    told = field(item, "attributes")
    return review(
        field(item, "id"),
        field(told, "rating"),
        title=field(told, "title"),
        body=field(told, "review"),
        author=field(told, "userName"),
        updated=field(told, "date"),
    )


def _founds(app: object, name: str, track_id: int) -> tuple[tuple[Found, ...], int]:
    apps: dict[int, Found] = {}
    skipped = 0
    for item in _related(app, name, whole_items=True):
        other, told = identity(field(item, "id")), field(item, "attributes")
        if other is None:
            skipped += 1
        elif other != track_id and len(apps) < SIMILAR_MAX:
            apps.setdefault(
                other,
                Found(
                    track_id=other,
                    title=cleaned(field(told, "name")),
                    developer=cleaned(field(told, "artistName")),
                    score=stars(field(told, "userRating", "value")),
                    ratings=whole(field(told, "userRating", "ratingCount")),
                    url=address(field(told, "url")),
                ),
            )
    return tuple(apps.values()), skipped
