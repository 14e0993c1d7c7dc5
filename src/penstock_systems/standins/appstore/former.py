"""Former forms of the product page, which are still met in caches and in the answers to old clients."""

from __future__ import annotations

from penstock_systems.standins.appstore.markup import embedded
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.shelves import Sight, similar
from penstock_systems.standins.appstore.stars import average
from penstock_systems.standins.appstore.texts import notes

VERSIONS_MAX = 25


def shoebox(sight: Sight) -> str:
    """An object whose values are JSON once more, as texts. Its histogram begins with one star."""
    app, day, country = sight.app, sight.day, sight.country
    histogram = app.histogram(day, country)
    last = app.versions(day) - 1
    history = [
        {
            "versionDisplay": app.version(number),
            "releaseNotes": notes(app, number),
            "releaseTimestamp": app.version_text(number),
        }
        for number in range(last, max(-1, last - 5), -1)
    ]
    rated = {"value": average(histogram), "ratingCount": sum(histogram), "ratingCountList": histogram[::-1]}
    attributes = {
        "name": app.title,
        "artistName": app.brand,
        "userRating": rated,
        "hasInAppPurchases": bool(app.purchases),
        "platformAttributes": {"ios": {"subtitle": app.subtitle, "versionHistory": history}},
    }
    also = [{"id": str(sight.catalogue.track_id(index)), "type": "apps"} for index in _beside(sight)]
    relationships = {
        "customers-also-bought-apps": {"data": also},
        "top-in-apps": {"data": [{"attributes": {"name": name, "price": price}} for name, price in app.purchases]},
    }
    held = {"d": [{"id": str(app.track_id), "attributes": attributes, "relationships": relationships}]}
    text = embedded({f"apps/{app.track_id}?l={sight.language}": embedded(held)})
    return f'<script type="fastboot/shoebox" id="shoebox-media-api-cache-apps">{text}</script>'


def old_page(sight: Sight) -> str:
    """What the old client showed: text in which the ids of similar apps can be found."""
    ids = embedded([str(sight.catalogue.track_id(index)) for index in _beside(sight)])
    return f'<html><body><script>its.serverData={{"customersAlsoBoughtApps":{ids}}}</script></body></html>'


def old_data(sight: Sight) -> Json:
    """The same as data, without a page."""
    app, histogram = sight.app, sight.app.histogram(sight.day, sight.country)
    rated = {"value": average(histogram), "ratingCount": sum(histogram)}
    shown = {"name": app.title, "subtitle": app.subtitle, "userRating": rated, "releaseDate": app.version_text(0)[:10]}
    history = [
        {
            "versionString": app.version(number),
            "releaseNotes": notes(app, number),
            "releaseDate": app.version_text(number),
        }
        for number in range(app.versions(sight.day))
    ]
    return {
        "storePlatformData": {"product-dv": {"results": {str(app.track_id): shown}}},
        "pageData": {"id": str(app.track_id), "versionHistory": history[-VERSIONS_MAX:]},
    }


def _beside(sight: Sight) -> list[int]:
    return similar(sight.catalogue, sight.app, sight.day, sight.country)
