"""Sending: one message, many, spread over time, of every content type; and what all of it is metered as."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.envelope import ANY_JSON, Encoded
from penstock.model.errors import BadMessage
from penstock.queues.queue import Queue
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import Listing, shop_app


def platform(payload_type: Any = ANY_JSON, **queue: Any) -> tuple[ps.App, Queue[Any]]:
    app = ps.App("shop", config=parse('profile = "cloudflare"', "penstock.toml"))
    return app, app.queue("listings", payload_type, **{"batch_wait": 0, **queue})


@dataclass(frozen=True)
class Parcel:
    weight: float


class Letter(msgspec.Struct, frozen=True):
    pages: int


TAGGED = {
    "at": datetime(2026, 5, 17, 8, 30, tzinfo=UTC),
    "body": b"\x00\xff",
    "tags": {1, 2, 3},
    "frozen": frozenset({"a"}),
    "nested": [None, True, 2**70, -1.5, "ö"],
}


@pytest.mark.spec("A1-02", "G4-37")
@pytest.mark.parametrize("how", ["single", "batch"])
@pytest.mark.parametrize(
    "payload, name",
    [
        ({"a": [1, None, "ö"]}, "json"),
        ([1, 2.5, True], "json"),
        ("grüße", "text"),
        ("", "text"),
        (b"\x00\xff\xfe", "bytes"),
        (b"", "bytes"),
        (ps.Typed(TAGGED), "v8"),
        (Listing(name="a"), "listing"),
        (Parcel(weight=1.5), "parcel"),
        (Letter(pages=3), "letter"),
    ],
)
@virtual
async def test_every_content_type_comes_back_as_it_was_sent(payload: object, name: str, how: str) -> None:
    seen: list[tuple[object, str]] = []

    async def handle(given: object, message: ps.Message[object]) -> None:
        seen.append((given, message.type))

    async def take(batch: ps.Batch[Listing]) -> None:
        seen.extend((message.body, message.type) for message in batch)

    typed = name not in ("json", "text", "bytes", "v8")
    app, listings = platform(type(payload) if typed else ANY_JSON)
    if how == "batch":
        listings.batch_handler(take)
    else:
        kind: Any = type(payload)
        listings.handler(kind)(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, payload)
        await shop.advance()

        assert seen == [(payload, name)]
        assert type(seen[0][0]) is type(payload)


@pytest.mark.spec("G4-37")
@pytest.mark.parametrize("how", ["single", "batch"])
@virtual
async def test_a_hostile_tagged_body_is_a_dead_letter_and_nothing_of_it_runs(how: str) -> None:
    async def handle(given: object) -> None: ...

    hostile = b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."
    app, listings = platform()
    if how == "batch":
        listings.batch_handler(handle)
    else:
        listings.handler(ps.Typed)(handle)
    async with TestApp(app) as shop:
        for body in (hostile, b"", b"\xc1\x01", b"\xc1\x01\xdf\xff\xff\xff\xff"):
            await shop.send(listings, Encoded("v8", body))
        await shop.advance(hours=1)

        assert [dead.reason for dead in await shop.dead(listings)] == ["malformed"] * 4
        assert shop.delivered(listings) == []


@pytest.mark.spec("A1-03")
@virtual
async def test_a_batch_has_a_delay_that_its_messages_may_differ_from() -> None:
    app, listings = platform()
    async with TestApp(app) as shop:
        async with shop.unit():
            ids = listings.send_batch(
                ["a", ps.Outgoing(payload="b", delay=5), ps.Outgoing(payload="c", delay=0)], delay=60
            )
        delays = await app.db.rows("select body, due - sent_at as delay from penstock_messages order by seq")

        assert [(bytes(row.body), row.delay) for row in delays] == [(b"a", 60_000_000), (b"b", 5_000_000), (b"c", 0)]
        assert len(set(ids)) == 3


@pytest.mark.spec("A1-04", "G4-16")
def test_messages_are_split_into_as_few_batches_as_their_number_and_size_allow() -> None:
    _, listings = platform()

    def sizes(items: list[str]) -> list[int]:
        return [len(chunk) for chunk in listings.chunks(items)]

    assert sizes(["x"] * 250) == [100, 100, 50]
    assert sizes(["x" * 60_000] * 10) == [4, 4, 2]
    assert sizes(["x" * 127_900] * 4) == [2, 2]
    assert sizes(["x" * 127_901] * 4) == [1, 1, 1, 1]
    assert sizes(["x" * 100_000, *["x"] * 100, "x" * 120_000]) == [100, 2]
    assert sizes([]) == []


@pytest.mark.spec("A1-04", "G4-16")
@virtual
async def test_250_keywords_are_all_sent_with_their_own_ids() -> None:
    app, listings = platform()
    async with TestApp(app) as shop:
        async with shop.unit():
            ids = listings.send_all(f"keyword {number}" for number in range(250))
        assert len(set(ids)) == (await shop.counts(listings)).ready == 250


@pytest.mark.spec("A1-20")
@virtual
async def test_a_stagger_of_a_minute_delivers_at_0_60_and_120_seconds() -> None:
    async def handle(_text: str) -> None: ...

    app, listings = platform()
    listings.handler(str)(handle)
    async with TestApp(app) as shop:
        start = shop.now
        async with shop.unit():
            listings.send_all("abc", every=60)
            listings.send("low", delay=3_600, priority=2)
        await shop.advance(hours=2)

        at = [(each.at - start).total_seconds() for each in shop.delivered(listings) if each.at is not None]
        assert at == [0, 60, 120, 3_600]


@pytest.mark.spec("A1-21")
@virtual
async def test_a_hundred_items_at_five_a_second_have_five_to_each_delay_from_0_to_19() -> None:
    app, listings = platform()
    async with TestApp(app) as shop:
        async with shop.unit():
            listings.send_all(map(str, range(100)), rate=5)
            listings.send_all(["later"] * 6, rate=5, delay=100)
        rows = await app.db.rows("select body, (due - sent_at) / 1000000.0 as delay from penstock_messages")

        delays = Counter(row.delay for row in rows)
        assert delays == {**dict.fromkeys(range(20), 5), 100: 5, 101: 1}
        assert {bytes(row.body) for row in rows if row.delay == 19} == {b"95", b"96", b"97", b"98", b"99"}


@pytest.mark.parametrize("spread", [{"every": -1}, {"rate": 0}, {"every": 1, "rate": 1}, {"every": 86_401}])
@virtual
async def test_a_spread_that_makes_no_sense_sends_nothing(spread: dict[str, Any]) -> None:
    app, listings = platform()
    async with TestApp(app) as shop:
        async with shop.unit():
            with pytest.raises(BadMessage):
                listings.send_all(["a", "b"], **spread)
        assert (await shop.counts(listings)).sent == 0


# -- deliveries and retries -----------------------------------------------------------------------------------


@pytest.mark.spec("A1-14", "G4-13", "G7-10")
@virtual
async def test_the_back_off_doubles_from_30_seconds_to_ten_minutes() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise OSError

    app, listings = shop_app(handle, retries=8)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(hours=3)

        at = [each.at for each in shop.delivered(listings) if each.at is not None]
        gaps = [(after - before) / timedelta(seconds=1) for before, after in itertools.pairwise(at)]
        assert gaps == [30, 60, 120, 240, 480, 600, 600, 600]


@pytest.mark.spec("A1-13", "G4-13")
@pytest.mark.parametrize("how", ["single", "batch"])
@pytest.mark.parametrize("retries", [None, 0, 1, 7])
@virtual
async def test_a_message_is_delivered_once_and_as_often_again_as_was_said_and_then_dead(
    how: str, retries: int | None
) -> None:
    async def handle(_given: object) -> None:
        raise OSError

    app, listings = platform(Listing, retries=retries)
    listings.batch_handler(handle) if how == "batch" else listings.handler(Listing)(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(hours=6)

        deliveries = 4 if retries is None else retries + 1
        assert shop.delivered(listings) == [attempt(number) for number in range(1, deliveries + 1)]
        assert [(dead.reason, dead.attempts) for dead in await shop.dead(listings)] == [("exhausted", deliveries)]


@pytest.mark.spec("A1-06")
@virtual
async def test_a_retry_with_a_delay_waits_so_long_and_counts_an_attempt() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        if message.attempts < 3:
            message.retry(delay=86_400 if message.attempts == 1 else 0)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=86_399)
        assert len(shop.delivered(listings)) == 1
        await shop.advance(seconds=1)
        assert shop.delivered(listings) == [attempt(1), attempt(2), attempt(3)]


@pytest.mark.spec("A1-28", "A3-01", "A3-10")
@virtual
async def test_a_dead_letter_queue_that_is_not_declared_exists() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> object:
        return ps.Discard("sold")

    heard: list[str] = []

    async def hear(letter: ps.DeadLetter) -> None:
        heard.append(letter.dlq)

    app, listings = shop_app(handle)
    listings.dead_letter_handler(hear)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=1)

        assert heard == ["listings-dlq"]
        assert "listings-dlq" in await app.db.column("select name from penstock_queues")


# -- metering -------------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-26")
@pytest.mark.parametrize(
    "size, parts", [(1, 1), (63_999, 1), (64_000, 1), (64_001, 2), (127_900, 2), (128_000, 2), (128_001, 3)]
)
@virtual
async def test_each_part_of_64_kb_is_written_read_and_deleted_once(size: int, parts: int) -> None:
    async def handle(_body: bytes) -> None: ...

    app = ps.App("shop")
    bodies: ps.Queue[Any] = app.queue("bodies", bytes)
    bodies.handler(bytes)(handle)
    async with TestApp(app) as shop:
        for _ in range(4):
            async with app.unit():
                bodies.send(b"x" * size)
        await shop.advance(seconds=30)

        used = await app.db.usage()
        assert used.total.queue_operations == 4 * 3 * parts
        assert used.bill.line("queue_operations").used == 4 * 3 * parts
        by_queue = await app.db.rows("select task, executions from penstock_usage where statement like 'penstock:%'")
        assert [(row.task, row.executions) for row in by_queue] == [("queue:bodies", 12 * parts)]


@pytest.mark.spec("A1-26")
@virtual
async def test_each_retry_is_one_more_read_and_a_dead_letter_one_more_write() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise OSError

    app, listings = shop_app(handle, retries=2)
    async with TestApp(app) as shop:
        async with app.unit():
            listings.send(Listing(name="a"))
        await shop.advance(hours=1)

        # One write, three reads, and the move to the dead letters.
        assert (await app.db.usage()).total.queue_operations == 5


@virtual
async def test_an_id_and_a_unique_key_are_not_given_together() -> None:
    app, listings = platform()
    async with TestApp(app) as shop:
        with pytest.raises(BadMessage, match="Give an `id` or a `unique` key, not both"):
            await shop.send(listings, {"a": 1}, id="0" * 32, unique="a")
        with pytest.raises(BadMessage, match=r"unique=7 is not a key: give text"):
            await shop.send(listings, {"a": 1}, unique=7)  # type: ignore[arg-type]
        assert (await shop.counts(listings)).sent == 0
