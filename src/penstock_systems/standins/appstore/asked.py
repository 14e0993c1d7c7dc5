"""Answers to whoever asks by words or by ids: Search, Lookup, the searches of old clients and of the web, and the hints."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from starlette.responses import Response

from penstock_systems.standins.appstore.catalogue import TRACK_IDS
from penstock_systems.standins.appstore.chance import coded, share
from penstock_systems.standins.appstore.hints import hints
from penstock_systems.standins.appstore.lists import list_page
from penstock_systems.standins.appstore.records import artist_record, other_media
from penstock_systems.standins.appstore.search import RESULTS_MAX
from penstock_systems.standins.appstore.visit import Visit, html, number, script

LOOKUP_IDS_MAX = 200
LOCKUPS_ON_A_PAGE = 12
NATIVE_DRIFT = 3.0  # ranks: the order of the app is close to that of the API, and not the same
SHUFFLING = 2_654_435_761
SOFTWARE = ("software", "iPadSoftware")


def search(visit: Visit) -> Response:
    if not visit.known_country or not visit["term"].strip():
        return script({"errorMessage": "Invalid value(s) for key(s): [country or term]"}, status=400)
    limit = max(1, min(RESULTS_MAX, visit.number("limit", 50)))
    found = _found(visit, limit + visit.number("offset", 0))[visit.number("offset", 0) :]
    records: list[object] = [visit.stock.records.written(index, visit.day, visit.country) for index in found]
    if records and not ({visit["media"], visit["entity"]} & {*SOFTWARE, "macSoftware"}):
        for place in range(0, len(records), 3):
            records.insert(place, other_media(visit.stock.catalogue, place, visit["term"]))
    return _results(records[:limit], visit)


def _found(visit: Visit, limit: int) -> list[int]:
    if visit.fault == "empty" or visit["entity"] == "macSoftware":
        return []
    catalogue, genre = visit.stock.catalogue, visit.number("genreId", 0)
    if visit["attribute"] == "softwareDeveloper":
        developer = catalogue.branded(visit["term"].strip().casefold())
        apps = catalogue.portfolio(developer) if developer is not None else []
        return [index for index in apps if catalogue.sold(index, visit.day, visit.country)][:limit]
    found = visit.stock.searches.ranked(visit["term"], visit.day, visit.country, RESULTS_MAX if genre else limit)
    return [index for index in found if not genre or genre in catalogue.app(index).genres][:limit]


def lookup(visit: Visit) -> Response:
    if not visit.known_country:
        return script({"errorMessage": "Invalid value(s) for key(s): [country]"}, status=400)
    catalogue = visit.stock.catalogue
    ids = [number(text, 0) for text in visit["id"].split(",")[:LOOKUP_IDS_MAX]]
    asked_for = [catalogue.index(track_id) for track_id in dict.fromkeys(ids)] + _bundled(visit)
    found = [index for index in asked_for if index is not None and catalogue.sold(index, visit.day, visit.country)]
    # They come in an order of their own, which is the same whenever the same number is asked for.
    found.sort(key=lambda index: (index + len(ids)) * SHUFFLING % (1 << 32))
    records: list[object] = [visit.stock.records.written(index, visit.day, visit.country) for index in found]
    for artist in (catalogue.artist(artist_id) for artist_id in ids if artist_id < TRACK_IDS[0]):
        if artist is not None:
            records.append(artist_record(catalogue, artist, visit.country))
            records += _portfolio(artist, visit) if visit["entity"] in SOFTWARE else []
    return _results([] if visit.fault == "empty" or visit["entity"] == "macSoftware" else records, visit)


def _bundled(visit: Visit) -> list[int | None]:
    """The apps with these bundle ids: each ends with the track id, by which it is found."""
    catalogue, wanted = visit.stock.catalogue, visit["bundleId"].split(",")[:LOOKUP_IDS_MAX]
    ends = [(bundle, re.search(r"-([0-9a-f]{1,12})$", bundle)) for bundle in wanted]
    found = [(bundle, catalogue.index(int(end[1], 16))) for bundle, end in ends if end]
    return [index for bundle, index in found if index is not None and catalogue.app(index).bundle_id == bundle]


def _portfolio(developer: int, visit: Visit) -> list[object]:
    catalogue = visit.stock.catalogue
    sold = [index for index in catalogue.portfolio(developer) if catalogue.sold(index, visit.day, visit.country)]
    shown = sold[: visit.number("limit", 50)]
    return [visit.stock.records.written(index, visit.day, visit.country) for index in shown]


def _results(records: list[object], visit: Visit) -> Response:
    value = {"resultCount": len(records), "results": records}
    return script(value, visit.fault, callback="".join(re.findall(r"[\w.]+", visit["callback"])))


# -- old clients and the web --------------------------------------------------------------------------------------------


def native_search(visit: Visit) -> Response:
    """Ids only, in the order of the App Store's own search. It wants to know which client asks."""
    if "t:native" not in visit.front or not visit.known_country:
        return html("<html><body>The iTunes Store</body></html>")
    bubbles = _bubbles(visit)
    return script({"bubbles": bubbles} if bubbles else {}, visit.fault)


def page_search(visit: Visit) -> Response:
    if not visit.front or not visit.known_country:
        return html("<html><body>The iTunes Store</body></html>")
    return script({"pageData": {"bubbles": _bubbles(visit)}}, visit.fault)


def _bubbles(visit: Visit) -> list[dict[str, object]]:
    results = [{"id": str(visit.stock.catalogue.track_id(index)), "type": 8} for index in _drifted(visit)]
    return [{"name": "software", "totalCount": len(results), "results": results}] if results else []


def _drifted(visit: Visit) -> list[int]:
    seed, term = visit.stock.catalogue.seed, coded(visit["term"])
    found = [] if visit.fault == "empty" else _found(visit, RESULTS_MAX)
    places = {index: rank + NATIVE_DRIFT * share(seed, 65, term, index) for rank, index in enumerate(found)}
    return sorted(found, key=lambda index: (places[index], index))


def web_search(visit: Visit) -> Response:
    if not visit.known_country:
        return html("", 404)
    page = list_page(
        visit.stock.catalogue,
        _drifted(visit),
        shown=LOCKUPS_ON_A_PAGE,
        kind="SearchResultsPageIntent",
        day=visit.day,
        country=visit.country,
        language=visit.language,
        term=visit["term"],
    )
    return html(page)


def suggested(visit: Visit) -> Response:
    """Hints as a property list. Without the store-front header the list is empty."""
    known = visit.front and visit.known_country and visit.fault != "empty"
    terms = hints(visit.stock.catalogue, visit["term"]) if known else []
    where = "https://search.itunes.apple.com/WebObjects/MZSearch.woa/wa/search?clientApplication=Software&amp;term="
    listed = "".join(
        f"<dict><key>term</key><string>{escape(term)}</string>"
        f"<key>url</key><string>{where}{escape(term.replace(' ', '+'))}</string></dict>"
        for term in terms
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>title</key><string>Suggestions</string>'
        f"<key>hints</key><array>{listed}</array></dict></plist>"
    )
    cut = text[: len(text) // 2] if visit.fault == "truncated" else text
    return Response(cut, media_type="text/xml; charset=utf-8")
