"""The last resort: the markup that a reader sees and the linked data that search engines see. Class names are hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, decoded, field, listed
from penstock_systems.appstore.store.facts import Found, PageFacts, Version
from penstock_systems.appstore.store.html import text_of, tree
from penstock_systems.appstore.store.information import PURCHASES_TITLE, ROWS_MAX, Rows
from penstock_systems.appstore.store.page_data import SIMILAR_MAX, VERSIONS_MAX, version_of
from penstock_systems.appstore.store.prices import is_price, purchases_of
from penstock_systems.appstore.store.scripts import scripts_of
from penstock_systems.appstore.store.text import address, cleaned, prose
from penstock_systems.appstore.store.values import linked_id, price, stars, whole

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LINKED = b"application/ld+json"


class _Linked(msgspec.Struct):
    kind: Any = msgspec.field(default=None, name="@type")
    name: Any = None
    description: Any = None
    image: Any = None
    category: Any = msgspec.field(default=None, name="applicationCategory")
    offers: Any = None
    rated: Any = msgspec.field(default=None, name="aggregateRating")
    author: Any = None


def parse_markup(body: bytes, track_id: int) -> Read[PageFacts] | None:
    """What can be seen of the app; None if the page does not say that it is the page of this app."""
    linked = linked_data(body)
    if linked is None:
        return None  # the page of something else, or of nothing: not worth a tree
    page = tree(body)
    if track_id not in _own_ids(page):
        return None
    rows, skipped = _rows(page)
    offer = next(iter(listed(linked.offers)), None)
    cost = price(field(offer, "price"))
    facts = PageFacts(
        track_id=track_id,
        title=cleaned(linked.name),
        developer=cleaned(field(linked.author, "name")),
        description=prose(linked.description),
        average=stars(field(linked.rated, "ratingValue")),
        rating_count=whole(field(linked.rated, "reviewCount")) or whole(field(linked.rated, "ratingCount")),
        purchases=rows.purchases,
        similar=_similar(page, track_id),
        versions=_versions(page),
        content_rating=rows.age,
        languages=rows.languages,
        seller=rows.seller,
        genre=rows.genre,
        icon=address(linked.image),
        price=cost,
        formatted_price="Free" if cost == 0 else None,
        information=rows.told,
        form="markup",
    )
    return Read(facts, skipped)


def linked_data(body: bytes) -> _Linked | None:
    """What the page tells search engines about its app. The page that says "not found" has none."""
    for script in scripts_of(body, LINKED):
        try:
            linked = decoded(script, _Linked, "The linked data")
        except ps.Unparsable:
            continue
        if "SoftwareApplication" in listed(linked.kind):
            return linked
    return None


def _own_ids(page: LexborHTMLParser) -> set[int | None]:
    canonical = [node.attributes.get("href") for node in page.css('link[rel="canonical"]')]
    shared = [node.attributes.get("content") for node in page.css('meta[property="og:url"]')]
    return {linked_id(url) for url in canonical + shared}


def _rows(page: LexborHTMLParser) -> tuple[Rows, int]:
    told: list[tuple[str, str]] = []
    bought: list[tuple[object, object]] = []
    for title in page.css("dt")[:ROWS_MAX]:
        value = title.next
        while value is not None and value.tag != "dd":
            value = value.next if value.tag == "-text" else None
        name, text = text_of(title), text_of(value)
        if value is None or name is None or text is None:
            continue
        told.append((name, text))
        pairs = _pairs(value)
        if not bought and pairs and (name == PURCHASES_TITLE or all(is_price(shown) for _, shown in pairs)):
            bought = pairs
    purchases, skipped = purchases_of(bought)
    return Rows(tuple(told), purchases), skipped


def _pairs(value: LexborNode) -> list[tuple[object, object]]:
    spans = [item.css("span") for item in value.css("li")]
    return [(text_of(pair[0]), text_of(pair[1])) for pair in spans if len(pair) >= 2]


def _versions(page: LexborHTMLParser) -> tuple[Version, ...]:
    """Of all dialogs, the one with most rows about versions is the history."""
    rows = max((dialog.css("div.metadata") for dialog in page.css("dialog")), key=len, default=[])
    read = (_version(row) for row in rows)
    return tuple({version.version: version for version in read if version is not None}.values())[:VERSIONS_MAX]


def _version(row: LexborNode) -> Version | None:
    time = row.css_first("time")
    notes = row.css_first("p")
    if notes is None:
        after = row.next
        while after is not None and after.tag == "-text":
            after = after.next
        notes = after if after is not None and after.tag == "p" else None
    released = time.attributes.get("datetime") if time is not None else None
    return version_of(text_of(row.css_first("span")), released, text_of(notes))


def _similar(page: LexborHTMLParser, track_id: int) -> tuple[Found, ...]:
    """All links to apps. They mix the similar ones with the developer's own, so only their ids are believed."""
    ids = [linked_id(link.attributes.get("href")) for link in page.css('a[href*="/app/"]')]
    others = dict.fromkeys(app for app in ids if app is not None and app != track_id)
    return tuple(Found(track_id=app) for app in list(others)[:SIMILAR_MAX])
