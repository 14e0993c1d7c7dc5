"""Charts: the legacy feed of a collection and a genre, the first rank first."""

from __future__ import annotations

from typing import Any

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, each, listed
from penstock_systems.appstore.store.facts import Found
from penstock_systems.appstore.store.genres import APP_STORE, parent_of
from penstock_systems.appstore.store.labels import attribute, entries_of, label
from penstock_systems.appstore.store.text import address, cleaned, prose
from penstock_systems.appstore.store.values import identity, linked_id, moment, price, whole

ENTRIES_MAX = 200


class _Entry(msgspec.Struct):
    name: Any = msgspec.field(default=None, name="im:name")
    images: Any = msgspec.field(default=None, name="im:image")
    summary: Any = None
    price: Any = msgspec.field(default=None, name="im:price")
    link: Any = None
    id: Any = None
    artist: Any = msgspec.field(default=None, name="im:artist")
    category: Any = None
    released: Any = msgspec.field(default=None, name="im:releaseDate")


def chart_url(base: str, collection: str, *, country: str, genre_id: int | None, limit: int) -> str:
    genre = "" if genre_id in (None, APP_STORE) else f"/genre={genre_id}"
    return f"{base}/{country}/rss/{collection}/limit={max(1, min(ENTRIES_MAX, limit))}{genre}/json"


def parse_chart(body: bytes, *, genre_id: int | None = None, limit: int = ENTRIES_MAX) -> Read[list[Found]]:
    """The apps in rank order, each once; no more than asked for, since one feed takes the limit lightly.

    A genre that the store does not know it ignores, and answers with the chart of all: that is Unparsable.
    """
    entries, skipped = each(entries_of(body, "A chart"), _Entry)
    apps: dict[int, Found] = {}
    for rank, entry in entries:
        if app := _found(entry, rank):
            apps.setdefault(app.track_id, app)
        else:
            skipped += 1
    if genre_id is not None and genre_id != APP_STORE:
        _check_genre(list(apps.values()), genre_id)
    return Read(list(apps.values())[:limit], skipped)


def _check_genre(apps: list[Found], asked: int) -> None:
    told = [app.genre_id for app in apps if app.genre_id is not None]
    others = sum(genre not in (asked, parent_of(asked)) for genre in told)
    if 2 * others > len(told):
        raise ps.Unparsable(
            f"{others} of {len(told)} apps in the chart of genre {asked} belong to another genre: the store ignored it.",
            reason="wrong_genre",
            genre=asked,
        )


def _found(entry: _Entry, rank: int) -> Found | None:
    link = _alternate(entry.link) or label(entry.id)
    track_id = identity(attribute(entry.id, "im:id")) or linked_id(link)
    if track_id is None:
        return None
    amount = price(attribute(entry.price, "amount"))
    return Found(
        track_id=track_id,
        title=cleaned(label(entry.name)),
        bundle_id=cleaned(attribute(entry.id, "im:bundleId")),
        developer=cleaned(label(entry.artist)),
        developer_id=linked_id(attribute(entry.artist, "href")),
        genre=cleaned(attribute(entry.category, "label")) or cleaned(attribute(entry.category, "term")),
        genre_id=identity(attribute(entry.category, "im:id")),
        price=amount,
        # The label of what is free is what the button says: Get.
        formatted_price="Free" if amount == 0 else cleaned(label(entry.price)),
        icon=_largest(entry.images),
        url=address(link),
        description=prose(label(entry.summary)),
        released=moment(label(entry.released)),
        rank=rank,
    )


def _alternate(links: object) -> Any:
    """One link is an object, two are a list; the other one is a picture."""
    pages = [link for link in listed(links) if attribute(link, "rel") in ("alternate", None)]
    return attribute(pages[0], "href") if pages else None


def _largest(images: object) -> str | None:
    sized = [(whole(attribute(image, "height")) or 0, address(label(image))) for image in listed(images)]
    return max(((height, url) for height, url in sized if url), default=(0, None))[1]
