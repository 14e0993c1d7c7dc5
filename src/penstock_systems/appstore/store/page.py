"""The product page: facts from the JSON that it carries for its own script, or from an older form of it, or its markup."""

from __future__ import annotations

from urllib.parse import urlencode

import penstock as ps
from penstock_systems.appstore.store.decoding import Read
from penstock_systems.appstore.store.facts import PageFacts
from penstock_systems.appstore.store.page_data import parse_data
from penstock_systems.appstore.store.page_markup import parse_markup
from penstock_systems.appstore.store.page_shoebox import parse_shoebox
from penstock_systems.appstore.store.scripts import script_of

DATA, SHOEBOX = b"serialized-server-data", b"shoebox-media-api-cache-apps"


def page_url(base: str, track_id: int, *, country: str, language: str) -> str:
    """The labels in the page are in the language asked for, so it is named."""
    return f"{base}/{country}/app/id{track_id}?{urlencode({'l': language})}"


def page_key(track_id: int) -> str:
    return f"app/{track_id}/page.html"


def parse_page(body: bytes, track_id: int, *, country: str | None = None) -> Read[PageFacts]:
    """What the page says about this app. A page about another app, or about nothing, is Unparsable.

    The store may send a caller on to the country that the caller's address is of. What is said there is about another
    store, and asking again leads there again: with `country` such a page is Gone."""
    if (data := script_of(body, DATA)) is not None:
        return parse_data(data, track_id, country)
    if (shoebox := script_of(body, SHOEBOX)) is not None:
        return parse_shoebox(shoebox, track_id)
    read = parse_markup(body, track_id)
    if read is None:
        raise ps.Unparsable(f"The page of app {track_id} has no data about it.", reason="no_data", track_id=track_id)
    return read
