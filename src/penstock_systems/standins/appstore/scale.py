"""The whole store at once: every app, and what is ranked for every keyword, for a bench that fills a database directly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import Draws
from penstock_systems.standins.appstore.genres import genre_name, price_text
from penstock_systems.standins.appstore.markets import Market
from penstock_systems.standins.appstore.stars import average
from penstock_systems.standins.appstore.texts import artwork
from penstock_systems.standins.appstore.words import MODIFIERS

APPS, MARKETS = 1_100_000, 450  # after a week
KEYWORDS_FOUND, RANKED = 180_000, 2_800_000
HEAD = 30  # apps of a market that are ranked for nearly everything
NOISE_SHARE = 0.18


def whole_store(seed: int = 1) -> Catalogue:
    """As many apps as a week of crawling finds."""
    return Catalogue(APPS, MARKETS, seed)


def every_app(
    catalogue: Catalogue, *, first: int = 0, last: int | None = None, day: int = 0, country: str = "us"
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each track id with what a crawl learns about it, in no order. It takes no memory, and `first` and `last` cut it up
    for several processes: `last` itself is not among them."""
    for index in range(first, catalogue.apps if last is None else last):
        if catalogue.exists(index):
            app = catalogue.described(index)
            yield app.track_id, _fields(catalogue, app, day, country)


def _fields(catalogue: Catalogue, app: App, day: int, country: str) -> dict[str, Any]:
    histogram = app.histogram(day, country)
    return {
        "bundle_id": app.bundle_id,
        "track_name": app.title,
        "seller_name": app.brand,
        "average_rating": average(histogram),
        "rating_count": sum(histogram),
        "primary_genre": genre_name(app.genres[0]),
        "price": app.price,
        "formatted_price": price_text(app.price, country, "Free"),
        "artwork_url": f"{artwork(app)}/100x100bb.jpg",
        "track_view_url": f"https://apps.apple.com/{country}/app/id{app.track_id}",
        "description": f"{app.title} keeps your {app.keywords[0]} in one place, with {app.keywords[1]}.",
        "release_date": app.version_text(0),
        "version": app.version(app.versions(day) - 1),
        "content_rating": app.age,
        "languages": app.languages,
        "developer_id": catalogue.artist_id(app.developer),
        "developer_website": f"https://{app.brand.casefold()}.example" if app.website else None,
        "subtitle": app.subtitle,
    }


def every_ranking(
    catalogue: Catalogue, keywords: int = KEYWORDS_FOUND, ranked: int = RANKED
) -> Iterator[tuple[str, list[int]]]:
    """Each keyword with the ids ranked for it, the first rank first: so many keywords, and about so many ids in all.

    The markets show in it as they do in a search, but it is drawn and not searched, which takes a hundredth of the time.
    """
    fields = [market for market in catalogue.fields if market.apps and catalogue.here(market)]
    total = sum(market.apps for market in fields)
    known: set[str] = set()
    done = covered = 0
    for market in fields:
        covered += market.apps
        for term, keyword in _terms(catalogue, market):
            if done >= keywords * covered // total:
                break
            if term not in known:
                known.add(term)
                done += 1
                wanted = ranked * done // keywords - ranked * (done - 1) // keywords
                yield term, _ranked(catalogue, market, keyword, wanted, Draws(catalogue.seed, 70, market.number, done))


def _terms(catalogue: Catalogue, market: Market) -> Iterator[tuple[str, int]]:
    """What people search for in a market: its keywords, alone and with a modifier, and its apps by name."""
    for keyword, word in enumerate(market.keywords):
        yield word, keyword
    for (keyword, word), added in product(enumerate(market.keywords), MODIFIERS):
        yield f"{word} {added}", keyword
    for position in range(market.apps):
        keyword, modifier = catalogue.pattern(market, position)
        brand = catalogue.brand(catalogue.developer(catalogue.at(market, position))).casefold()
        yield f"{brand} {market.keywords[keyword]}", keyword
        yield f"{brand} {market.keywords[keyword]} {MODIFIERS[modifier]}", keyword


def _ranked(catalogue: Catalogue, market: Market, keyword: int, wanted: int, draws: Draws) -> list[int]:
    titled = catalogue.titled(market)[keyword]
    found: dict[int, None] = {}
    for _ in range(4 * wanted):
        if len(found) >= wanted:
            break
        bits = draws.bits()
        luck = (bits & 0xFFFF) / 0x10000
        kind = (bits >> 16 & 0xFFFF) / 0x10000
        if kind < NOISE_SHARE:
            found[(bits >> 32) % catalogue.apps] = None
        elif kind < 0.6:
            found[catalogue.at(market, int(min(HEAD, market.apps) * luck))] = None
        elif (position := titled[int(len(titled) * luck)]) < market.apps:
            found[catalogue.at(market, position)] = None
    return [catalogue.track_id(index) for index in found if catalogue.exists(index)]
