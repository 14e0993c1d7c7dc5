"""Answers to whoever asks for a chart, in each of the six ways there are, and for the tree of genres."""

from __future__ import annotations

from starlette.responses import Response

from penstock_systems.standins.appstore.charts import COLLECTIONS, ENTRIES_MAX, IDS_ONLY, POPULAR_IDS
from penstock_systems.standins.appstore.feeds import atom, chart_entry, feed_of
from penstock_systems.standins.appstore.genres import APP_STORE, GAME_GENRES, GAMES, GENRES
from penstock_systems.standins.appstore.lists import list_page
from penstock_systems.standins.appstore.page import NOT_FOUND
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.texts import app_url, artwork
from penstock_systems.standins.appstore.visit import Visit, html, number, options, script

TOOLS_SIZES = (10, 25, 50, 100)
WEB_CHART = 100
LOOKED_AT_FIRST = 84  # apps that an old client is told more about than their ids


def chart(visit: Visit) -> Response:
    """The legacy feed."""
    name, chosen, form = options(visit.request.path_params["rest"])
    if name not in COLLECTIONS or not visit.known_country or form not in ("json", "xml"):
        return Response(status_code=404)
    kind, title = COLLECTIONS[name]
    genre, limit = number(chosen.get("genre"), APP_STORE), number(chosen.get("limit"), 10)
    if kind.startswith("new"):
        limit += 3  # it does not take the limit seriously
    ranked = _ranked(visit, kind, genre)[: max(1, min(ENTRIES_MAX, limit))]
    catalogue, entries = visit.stock.catalogue, visit.stock.entries
    if form == "xml":
        told = [chart_entry(catalogue, catalogue.app(index), visit.country) for index in ranked]
        feed = feed_of(told, title=title, url=str(visit.request.url), now=visit.now)
        return Response(atom(feed), media_type="text/xml; charset=utf-8")
    written = [entries.written(index, visit.country) for index in ranked]
    return script(feed_of(written, title=title, url=str(visit.request.url), now=visit.now), visit.fault)


def chart_ids(visit: Visit) -> Response:
    if not visit.known_country or visit["name"] not in IDS_ONLY:
        return Response(status_code=404)
    ranked = _ranked(visit, IDS_ONLY[visit["name"]], visit.number("g", APP_STORE))
    return script({"resultIds": _ids(visit, ranked[: visit.number("limit", 100)])}, visit.fault)


def client_chart(visit: Visit) -> Response:
    """What the old client showed, as JSON for the platforms that ask for it so and as a page for the others."""
    kind = POPULAR_IDS.get(visit.number("popId", 0))
    if kind is None or not visit.known_country or not visit.client.startswith(("26", "29")):
        return html("<html><body>The iTunes Store</body></html>")
    ids = _ids(visit, _ranked(visit, kind, visit.number("genreId", APP_STORE)))
    apps = [visit.sold(int(track_id)) for track_id in ids[:LOOKED_AT_FIRST]]
    known = {str(app.track_id): {"name": app.title, "artistName": app.brand} for app in apps if app}
    segment = {"pageData": {"selectedChart": {"adamIds": ids}}}
    value = {
        "pageData": {"segmentedControl": {"segments": [segment]}},
        "storePlatformData": {"lockup": {"results": known}},
    }
    return script(value, visit.fault)


def marketing_chart(visit: Visit) -> Response:
    """The newer feed: the whole store only, and in four sizes."""
    kind = {"top-free": "free", "top-paid": "paid"}.get(visit.request.path_params["kind"])
    size = number(visit.request.path_params["size"], 0)
    if kind is None or size not in TOOLS_SIZES or not visit.known_country:
        return Response(status_code=404)
    catalogue, country = visit.stock.catalogue, visit.country
    apps = [catalogue.app(index) for index in _ranked(visit, kind, APP_STORE)[:size]]
    where = f"https://rss.applemarketingtools.com/api/v2/{country}/apps/top-{kind}/{size}/apps.json"
    results = [
        {
            "artistName": app.brand,
            "id": str(app.track_id),
            "name": app.title,
            "releaseDate": app.version_time(0).date().isoformat(),
            "kind": "apps",
            "artworkUrl100": f"{artwork(app)}/100x100bb.png",
            "genres": [],
            "url": app_url(app, country),
        }
        for app in apps
    ]
    feed = {
        "title": f"Top {kind.capitalize()} Apps",
        "id": where,
        "author": {"name": "Apple", "url": "https://www.apple.com/"},
        "links": [{"self": where}],
        "copyright": "Copyright © 2026 Apple Inc. All rights reserved.",
        "country": country,
        "icon": "https://www.apple.com/favicon.ico",
        "updated": visit.now.strftime("%a, %d %b %Y %H:%M:%S +0000"),
        "results": results,
    }
    return script({"feed": feed}, visit.fault)


def web_chart(visit: Visit) -> Response:
    genre = number(visit.request.path_params["genre"], 0)
    kind = {"": "free", "top-free": "free", "top-paid": "paid"}.get(visit["chart"])
    if kind is None or not visit.known_country or genre not in (APP_STORE, *GENRES, *GAME_GENRES):
        return html(NOT_FOUND, 404)
    page = list_page(
        visit.stock.catalogue,
        _ranked(visit, kind, genre)[:WEB_CHART],
        shown=WEB_CHART,
        kind="ChartsPageIntent",
        day=visit.day,
        country=visit.country,
        language=visit.language,
        genreId=str(genre),
    )
    return html(page)


def genre_tree(visit: Visit) -> Response:
    """All genres below the one asked for, those of games below Games."""
    if not visit.known_country:
        return Response(status_code=404)
    games = {str(genre): _genre(genre, name, visit.country) for genre, name in GAME_GENRES.items()}
    below = {str(genre): _genre(genre, name, visit.country) for genre, (name, _) in GENRES.items()}
    below[str(GAMES)]["subgenres"] = games
    tree = {str(APP_STORE): _genre(APP_STORE, "App Store", visit.country) | {"subgenres": below}} | below | games
    asked = str(visit.number("id", APP_STORE))
    return script({asked: tree[asked]} if asked in tree else {}, visit.fault)


def _genre(genre: int, name: str, country: str) -> Json:
    slug = name.casefold().replace(" & ", "-").replace(" ", "-")
    feed = f"https://itunes.apple.com/{country}/rss/{{}}/genre={genre}/json"
    return {
        "name": name,
        "id": str(genre),
        "url": f"https://apps.apple.com/{country}/genre/ios-{slug}/id{genre}",
        "rssUrls": {
            "topFreeApplications": feed.format("topfreeapplications"),
            "topPaidApplications": feed.format("toppaidapplications"),
            "topGrossingApplications": feed.format("topgrossingapplications"),
        },
    }


def _ranked(visit: Visit, kind: str, genre: int) -> tuple[int, ...]:
    return () if visit.fault == "empty" else visit.stock.charts.ranked(kind, genre, visit.day, visit.country)


def _ids(visit: Visit, ranked: tuple[int, ...]) -> list[str]:
    return [str(visit.stock.catalogue.track_id(index)) for index in ranked]
