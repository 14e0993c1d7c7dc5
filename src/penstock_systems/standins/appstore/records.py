"""The records of Search and Lookup: the names, types and gaps of Apple's JSON."""

from __future__ import annotations

from typing import Any

from penstock_systems.standins.appstore.app import FIRST_DAY, App, average
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import mix, share
from penstock_systems.standins.appstore.genres import STOREFRONTS, genre_name

Json = dict[str, Any]

DESCRIPTION_CHARACTERS_MAX = 4_000
SENTENCES = (
    "{title} keeps your {0} in one place.",
    "Built for people who care about {1} and {2}.",
    "No account is needed: everything about {0} stays on your device.",
    "Set up {1} in a minute and see how {2} changes week by week.",
    "• {0} at a glance, with charts and reminders",
    "• Works with widgets, and shares {1} with your family",
    "• Export {2} whenever you like",
    "We read every message, so tell us what {0} should do next.",
    "Thousands of people already plan their {2} with {title}.",
)


def app_record(catalogue: Catalogue, index: int, day: int, country: str) -> Json:
    app, store = catalogue.app(index), STOREFRONTS[country]
    count, stars = app.rating_count(day, country), average(app.histogram(day, country))
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
        "artistViewUrl": f"{developer_url(catalogue, app.developer, country)}?uo=4",
        "sellerName": app.seller,
        "description": description(app),
        "version": app.version(last),
        "releaseDate": app.version_time(0).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "currentVersionReleaseDate": app.version_time(last).strftime("%Y-%m-%dT%H:%M:%SZ"),
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
        "supportedDevices": ["iPhone5s-iPhone5s", "iPadAir-iPadAir", "iPhone16-iPhone16"],
        "features": ["iosUniversal"] if app.index % 3 else [],
        "screenshotUrls": shots,
        "ipadScreenshotUrls": shots[::2] if app.index % 3 else [],
        "appletvScreenshotUrls": [],
        **{f"artworkUrl{size}": f"{art}/{size}x{size}bb.jpg" for size in (60, 100, 512)},
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
    optional = ("price", "formattedPrice", "languageCodesISO2A", "contentAdvisoryRating", "minimumOsVersion")
    missing = [key for place, key in enumerate(optional) if share(catalogue.seed, 70 + place, app.index) < 0.01]
    return [*missing, "averageUserRating"] if not app.ratings and app.index % 3 == 0 else missing


def artist_record(catalogue: Catalogue, developer: int, country: str) -> Json:
    return {
        "wrapperType": "artist",
        "artistType": "Software Artist",
        "artistName": catalogue.brand(developer),
        "artistLinkUrl": f"{developer_url(catalogue, developer, country)}?uo=4",
        "artistId": catalogue.artist_id(developer),
    }


def other_media(catalogue: Catalogue, number: int, term: str) -> Json:
    """A film or a book: what a search brings as well that did not ask for software only."""
    kind = ("feature-movie", "ebook")[number % 2]
    track_id = 200_000_000 + mix(catalogue.seed, 80, number) % 90_000_000
    name = f"The {term.title()} Story, Part {number + 1}"
    return {"wrapperType": "track", "kind": kind, "trackId": track_id, "trackName": name, "artistName": "Somebody Else"}


def app_url(app: App, country: str) -> str:
    return f"https://apps.apple.com/{country}/app/{app.slug}/id{app.track_id}"


def developer_url(catalogue: Catalogue, developer: int, country: str) -> str:
    brand = catalogue.brand(developer).casefold()
    return f"https://apps.apple.com/{country}/developer/{brand}/id{catalogue.artist_id(developer)}"


def artwork(app: App) -> str:
    return f"https://is1-ssl.mzstatic.com/image/thumb/Purple{app.index % 200}/v4/{app.track_id:x}/AppIcon.png"


def price_text(price: float, country: str, free: str) -> str:
    return f"{STOREFRONTS[country].sign}{price:.2f}" if price else free


def description(app: App) -> str:
    wanted = min(DESCRIPTION_CHARACTERS_MAX, 256 + int(3_744 * share(app.index, 81) ** 2))
    lines: list[str] = []
    while sum(map(len, lines)) < wanted:
        line = SENTENCES[mix(app.index, 82, len(lines)) % len(SENTENCES)]
        lines.append(line.format(*app.keywords, title=app.title) + "\n")
    return "".join(lines)[:wanted].rstrip()


def notes(app: App, number: int) -> str:
    sentence = ("Bug fixes and improvements.", "Fixes.", "Faster start, and {0} looks better in the dark.")
    return sentence[mix(app.index, 83, number) % len(sentence)].format(app.keywords[0])


def release_text(app: App) -> tuple[str, str]:
    """As the feeds write it: with the offset of California, and spelled out."""
    released = (app.version_time(0) if app.released else FIRST_DAY).date()
    return f"{released.isoformat()}T00:00:00-07:00", f"{released:%B} {released.day}, {released.year}"
