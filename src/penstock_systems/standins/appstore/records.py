"""The records of Search and Lookup: the names, types and gaps of Apple's JSON."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import mix, share
from penstock_systems.standins.appstore.genres import STOREFRONTS, genre_name, price_text
from penstock_systems.standins.appstore.stars import average
from penstock_systems.standins.appstore.texts import (
    app_url,
    artwork,
    description,
    developer_url,
    notes,
)

Json = dict[str, Any]

RECORDS_KEPT = 4_096  # written out, for the day and the country they were last asked for
# A real record names 127 of them: two fifths of its bytes.
_MODELS = [
    *(f"iPhone{number}{kind}" for number in range(6, 18) for kind in ("", "Plus", "Pro", "ProMax")),
    *(f"iPad{kind}{number}" for kind in ("", "Air", "Mini", "ProEleven") for number in range(1, 11)),
    *(f"iPad{kind}{number}Cellular" for kind in ("", "Air", "Mini") for number in range(1, 11)),
    *(f"iPodTouch{number}" for number in range(1, 10)),
]
DEVICES = [f"{model}-{model}" for model in _MODELS]
OPTIONAL = ("price", "formattedPrice", "languageCodesISO2A", "contentAdvisoryRating", "minimumOsVersion", "description")
MISSING_SHARE = 0.01


class Records:
    """The records as they go over the wire. Each is written once a day, because a look-up brings two hundred."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.written = lru_cache(RECORDS_KEPT)(self._write)

    def _write(self, index: int, day: int, country: str) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(app_record(self._catalogue, index, day, country)))


def app_record(catalogue: Catalogue, index: int, day: int, country: str) -> Json:
    app, store = catalogue.app(index), STOREFRONTS[country]
    histogram = app.histogram(day, country)
    count, stars = sum(histogram), average(histogram)
    last = app.versions(day) - 1
    art = artwork(app)
    shots = [f"{art}/{number}/392x696bb.png" for number in range(app.screenshots)]
    record: Json = {
        "wrapperType": "software",
        "kind": "software",
        "trackId": app.track_id,
        "bundleId": app.bundle_id,
        "trackName": app.title,
        "trackCensoredName": app.title,
        "trackViewUrl": f"{app_url(app, country)}?uo=4",
        "artistId": catalogue.artist_id(app.developer),
        "artistName": app.brand,
        "artistViewUrl": f"{developer_url(catalogue, app, country)}?uo=4",
        "sellerName": app.seller,
        "description": description(app),
        "version": app.version(last),
        "releaseDate": app.version_text(0),
        "currentVersionReleaseDate": app.version_text(last),
        "price": app.price,
        "formattedPrice": price_text(app.price, country, "Free"),
        "currency": store.currency,
        "averageUserRating": stars,
        "userRatingCount": count,
        "averageUserRatingForCurrentVersion": stars,
        "userRatingCountForCurrentVersion": count,
        "primaryGenreId": app.genres[0],
        "primaryGenreName": genre_name(app.genres[0]),
        "genreIds": [str(genre) for genre in app.genres],
        "genres": [genre_name(genre) for genre in app.genres],
        "contentAdvisoryRating": app.age,
        "trackContentRating": app.age,
        "advisories": [] if app.age == "4+" else ["Infrequent/Mild Mature/Suggestive Themes"],
        "fileSizeBytes": str(app.size_bytes),
        "minimumOsVersion": f"{13 + app.index % 5}.0",
        "languageCodesISO2A": list(app.languages),
        "supportedDevices": DEVICES,
        "features": ["iosUniversal"] if app.index % 3 else [],
        "screenshotUrls": shots,
        "ipadScreenshotUrls": shots[::2] if app.index % 3 else [],
        "appletvScreenshotUrls": [],
        "artworkUrl60": f"{art}/60x60bb.jpg",
        "artworkUrl100": f"{art}/100x100bb.jpg",
        "artworkUrl512": f"{art}/512x512bb.jpg",
        "isGameCenterEnabled": app.index % 11 == 0,
        "isVppDeviceBasedLicensingEnabled": True,
    }
    if app.website:
        record["sellerUrl"] = f"https://{app.brand.casefold()}.example"
    if last:
        record["releaseNotes"] = notes(app, last)
    for key in _missing(catalogue, app):
        del record[key]
    return record


def _missing(catalogue: Catalogue, app: App) -> list[str]:
    """Now and then a key is not there, and nobody knows why."""
    missing = [
        key for place, key in enumerate(OPTIONAL) if share(catalogue.seed, 70 + place, app.index) < MISSING_SHARE
    ]
    return [*missing, "averageUserRating"] if not app.ratings and app.index % 3 == 0 else missing


def artist_record(catalogue: Catalogue, developer: int, country: str) -> Json:
    brand, artist_id = catalogue.brand(developer), catalogue.artist_id(developer)
    return {
        "wrapperType": "artist",
        "artistType": "Software Artist",
        "artistName": brand,
        "artistLinkUrl": f"https://apps.apple.com/{country}/developer/{brand.casefold()}/id{artist_id}?uo=4",
        "artistId": artist_id,
    }


def other_media(catalogue: Catalogue, number: int, term: str) -> Json:
    """A film or a book: what a search brings as well that did not ask for software only."""
    kind = ("feature-movie", "ebook")[number % 2]
    track_id = 200_000_000 + mix(catalogue.seed, 80, number) % 90_000_000
    name = f"The {term.title()} Story, Part {number + 1}"
    return {"wrapperType": "track", "kind": kind, "trackId": track_id, "trackName": name, "artistName": "Somebody Else"}
