"""Splits an answer into records: JSON, HTML, schema.org in JSON-LD, RSS and Atom."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.connect.fields import Find, find_css, find_json, needed
from penstock.connect.page import RECORDS_MAX, Changed
from penstock.connect.spec import Spec
from penstock.runtime.lanes import in_thread

FEED_BYTES_MAX = 5_000_000
BLOCKS_MAX = 200  # of JSON-LD on one page
DEPTH_MAX = 8
# What a flat or house for rent is called in schema.org.
TYPES = ("Apartment", "House", "SingleFamilyResidence", "Residence", "Accommodation", "RealEstateListing", "Product")
# Where schema.org has the facts of a listing; a connector's own [fields] come before these.
JSONLD_ID = '"@id" || url || sku || identifier'
_OFFER = "([offers][] | [0])"
JSONLD = {
    "title": "name",
    "price": f"{_OFFER}.price || {_OFFER}.priceSpecification.price",
    "currency": f"{_OFFER}.priceCurrency || {_OFFER}.priceSpecification.priceCurrency",
    "rooms": "numberOfRooms.value || numberOfRooms || numberOfBedrooms",
    "area_m2": "floorSize.value || floorSize",
    "street": "address.streetAddress",
    "city": "address.addressLocality",
    "lat": "geo.latitude",
    "lon": "geo.longitude",
    "posted_at": "datePosted || datePublished",
}
RSS = {"title": "title", "description": "summary", "posted_at": "published || updated"}


async def split(
    spec: Spec, body: bytes, text: Callable[[], str], parsed: Callable[[], Any]
) -> tuple[list[Any], Find, Any]:
    """Return the records of an answer, how values are found in them, and the whole answer for the paginator."""
    match spec.kind:
        case "html":
            tree = needed("selectolax.lexbor").LexborHTMLParser(text())
            return tree.css(spec.records)[:RECORDS_MAX], find_css, tree
        case "jsonld":
            return list(_offers(text(), spec.types or TYPES))[:RECORDS_MAX], find_json, None
        case "rss":
            entries = await in_thread(read_feed, body)
            return entries[:RECORDS_MAX], find_json, None
        case _:
            whole = parsed()
            found = find_json(whole, spec.records)
            if not isinstance(found, list):
                kind = "nothing" if found is None else type(found).__name__
                has = f" The answer has: {', '.join(list(whole)[:10])[:200]}." if isinstance(whole, dict) else ""
                raise Changed(f"records = {spec.records!r} found {kind} instead of a list.{has}")
            return found[:RECORDS_MAX], find_json, whole


def read_feed(body: bytes) -> list[dict[str, Any]]:
    """Return the entries of an RSS or Atom feed as plain dicts. A malformed feed has those that could be read."""
    feedparser = needed("feedparser")
    try:
        feed = feedparser.parse(body[:FEED_BYTES_MAX], resolve_relative_uris=False)
        entries = [_plain(dict(entry), 0) for entry in feed.entries]
    except Exception as error:  # its parsers raise many kinds over what the world calls a feed
        raise Changed(f"The feed cannot be read: {type(error).__name__}: {str(error)[:200]}.") from error
    if feed.bozo and not entries and not feed.version:
        raise Changed(f"The answer is no feed: {str(feed.get('bozo_exception', ''))[:200]}.")
    return entries


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, dict) and depth < DEPTH_MAX:
        return {str(name): _plain(each, depth + 1) for name, each in value.items() if not name.endswith("_parsed")}
    if isinstance(value, list | tuple) and depth < DEPTH_MAX:
        return [_plain(each, depth + 1) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _offers(text: str, types: Sequence[str]) -> Iterator[dict[str, Any]]:
    tree = needed("selectolax.lexbor").LexborHTMLParser(text)
    for script in tree.css('script[type="application/ld+json"]')[:BLOCKS_MAX]:
        try:
            yield from _flat(json.loads(script.text()), frozenset(types), 0)
        except (ValueError, RecursionError):
            continue  # a page may carry blocks that are not JSON, beside good ones


def _flat(value: Any, types: frozenset[str], depth: int) -> Iterator[dict[str, Any]]:
    if depth > DEPTH_MAX:
        return
    if isinstance(value, list):
        for each in value:
            yield from _flat(each, types, depth + 1)
    elif isinstance(value, dict):
        kinds = value.get("@type")
        if types & {each for each in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(each, str)}:
            yield value
            return
        for name in ("@graph", "itemListElement", "item", "mainEntity", "itemOffered"):
            yield from _flat(value.get(name), types, depth + 1)
