"""Look-up: the records of known ids, in any order and without those that are not sold here; or all of a developer."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from penstock_systems.appstore.store.decoding import Read
from penstock_systems.appstore.store.facts import Found, Portfolio
from penstock_systems.appstore.store.records import apps_of, found, is_app, records_of
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.appstore.store.values import identity

IDS_A_CALL = 200


def lookup_url(base: str, ids: Iterable[int], *, country: str, language: str, limit: int | None = None) -> str:
    asked = {"id": ",".join(map(str, ids)), "country": country, "entity": "software"}
    if limit is not None:
        asked["limit"] = str(limit)
    asked["lang"] = language.replace("-", "_").lower()
    return f"{base}/lookup?{urlencode(asked, safe=',')}"


def parse_lookup(body: bytes) -> Read[dict[int, Found]]:
    """The apps by their ids. An id that is unknown, or whose app is not sold here, is not among them."""
    apps, skipped = apps_of(body, "The answer to a look-up")
    return Read({app.track_id: app for app in apps}, skipped)


def parse_portfolio(body: bytes, developer_id: int) -> Read[Portfolio]:
    """The developer's own record comes first and names them; the rest are apps, and only theirs are kept."""
    records, skipped = records_of(body, "The answer to a look-up of a developer")
    name: str | None = None
    apps: dict[int, Found] = {}
    for _, record in records:
        if is_app(record):
            app = found(record)
            if app is None:
                skipped += 1
            elif app.developer_id in (developer_id, None):
                apps.setdefault(app.track_id, app)
        elif record.wrapper_type == "artist" and identity(record.artist_id) == developer_id:
            name = cleaned(record.artist_name)
    return Read(Portfolio(developer_id, name, tuple(apps.values())), skipped)
