"""The shelves: the JSON of a product page, in the form that Apple's own script reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import Draws, mix, share
from penstock_systems.standins.appstore.genres import genre_name, price_text
from penstock_systems.standins.appstore.labels import labels
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.reviews import Review, newest
from penstock_systems.standins.appstore.stars import average
from penstock_systems.standins.appstore.texts import app_url, artwork, notes

LOCKUPS_MAX = 12
VERSIONS_MAX = 25
REVIEWS_MAX = 10
SIMILAR_NOISE = 0.15  # of the similar apps are not similar
LOST_SHARE = 0.03  # of the pages lack a shelf that they should have

PRIVACY = ("DATA_NOT_COLLECTED", "DATA_LINKED_TO_YOU", "DATA_NOT_LINKED_TO_YOU", "DATA_USED_TO_TRACK_YOU")
PRIVATE = ("CONTACT_INFO", "LOCATION", "IDENTIFIERS", "USAGE_DATA", "PURCHASES")


class Sight(NamedTuple):
    """A page as somebody sees it: of which app, on which day, in which country and language."""

    catalogue: Catalogue
    app: App
    day: int
    now: datetime
    country: str
    language: str
    text: str  # its description


def page_data(sight: Sight) -> Json:
    """What the script tag holds about the app. A shelf with nothing in it is left out."""
    app = sight.app
    shelves = dict(_shelves(sight))
    if share(sight.catalogue.seed, 92, app.index) < LOST_SHARE:
        del shelves[list(shelves)[mix(sight.catalogue.seed, 93, app.index) % len(shelves)]]
    return {
        "title": app.title,
        "canonicalURL": app_url(app, sight.country),
        "lockup": lockup(app, sight.country) | {"developerTagline": app.brand},
        "developerAction": {"title": app.brand},
        "shelfMapping": {name: shelf for name, shelf in shelves.items() if shelf["items"]},
    }


def similar(catalogue: Catalogue, app: App, day: int, country: str) -> list[int]:
    """What is shown beside an app: its competitors, the known ones more often, and some that are none."""
    market, _ = catalogue.place(app.index)
    draws = Draws(catalogue.seed, 91, app.index)
    found: dict[int, None] = {}
    for _ in range(LOCKUPS_MAX):
        if draws.share() < SIMILAR_NOISE:
            index = draws.below(catalogue.apps)
        else:
            index = catalogue.at(market, int(market.apps * draws.share() ** 2))
        found[index] = None
    return [index for index in found if index != app.index and catalogue.sold(index, day, country)]


def _shelves(sight: Sight) -> Iterator[tuple[str, Json]]:
    catalogue, app, day, now, country, language, text = sight
    histogram = app.histogram(day, country)
    rated = {
        "$kind": "Ratings",
        "productId": str(app.track_id),
        "context": "productPage",
        "ratingAverage": round(average(histogram), 1),
        "totalNumberOfRatings": sum(histogram),
        "ratingCounts": histogram,
    }
    yield "productRatings", {"items": [rated] if any(histogram) else []}
    yield "information", {"items": _information(app, country, language)}
    beside = similar(catalogue, app, day, country)
    yield "similarItems", {"items": [lockup(catalogue.app(index), country) for index in beside]}
    portfolio = catalogue.portfolio(app.developer)[: LOCKUPS_MAX + 1]
    others = [index for index in portfolio if index != app.index and catalogue.sold(index, day, country)]
    yield "moreByDeveloper", {"items": [lockup(catalogue.app(index), country) for index in others]}
    yield "description", {"items": [{"$kind": "ProductDescription", "paragraph": {"text": text}}]}
    yield "privacyTypes", {"items": _privacy(app)}
    told = newest(catalogue, app, now, country, 0, REVIEWS_MAX)
    yield "allProductReviews", {"items": [{"review": _review(review)} for review in told]}
    yield "mostRecentVersion", _versions(app, day, language)
    yield "informationRibbon", {"items": _badges(app, histogram, language)}
    art = artwork(app)
    shots = [{"screenshot": {"template": f"{art}/{shot}/{{w}}x{{h}}{{c}}.{{f}}"}} for shot in range(app.screenshots)]
    yield "product_media_phone_", {"items": shots}
    yield "product_media_pad_", {"items": shots[::2] if app.index % 3 else []}


def lockup(app: App, country: str) -> Json:
    offer = {"isFree": not app.price, "titles": {"standard": price_text(app.price, country, "Get")}}
    shown: Json = {
        "$kind": "Lockup",
        "adamId": str(app.track_id),
        "bundleId": app.bundle_id,
        "title": app.title,
        "developerName": app.brand,
        "rating": round(app.stars, 1),
        "icon": {"template": artwork(app) + "/{w}x{h}{c}.{f}", "width": 1024, "height": 1024},
        "offerDisplayProperties": {"$kind": "OfferDisplayProperties", **offer},
    }
    if app.subtitle:
        shown["subtitle"] = app.subtitle
    return shown


def _information(app: App, country: str, language: str) -> list[Json]:
    called = labels(language)
    rows: list[Json] = [
        {"title": called[name], "items": [{"text": text}], "summary": None}
        for name, text in (
            ("seller", app.seller),
            ("size", f"{app.size_bytes / 1e6:.1f} MB"),
            ("category", genre_name(app.genres[0])),
            ("languages", ", ".join(app.languages)),
            ("age", app.age),
            ("copyright", f"© {app.seller}"),
        )
    ]
    if app.purchases:
        pairs = [[name, price_text(price, country, "")] for name, price in app.purchases]
        row: Json = {"title": called["purchases"], "items": [{"text": "Yes", "textPairs": pairs}], "summary": "Yes"}
        if app.index % 4:  # most pages have the newer form beside the older one
            row["items_V3"] = [{"$kind": "textPair", "leadingText": name, "trailingText": cost} for name, cost in pairs]
        rows.insert(4, row)
    return rows


def _versions(app: App, day: int, language: str) -> Json:
    count, called = app.versions(day), labels(language)["version"]
    versions = [
        {
            "$kind": "TitledParagraph",
            "text": notes(app, number),
            "primarySubtitle": f"{called} {app.version(number)}",
            "secondarySubtitle": app.version_text(number),
        }
        for number in range(count - 1, max(-1, count - 1 - VERSIONS_MAX), -1)
    ]
    latest: Json = {"items": versions[:1]}
    if len(versions) > 1:
        latest["seeAllAction"] = {"pageData": {"shelves": [{"items": versions}]}}
    return latest


def _privacy(app: App) -> list[Json]:
    kinds = PRIVACY[:1] if app.index % 4 == 0 else PRIVACY[1 : 2 + app.index % 3]
    held = PRIVATE[: 1 + app.index % len(PRIVATE)]
    categories = [
        {"$kind": "PrivacyCategory", "identifier": name, "title": name.replace("_", " ").title()} for name in held
    ]
    return [
        {
            "$kind": "PrivacyType",
            "identifier": kind,
            "title": kind.replace("_", " ").capitalize(),
            "detail": None,
            "categories": [] if kind == PRIVACY[0] else categories,
        }
        for kind in kinds
    ]


def _badges(app: App, histogram: list[int], language: str) -> list[Json]:
    if not any(histogram):
        return []
    total = f"{sum(histogram):,} {labels(language)['ratings']}"
    badges: list[Json] = [{"type": "rating", "longCaption": total, "caption": str(average(histogram))}]
    if app.ratings > 50_000:
        named = genre_name(app.genres[0])
        badges.append({"type": "chartPosition", "content": {"position": 1 + app.index % 200}, "caption": named})
    return badges


def _review(review: Review) -> Json:
    return {
        "$kind": "Review",
        "id": str(review.id),
        "title": review.title,
        "contents": review.body,
        "rating": review.stars,
        "reviewerName": review.author,
        "date": review.updated.isoformat()[:19] + "Z",
    }
