"""The feed of reviews, as JSON and as Atom. It is not to be relied on: an empty one may be a refusal."""

from __future__ import annotations

from typing import Any, Literal
from xml.etree import ElementTree

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, each, field
from penstock_systems.appstore.store.facts import Review
from penstock_systems.appstore.store.labels import entries_of, label
from penstock_systems.appstore.store.review import review
from penstock_systems.appstore.store.xml_tree import xml_tree

PAGES_MAX = 10  # of fifty reviews; the next one is refused
REVIEWS_A_PAGE_MAX = 200
TOO_DEEP = "page depth"

_ATOM, _IM = "{http://www.w3.org/2005/Atom}", "{http://itunes.apple.com/rss}"


class _Entry(msgspec.Struct):
    id: Any = None
    rating: Any = msgspec.field(default=None, name="im:rating")
    title: Any = None
    content: Any = None
    author: Any = None
    version: Any = msgspec.field(default=None, name="im:version")
    updated: Any = None


def reviews_url(base: str, track_id: int, *, country: str, page: int, form: Literal["json", "xml"]) -> str:
    return f"{base}/{country}/rss/customerreviews/page={page}/id={track_id}/sortby=mostRecent/{form}"


def parse_reviews(body: bytes, form: Literal["json", "xml"]) -> Read[tuple[Review, ...]]:
    """The reviews, the newest first. Old feeds begin with an entry about the app itself, which has no stars."""
    return _newest(*(_from_json(body) if form == "json" else _from_xml(body)))


def _newest(reviews: list[Review], skipped: int) -> Read[tuple[Review, ...]]:
    """Each review once, as it was edited last."""
    known: dict[str, Review] = {}
    for one in reviews:
        if one.review_id not in known or (one.updated or "") > (known[one.review_id].updated or ""):
            known[one.review_id] = one
    return Read(tuple(known.values())[:REVIEWS_A_PAGE_MAX], skipped)


def _from_json(body: bytes) -> tuple[list[Review], int]:
    entries, skipped = each(entries_of(body, "The feed of reviews"), _Entry)
    reviews: list[Review] = []
    for _, entry in entries:
        if entry.rating is None:
            continue
        read = review(
            label(entry.id),
            label(entry.rating),
            title=label(entry.title),
            body=label(entry.content),
            author=label(field(entry.author, "name")),
            version=label(entry.version),
            updated=label(entry.updated),
        )
        if read is None:
            skipped += 1
        else:
            reviews.append(read)
    return reviews, skipped


def _from_xml(body: bytes) -> tuple[list[Review], int]:
    root = xml_tree(body, "The feed of reviews")
    if root.tag != f"{_ATOM}feed":
        raise ps.Unparsable("The feed of reviews is not a feed.", reason="bad_shape")
    reviews: list[Review] = []
    skipped = 0
    for entry in root.iterfind(f"{_ATOM}entry"):
        if entry.find(f"{_IM}rating") is None:
            continue
        read = review(
            entry.findtext(f"{_ATOM}id"),
            entry.findtext(f"{_IM}rating"),
            title=entry.findtext(f"{_ATOM}title"),
            body=_plain(entry),
            author=entry.findtext(f"{_ATOM}author/{_ATOM}name"),
            version=entry.findtext(f"{_IM}version"),
            updated=entry.findtext(f"{_ATOM}updated"),
        )
        if read is None:
            skipped += 1
        else:
            reviews.append(read)
    return reviews, skipped


def _plain(entry: ElementTree.Element) -> str | None:
    """The text comes twice, plain and as markup."""
    contents = entry.findall(f"{_ATOM}content")
    return next((content.text for content in contents if content.get("type") == "text"), None)
