"""What does not fit is refused where it is sent, and is a dead letter where it arrives; it never harms its worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

import penstock as ps
from penstock.model.envelope import Encoded
from penstock.model.errors import BadApp, BadMessage, TooLarge
from penstock.queues.batch import Batch
from penstock.queues.queue import Queue
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app
from tests.flow.tampering import tamper


@dataclass
class Plain:
    size: int


class Picky(ps.Event):
    size: int

    def __post_init__(self) -> None:
        if self.size == 13:
            raise KeyError("thirteen")


@pytest.mark.parametrize("batch", [False, True])
@virtual
async def test_a_body_whose_checksum_differs_is_not_delivered_whichever_of_them_changed(batch: bool) -> None:
    ran: list[int] = []

    async def handle(payload: Picky) -> None:
        ran.append(payload.size)

    async def handle_many(many: Batch[Picky]) -> None:
        ran.extend(each.body.size for each in many)

    app = ps.App("shop")
    queue = app.queue("sizes", Picky)
    if batch:
        queue.batch_handler(handle_many)
    else:
        queue.handler(handle)
    async with TestApp(app) as shop:
        for size in range(1, 5):
            await shop.send(queue, Picky(size=size))
        change = "update penstock_messages set {} where body = :body"
        tamper(app.database, change.format("checksum = 0"), body=b'{"size":1}')
        tamper(app.database, change.format("checksum = 4294967295"), body=b'{"size":2}')
        tamper(app.database, change.format("body = :other"), body=b'{"size":3}', other=b'{"size":7}')
        await shop.advance(minutes=10)

        assert ran == [4]
        dead = await shop.dead(queue)
        assert [(letter.reason, letter.error_class, letter.attempts) for letter in dead] == [
            ("corrupt", "DamagedBody", 0)
        ] * 3


@pytest.mark.spec("A2-13", "G4-11", "F-23")
@pytest.mark.parametrize(
    "body, error",
    [
        (b'{"size":"large"}', "ValidationError"),
        (b"{}", "ValidationError"),
        (b'{"size":', "DecodeError"),
        (b"\xff\xfe", "DecodeError"),
        (b"", "DecodeError"),
        (b'{"size":13}', "KeyError"),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
@virtual
async def test_a_body_that_does_not_fit_is_one_dead_letter_with_its_error_and_is_never_tried(
    body: bytes, error: str, batch: bool
) -> None:
    ran: list[object] = []

    async def handle(payload: object) -> None:
        ran.append(payload)

    async def handle_many(many: Batch[Picky]) -> None:
        ran.extend(each.body for each in many)

    app = ps.App("shop")
    queue = app.queue("sizes", Picky)
    if batch:
        queue.batch_handler(handle_many)
    else:
        queue.handler(Picky)(handle)
    async with TestApp(app) as shop:
        await shop.send(queue, cast(Any, Encoded("picky", body)))
        await shop.send(queue, Picky(size=1))
        await shop.advance(days=1)

        assert ran == [Picky(size=1)]
        [dead] = await shop.dead(queue)
        assert (dead.reason, dead.attempts, dead.error_class, dead.body) == ("malformed", 0, error, body)


@virtual
async def test_a_body_nested_too_deep_to_be_read_is_a_dead_letter_and_harms_no_other_message() -> None:
    async def handle(payload: list[object]) -> None:
        app.db.write(EFFECT, what=str(payload))

    app, _ = shop_app()
    queue: ps.Queue[Any] = app.queue("lists")
    queue.handler(list)(handle)
    async with TestApp(app) as shop:
        await shop.send(queue, Encoded("json", b"[" * 100_000 + b"]" * 100_000))
        await shop.send(queue, [1])
        await shop.drain()

        assert [dead.error_class for dead in await shop.dead(queue)] == ["RecursionError"]
        assert await effects(app) == ["[1]"]


@pytest.mark.spec("A2-14", "G4-11")
@pytest.mark.parametrize(
    "wrong, error",
    [
        (Photo(name=5), "BadMessage"),  # type: ignore[arg-type]
        (Plain(size="large"), "BadMessage"),  # type: ignore[arg-type]
        ({"a": object()}, "BadMessage"),
        (Listing(name="not accepted"), "BadMessage"),
        (Photo(name="x" * 2_000_000), "TooLarge"),
    ],
    ids=["wrong field", "wrong dataclass", "not plain", "not accepted", "too large"],
)
@virtual
async def test_a_handler_that_sends_an_unreadable_payload_is_dead_at_once_and_sends_nothing(
    wrong: Any, error: str
) -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what="a")
        photos.send(Photo(name="fine"))
        photos.send(wrong)

    app, listings = shop_app(handle)
    photos = app.queue("photos", Photo | Plain | dict[str, object])
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(days=1)

        assert shop.delivered(listings) == [attempt(1)]
        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.attempts, dead.error_class) == ("permanent", 1, error)
        assert (await shop.counts(photos)).sent == 0
        assert await effects(app) == []


@pytest.mark.spec("A2-01", "A2-14")
@virtual
async def test_a_sender_outside_hears_of_what_does_not_fit_and_nothing_is_sent() -> None:
    app = ps.App("shop")
    photos = app.queue("photos", Photo)
    async with TestApp(app) as shop:
        given: tuple[Any, ...] = (Photo(name=None), Listing(name="a"), "text", 7)  # type: ignore[arg-type]
        for wrong in given:
            with pytest.raises((BadMessage, BadApp)):
                await shop.send(photos, wrong)
        with pytest.raises(TooLarge):
            await shop.send(photos, Photo(name="x" * 1_000_000))
        with pytest.raises(BadMessage, match="is not an id"):
            await shop.send(photos, Photo(name="a"), id="seven")
        assert (await shop.counts(photos)).sent == 0


# -- answers that cannot be used ----------------------------------------------------------------------------------------


class Mute(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "answer",
    [ps.Later("soon"), ps.Discard(404), ps.Throttled(retry_after="5"), Mute()],  # type: ignore[arg-type]
)
async def test_an_answer_that_cannot_be_used_fails_its_message_and_not_the_worker(
    shop: TestApp, listings: Queue[Listing], answer: object
) -> None:
    shop.answers.append(answer)
    await shop.send(listings, Listing(name="a"))
    await shop.send(listings, Listing(name="b"))
    await shop.advance(minutes=1)

    assert shop.delivered(listings) == [attempt(1), attempt(1), attempt(2)]
    assert shop.workers_started == 1
