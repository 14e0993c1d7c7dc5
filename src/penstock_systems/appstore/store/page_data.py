"""The current form of a product page: `serialized-server-data`, shelf by shelf. A shelf that is not there is empty."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, decoded, each, field, listed, pieces
from penstock_systems.appstore.store.facts import Found, PageFacts, Review, Version
from penstock_systems.appstore.store.histogram import ratings_of
from penstock_systems.appstore.store.information import rows_of
from penstock_systems.appstore.store.prices import offered
from penstock_systems.appstore.store.review import review
from penstock_systems.appstore.store.text import address, cleaned, prose
from penstock_systems.appstore.store.values import identity, moment, stars, whole

PARTS_MAX = 10
ITEMS_MAX = 500  # of one shelf that are looked at
SIMILAR_MAX = 50
VERSIONS_MAX = 100
SCREENSHOTS_MAX = 50
REVIEWS_MAX = 50
ICON, SHOT = "512x512bb.jpg", "460x0w.webp"

_NOTHING = msgspec.Raw(b"null")
_TEMPLATE = re.compile(r"\{w\}x\{h\}(?:\{c\})?\.\{f\}")


class _Intent(msgspec.Struct):
    id: Any = None
    storefront: Any = None


class _Shelves(msgspec.Struct):
    ratings: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="productRatings")
    information: msgspec.Raw = msgspec.Raw()
    similar: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="similarItems")
    by_developer: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="moreByDeveloper")
    versions: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="mostRecentVersion")
    description: msgspec.Raw = msgspec.Raw()
    reviews: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="allProductReviews")
    phone: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="product_media_phone_")
    pad: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="product_media_pad_")


class _Page(msgspec.Struct):
    title: Any = None
    lockup: Any = None
    developer: Any = msgspec.field(default=None, name="developerAction")
    shelves: _Shelves = msgspec.field(default_factory=_Shelves, name="shelfMapping")


class _Part(msgspec.Struct):
    intent: _Intent
    data: _Page


class _Root(msgspec.Struct):
    data: list[msgspec.Raw]


class _Shelf(msgspec.Struct):
    items: list[msgspec.Raw] | None = None
    see_all: Any = msgspec.field(default=None, name="seeAllAction")


def parse_data(script: bytes, track_id: int, country: str | None = None) -> Read[PageFacts]:
    """What the script says, if it says it about this app: pages of other apps come under its address too."""
    what = f"The data in the page of app {track_id}"
    script = script.strip()
    told = decoded(script, list[msgspec.Raw], what) if script.startswith(b"[") else decoded(script, _Root, what).data
    parts, _ = each(told[:PARTS_MAX], _Part)
    for _, part in parts:
        if identity(part.intent.id) == track_id:
            _check_country(part.intent.storefront, track_id, country)
            return _Reading(part.data, track_id).facts()
    other = ", ".join(str(identity(part.intent.id)) for _, part in parts) or "nothing that can be read"
    raise ps.Unparsable(f"{what} is about {other}.", reason="wrong_app", track_id=track_id)


def _check_country(shown: object, track_id: int, country: str | None) -> None:
    """A page that does not say whose it is, is believed."""
    if country is not None and isinstance(shown, str) and shown.casefold() != country:
        raise ps.Gone(
            f"The page of app {track_id} was answered for the store of {shown!r} instead of {country!r}: the store goes by "
            "the caller's address. Run from that country, or set country in [systems.appstore].",
            reason="wrong_country",
            track_id=track_id,
        )


class _Reading:
    """One page as it is read, and what was left out on the way."""

    def __init__(self, page: _Page, track_id: int) -> None:
        self.page = page
        self.track_id = track_id
        self.skipped = 0

    def facts(self) -> Read[PageFacts]:
        page, shelves = self.page, self.page.shelves
        lockup = page.lockup
        rated = self.first(shelves.ratings)
        average = stars(field(rated, "ratingAverage"))
        total = whole(field(rated, "totalNumberOfRatings"))
        rows = rows_of(self.items(shelves.information))
        self.skipped += rows.skipped
        cost, shown = offered(
            field(lockup, "offerDisplayProperties", "isFree"),
            field(lockup, "offerDisplayProperties", "titles", "standard"),
        )
        facts = PageFacts(
            track_id=self.track_id,
            title=cleaned(page.title) or cleaned(field(lockup, "title")),
            subtitle=cleaned(field(lockup, "subtitle")),
            developer=cleaned(field(page.developer, "title")) or cleaned(field(lockup, "developerTagline")),
            bundle_id=cleaned(field(lockup, "bundleId")),
            description=prose(field(self.first(shelves.description), "paragraph", "text")),
            ratings=ratings_of(field(rated, "ratingCounts"), average=average, total=total),
            average=average,
            purchases=rows.purchases,
            similar=self.lockups(shelves.similar),
            more_by_developer=self.lockups(shelves.by_developer),
            versions=self.versions(),
            screenshots=self.screenshots(),
            reviews=self.reviews(),
            content_rating=rows.age,
            languages=rows.languages,
            seller=rows.seller,
            genre=rows.genre,
            icon=picture(field(lockup, "icon", "template"), ICON),
            price=cost,
            formatted_price=shown,
            rating_count=total,
            information=rows.told,
        )
        return Read(facts, self.skipped)

    def shelf(self, raw: msgspec.Raw) -> _Shelf:
        """A shelf by itself: one that cannot be read is counted, and the others are not harmed."""
        if not raw or raw == _NOTHING:
            return _Shelf()
        try:
            return decoded(raw, _Shelf, "A shelf")
        except ps.Unparsable:
            self.skipped += 1
            return _Shelf()

    def items(self, raw: msgspec.Raw) -> list[Any]:
        return self.read(self.shelf(raw))

    def first(self, raw: msgspec.Raw) -> Any:
        return next(iter(self.items(raw)), None)

    def read(self, shelf: _Shelf) -> list[Any]:
        items, skipped = pieces((shelf.items or [])[:ITEMS_MAX])
        self.skipped += skipped
        return items

    def lockups(self, raw: msgspec.Raw) -> tuple[Found, ...]:
        apps: dict[int, Found] = {}
        for item in self.items(raw):
            app = lockup_of(item)
            if app is None:
                self.skipped += 1
            elif app.track_id != self.track_id and len(apps) < SIMILAR_MAX:
                apps.setdefault(app.track_id, app)
        return tuple(apps.values())

    def versions(self) -> tuple[Version, ...]:
        """The newest first. The list of all is behind a button; where there is no button the newest is all."""
        shelf = self.shelf(self.page.shelves.versions)
        history = [
            item
            for page in listed(field(shelf.see_all, "pageData", "shelves"))
            for item in listed(field(page, "items"))
        ]
        known: dict[str, Version] = {}
        for item in self.read(shelf) + history[:ITEMS_MAX]:
            version = version_of(field(item, "primarySubtitle"), field(item, "secondarySubtitle"), field(item, "text"))
            if version is None:
                self.skipped += 1
            elif len(known) < VERSIONS_MAX:
                known.setdefault(version.version, version)
        return tuple(known.values())

    def screenshots(self) -> tuple[str, ...]:
        """Those of the phone; those of the tablet where there are none."""
        shots: dict[str, None] = {}
        for raw in (self.page.shelves.phone, self.page.shelves.pad):
            # Films stand among the pictures. They are no mistake, and not looked at.
            pictures = [item for item in self.items(raw) if field(item, "screenshot") is not None]
            read = [picture(field(item, "screenshot", "template"), SHOT) for item in pictures]
            self.skipped += read.count(None)
            shots = shots or dict.fromkeys(shot for shot in read if shot is not None)
        return tuple(shots)[:SCREENSHOTS_MAX]

    def reviews(self) -> tuple[Review, ...]:
        known: dict[str, Review] = {}
        for item in self.items(self.page.shelves.reviews):
            told: Any = field(item, "review") or item
            read = review(
                field(told, "id"),
                field(told, "rating"),
                title=field(told, "title"),
                body=field(told, "contents"),
                author=field(told, "reviewerName"),
                updated=field(told, "date"),
            )
            if read is None:
                self.skipped += 1
            elif len(known) < REVIEWS_MAX:
                known.setdefault(read.review_id, read)
        return tuple(known.values())


def lockup_of(item: object) -> Found | None:
    """An app on a shelf of another one's page."""
    track_id = identity(field(item, "adamId"))
    if track_id is None:
        return None
    offer = field(item, "offerDisplayProperties")
    cost, shown = offered(field(offer, "isFree"), field(offer, "titles", "standard"))
    return Found(
        track_id=track_id,
        title=cleaned(field(item, "title")),
        bundle_id=cleaned(field(item, "bundleId")),
        developer=cleaned(field(item, "developerName")) or cleaned(field(item, "developerTagline")),
        score=stars(field(item, "rating")),
        price=cost,
        formatted_price=shown,
        icon=picture(field(item, "icon", "template"), ICON),
        subtitle=cleaned(field(item, "subtitle")),
    )


def version_of(named: object, released: object, notes: object) -> Version | None:
    """`Version 3.4.1` in any language: the name starts at its first digit, if it has one."""
    name = cleaned(named)
    if name is None:
        return None
    digit = next((place for place, letter in enumerate(name) if letter.isdecimal()), 0)
    return Version(name[digit:][:50], moment(released), prose(notes))


def picture(template: object, size: str) -> str | None:
    return address(_TEMPLATE.sub(size, template)) if isinstance(template, str) else None
