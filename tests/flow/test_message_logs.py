"""Each step of a message's life can be a line in the log, with the same fields throughout."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.runtime.events import EngineEvent
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing, shop_app

FIELDS = {"action", "event_id", "type", "source", "correlation_id", "attempt", "queue_timestamp", "processing_delay_ms"}


@pytest.mark.spec("A12-01")
@pytest.mark.spec("G4-13")
@virtual
async def test_every_line_about_a_message_has_the_agreed_fields_and_only_the_last_will_not_retry() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise OSError("the shop is closed")

    app, listings = shop_app(handle)
    lines: list[dict[str, Any]] = []

    def note(event: EngineEvent) -> None:
        if event.name in ("message.received", "message.failed", "message.settled"):
            lines.append({"name": event.name, **event.facts()})

    app.events.subscribe(note)
    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="lamp"))
        await shop.advance(hours=1)

    assert {line["name"] for line in lines} == {"message.received", "message.failed", "message.settled"}
    for line in lines:
        assert line.keys() >= FIELDS
        assert line["event_id"] == line["correlation_id"] == id
        assert line["queue_timestamp"].endswith("Z")
    settled = [line for line in lines if line["name"] == "message.settled"]
    assert [(line["attempt"], line["will_retry"]) for line in settled] == [(1, True), (2, True), (3, True), (4, False)]
    failed = [line for line in lines if line["name"] == "message.failed"]
    assert [(line["attempt"], line["will_retry"]) for line in failed] == [(1, True), (2, True), (3, True), (4, False)]
    assert [line["processing_delay_ms"] for line in failed] == pytest.approx([0, 30_000, 90_000, 210_000], abs=1)


@pytest.mark.spec("A12-01")
@virtual
async def test_each_message_of_a_batch_has_lines_of_its_own() -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=3, retries=0)
    lines: list[tuple[str, str, bool | None]] = []

    @listings.batch_handler
    async def handle(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            async with message:
                if message.body.name == "b":
                    raise OSError("sold out")

    def note(event: EngineEvent) -> None:
        if event.name in ("message.received", "message.settled"):
            facts = event.facts()
            lines.append((event.name, facts["event_id"], facts.get("will_retry")))

    app.events.subscribe(note)
    async with TestApp(app) as shop:
        async with shop.unit():
            ids = listings.send_batch([Listing(name=name) for name in "abc"])
        await shop.drain()

    assert sorted(lines) == sorted(
        [("message.received", id, None) for id in ids] + [("message.settled", id, False) for id in ids]
    )
