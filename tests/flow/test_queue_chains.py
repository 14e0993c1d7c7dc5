"""A chain that its caller names: everything that follows carries that one id, and it can be traced by that name."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadMessage
from penstock.model.ids import as_text, correlation_of
from penstock.queues.external import Outgoing, PushRequest
from penstock.queues.queue import Queue
from penstock.testing import TestApp, virtual
from penstock.views import trace as tracing
from tests.flow.shop import Listing, Photo, shop_app

OWN = "5f0c954e-6a3c-4f1e-9a52-0a6a3a1c9d11"
CYCLE = "brand-cycle-acme-2026-11-15-x7f3"

Seen = list[tuple[str, str, str | None]]  # name, correlation, causation


def chained() -> tuple[ps.App, Queue[Any], Seen]:
    """Each listing leads to a photo; what both carry is noted."""
    seen: Seen = []

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        seen.append((listing.name, message.correlation_id, message.causation_id))
        listings.send(Photo(name=f"photo of {listing.name}"))

    async def keep(photo: Photo, message: ps.Message[Photo]) -> None:
        seen.append((photo.name, message.correlation_id, message.causation_id))

    app, listings = shop_app(handle)
    listings.handler(Photo)(keep)
    return app, listings, seen


@pytest.mark.spec("A2-02", "A2-06")
@virtual
async def test_a_callers_correlation_id_is_inherited_by_all_that_follows() -> None:
    app, listings, seen = chained()
    async with TestApp(app) as shop:
        first = await shop.send(listings, Listing(name="a"), correlation=OWN)
        await shop.send(listings, Listing(name="b"))
        await shop.drain()

        told = {name: (correlation, cause) for name, correlation, cause in seen}
        assert told["a"] == (OWN, None)
        assert told["photo of a"] == (OWN, first)
        assert told["b"][0] == told["photo of b"][0] != OWN


@pytest.mark.spec("A2-02", "G4-05")
@virtual
async def test_any_text_names_a_chain_and_two_texts_name_two() -> None:
    app, listings, seen = chained()
    async with TestApp(app) as shop:
        async with shop.unit():
            listings.send_all([Listing(name=name) for name in "abc"], correlation=CYCLE)
            listings.send_batch([Outgoing(payload=Listing(name="own"), correlation="another"), Listing(name="d")])
        await shop.drain()

        chains = {name: correlation for name, correlation, _ in seen}
        assert len({chains[name] for name in ("a", "b", "c", "photo of a", "photo of b", "photo of c")}) == 1
        assert chains["a"] == as_text(correlation_of(CYCLE))
        assert chains["own"] == chains["photo of own"] == as_text(correlation_of("another"))
        assert len({chains["a"], chains["own"], chains["d"]}) == 3
        engine = await app._opened()
        await engine.history.flush()
        found = await tracing.trace(app.db, engine.history, correlation_of(CYCLE), now=engine.clock.now())
        assert found is not None
        assert len(found.events) == 6


@pytest.mark.spec("A12-04")
@virtual
async def test_what_waits_of_a_named_chain_is_found_among_more_than_a_look_goes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "SCANNED", 50)

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if listing.name == "first":
            listings.send(Photo(name="waits"), delay=3_600)
            listings.send(Photo(name="dies"))

    async def keep(_photo: Photo) -> None:
        raise ps.Gone

    app, listings = shop_app(handle)
    listings.handler(Photo)(keep)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="first"), correlation=CYCLE)
        await shop.advance(seconds=5)
        async with shop.unit():
            listings.send_all((Photo(name=str(number)) for number in range(100)), delay=600)
        await shop.advance(seconds=601)  # the newest of what waits, and of what is dead, are not of this chain
        async with shop.unit():
            listings.send_all((Listing(name=str(number)) for number in range(100)), delay=600)
        engine = await app._opened()
        await engine.history.flush()

        found = await tracing.trace(app.db, engine.history, correlation_of(CYCLE), now=engine.clock.now())
        assert found is not None
        told = sorted((each.depth, each.name, each.status) for each in found.events)
        assert told == [(0, "listing", "acked"), (1, "photo", "dead"), (1, "photo", "delayed")]


@pytest.mark.spec("A2-06")
@virtual
async def test_a_handler_may_begin_a_chain_of_its_own_and_its_cause_stays_known() -> None:
    seen: Seen = []

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        seen.append((listing.name, message.correlation_id, message.causation_id))
        if listing.name == "week":
            for brand in ("acme", "zeta"):
                listings.send(Listing(name=brand), correlation=f"cycle of {brand}")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        week = await shop.send(listings, Listing(name="week"))
        await shop.drain()

        assert sorted(seen) == sorted(
            [
                ("week", week, None),
                ("acme", as_text(correlation_of("cycle of acme")), week),
                ("zeta", as_text(correlation_of("cycle of zeta")), week),
            ]
        )


@pytest.mark.spec("A2-01")
@virtual
async def test_an_envelope_from_outside_keeps_its_correlation_id() -> None:
    app, _, seen = chained()
    async with TestApp(app) as shop:
        desk = await app.desk()
        for correlation in (OWN, CYCLE, None):
            envelope = {"type": "listing", "payload": {"name": str(correlation)}, "correlation_id": correlation}
            await desk.push("listings", [PushRequest(body=envelope)])
        with pytest.raises(BadMessage, match="correlation_id"):
            await desk.push(
                "listings", [PushRequest(body={"type": "listing", "payload": {"name": "n"}, "correlation_id": 5})]
            )
        await shop.drain()

        chains = {name: correlation for name, correlation, _ in seen}
        assert chains[OWN] == chains[f"photo of {OWN}"] == OWN
        assert chains[CYCLE] == as_text(correlation_of(CYCLE))
        assert chains["None"] not in (OWN, chains[CYCLE])


@pytest.mark.parametrize("given", ["", "  ", 5, b"x" * 16])
@virtual
async def test_what_cannot_name_a_chain_is_refused_and_nothing_is_sent(given: object) -> None:
    app, listings = shop_app()
    async with TestApp(app) as shop:
        async with shop.unit():
            with pytest.raises(BadMessage, match="correlation"):
                listings.send(Listing(name="a"), correlation=given)  # type: ignore[arg-type]

        assert (await shop.counts(listings)).sent == 0
