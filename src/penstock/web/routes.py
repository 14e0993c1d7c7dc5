"""Serves an app's routes: reads the arguments, commits what the function did, then answers."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response, StreamingResponse

from penstock.app import App
from penstock.model.errors import BadApp, TooLarge
from penstock.model.strict_json import INTEGER_HIGHEST, INTEGER_LOWEST
from penstock.routes import EMPTY, Parameter, Redirect, Reply, Request, Route
from penstock.runtime.slots import CpuLimited, Slot, contained
from penstock.web.intake import BadField, KeyReused, decode_json, idempotency_key, read_body
from penstock.web.reply import TooSlow, answered, enveloped

QUERY_FIELDS_MAX = 1_000
STORED_BYTES_MAX = 1_000_000  # of an answer that is kept under an Idempotency-Key
STREAM_SECONDS_MAX = 3_600.0  # of a whole stream; each of its chunks takes as long as a request may
STREAM_BYTES_MAX = 1_000_000_000


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is kept under its Idempotency-Key, in the commit of the effects."""

    request: str  # the digest of what was asked
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class UserRoutes:
    def __init__(self, app: App) -> None:
        self._app = app
        self._running: dict[str, asyncio.Event] = {}  # requests with an Idempotency-Key that are under way here

    async def answer(self, route: Route, request: HttpRequest) -> Response:
        """Run a route's function in a unit of work and return its answer once the unit has committed."""
        query = read_query(request)
        raw = b""
        if body := route.at("body") or route.at("raw"):
            most = self._app.limits.unit_bytes_max
            raw = await read_body(request, most, is_json=body.place == "body")
        arguments = {each.name: await _argument(each, request, query, raw) for each in route.parameters}
        if route.cache:
            return await self._cached(route, arguments)
        key = None if route.method == "GET" else idempotency_key(request)
        if key is None:
            return await self._run(route, arguments)
        name = f"http\n{route.method} {route.shape}\n{request.state.principal or _credentials(request)}\n{key}"
        asked = [request.path_params, request.scope["query_string"], raw]
        digest = blake2b(msgspec.json.encode(asked), digest_size=16).hexdigest()
        while name in self._running:
            await self._running[name].wait()  # the same request is under way; what it answers is stored then
        self._running[name] = asyncio.Event()
        try:
            return await self._run(route, arguments, name, digest)
        finally:
            self._running.pop(name).set()

    async def _cached(self, route: Route, arguments: Mapping[str, Any]) -> Response:
        key = (route.path, msgspec.json.encode(arguments))
        kept: Response | None = self._app.routes.cached(key, route.cache)
        if kept is None:
            kept = await self._run(route, arguments)
            if not isinstance(kept, Stream):
                self._app.routes.keep(key, kept)
        return kept

    async def _run(
        self, route: Route, arguments: Mapping[str, Any], key: str | None = None, digest: str = ""
    ) -> Response:
        if inspect.isasyncgenfunction(route.function):  # what it sends it makes outside of a unit
            return self._response(route, route.function(**arguments), key)
        async with self._app.unit(key) as unit:
            unit.task = "http"
            if not unit.repeated:
                response = self._response(route, await self.in_time(route.function(**arguments)), key)
                if key is not None:
                    unit.once_result = _stored(response, digest)
        if unit.repeated and unit.once is not None:
            return _repeated(await unit.engine.find_once(unit.once) or b"", digest)
        if unit.committed:
            unit.engine.faults.at("send.after_commit")
        return response

    async def in_time(self, work: Any) -> Any:
        """Await user code within the wall and the processor time of the profile."""
        allowed = self._app.limits.http_invocation
        seconds, cpu_seconds = allowed.timeout_seconds, allowed.cpu_timeout_seconds
        slot = Slot(0)
        slot.task = asyncio.current_task()
        try:
            async with asyncio.timeout(seconds) as limit:
                return await contained(work if cpu_seconds is None else CpuLimited(work, slot, cpu_seconds))  # type: ignore[arg-type]
        except asyncio.CancelledError as error:
            if slot.overdue != "cpu_timeout" or slot.task is None:
                raise
            slot.task.uncancel()
            raise TooSlow(f"The answer held the processor for over {cpu_seconds:g} s, and was cancelled.") from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TooSlow(f"The answer took longer than {seconds:g} s, and was cancelled.") from error

    def _response(self, route: Route, value: object, key: str | None) -> Response:
        if isinstance(value, Redirect):
            return RedirectResponse(value.url, value.status)
        if not isinstance(value, Reply):
            if not isinstance(value, bytes) and not hasattr(value, "__aiter__"):
                empty = route.status in (204, 205)
                return Response(status_code=route.status) if empty else enveloped(route.status, result=value)
            value = Reply(value, status=route.status)
        content, kind = value.content, value.content_type
        if hasattr(content, "__aiter__"):
            if key is not None:
                raise BadField("Idempotency-Key: a stream cannot be stored and repeated.", field="Idempotency-Key")
            chunks = self._chunks(content)
            return Stream(chunks, value.status, dict(value.headers), kind or "application/octet-stream")
        if isinstance(content, str | bytes):
            usual = "text/plain" if isinstance(content, str) else "application/octet-stream"
            return Response(content, value.status, dict(value.headers), kind or usual)
        response = answered(value.status, content, value.headers)
        response.headers["content-type"] = kind or "application/json"
        return response

    async def _chunks(self, content: Any) -> AsyncIterator[bytes]:
        chunks, size = aiter(content), 0
        try:
            while (chunk := await self.in_time(_next(chunks))) is not None:
                size += len(chunk)
                if size > STREAM_BYTES_MAX:
                    raise TooLarge(f"The stream is longer than {STREAM_BYTES_MAX:,} bytes, and was cut.")
                yield chunk
        finally:
            if hasattr(chunks, "aclose"):
                await chunks.aclose()


