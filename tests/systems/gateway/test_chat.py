"""Chats through the gateway: the official client works as it is, and no failure reveals the provider's key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import openai
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from penstock_systems.gateway.app import ANSWER_BYTES_MAX
from penstock_systems.gateway.chat import PATH
from penstock_systems.gateway.stages import app
from tests.systems.gateway.conftest import HOSTS, MODEL, Opened


async def test_the_official_client_gets_an_answer_and_its_usage(gateway: Opened) -> None:
    async with gateway() as shop:
        client = shop.sdk(await shop.key())

        said = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])
        listed = [each.id async for each in await client.models.list()]

        assert said.choices[0].message.content
        assert said.usage is not None
        assert said.usage.total_tokens > 0
        assert listed == [MODEL]
        [(state, cost)] = await shop.ledger()
        assert state == "settled"
        assert cost == pytest.approx((said.usage.prompt_tokens * 0.15 + said.usage.completion_tokens * 0.60) / 1e6)


async def test_the_official_client_streams_and_the_usage_settles_the_call(gateway: Opened) -> None:
    async with gateway() as shop:
        client = shop.sdk(await shop.key())

        stream = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hello"}], stream=True
        )
        chunks = [chunk async for chunk in stream]

        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks).strip()
        assert all(chunk.choices for chunk in chunks), "nobody asked for the chunk with the usage"
        await shop.running.advance(1)
        [(state, cost)] = await shop.ledger()
        assert state == "settled"
        assert 0 < cost < 0.001


async def test_a_caller_that_asks_for_the_usage_of_a_stream_gets_it(gateway: Opened) -> None:
    async with gateway() as shop:
        client = shop.sdk(await shop.key())

        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        last = [chunk async for chunk in stream][-1]

        assert last.usage is not None
        assert last.usage.completion_tokens > 0


async def test_a_stream_that_breaks_off_is_an_error_of_the_client_and_counts_at_its_most(gateway: Opened) -> None:
    async with gateway({1: "truncated"}) as shop:
        client = shop.sdk(await shop.key())

        stream = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hello"}], stream=True, max_tokens=1_000
        )
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in stream:
                pass

        await shop.running.advance(1)
        [(state, cost)] = await shop.ledger()
        assert state == "unknown"
        assert cost > 1_000 * 0.60 / 1e6


async def test_a_caller_that_leaves_a_stream_pays_what_was_used(gateway: Opened) -> None:
    async with gateway() as shop:
        key = await shop.key()
        body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        async with shop.http.stream(
            "POST", "/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}
        ):
            pass

        await shop.running.advance(5)
        [(state, _)] = await shop.ledger()
        assert state == "settled"


async def test_a_wrong_key_an_unknown_model_and_a_bad_field_have_the_errors_that_the_client_knows(
    gateway: Opened,
) -> None:
    async with gateway() as shop:
        client = shop.sdk(await shop.key())

        with pytest.raises(openai.AuthenticationError, match="keys add"):
            await shop.sdk("pk_wrong").models.list()
        with pytest.raises(openai.NotFoundError, match="no model"):
            await client.chat.completions.create(model="other", messages=[{"role": "user", "content": "hello"}])
        with pytest.raises(openai.BadRequestError, match="messages"):
            await client.chat.completions.create(model=MODEL, messages=[])
        with pytest.raises(openai.BadRequestError, match="max_tokens"):
            await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "hello"}], max_tokens=0
            )
        assert shop.chat.book.requests == 0


@pytest.mark.parametrize(
    "asked",
    [
        {"service_tier": "priority"},
        {"modalities": ["text", "audio"]},
        {"web_search_options": {}},
        {"audio": {"voice": "alloy", "format": "mp3"}},
        {"prediction": {"type": "content", "content": "x" * 10_000}},
        {"models": ["o1-pro"]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x"}}]}]},
        {"messages": [{"role": "assistant", "audio": {"id": "audio-1"}}]},
    ],
)
async def test_what_has_another_price_than_the_gateway_knows_is_not_asked_for(
    gateway: Opened, asked: dict[str, object]
) -> None:
    async with gateway() as shop:
        key = await shop.key()

        refused = await shop.ask(key, **asked)
        accepted = await shop.ask(key, service_tier="default", modalities=["text"])

        assert (refused.status_code, refused.json()["error"]["param"]) == (400, next(iter(asked)))
        assert accepted.status_code == 200
        assert shop.chat.book.requests == 1


async def test_a_provider_that_throttles_is_waited_for_by_the_client(gateway: Opened) -> None:
    async with gateway({1: "throttled"}) as shop:
        client = shop.sdk(await shop.key(), max_retries=2)

        said = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])

        assert said.choices
        assert [state for state, _ in await shop.ledger()] == ["released", "settled"]


@pytest.mark.parametrize("fault, error", [("overloaded", openai.InternalServerError), ("no_quota", openai.APIError)])
async def test_a_failing_provider_is_reported_and_costs_nothing(
    gateway: Opened, fault: str, error: type[Exception]
) -> None:
    async with gateway({1: fault}) as shop:
        client = shop.sdk(await shop.key())

        with pytest.raises(error):
            await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])

        assert [state for state, _ in await shop.ledger()] == ["released"]


async def test_a_provider_that_refuses_the_gateways_key_does_not_reveal_it(
    gateway: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-gateway")
    async with gateway() as shop:
        answer = await shop.ask(await shop.key())

        assert answer.status_code == 502
        assert "sk-secret" not in answer.text
        kept = await app.db.rows("select tags from gateway_spend")
        assert "sk-secret" not in str(kept)


async def test_equal_questions_without_chance_are_asked_once(gateway: Opened) -> None:
    async with gateway() as shop:
        key = await shop.key()

        first = await shop.ask(key, temperature=0)
        again = await shop.ask(key, temperature=0)
        other = await shop.ask(key)

        assert (first.headers["x-cache"], again.headers["x-cache"]) == ("miss", "hit")
        assert first.json() == again.json()
        assert other.status_code == 200
        assert shop.chat.book.requests == 2
        rows = await app.db.rows("select status, usd, replay_of from gateway_spend order by at, status")
        assert sorted(row.status for row in rows) == ["cached", "settled", "settled"]
        [cached] = [row for row in rows if row.status == "cached"]
        assert (cached.usd, cached.replay_of) == (0.0, first.headers["x-call-id"])


async def test_a_kept_answer_expires(gateway: Opened) -> None:
    async with gateway() as shop:
        key = await shop.key()
        await shop.ask(key, temperature=0)

        await shop.running.advance(days=2)
        await shop.ask(key, temperature=0)

        assert shop.chat.book.requests == 2
        assert await app.db.value("select count(*) from (select 1 from gateway_cache limit 9) as kept") == 1


async def test_an_answer_that_is_repeated_by_its_idempotency_key_is_sent_to_its_caller_alone(gateway: Opened) -> None:
    async with gateway() as shop:
        own, other = await shop.key(), await shop.key("other", models=[])
        repeated = {"Idempotency-Key": "article-17"}

        assert (await shop.ask("pk_wrong", headers=repeated)).status_code == 401
        first = await shop.ask(own, headers=repeated)
        again = await shop.ask(own, headers=repeated)

        assert first.status_code == again.status_code == 200
        assert first.json() == again.json()
        assert shop.chat.book.requests == 1
        assert (await shop.ask(other, headers=repeated)).status_code == 404
        assert (await shop.ask("pk_wrong", headers=repeated)).status_code == 401


async def test_a_stream_with_an_idempotency_key_is_refused_before_it_costs_anything(gateway: Opened) -> None:
    async with gateway() as shop:
        answer = await shop.ask(await shop.key(), stream=True, headers={"Idempotency-Key": "k1"})

        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "stream")
        assert shop.chat.book.requests == 0
        assert await shop.ledger() == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/brave/web_search"])
async def test_a_body_nested_too_deep_is_a_bad_request(gateway: Opened, path: str) -> None:
    async with gateway() as shop:
        headers = {"Authorization": f"Bearer {await shop.key()}"}

        answer = await shop.http.post(path, content=b"[" * 50_000, headers=headers)

        assert answer.status_code in (400, 404)
        assert answer.json()["error"]["type"]


async def test_a_caller_that_leaves_before_a_stream_begins_pays_what_was_used(gateway: Opened) -> None:
    async with gateway(seconds=5) as shop:
        key = await shop.key()
        leaving = asyncio.ensure_future(shop.ask(key, stream=True))
        await shop.running.advance(1)
        leaving.cancel()
        await asyncio.wait({leaving})

        await shop.running.advance(60)

        [(state, cost)] = await shop.ledger()
        assert state == "settled"
        assert 0 < cost < 0.001


@pytest.mark.parametrize("way", ["slowly", "quickly"])
async def test_a_provider_whose_stream_never_ends_is_cut_off_and_its_call_counts_at_its_most(
    gateway: Opened, way: str
) -> None:
    sent: list[int] = []

    async def endless(request: Request) -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(20 if way == "slowly" else 0.01)
                text = "x" * (10 if way == "slowly" else 100_000)
                sent.append(len(text))
                yield b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n' % text.encode()

        return StreamingResponse(pieces(), media_type="text/event-stream")

    async with gateway() as shop:
        app.standins[0].client.mount(HOSTS[0], Starlette(routes=[Route(PATH, endless, methods=["POST"])]))
        key = await shop.key()
        answer = await shop.ask(key, stream=True, max_tokens=100)

        assert "broke off" in answer.text.splitlines()[-2]
        assert sum(sent) <= ANSWER_BYTES_MAX + 200_000
        before = len(sent)
        await shop.running.advance(minutes=5)
        assert len(sent) <= before + 1, "the provider is not read any more"
        [(state, cost)] = await shop.ledger()
        assert state == "unknown"
        assert cost >= 100 * 0.60 / 1e6
