"""Budgets of callers: no race exceeds one, and no load within one is refused."""

from __future__ import annotations

import asyncio

import msgspec
import openai
import pytest

from penstock_systems.gateway.app import settings
from penstock_systems.gateway.prices import most, usd_of
from penstock_systems.gateway.reading import spend
from penstock_systems.gateway.settings import MODELS
from penstock_systems.gateway.stages import app
from tests.systems.gateway.conftest import MODEL, Opened

SEARCH = "/v1/brave/web_search"


async def search(shop: object, key: str, q: str, **headers: str) -> int:
    answer = await shop.http.get(SEARCH, params={"q": q}, headers={"X-Service-Key": key} | headers)  # type: ignore[attr-defined]
    return int(answer.status_code)


async def test_of_eight_first_calls_at_once_a_budget_of_five_lets_five_through(gateway: Opened) -> None:
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "Is this niche open?"}]}
    at_most = usd_of(most(asked | {"max_completion_tokens": 4_096}, MODELS[MODEL]), MODELS[MODEL])
    async with gateway(seconds=5) as shop:
        key = await shop.key(day=5.5 * at_most)

        answers = await asyncio.gather(*(shop.ask(key) for _ in range(8)))

        assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 3
        assert shop.chat.book.requests == 5
        refused = [answer for answer in answers if answer.status_code == 429]
        assert {answer.json()["error"]["code"] for answer in refused} == {"insufficient_quota"}


@pytest.mark.spec("A11-06")
async def test_of_eight_searches_at_a_fifth_of_a_cent_a_budget_of_one_cent_lets_five_through(
    gateway: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = app_operation(monkeypatch, usd=0.002)
    async with gateway() as shop:
        key = await shop.key(day=0.01)

        statuses = await asyncio.gather(*(search(shop, key, f"query {number}") for number in range(8)))

        assert sorted(statuses) == [200] * 5 + [429] * 3
        assert shop.search.requests == 5
        rows = await app.db.rows("select provider, operation, cost, state from api_calls_ledger")
        assert [tuple(row) for row in rows] == [("brave", "web_search", operation, "settled")] * 5


async def test_a_sustained_load_within_the_budget_is_never_refused(gateway: Opened) -> None:
    async with gateway(seconds=0.2) as shop:
        at_most_each = 0.0026
        key = await shop.key(day=10 * at_most_each)

        for _ in range(20):
            answers = await asyncio.gather(*(shop.ask(key) for _ in range(8)))
            assert [answer.status_code for answer in answers] == [200] * 8

        assert shop.chat.book.requests == 160


async def test_a_spent_budget_is_renewed_at_midnight(gateway: Opened) -> None:
    async with gateway() as shop:
        key = await shop.key(day=0.01)

        assert [await search(shop, key, f"query {number}") for number in range(3)] == [200, 200, 429]
        await shop.running.advance(days=1)
        assert await search(shop, key, "query 4") == 200


async def test_the_official_client_does_not_retry_a_call_that_no_budget_allows(gateway: Opened) -> None:
    async with gateway() as shop:
        client = shop.sdk(await shop.key(day=0.0001), max_retries=5)

        with pytest.raises(openai.RateLimitError, match="the budget of the day of writer"):
            await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])

        assert shop.chat.book.requests == 0
        assert await app.db.column("select status from gateway_spend") == ["refused"]


async def test_runs_callers_and_tags_have_their_own_sums(gateway: Opened) -> None:
    async with gateway() as shop:
        one, two = await shop.key("one", run=0.006), await shop.key("two")

        assert await search(shop, one, "a", **{"x-run-id": "r1", "x-tags": "article=1,brand=llc"}) == 200
        assert await search(shop, one, "b", **{"x-run-id": "r1"}) == 429
        assert await search(shop, one, "c", **{"x-run-id": "r2", "x-tags": "article=2,brand=llc"}) == 200
        assert await search(shop, two, "d", **{"x-run-id": "r1", "x-correlation-id": "cycle-7"}) == 200

        by_key = {row["key"]: row for row in await spend(app.db, "key", since="2000")}
        assert (by_key["one"]["usd"], by_key["one"]["refused"], by_key["two"]["usd"]) == (0.01, 1, 0.005)
        by_tag = {row["tag"]: row["usd"] for row in await spend(app.db, "tag", since="2000")}
        assert by_tag == {"brand=llc": 0.01, "article=1": 0.005, "article=2": 0.005, "(none)": 0.005}
        by_chain = {row["correlation"]: row["usd"] for row in await spend(app.db, "correlation", since="2000")}
        assert by_chain["cycle-7"] == 0.005
        answer = await shop.http.get("/v1/spend", params={"by": "key"})
        assert {row["key"] for row in answer.json()["result"]} == {"one", "two"}


