"""The chart feeds, as JSON and as Atom, and the small page with the histogram of an app."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from html import escape
from typing import Any
from xml.etree import ElementTree

from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.genres import STOREFRONTS, genre_name
from penstock_systems.standins.appstore.records import (
    Json,
    app_url,
    artwork,
    description,
    developer_url,
    price_text,
    release_text,
)

ATOM, IM = "http://www.w3.org/2005/Atom", "http://itunes.apple.com/rss"
CALIFORNIA = timezone(timedelta(hours=-7))
ElementTree.register_namespace("im", IM)
ElementTree.register_namespace("", ATOM)


def label(text: str, **attributes: Any) -> Json:
    return {"label": text, "attributes": attributes} if attributes else {"label": text}


def chart_feed(
    catalogue: Catalogue, ranked: Sequence[int], *, title: str, url: str, country: str, now: datetime
) -> Json:
    """The legacy feed. Without entries there is no `entry`, and with one it is no list."""
    feed: Json = {
        "author": {"name": label("iTunes Store"), "uri": label("http://www.apple.com/itunes/")},
        "updated": label(now.astimezone(CALIFORNIA).isoformat(timespec="seconds")),
        "rights": label("Copyright 2008 Apple Inc."),
        "title": label(f"iTunes Store: {title}"),
        "icon": label("http://itunes.apple.com/favicon.ico"),
        "link": [{"attributes": {"rel": "alternate", "type": "text/html", "href": "https://apps.apple.com/"}}],
        "id": label(url),
    }
    entries = [chart_entry(catalogue, index, country) for index in ranked]
    if entries:
        feed["entry"] = entries if len(entries) > 1 else entries[0]
    return {"feed": feed}


def chart_entry(catalogue: Catalogue, index: int, country: str) -> Json:
    app = catalogue.app(index)
    genre, art, url = app.genres[0], artwork(app), f"{app_url(app, country)}?uo=2"
    instant, spoken = release_text(app)
    scheme = f"https://apps.apple.com/{country}/genre/ios-{_slug(genre)}/id{genre}?uo=2"
    page = {"attributes": {"rel": "alternate", "type": "text/html", "href": url}}
    shot = {"rel": "enclosure", "type": "image/jpeg", "href": f"{art}/0/392x696bb.png"}
    entry: Json = {
        "im:name": label(app.title),
        "im:image": [label(f"{art}/{size}x{size}bb.png", height=str(size)) for size in (53, 75, 100)],
        "summary": label(description(app)),
        "im:price": label(
            price_text(app.price, country, "Get"), amount=f"{app.price:.2f}", currency=STOREFRONTS[country].currency
        ),
        "im:contentType": {"attributes": {"term": "Application", "label": "Application"}},
        "rights": label(f"© {app.seller}"),
        "title": label(f"{app.title} - {app.brand}"),
        "link": [page, {"im:duration": label("0"), "attributes": shot}] if app.screenshots else page,
        "id": label(url, **{"im:id": str(app.track_id), "im:bundleId": app.bundle_id}),
        "im:artist": label(app.brand, href=f"{developer_url(catalogue, app.developer, country)}?uo=2"),
        "category": {
            "attributes": {"im:id": str(genre), "term": genre_name(genre), "scheme": scheme, "label": genre_name(genre)}
        },
        "im:releaseDate": label(instant, label=spoken),
    }
    if app.index % 97 == 0:
        del entry["im:artist"]["attributes"]
    if app.index % 53 == 0:
        del entry["summary"]
    return entry


def chart_xml(feed: Json) -> bytes:
    """The same feed as Atom."""
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
    named = {key if ":" not in key else f"{{{IM}}}{key[3:]}": text for key, text in attributes.items()}
    element = ElementTree.SubElement(parent, f"{{{IM if prefix else ATOM}}}{bare}", named)
    element.text = value.get("label")
    for key, child in value.items():
        if key not in ("label", "attributes"):
            _add(element, key, child)


def ratings_html(histogram: Sequence[int]) -> str:
    """The histogram, five stars first; an app without ratings shows no bars."""
    bars = "".join(f'<div class="vote"><span class="total">{count:,}</span></div>' for count in histogram)
    return (
        f'<html><body><div class="rating-count">{sum(histogram):,} Ratings</div>{bars * any(histogram)}</body></html>'
    )


def _slug(genre: int) -> str:
    return escape(genre_name(genre).casefold().replace(" & ", "-").replace(" ", "-"))
