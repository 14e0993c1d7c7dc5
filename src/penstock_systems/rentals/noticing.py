"""Decides which searches are notified of a home: new, cheaper, back or gone; silently on a first run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from penstock.channels import parse_time, send_at
from penstock.data import text_of_micros
from penstock_systems.rentals.app import db, settings, web
from penstock_systems.rentals.lookups import rows_of, rows_of_each
from penstock_systems.rentals.searches import Search, every, matches, price_of

KNOWN = "select home_id, search_id, low_base, low_total, is_silent from search_homes where home_id = :home limit 2000"
HOMES_A_STATEMENT = 4  # of KNOWN, as a read returns 10,000 rows at most
SAVE_KNOWN = """
insert into search_homes (search_id, home_id, low_base, low_total, is_silent, matched_at)
values (:search, :home, :low_base, :low_total, :silent, :now)
on conflict (search_id, home_id) do update
set low_base = excluded.low_base, low_total = excluded.low_total
"""
NOTICE = """
insert into notices (id, search_id, person, home_id, listing_id, reason, old, new, title, body, created_at, send_at)
values (:id, :search, :person, :home, :listing, :reason, :old, :new, :title, :body, :now, :send_at)
on conflict (id) do nothing
"""
LAST = """
select reason
from notices
where home_id = :home
and search_id = :search
and reason in ('gone', 'back')
order by created_at desc
limit 1
"""
HIDDEN = "select id from homes where id in (:keys) and hidden = 1"
KINDS = ("low_base", "low_total")
Changed = tuple[Any, str, bool]  # a listing, how it changed, whether its source runs for the first time


class Noticing:
    """The searches of one message, and the notices that follow."""

    def __init__(self, searches: Sequence[Search], now: str) -> None:
        self.searches = searches
        self.now = now
        self.hidden: set[str] = set()
        self.known: dict[str, dict[str, Any]] = defaultdict(dict)  # by home, then by search
        self.matched: list[dict[str, object]] = []
        self.notices: list[dict[str, object]] = []

    @staticmethod
    async def begin(now: str, homes: Sequence[str]) -> Noticing:
        """Read the searches, and what they know of these homes. No search knows of a home that is new."""
        noticing = Noticing([each for each in await every() if not each.paused], now)
        if noticing.searches:
            noticing.hidden = {row.id for row in await rows_of(HIDDEN, homes)}
            asked = [{"home": home} for home in homes]
            for row in await rows_of_each(KNOWN, asked, parts=HOMES_A_STATEMENT):
                noticing.known[row.home_id][row.search_id] = row
        return noticing

    def write(self) -> None:
        """Save what was found. Joins the unit."""
        for statement, rows in ((SAVE_KNOWN, self.matched), (NOTICE, self.notices)):
            if rows:
                db.write_many(statement, rows)

    async def look(self, home: str, offers: Sequence[Any], changes: Sequence[Changed]) -> None:
        """Compare a home with every search, and note what is to be notified."""
        if not self.searches or home in self.hidden:
            return
        live = [each for each in offers if each.status != "gone"]
        known = self.known.get(home, {})
        gone_sources = {each.source for each in offers if each.status == "gone"}
        silent = all(first for _, _, first in changes)
        for search in self.searches:
            fitting = [each for each in live if matches(search.filter, each)]
            row = known.get(search.id)
            if row is None:
                if fitting:
                    self._meet(search, home, fitting, silent=silent)
                continue
            await self._follow(search, home, row, live, gone_sources, fitting, changes)

    def _meet(self, search: Search, home: str, fitting: Sequence[Any], *, silent: bool) -> None:
        listing = min(fitting, key=lambda each: (price_of(each) is None, price_of(each) or 0.0))
        lows = lowest(fitting)
        self._save(search, home, lows, silent=int(silent))
        if not silent:
            self._notice(search, home, listing, "new", None, price_of(listing), "")

    async def _follow(
        self,
        search: Search,
        home: str,
        row: Any,
        live: Sequence[Any],
        gone_sources: set[str],
        fitting: Sequence[Any],
        changes: Sequence[Changed],
    ) -> None:
        gone = [each for each, kind, _ in changes if kind == "gone"]
        if gone and not live:
            self._notice(search, home, gone[0], "gone", row.low_total or row.low_base, None, self.now[:13])
            return
        came = [each for each, kind, _ in changes if kind in ("back", "new")]
        if came and await db.value(LAST, home=home, search=search.id) == "gone":
            self._notice(search, home, came[0], "back", None, price_of(came[0]), self.now[:13])
        lows: dict[str, float | None] = {kind: getattr(row, kind) for kind in KINDS}
        known = dict(lows)
        cheaper: tuple[float, float, Any] | None = None
        cut = _ids_of_cuts(gone_sources, changes)
        for kind in KINDS:
            # Like with like: a rent without fees on one portal is not cheaper than one with fees on another.
            (price, listing), low = _lowest(kind, fitting), lows[kind]
            if price is not None and (low is None or is_cheaper(low, price)):
                lows[kind] = price
                cheaper = (low, price, listing) if low is not None and listing.id in cut else cheaper
        if lows != known:
            self._save(search, home, lows, silent=int(row.is_silent))
        if cheaper is not None:
            old, new, listing = cheaper
            self._notice(search, home, listing, "cheaper", old, new, f"{new:g}")

    def _save(self, search: Search, home: str, lows: dict[str, float | None], *, silent: int) -> None:
        self.matched.append({**lows, "search": search.id, "home": home, "silent": silent, "now": self.now})

    def _notice(
        self, search: Search, home: str, listing: Any, reason: str, old: float | None, new: float | None, key: str
    ) -> None:
        if reason not in search.notify.reasons:
            return
        moment = web.clock.now()
        notify = search.notify
        digest = parse_time(notify.digest_at, "digest_at") if notify.digest_at else None
        at = send_at(moment, quiet=notify.quiet(), digest_at=digest, zone=notify.zone)
        title, body = describe(search.name, listing, reason, old, new)
        bound = {"search": search.id, "person": search.person, "home": home, "listing": listing.id, "reason": reason}
        bound |= {"old": old, "new": new, "title": title, "body": body, "now": self.now}
        named = {"id": f"{search.id} {home} {reason} {key}".strip(), "send_at": text_of_micros(at)}
        self.notices.append(bound | named)


def _ids_of_cuts(gone_sources: set[str], changes: Sequence[Changed]) -> set[str]:
    """Return the listings whose price may have been cut: changed ones, and those that replace one of the same portal. A
    lower price on another portal is no cut; and where a join is wrong, it is another home's."""
    return {
        each.id
        for each, kind, _ in changes
        if kind == "changed" or (kind in ("new", "back") and each.source in gone_sources)
    }


