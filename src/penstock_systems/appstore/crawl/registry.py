"""Apps and developers as a chart or a search shows them, into the registry. What was not said replaces nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from penstock.data import chunks, cut, first_by
from penstock_systems.appstore.app import db
from penstock_systems.appstore.store.facts import Found

TEXT_MAX = 2_000  # characters of a description
LIST_MAX = 50  # of languages or screenshots
NEVER_NULL = ("track_name", "seller_name", "rating_count", "name")  # columns with a default for what was not said
IDS_A_LOOK = 75  # ten searches give some hundred, each again and again

KNOWN = """
select track_id
from app_registry
where track_id in (
  :id0, :id1, :id2, :id3, :id4, :id5, :id6, :id7, :id8, :id9, :id10, :id11, :id12, :id13, :id14, :id15, :id16,
  :id17, :id18, :id19, :id20, :id21, :id22, :id23, :id24, :id25, :id26, :id27, :id28, :id29, :id30, :id31,
  :id32, :id33, :id34, :id35, :id36, :id37, :id38, :id39, :id40, :id41, :id42, :id43, :id44, :id45, :id46,
  :id47, :id48, :id49, :id50, :id51, :id52, :id53, :id54, :id55, :id56, :id57, :id58, :id59, :id60, :id61,
  :id62, :id63, :id64, :id65, :id66, :id67, :id68, :id69, :id70, :id71, :id72, :id73, :id74
)
"""

Row = dict[str, object]


async def known(track_ids: Iterable[int]) -> set[int]:
    """Which of these apps the registry has."""
    found: set[int] = set()
    for chunk in chunks(sorted(set(track_ids)), IDS_A_LOOK):
        padded = chunk + [chunk[-1]] * (IDS_A_LOOK - len(chunk))
        found.update(await db.column(KNOWN, {f"id{place}": each for place, each in enumerate(padded)}))
    return found


def write_found(apps: Sequence[Found], *, source: str, now: str, ranked: bool = False) -> None:
    """Joins the unit: the apps, each once, and their developers, each once. `ranked` apps were found by a search."""
    single = sorted(first_by(apps, lambda app: app.track_id), key=lambda app: app.track_id)
    rows = [app_row(app, source=source, now=now, ranked=ranked) for app in single]
    _upsert("app_registry", rows, key="track_id", keep=("first_seen_at", "data_source"))
    _upsert("developers", developer_rows(single, now=now), key="developer_id", keep=("first_seen_at",))


def app_row(app: Found, *, source: str, now: str, ranked: bool = False) -> Row:
    """The columns that this answer fills; None where it did not say."""
    row: Row = {
        "track_id": app.track_id,
        "bundle_id": app.bundle_id,
        "track_name": app.title,
        "seller_name": app.developer,
        "average_rating": app.score,
        "rating_count": app.ratings,
        "primary_genre": app.genre,
        "price": app.price,
        "formatted_price": app.formatted_price or _shown(app.price),
        "artwork_url": app.icon,
        "track_view_url": app.url,
        "description": None if app.description is None else cut(app.description, TEXT_MAX),
        "release_date": app.released,
        "version": app.version,
        "version_released_at": app.version_released,
        "content_rating": app.content_rating,
        "languages": _listed(app.languages),
        "screenshots": _listed(app.screenshots),
        "subtitle": app.subtitle,
        "developer_id": app.developer_id,
        "developer_website": app.developer_website,
        "data_source": source,
        "first_seen_at": now,
        "last_seen_at": now,
    }
    return row | {"ranked_at": now} if ranked else row


def developer_rows(apps: Sequence[Found], *, now: str) -> list[Row]:
    """Each developer once, with the first name and the first website that any of the apps gives."""
    rows: dict[int, Row] = {}
    for app in apps:
        if app.developer_id is not None:
            row = rows.setdefault(
                app.developer_id,
                {"developer_id": app.developer_id, "name": None, "website": None, "first_seen_at": now},
            )
            row["name"] = row["name"] or app.developer
            row["website"] = row["website"] or app.developer_website
    return [rows[developer_id] for developer_id in sorted(rows)]


def _upsert(table: str, rows: Iterable[Row], *, key: str, keep: Sequence[str]) -> None:
    """A column that may not be null is left out where nothing was said: a new row gets its default, an old one stays."""
    alike: dict[tuple[str, ...], list[Mapping[str, object]]] = defaultdict(list)
    for row in rows:
        said = {name: value for name, value in row.items() if value is not None or name not in NEVER_NULL}
        alike[tuple(said)].append(said)
    for each in alike.values():
        db.upsert(table, each, key=key, keep=keep)


def _shown(price: float | None) -> str | None:
    if price is None:
        return None
    return "Free" if price == 0 else f"${price:.2f}"


def _listed(values: tuple[str, ...] | None) -> object:
    """An empty list says nothing: the store leaves lists empty that its own pages fill."""
    return db.json(list(values[:LIST_MAX])) if values else None
