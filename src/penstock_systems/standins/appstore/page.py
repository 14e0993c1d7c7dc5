"""The product page: HTML with the JSON that Apple's own script reads, in its present form, its former one, or spoilt."""

from __future__ import annotations

from html import escape
from typing import Any

from penstock_systems.standins.appstore.former import shoebox
from penstock_systems.standins.appstore.manners import Kind
from penstock_systems.standins.appstore.markup import embedded, facts, linked_data, weight
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.shelves import Sight, page_data
from penstock_systems.standins.appstore.texts import app_url

NOT_FOUND = "<!DOCTYPE html><html><head><title>Page Not Found</title></head><body><h1>Not Found</h1></body></html>"
BLOCKED = "<!DOCTYPE html><html><head><title>Access Denied</title></head><body>Please try again later.</body></html>"


def product_page(sight: Sight, *, whole: bool = False, fault: Kind | None = None) -> bytes:
    app, page = sight.app, page_data(sight)
    data = embedded(linked_data(sight))
    head = (
        f'<!DOCTYPE html><html lang="{sight.language}"><head><meta charset="utf-8"><title>{escape(app.title)}</title>'
        f'<link rel="canonical" href="{app_url(app, sight.country)}"><script type="application/ld+json">{data}</script>'
    ).encode()
    script = _script(sight, page, fault)
    shown = facts(sight, page["shelfMapping"])
    body = f"</head><body><h1>{escape(app.title)}</h1>{shown}{script}</body></html>".encode()
    if not whole:
        return head + body
    style = weight(sight.catalogue.seed, app.index, len(head) + len(body))
    return b"".join((head, b"<style>", style, b"</style>", body))


def intent(kind: str, country: str, language: str, **asked: Any) -> Json:
    """What was asked for, as the page repeats it."""
    return {"$kind": kind, "storefront": country, "language": language, "isDefaultLanguage": True, **asked}


def _script(sight: Sight, page: Json, fault: Kind | None) -> str:
    if fault == "shoebox":
        return shoebox(sight)
    if fault == "no_script":
        return ""
    shown_id = str(sight.app.track_id + (fault == "wrong_id"))
    asked_for = intent("ProductPageIntent", sight.country, sight.language, id=shown_id)
    root: Any = {"data": [{"intent": asked_for, "data": _changed(page, fault)}]}
    text = embedded(root["data"] if fault == "list_root" else root)
    if fault == "truncated":
        text = text[: len(text) // 2]
    # The order of the attributes is not to be relied on either.
    marks = ('type="application/json"', 'id="serialized-server-data"')
    first, second = marks if sight.app.index % 2 else reversed(marks)
    return f"<script {first} {second}>{text}</script>"


def _changed(page: Json, fault: Kind | None) -> Json:
    if fault == "no_shelves":
        return page | {"shelfMapping": {}}
    for rated in page["shelfMapping"].get("productRatings", {}).get("items", []) if fault == "reversed" else []:
        rated["ratingCounts"] = rated["ratingCounts"][::-1]
    return page
