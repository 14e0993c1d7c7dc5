"""The markup of a product page: the same facts for people, for search engines, and as much weight around them as is usual."""

from __future__ import annotations

from functools import lru_cache
from html import escape

import msgspec

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.chance import mix, share
from penstock_systems.standins.appstore.genres import STOREFRONTS, genre_name, price_text
from penstock_systems.standins.appstore.labels import labels
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.shelves import Sight
from penstock_systems.standins.appstore.stars import average
from penstock_systems.standins.appstore.texts import artwork, notes

PAGE_BYTES = (400_000, 800_000)  # a real page is between these
RULE_BYTES = 64  # of style: the weight is cut between two rules


def linked_data(sight: Sight) -> Json:
    """What a search engine reads."""
    app, country = sight.app, sight.country
    histogram = app.histogram(sight.day, country)
    price = {"price": app.price, "priceCurrency": STOREFRONTS[country].currency}
    data: Json = {
        "@context": "https://schema.org",
        "@type": "SoftwareApplication",
        "name": app.title,
        "description": sight.text,
        "image": artwork(app) + "/1200x630wa.png",
        "operatingSystem": "Requires iOS 15.0 or later.",
        "availableOnDevice": "iPhone, iPad",
        "applicationCategory": genre_name(app.genres[0]).replace(" ", "") + "Application",
        "keywords": list(app.keywords),
        "offers": {"@type": "Offer", **price},
        "author": {"@type": "Organization", "name": app.brand},
    }
    if any(histogram):
        counted = {"ratingValue": average(histogram), "reviewCount": sum(histogram)}
        data["aggregateRating"] = {"@type": "AggregateRating", **counted, "bestRating": "5", "worstRating": "1"}
    return data


def facts(sight: Sight, shelves: Json) -> str:
    """What a person reads. The names of classes are hashed, so little but the order and the tags can be relied on."""
    app, called = sight.app, labels(sight.language)
    items = "".join(
        f"<li><span>{escape(name)}</span><span>{price_text(price, sight.country, '')}</span></li>"
        for name, price in app.purchases
    )
    bought = f"<dt>{called['purchases']}</dt><dd><ul>{items}</ul></dd>" if items else ""
    rows = f"<dt>{called['seller']}</dt><dd>{escape(app.seller)}</dd>{bought}"
    beside = (
        item for name in ("moreByDeveloper", "similarItems") for item in shelves.get(name, {"items": ()})["items"]
    )
    links = "".join(f'<a href="/{sight.country}/app/id{item["adamId"]}">{escape(item["title"])}</a>' for item in beside)
    purposes = "".join(map(_purpose, shelves.get("privacyTypes", {"items": ()})["items"]))
    shown = f"<section><p>{escape(app.subtitle or '')}</p><dl>{rows}</dl></section>"
    return f"{shown}{_history(app, sight.day)}{purposes}<nav>{links}</nav>"


def _purpose(kind: Json) -> str:
    """What is done with private data."""
    held = "".join(
        f'<li class="purpose-category"><span class="category-title">{category["title"]}</span></li>'
        for category in kind["categories"]
    )
    return f'<section class="purpose-section"><h4>{kind["title"]}</h4><ul>{held}</ul></section>'


def _history(app: App, day: int) -> str:
    last = app.versions(day) - 1
    return "<dialog>{}</dialog>".format(
        "".join(
            f'<div class="metadata svelte-1a2b"><span>{app.version(number)}</span>'
            f'<time datetime="{app.version_text(number)}"></time></div><p>{escape(notes(app, number))}</p>'
            for number in range(last, max(-1, last - 3), -1)
        )
    )


def weight(seed: int, index: int, page_bytes: int) -> memoryview:
    """What makes a page as heavy as the real ones: a slice of one block that is made once."""
    wanted = PAGE_BYTES[0] + int((PAGE_BYTES[1] - PAGE_BYTES[0]) * share(seed, 90, index))
    rules = max(0, wanted - page_bytes) // RULE_BYTES + 1
    return memoryview(_style())[: rules * RULE_BYTES]


@lru_cache(1)
def _style() -> bytes:
    """Rules with hashed names, hundreds of kilobytes of them, each of the same length."""
    rules = (
        f".svelte-{mix(number):016x}{{grid-area:{number}/1;margin:{number % 40}px}}"
        for number in range(PAGE_BYTES[1] // RULE_BYTES + 1)
    )
    return "".join(rule.ljust(RULE_BYTES - 1)[: RULE_BYTES - 1] + "\n" for rule in rules).encode()


def embedded(value: object) -> str:
    """JSON that can stand in a script tag, whatever somebody has called an app."""
    return msgspec.json.encode(value).decode().replace("</", "<\\/").replace("<!--", "\\u003c!--")
