"""Lists of apps as the web shows them: a search, or a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.markup import embedded
from penstock_systems.standins.appstore.page import intent
from penstock_systems.standins.appstore.records import Json
from penstock_systems.standins.appstore.shelves import lockup


def list_page(
    catalogue: Catalogue,
    found: Sequence[int],
    *,
    shown: int,
    kind: str,
    day: int,
    country: str,
    language: str,
    **asked: Any,
) -> str:
    """Lockups for the first ones, and for those further down only their ids."""
    apps = [catalogue.app(index) for index in found[:shown]]
    items = [{"lockup": lockup(app, country) | {"ratingCount": str(app.rating_count(day, country))}} for app in apps]
    rest = [{"id": str(catalogue.track_id(index)), "type": "apps"} for index in found[shown:]]
    data: Json = {"shelves": [{"contentType": kind, "items": items}], "nextPage": {"results": rest}}
    text = embedded({"data": [{"intent": intent(kind, country, language, **asked), "data": data}]})
    script = f'<script type="application/json" id="serialized-server-data">{text}</script>'
    return f"<!DOCTYPE html><html><head><meta charset=utf-8></head><body>{script}</body></html>"
