"""`/v1/<provider>/<operation>`: calls of other paid services, at a fixed price, such as `/v1/brave/web_search`."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

import msgspec

import penstock as ps
from penstock_systems.gateway import cache
from penstock_systems.gateway.app import app, headers_of, paces, settings, web
from penstock_systems.gateway.calling import answered, failed
from penstock_systems.gateway.chat import NO_KEY
from penstock_systems.gateway.keys import caller_of
from penstock_systems.gateway.refusals import refused
from penstock_systems.gateway.settings import Operation, Provider
from penstock_systems.gateway.spending import Purpose, purpose_of, spending


@app.get("/v1/{provider}/{operation}", auth=None)
async def get(provider: str, operation: str, request: ps.Request) -> ps.Reply:
    """Call an operation that is a GET, with the caller's query."""
    return await _answer("GET", provider, operation, request, b"")


@app.post("/v1/{provider}/{operation}", auth=None)
async def post(provider: str, operation: str, request: ps.Request, body: bytes = b"") -> ps.Reply:
    """Call an operation that is a POST, with the caller's JSON body."""
    return await _answer("POST", provider, operation, request, body)


async def _answer(method: str, provider_name: str, name: str, request: ps.Request, body: bytes) -> ps.Reply:
    caller = await caller_of(app, request.headers)
    if caller is None:
        return refused(401, "invalid_api_key", NO_KEY)
    provider = settings.providers.get(provider_name)
    operation = None if provider is None else provider.operations.get(name)
    if (
        provider is None
        or operation is None
        or operation.method != method
        or not caller.may_use(provider=provider_name)
    ):
        return refused(404, "not_found", f"This key has no operation {method} /v1/{provider_name}/{name}.")
    try:
        purpose = purpose_of(caller, provider_name, name, request.headers)
        asked = msgspec.json.decode(body) if body else None
    except (ps.errors.BadParameter, msgspec.DecodeError, RecursionError) as error:
        return refused(400, "invalid_request", f"The request cannot be read: {error}.")
    query = urlencode([(key, value) for key, values in sorted(request.query.items()) for value in values])
    call = partial(_call, purpose, provider, operation, query, asked)
    hash = cache.hash_of(method, provider_name, name, query, asked) if operation.cache_seconds else None
    return await answered(purpose, call, hash=hash, seconds=operation.cache_seconds)


async def _call(purpose: Purpose, provider: Provider, operation: Operation, query: str, asked: object) -> cache.Outcome:
    url = f"{provider.base_url.rstrip('/')}{operation.path}"
    try:
        async with spending(purpose, operation.usd) as entry:
            headers = {"Accept": "application/json"} | headers_of(provider)
            async with paces[purpose.provider].permit():
                if operation.method == "GET":
                    response = await web.get(f"{url}?{query}" if query else url, headers=headers)
                else:
                    response = await web.post(url, json=asked, headers=headers)
            entry.settle(operation.usd)
            kind = response.headers.get("content-type", "application/json")
            return cache.Answer(entry.call.id, kind, response.body)
    except ps.PenstockError as error:
        return await failed(purpose, provider, error)
