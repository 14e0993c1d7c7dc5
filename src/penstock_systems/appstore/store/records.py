"""The record of an app as search and look-up give it: some forty names, of which any but the id may be missing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, decoded, each
from penstock_systems.appstore.store.facts import Found
from penstock_systems.appstore.store.text import address, cleaned, prose
from penstock_systems.appstore.store.values import identity, moment, price, stars, whole

LANGUAGES_MAX = 200
SCREENSHOTS_MAX = 50
VERSION_CHARACTERS_MAX = 50
RECORDS_KEPT, RECORD_BYTES_KEPT = 4_000, 16_000  # read in brief: a real record has some 9,500 bytes


class Record(msgspec.Struct, rename="camel"):
    """What is read of a record, each as it comes: numbers may be text and text may be anything."""

    wrapper_type: Any = None
    kind: Any = None
    track_id: Any = None
    bundle_id: Any = None
    track_name: Any = None
    track_view_url: Any = None
    artist_id: Any = None
    artist_name: Any = None
    seller_name: Any = None
    seller_url: Any = None
    description: Any = None
    release_notes: Any = None
    version: Any = None
    release_date: Any = None
    current_version_release_date: Any = None
    price: Any = None
    formatted_price: Any = None
    average_user_rating: Any = None
    user_rating_count: Any = None
    primary_genre_id: Any = None
    primary_genre_name: Any = None
    content_advisory_rating: Any = None
    track_content_rating: Any = None
    languages: Any = msgspec.field(default=None, name="languageCodesISO2A")
    screenshot_urls: Any = None
    ipad_screenshot_urls: Any = None
    artwork_url512: Any = None
    artwork_url100: Any = None
    artwork_url60: Any = None


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


def records_of(body: bytes, what: str) -> Read[list[tuple[int, Record]]]:
    """All records with their places, apps and others. An answer without results has an empty list, never none at all."""
    return each(decoded(body, _Results, what).results, Record)


def is_app(record: Record) -> bool:
    """Films, books and developers come in the same lists."""
    kind = record.kind
    return record.wrapper_type == "software" or (isinstance(kind, str) and kind.endswith("software"))


def found(record: Record, *, brief: bool = False) -> Found | None:
    """The app of a record; None where it has no id that one could keep. A `brief` one is without its long texts and lists:
    they are most of the work, and whoever wants them looks the app up."""
    track_id = identity(record.track_id)
    if track_id is None:
        return None
    return Found(
        track_id=track_id,
        title=cleaned(record.track_name),
        bundle_id=cleaned(record.bundle_id),
        developer=cleaned(record.artist_name) or cleaned(record.seller_name),
        developer_id=identity(record.artist_id),
        developer_website=address(record.seller_url),
        score=stars(record.average_user_rating),
        ratings=whole(record.user_rating_count),
        genre=cleaned(record.primary_genre_name),
        genre_id=identity(record.primary_genre_id),
        price=price(record.price),
        formatted_price=cleaned(record.formatted_price),
        icon=next(filter(None, map(address, _artwork(record))), None),
        url=address(record.track_view_url),
        description=None if brief else prose(record.description),
        released=moment(record.release_date),
        version=cleaned(record.version, characters_max=VERSION_CHARACTERS_MAX),
        version_released=moment(record.current_version_release_date),
        release_notes=None if brief else prose(record.release_notes),
        content_rating=cleaned(record.content_advisory_rating) or cleaned(record.track_content_rating),
        languages=None if brief else _texts(record.languages, LANGUAGES_MAX),
        screenshots=None if brief else _addresses(record.screenshot_urls) or _addresses(record.ipad_screenshot_urls),
    )


def apps_of(body: bytes, what: str, *, ranked: bool = False, brief: bool = False) -> Read[list[Found]]:
    """The apps of an answer in its order, each once. An entry that cannot be read keeps its rank from the next one."""
    apps: dict[int, Found] = {}
    others = skipped = 0
    for place, piece in enumerate(decoded(body, _Results, what).results, 1):
        raw = bytes(piece)
        software, app = _briefly(raw) if brief and len(raw) <= RECORD_BYTES_KEPT else _read(raw, brief=brief)
        if not software:
            others += 1
        elif app is None:
            skipped += 1
        elif app.track_id not in apps:
            apps[app.track_id] = msgspec.structs.replace(app, rank=place - others) if ranked else app
    return Read(list(apps.values()), skipped)


def _read(piece: bytes, *, brief: bool) -> tuple[bool, Found | None]:
    """Whether it is an app, and which: None if that cannot be read."""
    try:
        record = decoded(piece, Record, "A piece")
    except ps.Unparsable:
        return True, None
    return (True, found(record, brief=brief)) if is_app(record) else (False, None)


@lru_cache(RECORDS_KEPT)
def _briefly(piece: bytes) -> tuple[bool, Found | None]:
    """The same in brief. An app comes up in hundreds of searches a day, byte for byte the same: to read it again would take
    ten times as long as to recognize it."""
    return _read(piece, brief=True)


def _artwork(record: Record) -> tuple[Any, ...]:
    return record.artwork_url512, record.artwork_url100, record.artwork_url60


def _texts(values: object, most: int) -> tuple[str, ...] | None:
    """None where nothing was said, empty where it was said that there are none."""
    if not isinstance(values, list):
        return None
    return tuple(filter(None, map(cleaned, values[:most])))


def _addresses(values: object) -> tuple[str, ...] | None:
    if not isinstance(values, list):
        return None
    return tuple(filter(None, map(address, values[:SCREENSHOTS_MAX])))
