"""The product page: HTML with the JSON that Apple's own script reads, and the same facts in the markup around it."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Any

import msgspec

from penstock_systems.standins.appstore.app import App, average
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import mix, share
from penstock_systems.standins.appstore.genres import STOREFRONTS, genre_name
from penstock_systems.standins.appstore.manners import Kind
from penstock_systems.standins.appstore.records import Json, app_url, artwork, description, notes, price_text

PAGE_BYTES = (400_000, 800_000)  # a real page is between these
LOCKUPS_MAX = 12
VERSIONS_MAX = 25
REVIEWS_MAX = 10
PURCHASES_TITLE = {
    "de-DE": "In‑App-Käufe",
    "fr-FR": "Achats intégrés",
    "ja-JP": "アプリ内課金",
    "he-IL": "רכישות מתוך האפליקציה",
}
REVIEWS = {1: "Lost my {0} after the update", 2: "Too many ads", 3: "Fine for {0}", 4: "Good {0} app", 5: "Love it"}
NOT_FOUND = "<!DOCTYPE html><html><head><title>Page Not Found</title></head><body><h1>Not Found</h1></body></html>"


def product_page(
    catalogue: Catalogue, index: int, day: int, country: str, *, whole: bool = False, fault: Kind | None = None
) -> bytes:
    app = catalogue.app(index)
    language = STOREFRONTS[country].language
    asked_for = app.track_id + (fault == "wrong_id")
    intent = {
        "$kind": "ProductPageIntent",
        "storefront": country,
        "language": language,
        "isDefaultLanguage": True,
        "id": str(asked_for),
    }
    root: Any = {"data": [{"intent": intent, "data": page_data(catalogue, app, day, country)}]}
    embedded = _embedded(root["data"] if fault == "list_root" else root)
    if fault == "truncated":
        embedded = embedded[: len(embedded) // 2]
    script = f'<script type="application/json" id="serialized-server-data">{embedded}</script>'
    head = (
        f'<!DOCTYPE html><html lang="{language}"><head><meta charset="utf-8"><title>{escape(app.title)} - App Store</title>'
        f'<link rel="canonical" href="{app_url(app, country)}">'
        f'<script type="application/ld+json">{_embedded(_linked_data(app, day, country))}</script>'
    )
    body = f"<body><h1>{escape(app.title)}</h1>{_markup(app, day, country, language)}{script}</body></html>"
    page = f"{head}</head>{body}".encode()
    if not whole:
        return page
    size = PAGE_BYTES[0] + int((PAGE_BYTES[1] - PAGE_BYTES[0]) * share(catalogue.seed, 90, index))
    style = _style()[: max(0, size - len(page))]
    return f"{head}<style>{style}</style></head>{body}".encode()


def page_data(catalogue: Catalogue, app: App, day: int, country: str) -> Json:
    """What the script tag holds about the app. A shelf with nothing in it is left out."""
    return {
        "title": app.title,
        "canonicalURL": app_url(app, country),
        "lockup": _lockup(app, country) | {"developerTagline": app.brand},
        "developerAction": {"title": app.brand},
        "shelfMapping": {name: shelf for name, shelf in _shelves(catalogue, app, day, country) if shelf["items"]},
    }


def _shelves(catalogue: Catalogue, app: App, day: int, country: str) -> list[tuple[str, Json]]:
    histogram = app.histogram(day, country)
    rated = {
        "$kind": "Ratings",
        "productId": str(app.track_id),
        "context": "productPage",
        "ratingAverage": round(average(histogram), 1),
        "totalNumberOfRatings": sum(histogram),
        "ratingCounts": histogram,
    }
    market, _ = catalogue.place(app.index)
    near = {int(market.apps * share(app.index, 91, number) ** 2) for number in range(LOCKUPS_MAX)}
    similar = sorted({catalogue.at(market, position) for position in near} - {app.index})
    others = [index for index in catalogue.portfolio(app.developer) if index != app.index][:LOCKUPS_MAX]
    count = app.versions(day)
    versions = [_version(app, number) for number in range(count - 1, max(-1, count - 1 - VERSIONS_MAX), -1)]
    shelves: list[tuple[str, Json]] = [
        ("productRatings", {"items": [rated] if any(histogram) else []}),
        ("information", {"items": _information(app, country)}),
        ("similarItems", {"items": [_lockup(catalogue.app(index), country) for index in similar]}),
        ("moreByDeveloper", {"items": [_lockup(catalogue.app(index), country) for index in others]}),
        ("description", {"items": [{"$kind": "ProductDescription", "paragraph": {"text": description(app)}}]}),
        ("privacyTypes", {"items": _privacy(app)}),
        ("allProductReviews", {"items": [{"review": review} for review in _reviews(app, sum(histogram), day)]}),
    ]
    latest: Json = {"items": versions[:1]}
    if len(versions) > 1:
        latest["seeAllAction"] = {"pageData": {"shelves": [{"items": versions}]}}
    shots = [
        {"screenshot": {"template": f"{artwork(app)}/{shot}/{{w}}x{{h}}{{c}}.{{f}}"}} for shot in range(app.screenshots)
    ]
    return [*shelves, ("mostRecentVersion", latest), ("product_media_phone_", {"items": shots})]


def _lockup(app: App, country: str) -> Json:
    offer = {"isFree": not app.price, "titles": {"standard": price_text(app.price, country, "Get")}}
    lockup: Json = {
        "$kind": "Lockup",
        "adamId": str(app.track_id),
        "bundleId": app.bundle_id,
        "title": app.title,
        "developerName": app.brand,
        "rating": round(app.stars, 1),
        "icon": {"template": artwork(app) + "/{w}x{h}{c}.{f}", "width": 1024, "height": 1024},
        "offerDisplayProperties": {"$kind": "OfferDisplayProperties", **offer},
    }
    return lockup | {"subtitle": app.subtitle} if app.subtitle else lockup


def _information(app: App, country: str) -> list[Json]:
    rows: list[Json] = [
        {"title": title, "items": [{"text": text}], "summary": None}
        for title, text in (
            ("Seller", app.seller),
            ("Size", f"{app.size_bytes / 1e6:.1f} MB"),
            ("Category", genre_name(app.genres[0])),
            ("Languages", ", ".join(app.languages)),
            ("Age Rating", app.age),
            ("Copyright", f"© {app.seller}"),
        )
    ]
    if app.purchases:
        title = PURCHASES_TITLE.get(STOREFRONTS[country].language, "In-App Purchases")
        pairs = [[name, price_text(price, country, "")] for name, price in app.purchases]
        row: Json = {"title": title, "items": [{"text": "Yes", "textPairs": pairs}], "summary": "Yes"}
        if app.index % 4:  # most pages have the newer form beside the older one
            row["items_V3"] = [{"$kind": "textPair", "leadingText": name, "trailingText": cost} for name, cost in pairs]
        rows.insert(4, row)
    return rows


def _version(app: App, number: int) -> Json:
    return {
        "$kind": "TitledParagraph",
        "text": notes(app, number) if number else "",
        "primarySubtitle": f"Version {app.version(number)}",
        "secondarySubtitle": app.version_time(number).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _privacy(app: App) -> list[Json]:
    kinds = ("DATA_NOT_COLLECTED", "DATA_LINKED_TO_YOU", "DATA_NOT_LINKED_TO_YOU", "DATA_USED_TO_TRACK_YOU")
    kind = kinds[app.index % len(kinds)]
    category = {"$kind": "PrivacyCategory", "identifier": "CONTACT_INFO", "title": "Contact Info"}
    title = kind.replace("_", " ").capitalize()
    held = [] if kind == "DATA_NOT_COLLECTED" else [category]
    return [{"$kind": "PrivacyType", "identifier": kind, "title": title, "detail": None, "categories": held}]


def _reviews(app: App, ratings: int, day: int) -> list[Json]:
    """Fewer than one rating in thirty comes with words, and words come from the unhappy."""
    found = []
    for number in range(min(REVIEWS_MAX, ratings // 30)):
        pleased = share(app.index, 92, number) * 5 < app.stars + 0.3 - 1
        stars = 5 - mix(app.index, 93, number) % 2 if pleased else 1 + mix(app.index, 93, number) % 3
        text = REVIEWS[stars].format(app.keywords[0])
        review = {"$kind": "Review", "id": str(14_500_000_000 + mix(app.index, 94, number) % 10**9), "title": text}
        told = {"contents": f"{text}. {app.title} on version {app.version(app.versions(day) - 1)}.", "rating": stars}
        found.append(
            review | told | {"reviewerName": f"reader{mix(app.index, 95, number) % 9_999}", "date": "2026-01-01"}
        )
    return found


def _linked_data(app: App, day: int, country: str) -> Json:
    histogram = app.histogram(day, country)
    data: Json = {
        "@context": "https://schema.org",
        "@type": "SoftwareApplication",
        "name": app.title,
        "description": description(app),
        "image": artwork(app) + "/1200x630wa.png",
        "operatingSystem": "Requires iOS 15.0 or later.",
        "applicationCategory": genre_name(app.genres[0]).replace(" ", "") + "Application",
        "offers": {"@type": "Offer", "price": app.price, "priceCurrency": STOREFRONTS[country].currency},
        "author": {"@type": "Organization", "name": app.brand},
    }
    if any(histogram):
        counted = {
            "ratingValue": average(histogram),
            "reviewCount": sum(histogram),
            "bestRating": "5",
            "worstRating": "1",
        }
        data["aggregateRating"] = {"@type": "AggregateRating", **counted}
    return data


def _markup(app: App, day: int, country: str, language: str) -> str:
    items = "".join(
        f"<li><span>{escape(name)}</span><span>{price_text(price, country, '')}</span></li>"
        for name, price in app.purchases
    )
    title = PURCHASES_TITLE.get(language, "In-App Purchases")
    bought = f"<dt>{title}</dt><dd><ul>{items}</ul></dd>" if items else ""
    last = app.versions(day) - 1
    time = app.version_time(last).strftime("%Y-%m-%dT%H:%M:%SZ")
    history = (
        f'<dialog><div class="metadata svelte-1a2b"><span>{app.version(last)}</span><time datetime="{time}"></time></div>'
        f"<p>{escape(notes(app, last))}</p></dialog>"
    )
    seller = f"<dt>Seller</dt><dd>{escape(app.seller)}</dd>"
    return f"<section><p>{escape(app.subtitle or '')}</p><dl>{seller}{bought}</dl></section>{history}"


def _embedded(value: Any) -> str:
    return msgspec.json.encode(value).decode().replace("</", "<\\/")


@lru_cache(1)
def _style() -> str:
    """What makes a real page heavy: rules with hashed names, hundreds of kilobytes of them."""
    rules = (f".svelte-{mix(number):x}{{grid-area:{number}/1;margin:{number % 40}px}}" for number in range(16_000))
    return "".join(rules)[: PAGE_BYTES[1]]