async def test_a_revoked_key_is_refused_and_a_key_is_limited_to_its_providers(gateway: Opened) -> None:
    async with gateway() as shop:
        created = (
            await shop.http.post("/v1/keys", json={"name": "search", "allowed": {"providers": ["brave"]}})
        ).json()
        key = created["result"]["key"]

        assert await search(shop, key, "a") == 200
        assert (await shop.ask(key)).status_code == 404
        assert (await shop.http.delete("/v1/keys/search")).status_code == 200
        assert await search(shop, key, "b") == 401
        assert await search(shop, "pk_" + "x" * 43, "c") == 401
        stored = await app.db.rows("select name, hash, settings from gateway_keys")
        assert key not in str(stored)


async def test_a_budget_that_is_changed_under_load_holds_from_the_next_call_on(gateway: Opened) -> None:
    async with gateway(seconds=5) as shop:
        key = await shop.key(day=0.01, models=(MODEL,))

        async def searches(count: int, name: str) -> list[int]:
            return sorted(await asyncio.gather(*(search(shop, key, f"{name} {each}") for each in range(count))))

        assert await searches(4, "first") == [200, 200, 429, 429]

        running = asyncio.create_task(searches(2, "meanwhile"))
        answer = await shop.http.patch("/v1/keys/writer", json={"day": 0.02})
        assert answer.json()["result"] == {"name": "writer", "day": 0.02, "models": [MODEL]} | dict.fromkeys(
            ("run", "month", "providers")
        )
        allowed_meanwhile = (await running).count(200)
        assert await searches(4, "raised") == [200] * (2 - allowed_meanwhile) + [429] * (2 + allowed_meanwhile)

        await shop.http.patch("/v1/keys/writer", json={"day": 0.001})
        assert await searches(2, "lowered") == [429, 429]
        await shop.http.patch("/v1/keys/writer", json={"day": None})
        assert await searches(2, "no bound") == [200, 200]
        unknown, wrong = [
            await shop.http.patch(f"/v1/keys/{name}", json=body)
            for name, body in (("nobody", {"day": 1}), ("writer", {"day": -1}))
        ]
        assert (unknown.status_code, wrong.status_code) == (404, 422)


async def test_a_key_whose_budget_cannot_be_counted_is_not_created(gateway: Opened) -> None:
    async with gateway() as shop:
        answer = await shop.http.post("/v1/keys", json={"name": "rich", "allowed": {"day": 1e300}})

        assert answer.status_code == 422, answer.text
        assert (await shop.http.get("/v1/keys")).json()["result"] == []


async def test_equal_searches_at_once_are_one_call(gateway: Opened) -> None:
    async with gateway() as shop:
        key = await shop.key()

        statuses = await asyncio.gather(*(search(shop, key, "llc tax deductions") for _ in range(20)))

        assert statuses == [200] * 20
        assert shop.search.requests == 1
        assert await shop.ledger() == [("settled", 0.005)]


async def test_a_caller_without_money_refuses_no_other_that_asks_the_same(gateway: Opened) -> None:
    async with gateway() as shop:
        poor, rich = await shop.key("poor", day=0.001), await shop.key("rich")

        statuses = await asyncio.gather(
            *(search(shop, key, "llc tax deductions") for key in (poor, rich, poor, rich, rich))
        )

        assert statuses[:2] == [429, 200]
        assert statuses[3:] == [200, 200]
        assert shop.search.requests == 1
        assert await shop.ledger() == [("settled", 0.005)]


def app_operation(monkeypatch: pytest.MonkeyPatch, *, usd: float) -> float:
    """Give the search another price."""
    provider = settings.providers["brave"]
    cheap = msgspec.structs.replace(provider.operations["web_search"], usd=usd)
    changed = msgspec.structs.replace(provider, operations={"web_search": cheap})
    monkeypatch.setitem(settings.providers, "brave", changed)
    return usd


async def test_an_image_reserves_the_most_that_it_can_count_however_short_its_address_is(gateway: Opened) -> None:
    link = {"type": "image_url", "image_url": {"url": "https://shop.example/a.png"}}
    asked = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, link, link]}]}
    most_of_an_image = 48_169 * 0.15 / 1e6  # gpt-4o-mini, with all details
    async with gateway() as shop:
        poor, rich = await shop.key("poor", day=2 * most_of_an_image), await shop.key("rich", day=0.1)

        assert (await shop.ask(poor, **asked)).status_code == 429
        assert (await shop.ask(rich, **asked)).status_code == 200
        [reserved] = await app.db.column("select usd_reserved from gateway_spend where status = 'settled'")
        assert reserved > 2 * most_of_an_image


async def test_a_call_that_is_not_made_because_a_key_is_missing_costs_nothing(
    gateway: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway() as shop:
        for name in ("PENSTOCK_STANDINS", "BRAVE_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        key = await shop.key(day=0.01)
        statuses = [await search(shop, key, f"query {number}") for number in range(5)]

        assert statuses == [503] * 5
        [row] = await spend(app.db, "key", since="")
        assert (row["calls"], row["usd"], row["usd_at_most"]) == (5, 0.0, 0.0)
