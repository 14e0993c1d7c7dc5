"""Routes on both stores: one commit before the answer, and an Idempotency-Key that repeats the answer without the effects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2

import penstock as ps
from penstock.testing import TestApp, virtual
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site
from tests.flow.notes import Unreadable, error, names, noted_app

KEY = {"idempotency-key": "note-1"}
MIGRATIONS = Path(__file__).parent / "migrations"


# -- the unit -------------------------------------------------------------------------------------------------------


@virtual
async def test_what_a_route_writes_and_sends_is_committed_before_its_answer() -> None:
    app = noted_app()
    async with TestApp(app) as shop, shop.client() as client:
        added = await client.post("/v1/items/lamp", json={"text": "bright", "tags": ["a"]})
        assert (added.status_code, added.json()["result"]) == (201, {"user": "test", "count": 1})
        assert await names(client) == ["lamp:bright"]
        assert (await shop.counts(app.queues["orders"])).sent == 1

        removed = await client.delete("/v1/items/lamp:bright")
        again = await client.delete("/v1/items/lamp:bright")
        assert (removed.status_code, removed.content) == (204, b"")
        assert error(again)[:2] == (409, "lost_update")


@virtual
async def test_a_get_commits_nothing_unless_it_wrote() -> None:
    app = noted_app()

    @app.get("/v1/visits")
    async def visit() -> None:
        app.db.write("insert into effects (what) values ('visit')")

    async with TestApp(app) as shop, shop.client() as client:
        scheduler = (await app._opened()).scheduler
        before = scheduler.saved
        await names(client)
        assert scheduler.saved == before
        await client.get("/v1/visits")
        assert scheduler.saved == before + 1
        assert await names(client) == ["visit"]


@virtual
async def test_what_a_failed_route_did_is_discarded_and_its_error_has_a_status() -> None:
    app = noted_app()
    failures: dict[str, Exception] = {
        "missing": ps.HttpError(404, "There is no such note.", name="no_such_note", field="note"),
        "busy": ps.Throttled("Slow down.", retry_after=7),
        "full": ps.QueueFull("The queue is full.", retry_after=3),
        "broken": ValueError("secret"),
        "no-unit": ps.NoUnit(),
        "unencodable": TypeError(),
    }

    @app.post("/v1/fail/{how}")
    async def fail(how: str) -> object:
        app.db.write("insert into effects (what) values ('lost')")
        if how == "unencodable":
            return Unreadable()
        if how == "constraint":
            app.db.write("insert into nowhere (name) values ('lost')")
            return None
        raise failures[how]

    async with TestApp(app) as shop, shop.client() as client:
        answers = {how: await client.post(f"/v1/fail/{how}") for how in [*failures, "constraint"]}
        assert await names(client) == []

    assert error(answers["missing"]) == (404, "no_such_note", "note")
    assert error(answers["busy"])[:2] == (503, "throttled")
    assert answers["busy"].headers["retry-after"] == "7"
    assert error(answers["full"])[:2] == (429, "queue_full")
    assert {error(answers[how])[:2] for how in ("broken", "no-unit", "unencodable")} == {(500, "internal")}
    assert "secret" not in answers["broken"].text
    assert error(answers["constraint"])[:2] == (400, "statement_failed")


# -- Idempotency-Key ------------------------------------------------------------------------------------------------


@virtual
async def test_the_same_key_repeats_the_answer_without_the_effects() -> None:
    app = noted_app()
    async with TestApp(app) as shop, shop.client() as client:
        first = await client.post("/v1/items/lamp", json={"text": "a"}, headers=KEY)
        again = await client.post("/v1/items/lamp", json={"text": "a"}, headers=KEY)
        other_body = await client.post("/v1/items/lamp", json={"text": "b"}, headers=KEY)
        other_path = await client.post("/v1/items/sofa", json={"text": "a"}, headers=KEY)
        other_route = await client.post("/v1/digests/lamp", json={"text": "a"}, headers=KEY)
        bad_key = await client.post("/v1/items/lamp", json={"text": "a"}, headers={"idempotency-key": " "})

        assert (again.status_code, again.content) == (first.status_code, first.content) == (201, first.content)
        assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
        assert error(other_body) == error(other_path) == (422, "key_reused", "Idempotency-Key")
        assert other_route.json()["result"] == 1
        assert error(bad_key) == (422, "bad_field", "Idempotency-Key")
        assert await names(client) == ["lamp:a"]
        assert (await shop.counts(app.queues["orders"])).sent == 1


@virtual
async def test_a_key_belongs_to_its_principal_and_a_failure_keeps_none() -> None:
    app = ps.App("shop", migrations=MIGRATIONS)
    fails = [True]

    @app.post("/v1/items")
    async def add(request: ps.Request) -> str:
        app.db.write("insert into effects (what) values (:name)", name=request.principal)
        if fails.pop():
            raise ps.Unavailable
        fails.append(False)
        return request.principal

    async with TestApp(app) as shop, shop.client() as client:
        failed = await client.post("/v1/items", headers=KEY)
        fails.append(False)
        second = await client.post("/v1/items", headers=KEY)
        site = make_site(app, tokens=[KnownToken("other", hashed("other"))])
        transport = httpx2.ASGITransport(app=site)
        headers = {**KEY, "authorization": "Bearer other"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as other:
            third = await other.post("/v1/items", headers=headers)

    assert failed.status_code == 503
    assert (second.json()["result"], third.json()["result"]) == ("test", "other")


@virtual
async def test_of_two_requests_with_one_key_at_once_one_runs_and_the_other_gets_its_answer() -> None:
    app = ps.App("shop", migrations=MIGRATIONS)
    runs: list[str] = []

    @app.post("/v1/items")
    async def add(name: str) -> int:
        runs.append(name)
        await asyncio.sleep(5)
        app.db.write("insert into effects (what) values (:name)", name=name)
        return len(runs)

    async with TestApp(app) as shop, shop.client() as client, shop.client() as elsewhere:
        here = [client.post("/v1/items?name=lamp", headers=KEY) for _ in range(2)]
        # Another server of the same app does not know what runs here: its commit finds the key taken.
        there = elsewhere.post("/v1/items?name=lamp", headers=KEY)
        answers = await asyncio.gather(*here, there)
        count = await app.db.value("select count(*) from effects")

    assert (len(runs), count) == (2, 1)
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 2


@virtual
async def test_an_object_called_under_a_key_changes_once() -> None:
    app = noted_app()
    async with TestApp(app) as shop, shop.client() as client:
        first = await client.post("/v1/digests/ann", json={"text": "a"}, headers=KEY)
        again = await client.post("/v1/digests/ann", json={"text": "a"}, headers=KEY)
        unkeyed = await client.post("/v1/digests/ann", json={"text": "a"})

    assert [answer.json()["result"] for answer in (first, again, unkeyed)] == [1, 1, 2]


@virtual
async def test_an_answer_too_large_to_keep_saves_nothing_and_a_stream_takes_no_key() -> None:
    app = noted_app()

    @app.post("/v1/large")
    async def large(size: int) -> str:
        app.db.write("insert into effects (what) values ('large')")
        return "x" * size

    @app.post("/v1/stream")
    async def stream() -> ps.Reply:
        app.db.write("insert into effects (what) values ('stream')")
        return ps.Reply(chunks())

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    async with TestApp(app) as shop, shop.client() as client:
        fits = await client.post("/v1/large?size=900000", headers=KEY)
        too_large = await client.post("/v1/large?size=1000000", headers={"idempotency-key": "2"})
        streamed = await client.post("/v1/stream", headers=KEY)
        assert await names(client) == ["large"]

    assert fits.status_code == 200
    assert error(too_large)[:2] == (413, "message_too_large")
    assert error(streamed) == (422, "bad_field", "Idempotency-Key")
