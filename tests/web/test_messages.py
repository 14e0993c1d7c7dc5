"""Queues over HTTP: what is pushed is there once, what is pulled is leased, what is acknowledged is gone."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime

import apsw
import pytest

import penstock as ps
from penstock.model import tagged
from penstock.model.errors import BadMessage
from penstock.queues.external import PushRequest
from penstock.storage.sqlite.session import SqliteSession
from penstock.testing import TestApp
from tests.web.outside import jobs, outside, shop_app, stored, unpacked

# -- push -------------------------------------------------------------------------------------------------


@pytest.mark.spec("A14-02")
async def test_a_pushed_object_arrives_as_an_object(shop: TestApp) -> None:
    async with outside(shop) as client:
        pushed = (await client.push({"a": [1, None, "é"]}, content_type="json")).result
        (message,) = await client.pull()

    assert unpacked(message) == {"a": [1, None, "é"]}
    assert message["id"] == pushed["id"] == pushed["ids"][0]
    assert message["metadata"]["CF-Content-Type"] == "json"
    assert message["attempts"] == 1
    assert message["timestamp_ms"] == int(shop.now.timestamp() * 1_000)
    assert pushed["duplicate"] is False
    assert pushed["metadata"]["metrics"]["backlog_count"] == 1
    assert pushed["metadata"]["metrics"]["backlog_bytes"] > 0
    assert pushed["metadata"]["metrics"]["oldest_message_timestamp_ms"] == message["timestamp_ms"]


@pytest.mark.spec("A1-02")
async def test_each_content_type_comes_back_as_it_was(shop: TestApp) -> None:
    value = {"at": datetime(2026, 11, 15, tzinfo=UTC), "raw": b"\0", "seen": {1, 2}}
    async with outside(shop) as client:
        await client.push("plain é", content_type="text")
        await client.push(base64.b64encode(b"\0\xff").decode(), content_type="bytes")
        await client.push(base64.b64encode(tagged.encode(value)).decode(), content_type="v8")
        text, raw, v8 = await client.pull()

    assert (text["metadata"]["CF-Content-Type"], text["body"]) == ("text", "plain é")
    assert (raw["metadata"]["CF-Content-Type"], unpacked(raw)) == ("bytes", b"\0\xff")
    assert (v8["metadata"]["CF-Content-Type"], tagged.decode(unpacked(v8))) == ("v8", value)


@pytest.mark.spec("G4-41", "A14-02")
async def test_an_object_in_a_string_is_decoded_once_with_a_warning(shop: TestApp) -> None:
    twice = json.dumps(json.dumps({"a": 1}))
    async with outside(shop) as client:
        told = (await client.push(json.dumps({"a": 1}), content_type="json")).told
        plain = (await client.push("just text")).told
        again = (await client.push(json.dumps([twice]))).told
        broken = (await client.push("{not json")).told
        messages = await client.pull()

    assert [unpacked(message) for message in messages] == [{"a": 1}, "just text", [twice], "{not json"]
    assert "decoded once" in told["messages"][0]["message"]
    assert len(again["messages"]) == 1
    assert plain["messages"] == broken["messages"] == []


async def test_a_typed_queue_takes_its_payload_and_names_what_does_not_fit(shop: TestApp) -> None:
    async with outside(shop) as client:
        assert (await client.push({"item": "lamp"}, queue="orders")).status == 200
        enveloped = {"type": "order.placed", "payload": {"item": "bed", "count": 2}}
        assert (await client.push(enveloped, queue="orders")).status == 200
        wrong = await client.push({"item": 5}, queue="orders")
        other = await client.push({"type": "order.lost", "payload": {}}, queue="orders")
        pulled = await client.pull(queue="orders")

    assert (wrong.status, other.status) == (422, 422)
    assert "item" in wrong.words
    assert "order.placed" in other.words
    assert [unpacked(message)["item"] for message in pulled] == ["lamp", "bed"]
    assert {message["metadata"]["type"] for message in pulled} == {"order.placed"}


class Sold(ps.Event, type="sold"):
    item: str


class Refunded(ps.Event, type="refunded"):
    item: str


@pytest.mark.parametrize(
    "queue, body, content_type, why",
    [
        ("either", {"item": "a"}, "json", "needs an envelope with `type` and `payload`; it accepts sold, refunded."),
        ("either", {"type": "lamp", "payload": {}}, "json", "does not accept 'lamp'; it accepts sold, refunded."),
        ("either", "a", "text", "takes no text; it accepts sold, refunded."),
        ("either", {"type": 5, "payload": {}}, "json", "needs `type`, `event_id` and `correlation_id` to be text"),
        ("jobs", {"type": "a", "payload": 1, "event_id": 5}, "json", "`event_id` and `correlation_id` to be text"),
        ("jobs", {"type": "text", "payload": "a"}, "json", "takes no envelope around text: give it as content_type"),
        ("jobs", {"item": "a"}, "text", "needs text where that is declared; it accepts anything."),
        ("jobs", "a", "xml", "is 'xml'; it can be bytes, json, text, v8."),
    ],
)
async def test_a_body_that_its_queue_does_not_take_is_refused_with_what_it_takes(
    shop: TestApp, queue: str, body: object, content_type: str, why: str
) -> None:
    shop.app.queue("either", Sold | Refunded)
    desk = await shop.app.desk()
    with pytest.raises(BadMessage) as refused:
        await desk.push(queue, [PushRequest(body=body, content_type=content_type)])

    assert "messages[0]" in str(refused.value)
    assert why in str(refused.value)
    assert await stored(shop) == 0


@pytest.mark.spec("A1-02", "A14-02")
async def test_a_delayed_message_is_invisible_until_it_is_due(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("later", delay_seconds=60)
        await client.batch([{"body": "batch"}, {"body": "own", "delay_seconds": 30}], delay_seconds=60)
        await shop.advance(seconds=59)
        early = await client.pull()
        await shop.advance(seconds=1)
        due = await client.pull()

    assert [unpacked(message) for message in early] == ["own"]
    assert sorted(unpacked(message) for message in due) == ["batch", "later"]


async def test_a_batch_is_stored_whole_or_not_at_all(shop: TestApp) -> None:
    async with outside(shop) as client:
        good = await client.batch([{"body": 1}, {"body": "two", "content_type": "text"}])
        bad = await client.batch([{"body": 3}, {"body": 4, "content_type": "text"}])
        typed = await client.batch([{"body": {"item": "lamp"}}, {"body": {"item": 7}}], queue="orders")

    assert len(set(good.result["ids"])) == 2
    assert good.result["metadata"]["metrics"]["backlog_count"] == 2
    assert (bad.status, bad.error["details"]["field"]) == (422, "messages[1].body")
    assert typed.status == 422
    assert await stored(shop) == 2


@pytest.mark.fault("F02")
async def test_the_same_idempotency_key_stores_one_message_and_tells_its_id_again(shop: TestApp) -> None:
    async with outside(shop) as client:
        first = (await client.push({"a": 1}, idempotency_key="k-1")).result
        again = (await client.push({"a": 1}, idempotency_key="k-1")).result
        other = (await client.push({"a": 1}, idempotency_key="k-2")).result
        batch = (await client.batch([{"body": 1}, {"body": 2}], idempotency_key="k-3")).result
        repeated = (await client.batch([{"body": 1}, {"body": 2}], idempotency_key="k-3")).result

    assert (first["duplicate"], again["duplicate"], other["duplicate"]) == (False, True, False)
    assert again["ids"] == first["ids"] != other["ids"]
    assert (batch["duplicate"], repeated["duplicate"], repeated["ids"]) == (False, True, batch["ids"])
    assert await stored(shop) == 4


@pytest.mark.fault("F02")
async def test_a_repeat_after_the_message_was_taken_is_still_a_repeat(shop: TestApp) -> None:
    async with outside(shop) as client:
        first = (await client.push("once", idempotency_key="k")).result
        (message,) = await client.pull()
        await client.ack(message["lease_id"])
        again = (await client.push("once", idempotency_key="k")).result
        left = await client.pull()

    assert (again["duplicate"], again["ids"], left) == (True, first["ids"], [])


async def test_a_key_belongs_to_one_queue(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push({"item": "lamp"}, idempotency_key="k")
        other = (await client.push({"item": "lamp"}, queue="orders", idempotency_key="k")).result

    assert other["duplicate"] is False
    assert await stored(shop) == 2


async def test_a_callers_own_id_is_kept_and_taken_once(shop: TestApp) -> None:
    id = "018c3f2e-0000-7000-8000-000000000001"
    async with outside(shop) as client:
        first = (await client.push("a", id=id)).result
        again = (await client.push("a", id=id)).result
        bad = await client.push("a", id="no uuid")

    assert (first["id"], first["duplicate"], again["duplicate"]) == (id, False, True)
    assert bad.status == 422
    assert await stored(shop) == 1


@pytest.fixture
def small() -> TestApp:
    """The same app with room for little."""
    return TestApp(shop_app(backlog_bytes_max=1_000))


@pytest.mark.spec("A1-17")
@pytest.mark.fault("F26")
async def test_a_full_queue_says_when_to_come_back(small: TestApp) -> None:
    async with outside(small) as client:
        assert (await client.push("x" * 800)).status == 200
        full = await client.push("x" * 800)
        assert int(full.headers["retry-after"]) >= 1
        (message,) = await client.pull()
        await client.ack(message["lease_id"])
        assert (await client.push("x" * 800)).status == 200

    assert (full.status, full.error["name"]) == (429, "queue_full")
    assert await stored(small) == 2


# -- pull and ack -----------------------------------------------------------------------------------------


@pytest.mark.spec("A14-05")
async def test_an_empty_queue_answers_at_once_with_nothing(shop: TestApp) -> None:
    began = shop.now
    async with outside(shop) as client:
        told = (await client.send("/queues/jobs/messages/pull", raw=b"")).result

    assert told["messages"] == []
    assert told["message_backlog_count"] == 0
    assert told["metadata"]["metrics"]["oldest_message_timestamp_ms"] == 0
    assert shop.now == began


@pytest.mark.spec("A14-03")
async def test_a_lease_that_is_not_acknowledged_comes_back_after_its_time_with_one_more_attempt(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("job")
        (first,) = await client.pull(batch_size=10, visibility_timeout_ms=30_000)
        await shop.advance(seconds=29)
        assert await client.pull() == []
        await shop.advance(seconds=1.1)
        (again,) = await client.pull()

    assert again["id"] == first["id"]
    assert again["lease_id"] != first["lease_id"]
    assert (first["attempts"], again["attempts"]) == (1, 2)


async def test_pull_takes_5_by_default_and_both_names_of_the_timeout(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.batch([{"body": number} for number in range(9)])
        usual = await client.pull(visibility_timeout=1_000)
        rest = await client.pull(batch_size=100.0, visibility_timeout_ms=43_200_000)
        await shop.advance(seconds=1.1)
        back = await client.pull(batch_size=100)

    assert (len(usual), len(rest), len(back)) == (5, 4, 5)


@pytest.mark.spec("A14-04")
async def test_acknowledged_messages_are_gone_and_a_stale_lease_is_reported_and_not_counted(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.batch([{"body": number} for number in range(3)])
        one, two, three = await client.pull(visibility_timeout_ms=1_000)
        told = await client.ack(one["lease_id"])
        await shop.advance(seconds=1.1)
        again = await client.pull()
        stale = await client.ack(one["lease_id"], two["lease_id"], again[0]["lease_id"])

    assert told == {"ackCount": 1, "retryCount": 0, "warnings": {}}
    assert (stale["ackCount"], stale["retryCount"]) == (1, 0)
    assert sorted(stale["warnings"]) == sorted([one["lease_id"], two["lease_id"]])
    assert len(again) == 2
    assert three["id"] in {message["id"] for message in again}


@pytest.mark.spec("A14-04")
async def test_a_retried_message_waits_and_at_last_becomes_a_dead_letter(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("job")
        (first,) = await client.pull()
        told = await client.ack(retries=[{"lease_id": first["lease_id"], "delay_seconds": 10}])
        await shop.advance(seconds=9)
        early = await client.pull()
        await shop.advance(seconds=1)
        (second,) = await client.pull()
        await client.ack(retries=[{"lease_id": second["lease_id"], "delay_seconds": 10}])
        await shop.advance(seconds=60)
        left = await client.pull()

    assert told == {"ackCount": 0, "retryCount": 1, "warnings": {}}
    assert (early, left) == ([], [])
    assert second["attempts"] == 2
    assert len(await shop.dead(jobs(shop))) == 1


@pytest.mark.spec("A14-04")
async def test_of_two_acknowledgements_of_one_lease_at_the_same_time_one_counts(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("job")
        (message,) = await client.pull()
        one, two = await asyncio.gather(*[client.ack(message["lease_id"]) for _ in range(2)])

    assert sorted([one["ackCount"], two["ackCount"]]) == [0, 1]
    assert [*one["warnings"], *two["warnings"]] == [message["lease_id"]]


@pytest.mark.spec("A14-04")
async def test_an_acknowledged_lease_is_not_retried_too(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("job")
        (message,) = await client.pull()
        told = await client.ack(message["lease_id"], retries=[{"lease_id": message["lease_id"]}])

        assert (told["ackCount"], told["retryCount"]) == (1, 0)
        assert await client.pull() == []


@pytest.mark.spec("A14-04")
async def test_what_is_no_lease_is_refused(shop: TestApp) -> None:
    async with outside(shop) as client:
        for lease in ("", "x", "1", "1.2.3", "-1.2", "9" * 30 + ".1", "1." + "9" * 30, "٣.٣", "1.2'; drop table items"):
            refused = await client.send("/queues/jobs/messages/ack", {"acks": [{"lease_id": lease}]})
            assert (lease, refused.status) == (lease, 422)
            assert refused.error["name"] == "bad_lease"


@pytest.mark.fault("F30")
async def test_the_same_request_id_gives_the_same_leases_again(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.batch([{"body": 1}, {"body": 2}, {"body": 3}])
        first = await client.pull(batch_size=2, request_id="r-1")
        again = await client.pull(batch_size=2, request_id="r-1")
        header = await client.send("/queues/jobs/messages/pull", {"batch_size": 2}, idempotency_key="r-1")
        other = await client.pull(batch_size=2, request_id="r-2")
        told = await client.ack(*(message["lease_id"] for message in first))

    assert again == first == header.result["messages"]
    assert len(other) == 1
    assert told["ackCount"] == 2


@pytest.mark.fault("F30")
async def test_a_client_that_died_with_a_lease_delays_its_message_and_loses_nothing(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("job")
        (lost,) = await client.pull(request_id="r-1", visibility_timeout_ms=5_000)
        await shop.advance(seconds=5.1)
        (again,) = await client.pull(request_id="r-2")

    assert (again["id"], again["attempts"]) == (lost["id"], 2)


async def test_a_pull_while_the_database_fails_is_refused_for_now_and_leases_nothing(
    shop: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(session: SqliteSession) -> None:
        raise apsw.IOError("disk I/O error")

    async with outside(shop) as client:
        await client.push("job")
        with monkeypatch.context() as broken:
            broken.setattr(SqliteSession, "commit", failing)
            refused = await client.send("/queues/jobs/messages/pull", {"batch_size": 1})
        (pulled,) = await client.pull()

    assert (refused.status, refused.error["name"]) == (503, "store_unavailable")
    assert pulled["attempts"] == 1


async def test_peek_shows_what_waits_and_takes_nothing(shop: TestApp) -> None:
    async with outside(shop) as client:
        pushed = (await client.push({"a": 1})).result
        (seen,) = (await client.send("/queues/jobs/messages/peek", {"batch_size": 10})).result["messages"]
        (pulled,) = await client.pull()

    assert (seen["id"], seen["ref"], unpacked(seen)) == (pushed["id"], pushed["id"], {"a": 1})
    assert "lease_id" not in seen
    assert (pulled["id"], pulled["attempts"]) == (pushed["id"], 1)


async def test_purge_removes_what_waits_and_nothing_where_it_is_not_clear_what_is_meant(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.batch([{"body": number} for number in range(3)])
        refused = [
            await client.send("/queues/jobs/messages/purge", {"refs": refs})
            for refs in ([], [{"ref": "a"}], [{"id": "a"}], ["a"], [{"ref": ""}] * 101)
        ]
        kept = (await shop.counts(jobs(shop))).purged
        purged = await client.send("/queues/jobs/messages/purge", raw=b"")

    assert [each.status for each in refused] == [422] * 5
    assert all("refs" in each.words for each in refused)
    assert kept == 0
    assert purged.result["purged"] == 3
    assert (await shop.counts(jobs(shop))).purged == 3


@pytest.mark.spec("A1-29")
async def test_single_messages_are_purged_by_the_refs_that_peek_gives(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.batch([{"body": number} for number in range(4)])
        (held,) = await client.pull(batch_size=1)
        seen = (await client.send("/queues/jobs/messages/peek", {})).result["messages"]
        first, second, _ = [each["ref"] for each in seen]
        asked = {"refs": [{"ref": ref} for ref in (first, second, first, held["id"])]}
        told = (await client.send("/queues/jobs/messages/purge", asked)).result
        elsewhere = (await client.send("/queues/orders/messages/purge", {"refs": [{"ref": seen[2]["ref"]}]})).result
        (left,) = await client.pull()

    assert (told["purged"], told["errors"], list(told["warnings"])) == (2, [], [held["id"]])
    assert "in progress" in told["warnings"][held["id"]]
    assert (elsewhere["purged"], list(elsewhere["warnings"])) == (0, [seen[2]["ref"]])
    assert left["id"] == seen[2]["ref"]
    assert (await shop.counts(jobs(shop))).purged == 2


async def test_any_account_is_the_local_one(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("a")
        pulled = await client.send("/../0123456789abcdef/queues/jobs/messages/pull", {})

    assert len(pulled.result["messages"]) == 1
