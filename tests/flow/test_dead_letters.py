"""Dead letters keep everything that is known about how a message ended, whatever its body, and can be found again."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import apsw
import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadMessage, NoSuchLetter
from penstock.queues import letters
from penstock.queues.letters import DeadLetterFilter
from penstock.queues.queue import Queue
from penstock.runtime.events import LettersAge, LettersPiledUp, MessageDied, MessagesExpired
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app
from tests.flow.test_envelopes import beside

COLUMNS = {
    *("event_id", "queue", "type", "source", "payload", "attempts", "failed_at", "replayed_at", "resolution"),
    *("id", "dlq", "correlation_id", "causation_id", "envelope", "error_class", "error_message", "first_failed_at"),
    *("replay_count", "reason"),
}


def dying_app(**settings: int | float) -> tuple[ps.App, Queue[Any]]:
    """Every listing dies of its own name."""

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        raise ps.Permanent(listing.name)

    return shop_app(handle, **settings)


# -- what a letter tells ------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-01", "A3-04", "G4-09")
@virtual
async def test_a_letter_names_its_origin_its_attempts_and_its_first_and_last_failure() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        raise ValueError(f"broken {message.attempt}")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        began = shop.now
        id = await shop.send(listings, Listing(name="a"))
        await shop.advance(hours=1)

        letter = await app.dead.get(id)
        assert (letter.queue, letter.dlq, letter.attempts, letter.reason) == (
            "listings",
            "listings-dlq",
            4,
            "exhausted",
        )
        assert (letter.error_class, letter.error_message) == ("ValueError", "broken 4")
        assert (letter.sent_at, letter.first_failed_at) == (began, began)
        assert letter.failed_at == began + timedelta(seconds=30 + 60 + 120)
        assert (letter.event_id, letter.correlation_id, letter.source, letter.type) == (id, id, "shop", "listing")
        assert app.dead.payload(letter) == Listing(name="a")
        assert letter == await app.dead.get(letter.id)


@pytest.mark.spec("A3-04", "G4-10")
@virtual
async def test_the_table_of_dead_messages_has_every_column_and_takes_any_body() -> None:
    async def refuse(_payload: bytes) -> None:
        raise ps.Permanent("no")

    app, _ = shop_app()
    raw: ps.Queue[Any] = app.queue("raw")
    raw.handler(bytes)(refuse)
    bodies = [b'{"a": 1}', b"no JSON", b"\xff\xfe\x00", b"", b'{"a":', b"null"]
    async with TestApp(app) as shop:
        for body in bodies:
            await shop.send(raw, body)
        await shop.drain()

        rows = await app.db.rows("select * from dead_messages order by id")
        assert set(rows[0].columns) >= COLUMNS
        assert [(row.queue, row.dlq, row.attempts, row.reason) for row in rows] == [
            ("raw", "raw-dlq", 1, "permanent")
        ] * 6
        assert [row.failed_at for row in rows] == ["2026-01-01T00:00:00Z"] * 6
        for row, body in zip(rows, bodies, strict=True):
            assert row.payload in (body.decode(errors="replace"), f"X'{body.hex().upper()}'")
        assert sorted(letter.body for letter in await app.dead.list()) == sorted(bodies)


@pytest.mark.spec("A3-04", "G4-10")
@virtual
async def test_a_body_that_is_json_but_for_its_bytes_can_be_read_from_the_table() -> None:
    app, _ = shop_app()
    raw: ps.Queue[Any] = app.queue("raw")

    @raw.handler(bytes)
    async def refuse(_payload: bytes) -> None:
        raise ps.Permanent("no")

    async with TestApp(app) as shop:
        await shop.send(raw, b'"\xff"')
        await shop.drain()
        assert await app.db.column("select payload from dead_messages") == ["X'22FF22'"]


@pytest.mark.spec("A3-04")
@virtual
async def test_what_was_caused_by_nothing_has_no_cause_in_the_table() -> None:
    app, listings = dying_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        assert await app.db.rows("select causation_id, replay_of from dead_messages") == [(None, None)]


@pytest.mark.spec("G4-10")
@virtual
async def test_one_id_that_dies_on_two_queues_is_two_letters() -> None:
    app, listings = dying_app()
    photos: ps.Queue[Any] = app.queue("photos")

    @photos.handler(Photo)
    async def refuse(_photo: Photo) -> None:
        raise ps.Permanent("no")

    id = "0190b8f0-1234-7abc-8def-0123456789ab"
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"), id=id)
        await shop.send(photos, Photo(name="a"), id=id)
        await shop.drain()

        assert sorted(letter.queue for letter in await app.dead.list()) == ["listings", "photos"]


# -- finding and grouping -------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-08")
@virtual
async def test_letters_are_found_by_queue_type_source_reason_time_and_text() -> None:
    app, listings = dying_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="early bird"))
        await shop.advance(hours=1)
        noon = shop.now
        await shop.send(listings, Listing(name="late"))
        await shop.send(listings, Photo(name="late too"))
        await shop.advance(hours=1)

        async def found(which: DeadLetterFilter) -> list[str]:
            return [letter.body.decode() for letter in await app.dead.list(which)]

        everything = await found(DeadLetterFilter())
        assert [body.split('"')[3] for body in everything] == ["early bird", "late", "late too"]
        assert (
            await found(DeadLetterFilter(queue="listings"))
            == await found(DeadLetterFilter(queue="listings-dlq"))
            == everything
        )
        assert await found(DeadLetterFilter(queue="photos")) == []
        assert await found(DeadLetterFilter(type="photo")) == everything[2:]
        assert await found(DeadLetterFilter(source="shop", reason="unknown_type")) == everything[2:]
        assert await found(DeadLetterFilter(source="elsewhere")) == []
        assert await found(DeadLetterFilter(since=noon)) == everything[1:]
        assert await found(DeadLetterFilter(until=noon)) == everything[:1]
        assert await found(DeadLetterFilter(text="BIRD")) == everything[:1]
        assert await found(DeadLetterFilter(text="no handler")) == everything[2:]
        assert len(await app.dead.list(limit=2)) == 2
        with pytest.raises(NoSuchLetter, match="dead list"):
            await app.dead.get(77)


@pytest.mark.parametrize("wrong", ["019a8c3e", ["1"], [True], 1.5])
@virtual
async def test_what_is_not_a_number_of_a_letter_is_refused(wrong: Any) -> None:
    app, listings = dying_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="lamp"))
        await shop.advance(hours=1)
        [letter] = await shop.dead(listings)

        for call in (app.dead.replay(wrong), app.dead.discard(wrong, "no"), app.dead.mark_fixed(wrong, "done")):
            with pytest.raises(NoSuchLetter, match="is not the number of a dead letter"):
                await call
        assert await app.dead.replay(letter.id) == 1


@pytest.mark.spec("A3-11")
@virtual
async def test_the_last_day_is_reported_as_counts_by_queue_type_and_cause() -> None:
    app, listings = dying_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="of old"))
        await shop.advance(days=1, seconds=1)
        for name in ("page 1", "page 2", "page 3"):
            await shop.send(listings, Listing(name=name))
        await shop.send(listings, Photo(name="d"))
        await shop.advance(seconds=1)
        await app.dead.discard(DeadLetterFilter(text='"page 3"'), "not counted any more")

        groups = await app.dead.groups(DeadLetterFilter(since=shop.now - timedelta(days=1)))
        assert [(each.queue, each.type, each.reason, each.error_class, each.letters) for each in groups] == [
            ("listings", "listing", "permanent", "Permanent", 2),
            ("listings", "photo", "unknown_type", "UnknownType", 1),
        ]
        assert groups[0].message == "page N"
        assert groups[0].examples == ["page 1 (1)", "page 2 (1)"]
        assert sum(each.letters for each in await app.dead.groups()) == 4


@virtual
async def test_a_letter_is_dealt_with_for_a_reason() -> None:
    app, listings = dying_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        for empty in ("", "  "):
            with pytest.raises(BadMessage, match="Give a reason"):
                await app.dead.discard(1, empty)
        assert (await shop.counts(listings)).dead == 1


# -- types that nobody knows ------------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-16", "G4-11")
@virtual
async def test_an_unknown_type_is_parked_reported_with_its_id_and_handled_once_a_handler_exists() -> None:
    died: list[MessageDied] = []
    app, listings = dying_app()
    app.events.subscribe(died.append, to=MessageDied)
    async with TestApp(app) as shop:
        id = await shop.send(listings, Photo(name="a"), id="0190b8f0-1234-7abc-8def-0123456789ab")
        await shop.advance(days=1)
        assert [(each.type, each.id, each.reason) for each in died] == [("photo", id, "unknown_type")]
        assert await app.db.rows("select event_id from processed_events") == []

        @listings.handler(Photo)
        async def photo(photo: Photo) -> None:
            app.db.write(EFFECT, what=photo.name)

        await shop.restart()
        assert await app.dead.replay(DeadLetterFilter(reason="unknown_type")) == 1
        await shop.drain()

        assert await effects(app) == ["a"]
        assert (await shop.counts(listings)).acked == 1


@pytest.mark.spec("A2-16")
@virtual
async def test_a_type_that_another_live_worker_knows_is_left_to_it_and_loses_no_attempt() -> None:
    ran: list[tuple[str, int]] = []
    old, listings = dying_app()
    new = ps.App("shop")
    theirs: ps.Queue[Any] = new.queue("listings")

    @theirs.handler(Photo)
    async def photo(photo: Photo, message: ps.Message[Photo]) -> None:
        ran.append((photo.name, message.attempt))

    async with TestApp(old, tick_seconds=1.0) as shop:
        await beside(shop, new, tick_seconds=1.0)
        for number in range(20):
            await shop.send(listings, Photo(name=f"{number:02}"))
        await shop.advance(minutes=10)

        assert sorted(ran) == [(f"{number:02}", 1) for number in range(20)]
        assert await shop.dead(listings) == []


@pytest.mark.spec("A2-16")
@virtual
async def test_once_the_worker_that_knew_a_type_is_gone_its_messages_are_parked() -> None:
    old, listings = dying_app()
    new = ps.App("shop")
    theirs: ps.Queue[Any] = new.queue("listings")

    @theirs.handler(Photo)
    async def photo(_photo: Photo) -> None: ...

    async with TestApp(old) as shop:
        await beside(shop, new)
        new.stop()
        await shop.advance(minutes=1)
        await shop.send(listings, Photo(name="a"))
        await shop.advance(minutes=1)

        assert [dead.reason for dead in await shop.dead(listings)] == ["unknown_type"]


# -- growing old and piling up ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-02")
@pytest.mark.parametrize("watched", [False, True])
@virtual
async def test_letters_without_a_handler_expire_after_four_days_with_a_warning_after_three(watched: bool) -> None:
    async def handle(listing: Listing) -> None:
        raise ps.Permanent(listing.name)

    app = ps.App("shop", config=parse('profile = "cloudflare"', "penstock.toml"))
    listings: ps.Queue[Any] = app.queue("listings", batch=1, batch_wait=0)
    listings.handler(Listing)(handle)
    if watched:

        @listings.dead_letter_handler
        async def hear(_letter: ps.DeadLetter) -> None: ...

    warned: list[tuple[float, str, int]] = []
    expired: list[tuple[float, int]] = []
    alerts: list[str] = []

    def days() -> float:
        return (shop.now - began).total_seconds() / 86_400

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        alerts.append(alert.kind)

    app.events.subscribe(lambda event: warned.append((days(), event.queue, event.letters)), to=LettersAge)
    app.events.subscribe(lambda event: expired.append((days(), event.dead)), to=MessagesExpired)
    async with TestApp(app) as shop:
        began = shop.now
        for name in "ab":
            await shop.send(listings, Listing(name=name))
        await shop.advance(days=2.9)
        assert (warned, expired) == ([], [])
        await shop.advance(days=0.2)
        assert [told[1:] for told in warned] == ([] if watched else [("listings", 2)])
        await shop.advance(days=0.8)
        assert (await shop.counts(listings)).dead == 2
        await shop.advance(days=0.2)

        counts = await shop.counts(listings)
        assert (counts.dead, counts.expired) == ((2, 0) if watched else (0, 2))
        assert len(warned) == (0 if watched else 1)
        if not watched:
            assert 3 <= warned[0][0] < 3.05
            [(when, how_many)] = expired
            assert how_many == 2
            assert 4 <= when < 4.001
            assert alerts.count("letters.aged") == 1


@pytest.mark.only_on("sqlite")
@pytest.mark.fault("F28")
@virtual
async def test_more_than_a_thousand_letters_of_one_queue_raise_one_alarm_until_they_are_dealt_with() -> None:
    app, _ = dying_app()
    piled: list[LettersPiledUp] = []
    app.events.subscribe(piled.append, to=LettersPiledUp)
    async with TestApp(app) as shop:
        await seed(shop, "listings", 1_001)
        await shop.advance(hours=5)
        assert [(each.queue, each.letters, each.letters_max) for each in piled] == [("listings", 1_001, 1_000)]

        await app.dead.discard(DeadLetterFilter(), "all the same", limit=600)
        await shop.advance(hours=2)
        await seed(shop, "listings", 700)
        await shop.advance(hours=2)
        assert [each.letters for each in piled] == [1_001, 1_101]


async def seed(shop: TestApp, queue: str, count: int) -> None:
    """Puts letters into the database as if as many messages had died."""
    writer = shop._outside.writer
    session = writer._session  # type: ignore[attr-defined]

    def insert() -> None:
        session.connection.execute(SEED, {"queue": queue, "count": count, "now": shop._outside.clock.now()})
        added = {"queue": queue, "worker": writer.workers.me, "count": count}
        session.connection.execute(SEED_COUNTS, added)

    session.transact(insert)


SEED = """
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < :count)
insert into penstock_dead (
  id, handler, queue, priority, type, source, correlation_id, hops, depth, sent_at, checksum, body, flags, replay_count,
  attempts, crashes, reason, error_class, error_message, failed_at
)
select
  randomblob(16), '', :queue, 1, 'listing', 'shop', randomblob(16), 0, 0, :now, 0,
  cast('{"name":"' || n || printf('%.500c', 'x') || '"}' as blob), 0, 0, 4, 0, 'exhausted', 'Error' || (n % 5),
  'it broke', :now + n