class Stream(StreamingResponse):
    """A stream that ends in time, whether or not its client reads it."""

    async def __call__(self, *given: Any) -> None:
        async with asyncio.timeout(STREAM_SECONDS_MAX):
            await super().__call__(*given)


async def _next(chunks: AsyncIterator[Any]) -> bytes | None:
    chunk = await anext(chunks, None)
    if not isinstance(chunk, str | bytes | None):
        raise BadApp(f"A stream yielded {type(chunk).__name__}; give bytes or text.")
    return chunk.encode() if isinstance(chunk, str) else chunk


# -- Idempotency-Key ----------------------------------------------------------------------------------------------

CREDENTIALS = ("authorization", "cookie", "x-service-key", "x-api-key", "x-subscription-token")


def _credentials(request: HttpRequest) -> str:
    """Return what stands for the caller of a route that checks callers itself. No caller gets the answer of another."""
    given = [request.headers.get(name) for name in CREDENTIALS]
    return blake2b(msgspec.json.encode(given), digest_size=16).hexdigest() if any(given) else ""


def _stored(response: Response, digest: str) -> bytes:
    body = bytes(response.body)
    if len(body) > STORED_BYTES_MAX:
        raise TooLarge(
            f"The answer has {len(body):,} bytes, and at most {STORED_BYTES_MAX:,} are stored under an Idempotency-Key. "
            "Nothing was saved.",
            bytes=len(body),
            bytes_max=STORED_BYTES_MAX,
        )
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers]
    return msgspec.json.encode(Stored(request=digest, status=response.status_code, headers=headers, body=body))


def _repeated(stored: bytes, digest: str) -> Response:
    found = msgspec.json.decode(stored, type=Stored)
    if found.request != digest:
        raise KeyReused(field="Idempotency-Key")
    response = Response(found.body, found.status)
    response.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found.headers]
    response.headers["Idempotent-Replayed"] = "true"
    return response


# -- arguments ----------------------------------------------------------------------------------------------------


def read_query(request: HttpRequest) -> dict[str, list[str]]:
    """Return the values of each key. Raises BadField where the path or the query is not UTF-8."""
    found: dict[str, list[str]] = {}
    try:
        unquote_to_bytes(request.scope.get("raw_path") or b"").decode()
        text = request.scope["query_string"].decode()
        for name, value in parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX):
            found.setdefault(name, []).append(value)
    except ValueError as error:
        problem = f"not UTF-8, or more than {QUERY_FIELDS_MAX:,} fields"
        raise BadField(f"The path or the query cannot be read: {problem}.", field="query") from error
    return found


async def _argument(each: Parameter, request: HttpRequest, query: Mapping[str, list[str]], body: bytes) -> Any:
    match each.place:
        case "request":
            state, client = request.state, "" if request.client is None else request.client.host
            path, headers = request.url.path, request.headers
            return Request(request.method, path, headers, query, state.principal, state.scopes, client)
        case "raw":
            return body
        case "body":
            if not body.strip() and each.default is not EMPTY:
                return each.default
            return await decode_json(body, each.kind)
        case "path":
            return converted(each, request.path_params[each.name])
    given = query.get(each.name, [])
    if not given:
        if each.default is EMPTY:
            raise BadField(f"{each.name}: it is missing from the query.", field=each.name)
        return each.default
    if len(given) > 1 and not each.is_repeated:
        raise BadField(f"{each.name}: it occurs {len(given)} times, and only one value is allowed.", field=each.name)
    return converted(each, given if each.is_repeated else given[0])


def converted(each: Parameter, given: str | list[str]) -> Any:
    try:
        value = msgspec.convert(given, each.kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadField(f"{each.name}: {str(error).partition(' - at ')[0]}.", field=each.name) from error
    for part in value if each.is_repeated and value is not None else (value,):
        if (
            (isinstance(part, int) and not INTEGER_LOWEST <= part <= INTEGER_HIGHEST)
            or (isinstance(part, float) and not math.isfinite(part))
            or (isinstance(part, str) and "\0" in part)
        ):
            reason = "NUL cannot be kept" if isinstance(part, str) else "the number does not fit into 64 bits"
            raise BadField(f"{each.name}: {reason}.", field=each.name)
    return value
