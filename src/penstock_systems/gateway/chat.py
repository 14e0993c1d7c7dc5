"""`/v1/chat/completions` and `/v1/models`, as OpenAI's clients expect them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

import penstock as ps
from penstock_systems.gateway import cache
from penstock_systems.gateway.app import app, db, headers_of, paces, settings, web
from penstock_systems.gateway.calling import answered, failed
from penstock_systems.gateway.keys import caller_of
from penstock_systems.gateway.prices import LIMITS, most, price_list, tokens_allowed, usage_in, usd_of
from penstock_systems.gateway.refusals import refused
from penstock_systems.gateway.settings import Model, Provider
from penstock_systems.gateway.spending import Purpose, purpose_of, spending
from penstock_systems.gateway.streaming import Wanted, open_stream

TOKENS_MAX = 1_000_000
CHOICES_MAX = 16
# What has another price than the tokens of a text, and the values of it that have not.
ANOTHER_PRICE: dict[str, tuple[object, ...]] = {
    "service_tier": (None, "auto", "default", "flex"),
    "modalities": (None, ["text"]),
    "web_search_options": (None,),
    "audio": (None,),
    "prediction": (None,),  # what was predicted wrongly is paid for as an answer, beside its limit
    "models": (None,),  # OpenRouter's: another model may answer
    "plugins": (None,),
}
PARTS = ("text", "image_url", "refusal")  # of a message, whose most is known
PATH = "/v1/chat/completions"
NO_KEY = "The request has no valid key of this gateway. Make one with: penstock gateway keys add NAME"


@app.post(PATH, auth=None)
async def complete(request: ps.Request, body: bytes = b"") -> ps.Reply:
    """Answer a chat with the model that it names, within the caller's budgets."""
    caller = await caller_of(app, request.headers)
    if caller is None:
        return refused(401, "invalid_api_key", NO_KEY)
    try:
        asked = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return refused(400, "invalid_json", f"The body is not JSON: {error}.")
    if problem := _problem_with(asked):
        return refused(400, "invalid_request", problem[1], param=problem[0])
    if asked.get("stream") and "idempotency-key" in request.headers:
        return refused(
            400, "invalid_request", "Idempotency-Key: a stream cannot be stored and repeated.", param="stream"
        )
    model = settings.models.get(asked["model"])
    if model is None or not caller.may_use(provider=model.provider, model=asked["model"]):
        return refused(
            404, "model_not_found", f"There is no model {asked['model'][:200]!r} for this key. See /v1/models."
        )
    try:
        purpose = purpose_of(caller, model.provider, asked["model"], request.headers)
    except ps.errors.BadParameter as error:
        return refused(400, "invalid_request", error.message)
    return await _answer(purpose, settings.providers[model.provider], model, asked)


async def _answer(purpose: Purpose, provider: Provider, model: Model, asked: dict[str, Any]) -> ps.Reply:
    sent = _as_sent(asked, model)
    url = f"{provider.base_url.rstrip('/').removesuffix('/v1')}{PATH}"
    if asked.get("stream"):
        try:
            pieces = await open_stream(Wanted(purpose, provider, model, url, sent))
        except ps.PenstockError as error:
            return await failed(purpose, provider, error)
        return ps.Reply(pieces, "text/event-stream", headers={"Cache-Control": "no-store"})
    is_shared = settings.cache_seconds > 0 and cache.is_deterministic(sent)
    hash = cache.hash_of(PATH, purpose.provider, sent) if is_shared else None
    call = partial(_call, purpose, provider, model, url, sent)
    return await answered(purpose, call, hash=hash, seconds=settings.cache_seconds)


async def _call(purpose: Purpose, provider: Provider, model: Model, url: str, sent: Mapping[str, Any]) -> cache.Outcome:
    try:
        async with spending(purpose, usd_of(most(sent, model), model)) as entry:
            headers = headers_of(provider)
            async with paces[purpose.provider].permit():
                response = await web.post(url, json=sent, headers=headers)
            usage = usage_in(response.json())
            if usage is not None:
                entry.settle(usd_of(usage, model), usage)
            return cache.Answer(entry.call.id, "application/json", response.body)
    except ps.PenstockError as error:
        return await failed(purpose, provider, error)


def _as_sent(asked: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Return the request as the provider gets it: its own name of the model, and always a limit of tokens."""
    sent = {name: value for name, value in asked.items() if name not in LIMITS}
    return sent | {"model": model.name or asked["model"], model.limit_name: tokens_allowed(asked, model)}


def _problem_with(asked: Any) -> tuple[str | None, str] | None:
    """Return the field that is wrong, and why; whatever else is wrong the provider says."""
    if not isinstance(asked, dict):
        return None, "The body is not a JSON object."
    if not isinstance(asked.get("model"), str):
        return "model", "model is missing: name one of /v1/models."
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        return "messages", "messages is not a list of messages with at least one."
    for name, highest in (*((name, TOKENS_MAX) for name in LIMITS), ("n", CHOICES_MAX)):
        value = asked.get(name)
        if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= highest):
            return name, f"{name} is {value!r}; it is a whole number from 1 to {highest:,}."
    for name, usual in ANOTHER_PRICE.items():
        if asked.get(name) not in usual:
            return name, f"{name} changes the price of a call, and the gateway knows only the usual one. Leave it out."
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else ()
        if message.get("audio") is not None or not all(
            isinstance(part, dict) and part.get("type") in PARTS for part in parts
        ):
            return "messages", f"messages has a part whose price is not known. Known parts: {', '.join(PARTS)}."
    return None


# -- what a caller can ask about --------------------------------------------------------------------------------------


@app.get("/v1/models", auth=None)
async def models(request: ps.Request) -> ps.Reply:
    """List the models that the caller may use, with their prices and the age of these."""
    caller = await caller_of(app, request.headers)
    if caller is None:
        return refused(401, "invalid_api_key", NO_KEY)
    prices = {each.name: each for each in price_list(settings, datetime.fromisoformat(await db.now()).date())}
    found = [
        {
            "id": name,
            "object": "model",
            "created": int(datetime.combine(each.as_of, datetime.min.time(), UTC).timestamp()),
            "owned_by": each.provider,
            "usd_per_million_prompt_tokens": each.usd_per_million_prompt_tokens,
            "usd_per_million_completion_tokens": each.usd_per_million_completion_tokens,
            "price_as_of": each.as_of.isoformat(),
            "price_age_days": prices[name].days,
        }
        for name, each in settings.models.items()
        if caller.may_use(provider=each.provider, model=name)
    ]
    return ps.Reply({"object": "list", "data": found})
