"""From what was heard about an app to the rows that are written: cut, bounded, and None where nothing was said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.data import cut, first_by
from penstock_systems.appstore.app import db
from penstock_systems.appstore.enrich.parts import Parts
from penstock_systems.appstore.sentiment import UNHAPPY, sentiment
from penstock_systems.appstore.store.facts import Found, PageFacts, Ratings, Review, Version

Row = dict[str, object]

TEXT_MAX = 2_000  # characters of a description, a review, a version's notes
LIST_MAX = 50  # languages, screenshots, similar apps
PURCHASES_MAX = 100
REVIEWS_MAX = 500  # all that the store shows
VERSIONS_MAX = 50
DISCOVERED_MAX = 100  # apps that one page leads to


def registry_row(parts: Parts, now: str) -> Row:
    """The columns that tell about the app itself. What the look-up says stands before what the page says: it is typed."""
    found = parts.lookup.value or Found(track_id=0)
    page = parts.page.value or PageFacts(track_id=0)
    rated = parts.ratings.value or page.ratings
    return {
        "bundle_id": found.bundle_id or page.bundle_id,
        "track_name": found.title or page.title,
        "seller_name": found.developer or page.developer,
        "average_rating": _first(found.score, page.average, rated.average if rated else None),
        "rating_count": _first(found.ratings, rated.total if rated else None),
        "primary_genre": found.genre,
        "page_genre": page.genre,  # in the language of the page, so it counts only where nothing else is known
        "price": found.price,
        "formatted_price": found.formatted_price,
        "artwork_url": found.icon,
        "track_view_url": found.url,
        "description": _short(found.description or page.description),
        "release_date": found.released,
        "version": found.version or (page.versions[0].version if page.versions else None),
        "version_released_at": found.version_released or (page.versions[0].released if page.versions else None),
        "content_rating": found.content_rating or page.content_rating,
        "languages": _listed(found.languages or page.languages),
        "developer_id": found.developer_id,
        "developer_website": found.developer_website,
        "subtitle": page.subtitle or found.subtitle,
        "screenshots": _listed(page.screenshots or found.screenshots),
        "rating_histogram": _histogram(rated),
        "similar_apps": _listed([app.track_id for app in page.similar]),
        **_purchases(parts.page.value, now),
    }


def developer_row(parts: Parts, now: str) -> Row | None:
    found = parts.lookup.value
    if found is None or found.developer_id is None:
        return None
    return {
        "developer_id": found.developer_id,
        "name": found.developer,
        "website": found.developer_website,
        "first_seen_at": now,
    }


def review_rows(track_id: int, parts: Parts, now: str) -> list[Row]:
    """Those of the feed. What the page shows is added where the feed was not to be believed, or did not answer."""
    told: tuple[Review, ...] = parts.reviews.value or ()
    if parts.reviews.value is None and parts.page.value is not None:
        told = parts.page.value.reviews
    return [
        {
            "review_id": review.review_id,
            "track_id": track_id,
            "rating": review.rating,
            "title": _short(review.title),
            "body": _short(review.body),
            "sentiment": sentiment(review.title, review.body, review.rating),
            "version": review.version,
            "reviewed_at": review.updated or now,
            "now": now,
        }
        for review in first_by(told, lambda review: review.review_id)[:REVIEWS_MAX]
    ]


def tone_row(reviews: Sequence[Row]) -> Row:
    """How many reviews were read, and how many of them complain; None where there are none."""
    unhappy = sum(each["sentiment"] is not None and float(str(each["sentiment"])) <= UNHAPPY for each in reviews)
    return {"reviews_read": len(reviews) or None, "reviews_unhappy": unhappy if reviews else None}


def version_rows(track_id: int, parts: Parts) -> list[Row]:
    """The page has the history; a look-up knows the newest, whose date and notes fill what the page lacks."""
    found, page = parts.lookup.value, parts.page.value
    versions = {each.version: each for each in page.versions} if page else {}
    if found is not None and found.version:
        shown = versions.get(found.version, Version(found.version))
        versions[found.version] = Version(
            found.version, shown.released or found.version_released, shown.notes or found.release_notes
        )
    return [
        {
            "track_id": track_id,
            "version": each.version,
            "released_at": each.released,
            "notes": _short(each.notes),
        }
        for each in list(versions.values())[:VERSIONS_MAX]
    ]


def discovered_rows(track_id: int, parts: Parts, now: str) -> list[Row]:
    """The apps that the page leads to, without anything that somebody knows better."""
    page = parts.page.value
    if page is None:
        return []
    others = (app for app in (*page.similar[:LIST_MAX], *page.more_by_developer[:LIST_MAX]) if app.track_id != track_id)
    return found_rows(others, source="similar", now=now)[:DISCOVERED_MAX]


def found_rows(apps: Iterable[Found], *, source: str, now: str) -> list[Row]:
    """New rows for apps that nobody has enriched yet."""
    return [
        {
            "track_id": app.track_id,
            "bundle_id": app.bundle_id,
            "track_name": app.title or "Unknown",
            "seller_name": app.developer or "Unknown",
            "average_rating": app.score,
            "rating_count": app.ratings or 0,
            "primary_genre": app.genre,
            "price": app.price,
            "formatted_price": app.formatted_price,
            "artwork_url": app.icon,
            "track_view_url": app.url,
            "description": _short(app.description),
            "subtitle": app.subtitle,
            "developer_id": app.developer_id,
            "data_source": source,
            "now": now,
        }
        for app in first_by(apps, lambda app: app.track_id)
    ]


def _short(text: str | None) -> str | None:
    return cut(text, TEXT_MAX) if text else None


def _first(*numbers: float | None) -> float | None:
    """The first that was said. Zero is said."""
    return next((number for number in numbers if number is not None), None)


def _histogram(rated: Ratings | None) -> object:
    return db.json(list(rated.histogram)) if rated else None


def _listed(values: Sequence[object] | None) -> object:
    """An empty list says nothing: the store leaves lists empty that its own pages fill."""
    return db.json(list(dict.fromkeys(values))[:LIST_MAX]) if values else None


def _purchases(page: PageFacts | None, now: str) -> Row:
    """No purchases are NULL and a stamp, so that nobody looks again."""
    if page is None:
        return {"in_app_purchases": None, "iap_scraped_at": None, "iap_scrape_status": None}
    purchases = page.purchases[:PURCHASES_MAX]
    return {
        "in_app_purchases": db.json(purchases) if purchases else None,
        "iap_scraped_at": now,
        "iap_scrape_status": "found" if purchases else "none",
    }
