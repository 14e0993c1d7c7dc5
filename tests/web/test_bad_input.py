"""Bad input over HTTP: the right status, words that help, nothing stored, and the next request works."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.testing import TestApp
from tests.unit.test_strict_json import REFUSED
from tests.web.outside import Answer, Outside, jobs, outside, stored

QUEUE = "/queues/jobs/messages"
HOSTILE_NAMES = [
    "x" * 1_000,
    "..%2Fjobs",
    "%00",
    "jobs%20",
    "JOBS",
    "jobs'--",
    "jobs%27%20or%201%3D1--",
    "%F0%9F%92%A3",
    "%FF",
    "sqlite_master",
    "penstock_messages",
]
SQL_TEXTS = [
    "'; drop table items; --",
    "jobs'; delete from penstock_messages; --",
    '" or ""="',
    "1 or 1=1",
    "x') union select name from sqlite_master --",
    "';drop",
    "\\'; drop table items; --",
    "%27%3B drop",
]


@asynccontextmanager
async def nothing_stored(shop: TestApp) -> AsyncIterator[Outside]:
    """Whatever is sent in here leaves no message, and a good one still gets through afterwards."""
    async with outside(shop) as client:
        before = await stored(shop)
        yield client
        assert await stored(shop) == before
        assert (await client.push("still here")).status == 200
        assert (await shop.counts(jobs(shop))).sent == before + 1


# -- JSON -------------------------------------------------------------------------------------------------


@pytest.mark.fault("F37")
@pytest.mark.parametrize("path", [QUEUE, f"{QUEUE}/batch", f"{QUEUE}/pull", f"{QUEUE}/ack", "/d1/database/shop/query"])
async def test_json_that_cannot_be_kept_is_reported_with_its_position(shop: TestApp, path: str) -> None:
    async with nothing_stored(shop) as client:
        for text, byte, _ in REFUSED:
            if not text.strip() and path.endswith("pull"):
                continue  # nothing at all asks for the usual
            refused = await client.send(path, raw=text)
            assert (text[:40], refused.status) == (text[:40], 400)
            assert refused.error["name"] == "bad_json"
            assert refused.error["details"]["byte"] == byte
            assert f"at byte {byte} (line " in refused.words


@pytest.mark.fault("F37")
async def test_a_body_inside_good_json_is_held_to_the_same_rules(shop: TestApp) -> None:
    async with nothing_stored(shop) as client:
        for text, *_ in REFUSED:
            if not text.isascii() or not text.strip() or b'"' in text[:1] or b"\n" in text:
                continue
            refused = await client.send(QUEUE, raw=b'{"body": ' + text + b"}")
            assert (text[:40], refused.status) == (text[:40], 400)
            assert refused.error["details"]["byte"] >= 9


# -- sizes ------------------------------------------------------------------------------------------------


def sized(size: int) -> bytes:
    """A push whose body is `size` bytes as JSON."""
    return b'{"body": "' + b"x" * (size - 2) + b'"}'


@pytest.mark.fault("F36")
async def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_not(limited: TestApp) -> None:
    largest = 128_000 - limited.app.limits.body_overhead_bytes
    async with outside(limited) as client:
        at_limit = await client.send(QUEUE, raw=sized(largest))
        assert at_limit.status == 200, at_limit.told
    async with nothing_stored(limited) as client:
        over = await client.send(QUEUE, raw=sized(largest + 1))
        text = await client.push("x" * (largest + 1), content_type="text")

    assert (over.status, text.status) == (413, 413)
    assert over.error["name"] == "message_too_large"
    assert over.error["details"]["bytes_max"] == 128_000
    assert over.error["details"]["bytes"] >= largest + 1
    assert over.words.count(",") >= 2  # both numbers


@pytest.mark.fault("F36")
async def test_100_messages_are_a_batch_and_101_are_not(limited: TestApp) -> None:
    async with outside(limited) as client:
        assert len((await client.batch([{"body": number} for number in range(100)])).result["ids"]) == 100
    async with nothing_stored(limited) as client:
        over = await client.batch([{"body": number} for number in range(101)])
        empty = await client.batch([])

    assert (over.status, over.error["name"]) == (413, "message_too_large")
    assert "101" in over.words
    assert "100" in over.words
    assert (empty.status, empty.error["details"]["field"]) == (422, "messages")


@pytest.mark.fault("F36")
async def test_256_000_bytes_are_a_batch_and_one_more_is_not(limited: TestApp) -> None:
    overhead = limited.app.limits.body_overhead_bytes
    each = 64_000 - overhead

    def batch(last: int) -> bytes:
        bodies = [b'{"body": "' + b"x" * (size - 2) + b'"}' for size in (each, each, each, last)]
        return b'{"messages": [' + b",".join(bodies) + b"]}"

    async with outside(limited) as client:
        at_limit = await client.send(f"{QUEUE}/batch", raw=batch(each))
        assert at_limit.status == 200, at_limit.told
    async with nothing_stored(limited) as client:
        over = await client.send(f"{QUEUE}/batch", raw=batch(each + 1))

    assert (over.status, over.error["name"]) == (413, "message_too_large")
    assert over.error["details"]["bytes_max"] == 256_000


@pytest.mark.fault("F36")
@pytest.mark.parametrize("claimed", [True, False], ids=["with its length", "in chunks"])
async def test_a_request_beyond_its_bound_is_not_read_to_its_end(shop: TestApp, claimed: bool) -> None:
    async with nothing_stored(shop) as client:
        headers = {"content_length": "99999999999"} if claimed else {}
        over = await client.send(QUEUE, raw=b'{"body": "' + b"x" * 5_000_000 + b'"}', **headers)

    assert over.status == 413
    assert over.error["details"]["bytes_max"] == 4_064_000


# -- fields -----------------------------------------------------------------------------------------------

# A path, a body, and the field that the refusal names.
WRONG: list[tuple[str, object, str]] = [
    (QUEUE, [], "the body"),
    (QUEUE, "text", "the body"),
    (QUEUE, None, "the body"),
    (QUEUE, {}, "body"),
    (QUEUE, {"body": 1, "bod": 2}, "bod"),
    (QUEUE, {"body": 1, "content_type": "xml"}, "content_type"),
    (QUEUE, {"body": 1, "content_type": None}, "content_type"),
    (QUEUE, {"body": 1, "content_type": "text"}, "body"),
    (QUEUE, {"body": {}, "content_type": "bytes"}, "body"),
    (QUEUE, {"body": "not base64!", "content_type": "bytes"}, "body"),
    (QUEUE, {"body": "é", "content_type": "bytes"}, "body"),
    (QUEUE, {"body": 1, "delay_seconds": "5"}, "delay_seconds"),
    (QUEUE, {"body": 1, "delay_seconds": -1}, "delay_seconds"),
    (QUEUE, {"body": 1, "delay_seconds": 86_401}, "delay_seconds"),
    (QUEUE, {"body": 1, "delay_seconds": True}, "delay_seconds"),
    (QUEUE, {"body": 1, "delay_seconds": 1e308}, "delay_seconds"),
    (QUEUE, {"body": 1, "priority": 3}, "priority"),
    (QUEUE, {"body": 1, "priority": -1}, "priority"),
    (QUEUE, {"body": 1, "priority": 2**63}, "priority"),
    (QUEUE, {"body": 1, "id": 5}, "id"),
    (f"{QUEUE}/batch", {}, "messages"),
    (f"{QUEUE}/batch", {"messages": {}}, "messages"),
    (f"{QUEUE}/batch", {"messages": [1]}, "messages[0]"),
    (f"{QUEUE}/batch", {"messages": [{"body": 1}], "delay_seconds": -0.5}, "delay_seconds"),
    (f"{QUEUE}/batch", {"messages": [{"body": 1}, {"body": 1, "delay_seconds": -1}]}, "messages[1].delay_seconds"),
    (f"{QUEUE}/pull", {"batch_size": 0}, "batch_size"),
    (f"{QUEUE}/pull", {"batch_size": 101}, "batch_size"),
    (f"{QUEUE}/pull", {"batch_size": 1.5}, "batch_size"),
    (f"{QUEUE}/pull", {"batch_size": "5"}, "batch_size"),
    (f"{QUEUE}/pull", {"batch_size": 1e300}, "batch_size"),
    (f"{QUEUE}/pull", {"visibility_timeout_ms": 43_200_001}, "visibility_timeout_ms"),
    (f"{QUEUE}/pull", {"visibility_timeout_ms": -1}, "visibility_timeout_ms"),
    (f"{QUEUE}/pull", {"visibility_timeout": 0}, "visibility_timeout"),
    (f"{QUEUE}/pull", {"request_id": ""}, "request_id"),
    (f"{QUEUE}/pull", {"request_id": "x" * 256}, "request_id"),
    (f"{QUEUE}/pull", {"request_id": 5}, "request_id"),
    (f"{QUEUE}/peek", {"batch_size": -5}, "batch_size"),
    (f"{QUEUE}/ack", {"acks": "1.1"}, "acks"),
    (f"{QUEUE}/ack", {"acks": ["1.1"]}, "acks[0]"),
    (f"{QUEUE}/ack", {"acks": [{}]}, "acks[0].lease_id"),
    (f"{QUEUE}/ack", {"acks": [{"lease_id": 5}]}, "acks[0].lease_id"),
    (f"{QUEUE}/ack", {"acks": [{"lease_id": "1.1"}] * 1_001}, "acks"),
    (f"{QUEUE}/ack", {"retries": [{"lease_id": "1.1", "delay_seconds": -1}]}, "retries[0].delay_seconds"),
    (f"{QUEUE}/purge", {"everything": True}, "everything"),
]


@pytest.mark.spec("A15-11")
@pytest.mark.fault("F38")
@pytest.mark.parametrize("path, body, field", WRONG, ids=lambda value: str(value)[:60])
async def test_a_field_that_does_not_fit_is_named(limited: TestApp, path: str, body: object, field: str) -> None:
    async with nothing_stored(limited) as client:
        refused = await client.send(path, body)

    assert refused.status == 422
    assert refused.error["name"] == "bad_field"
    assert field in refused.words
    assert refused.error["details"]["field"] == field.removeprefix("the body")


@pytest.mark.fault("F38")
async def test_a_key_that_cannot_be_kept_is_refused(shop: TestApp) -> None:
    async with nothing_stored(shop) as client:
        for key in ("", " ", "x" * 256, "\xe9", "a\tb"):
            refused = await client.send(QUEUE, {"body": 1}, idempotency_key=key)
            assert (key, refused.status) == (key, 422)
            assert "Idempotency-Key" in refused.words


@pytest.mark.fault("F38", "F39")
@pytest.mark.parametrize("verb", ["", "/batch", "/pull", "/ack", "/peek", "/purge"])
async def test_a_queue_that_is_not_there_is_reported_with_those_that_are(shop: TestApp, verb: str) -> None:
    body = {"": {"body": 1}, "/batch": {"messages": [{"body": 1}]}, "/ack": {"acks": []}}.get(verb, {})
    async with nothing_stored(shop) as client:
        for name in HOSTILE_NAMES:
            refused = await client.send(f"/queues/{name}/messages{verb}", body)
            assert (name, refused.status) == (name, 404)
            if refused.error["name"] == "no_such_queue":
                assert "There are: jobs, orders" in refused.words or "Did you mean jobs?" in refused.words
            assert len(refused.words) < 500


async def test_an_unknown_path_and_a_wrong_method_are_answered_in_the_same_shape(shop: TestApp) -> None:
    async with outside(shop) as client:
        nowhere = await client.send("/queues//messages", {"body": 1})
        other = await client.get("/nowhere")
        method = await client.get("/client/v4/accounts/local/queues/jobs/messages")

    assert (nowhere.status, nowhere.error["name"]) == (404, "no_route")
    assert other.status == 404
    assert (method.status, method.headers["allow"]) == (405, "POST")
    assert method.error["name"] == "bad_method"


@pytest.mark.fault("F46")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
async def test_a_body_of_another_kind_is_refused_with_a_hint(shop: TestApp, kind: str) -> None:
    async with nothing_stored(shop) as client:
        refused = await client.send(QUEUE, {"body": 1}, content_type=kind)
        packed = await client.send(QUEUE, {"body": 1}, content_encoding="gzip")

    assert (refused.status, packed.status) == (415, 415)
    assert "application/json" in refused.words


async def test_a_body_of_json_may_say_so_in_several_ways(shop: TestApp) -> None:
    async with outside(shop) as client:
        for kind in ("application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.shop+json"):
            assert (await client.send(QUEUE, {"body": 1}, content_type=kind)).status == 200


# -- SQL --------------------------------------------------------------------------------------------------


@pytest.mark.fault("F39")
async def test_sql_in_a_text_is_text(shop: TestApp) -> None:
    """In every text that comes from outside: bodies, keys, ids, names of types, leases, values."""
    sent = 0
    async with outside(shop) as client:
        for text in SQL_TEXTS:
            answers: list[Answer] = [
                await client.push(text, content_type="text", idempotency_key=json.dumps(text)),
                await client.push({"type": text, "payload": {text: text}}),
                await client.send(f"{QUEUE}/pull", {"request_id": text, "batch_size": 1}),
                await client.d1("insert into items (name) values (?)", text),
                await client.d1("select name from items where name = ?1", text),
            ]
            assert [answer.status for answer in answers] == [200] * 5
            assert answers[-1].result[0]["results"] == [{"name": text}]
            refusals = [
                await client.push("x", id=text),
                await client.send(f"{QUEUE}/ack", {"acks": [{"lease_id": text}]}),
            ]
            assert [answer.status for answer in refusals] == [422] * 2
            sent += 2

    assert await stored(shop) == sent
    assert await shop.app.db.value("select count(*) from items") == len(SQL_TEXTS)