from numbers
"""
SEED_COUNTS = """
insert into penstock_counters (queue, worker, sent, dead)
values (:queue, :worker, :count, :count)
on conflict (queue, worker) do update set sent = sent + :count, dead = dead + :count
"""


@pytest.mark.only_on("sqlite")
@pytest.mark.fault("F28")
@virtual
async def test_a_hundred_thousand_letters_are_listed_grouped_and_replayed_in_bounded_portions(
    note: Callable[[str], None],
) -> None:
    count = 100_000
    app, _ = dying_app()
    async with TestApp(app) as shop:
        await seed(shop, "listings", count)
        took: list[str] = []

        async def timed(what: str, work: object) -> object:
            began = time.perf_counter()
            result = await work  # type: ignore[misc]
            took.append(f"{what} {1_000 * (time.perf_counter() - began):.0f} ms")
            return result

        of_queue = DeadLetterFilter(queue="listings")
        assert len(await timed("list 100", app.dead.list(of_queue))) == 100  # type: ignore[arg-type]
        assert len(await timed("list 100 of all", app.dead.list())) == 100  # type: ignore[arg-type]
        assert len(await app.dead.list(limit=10**9)) == letters.LISTED_MAX
        groups = await timed("group", app.dead.groups())
        assert [each.letters for each in groups] == [count // 5] * 5  # type: ignore[attr-defined]
        assert await timed("replay 10", app.dead.replay(of_queue)) == 10
        assert await timed("discard 10,000", app.dead.discard(of_queue, "a flood")) == letters.LISTED_MAX
        note(f"with {count:,} dead letters: {', '.join(took)}")


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@pytest.mark.fault("F28")
@virtual
async def test_a_thousand_letters_that_still_fail_end_where_they_began_and_stop_after_three_rounds() -> None:
    app, listings = dying_app()
    async with TestApp(app) as shop:
        await seed(shop, "listings", 1_000)
        for replayed in (1_000, 1_000, 1_000, 0):
            assert await app.dead.replay(DeadLetterFilter(queue="listings"), limit=10_000, rate=100) == replayed
            await shop.advance(minutes=1)
            assert (await shop.counts(listings)).dead == 1_000

        assert len(shop.delivered(listings)) == 3_000
        assert set(shop.delivered(listings)) == {attempt(1)}


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("statement", [letters.LIST_OF_QUEUE, letters.PICK_OF_QUEUE])
@virtual
async def test_the_oldest_letters_of_a_queue_are_found_through_the_index(statement: str) -> None:
    app, _ = dying_app()
    async with TestApp(app):
        connection = apsw.Connection(app.database)
        try:
            bound = DeadLetterFilter(queue="listings").bound() | {"replays_under": 3}
            plan = [row[3] for row in connection.execute(f"explain query plan {statement}", bound)]
        finally:
            connection.close()
        assert plan[0].startswith("SEARCH penstock_dead USING INDEX penstock_dead_unresolved (queue=?")
        # Only where a text is looked for is each letter read once more, by its number; nothing is sorted.
        assert plan[1:] == ["CORRELATED SCALAR SUBQUERY 1", "SEARCH penstock_dead USING INTEGER PRIMARY KEY (rowid=?)"]
