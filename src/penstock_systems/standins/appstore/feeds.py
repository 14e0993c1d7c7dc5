"""The feeds: charts and reviews as JSON in which every value is a label, and the same as Atom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

import msgspec

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.genres import STOREFRONTS, genre_name, price_text
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.reviews import Review
from penstock_systems.standins.appstore.texts import app_url, artwork, description, developer_url, release_text

ATOM, IM = "http://www.w3.org/2005/Atom", "http://itunes.apple.com/rss"
CALIFORNIA = timezone(timedelta(hours=-7))
ENTRIES_KEPT = 4_096
CONTENT_TYPE = {"attributes": {"term": "Application", "label": "Application"}}
ElementTree.register_namespace("im", IM)
ElementTree.register_namespace("", ATOM)
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def label(text: str, **attributes: Any) -> Json:
    return {"label": text, "attributes": attributes} if attributes else {"label": text}


def feed_of(entries: Sequence[Any], *, title: str, url: str, now: datetime) -> Json:
    """A feed. Without entries there is no `entry`, and with one it is no list."""
    feed: Json = {
        "author": {"name": label("iTunes Store"), "uri": label("http://www.apple.com/itunes/")},
        "updated": label(now.astimezone(CALIFORNIA).isoformat(timespec="seconds")),
        "rights": label("Copyright 2008 Apple Inc."),
        "title": label(f"iTunes Store: {title}"),
        "icon": label("http://itunes.apple.com/favicon.ico"),
        "link": [{"attributes": {"rel": "alternate", "type": "text/html", "href": "https://apps.apple.com/"}}],
        "id": label(url),
    }
    if entries:
        feed["entry"] = list(entries) if len(entries) > 1 else entries[0]
    return {"feed": feed}


class Entries:
    """The entries of charts as they go over the wire. An entry does not change from day to day, so each is written once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.written = lru_cache(ENTRIES_KEPT)(self._write)

    def _write(self, index: int, country: str) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(chart_entry(self._catalogue, self._catalogue.app(index), country)))


def chart_entry(catalogue: Catalogue, app: App, country: str) -> Json:
    genre, art, url = app.genres[0], artwork(app), f"{app_url(app, country)}?uo=2"
    instant, spoken = release_text(app)
    named = genre_name(genre)
    scheme = f"https://apps.apple.com/{country}/genre/ios-{_slug(named)}/id{genre}?uo=2"
    page = {"attributes": {"rel": "alternate", "type": "text/html", "href": url}}
    shot = {"rel": "enclosure", "type": "image/jpeg", "href": f"{art}/0/392x696bb.png"}
    price = price_text(app.price, country, "Get")
    entry: Json = {
        "im:name": label(app.title),
        "im:image": [label(f"{art}/{size}x{size}bb.png", height=str(size)) for size in (53, 75, 100)],
        "summary": label(description(app)),
        "im:price": label(price, amount=f"{app.price:.2f}", currency=STOREFRONTS[country].currency),
        "im:contentType": CONTENT_TYPE,
        "rights": label(f"© {app.seller}"),
        "title": label(f"{app.title} - {app.brand}"),
        "link": [page, {"im:duration": label("0"), "attributes": shot}] if app.screenshots else page,
        "id": label(url, **{"im:id": str(app.track_id), "im:bundleId": app.bundle_id}),
        "im:artist": label(app.brand, href=f"{developer_url(catalogue, app, country)}?uo=2"),
        "category": {"attributes": {"im:id": str(genre), "term": named, "scheme": scheme, "label": named}},
        "im:releaseDate": label(instant, label=spoken),
    }
    if app.index % 97 == 0:
        del entry["im:artist"]["attributes"]
    elif app.index % 89 == 0:
        entry["im:artist"]["attributes"]["href"] = f"https://apps.apple.com/{country}/artist"
    if app.index % 53 == 0:
        del entry["summary"]
    return entry


def review_entry(app: App, review: Review, country: str) -> Json:
    link = f"https://itunes.apple.com/{country}/review?id={app.track_id}&type=Purple%20Software"
    uri = f"https://itunes.apple.com/{country}/reviews/id{review.id % 999_983}"
    return {
        "author": {"uri": label(uri), "name": label(review.author), "label": ""},
        "updated": label(review.updated.astimezone(CALIFORNIA).isoformat(timespec="seconds")),
        "im:rating": label(str(review.stars)),
        "im:version": label(review.version),
        "id": label(str(review.id)),
        "title": label(review.title),
        "content": label(review.body, type="text"),
        "link": {"attributes": {"rel": "related", "href": link}},
        "im:voteSum": label(str(review.helpful)),
        "im:voteCount": label(str(review.votes)),
        "im:contentType": CONTENT_TYPE,
    }


def atom(feed: Json) -> bytes:
    """The same feed as Atom. The text of a review comes a second time, as markup."""
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    for name, value in feed["feed"].items():
        _add(root, name, value)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _add(parent: ElementTree.Element, name: str, value: Any) -> None:
    if isinstance(value, list):
        for one in value:
            _add(parent, name, one)
        return
    prefix, _, bare = name.rpartition(":")
    attributes = value.get("attributes", {})
    named = {key if ":" not in key else f"{{{IM}}}{key[3:]}": _clean(text) for key, text in attributes.items()}
    element = ElementTree.SubElement(parent, f"{{{IM if prefix else ATOM}}}{bare}", named)
    element.text = _clean(value.get("label") or "") or None
    for key, child in value.items():
        if key not in ("label", "attributes"):
            _add(element, key, child)
    if name == "content":
        twin = ElementTree.SubElement(parent, element.tag, {"type": "html"})
        twin.text = f"<table><tr><td>{element.text}</td></tr></table>"


def _clean(text: str) -> str:
    """XML has no place for control characters, so they are left out; JSON carries them."""
    return _NOT_IN_XML.sub("", text)


def _slug(name: str) -> str:
    return name.casefold().replace(" & ", "-").replace(" ", "-")