def lowest(offers: Sequence[Any]) -> dict[str, float | None]:
    """Return the lowest prices of a home's listings, one of each kind."""
    return {kind: _lowest(kind, offers)[0] for kind in KINDS}


def _lowest(kind: str, offers: Sequence[Any]) -> tuple[float | None, Any]:
    """Return the lowest price of one kind, and its listing."""
    name = kind.replace("low", "price")
    priced = [(price, number) for number, each in enumerate(offers) if (price := getattr(each, name)) is not None]
    if not priced:
        return None, None
    price, number = min(priced)
    return price, offers[number]


def is_cheaper(old: float, new: float) -> bool:
    """Return whether a price is low enough below the lowest so far to be worth a notice."""
    return new < old and (old - new >= settings.cheaper_share * old or old - new >= settings.cheaper_amount)


def describe(search: str, listing: Any, reason: str, old: float | None, new: float | None) -> tuple[str, str]:
    """Return the title and the text of a notice."""
    money = f"{listing.currency or ''}".strip()
    shown = {"new": "New", "cheaper": "Cheaper", "back": "Back", "gone": "Gone"}[reason]
    price = f"{new:,.0f} {money}".strip() if new is not None else "price not given"
    if reason == "cheaper" and old is not None:
        price = f"{old:,.0f} → {price} ({(new or 0) / old - 1:+.0%})"
    facts = [price] if reason != "gone" else []
    facts += ["perhaps a sublet or swap"] if listing.deal == "unknown" else []
    facts += size_of(listing)
    place = ", ".join(each for each in (listing.street, listing.neighborhood, listing.city) if each)
    title = f"{shown}: {listing.title or place}"[:200]
    lines = (", ".join(facts), place, listing.url or f"On {listing.source}", f"Search: {search}")
    return title, "\n".join(line for line in lines if line)


def size_of(listing: Any) -> list[str]:
    """Return rooms and area in words, as far as they are known."""
    rooms = [f"{listing.rooms:g} {'room' if listing.rooms == 1 else 'rooms'}"] if listing.rooms is not None else []
    return rooms + ([f"{round(listing.area_m2, 1):g} m²"] if listing.area_m2 is not None else [])
