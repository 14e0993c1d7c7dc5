"""An answer in pieces: passed on as it arrives, read to its end even if the caller leaves, and paid for by its usage."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import msgspec

import penstock as ps
from penstock_systems.gateway.app import headers_of, key_of, paces, web
from penstock_systems.gateway.prices import Usage, most, usage_in, usd_of
from penstock_systems.gateway.refusals import body, said_by
from penstock_systems.gateway.settings import Model, Provider
from penstock_systems.gateway.spending import Purpose, spending

DONE = b"data: [DONE]\n\n"
LINE_BYTES_MAX = 1_000_000

_running: set[asyncio.Task[None]] = set()


class Wanted(NamedTuple):
    """A chat whose answer is to be streamed."""

    purpose: Purpose
    provider: Provider
    model: Model
    url: str
    asked: Mapping[str, Any]


async def open_stream(wanted: Wanted) -> AsyncIterator[bytes]:
    """Start the call and return its pieces. Raises what went wrong before the first of them."""
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue()  # as long as the client's bound of an answer
    head: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    head.add_done_callback(lambda done: done.cancelled() or done.exception())  # there may be no one left to ask
    work = _pump(wanted, pieces, head)
    task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
    _running.add(task)
    task.add_done_callback(_running.discard)
    await asyncio.shield(head)  # a caller that leaves before it does not end the call
    return _pieces(pieces)


async def _pieces(pieces: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (piece := await pieces.get()) is not None:
        yield piece


async def _pump(wanted: Wanted, pieces: asyncio.Queue[bytes | None], head: asyncio.Future[None]) -> None:
    """A caller that leaves is charged what was used, not the most that it could have been."""
    try:
        at_most = usd_of(most(wanted.asked, wanted.model), wanted.model)
        async with spending(wanted.purpose, at_most) as entry:
            asked = dict(wanted.asked) | {"stream_options": {"include_usage": True}}
            headers = headers_of(wanted.provider) | {"Accept": "text/event-stream"}
            async with (
                paces[wanted.purpose.provider].permit(),
                web.stream("POST", wanted.url, json=asked, headers=headers) as answer,
            ):
                head.set_result(None)
                usage = await _pass_on(wanted, answer, pieces)
            if usage is not None:
                entry.settle(usd_of(usage, wanted.model), usage)
    except ps.PenstockError as error:
        if not head.done():
            head.set_exception(error)
        else:  # the status is sent already: the failure is the last piece
            said = said_by(error, key_of(wanted.provider))
            told = body("provider_unavailable", f"The stream of {wanted.provider.host} broke off. {said}".strip())
            pieces.put_nowait(b"data: " + msgspec.json.encode(told) + b"\n\n")
    finally:
        if not head.done():
            head.cancel()
        pieces.put_nowait(None)


async def _pass_on(wanted: Wanted, answer: Any, pieces: asyncio.Queue[bytes | None]) -> Usage | None:
    """Pass on event by event, and return the usage that the last of them states."""
    options = wanted.asked.get("stream_options")
    shows_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    usage: Usage | None = None
    async for line in _lines(answer):
        if not line.startswith(b"data:"):
            continue
        event = _event(line[5:].strip())
        found = usage_in(event)
        usage = found or usage
        if found is not None and not shows_usage and isinstance(event, dict) and not event.get("choices"):
            continue
        pieces.put_nowait(b"data: " + line[5:].strip() + b"\n\n")
    return usage


def _event(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None  # `[DONE]`, or what the caller's client may make of it


async def _lines(answer: Any) -> AsyncIterator[bytes]:
    held = b""
    async for piece in answer:
        *lines, held = (held + piece).split(b"\n")
        if len(held) > LINE_BYTES_MAX:
            raise ps.Unparsable("An event of the stream is too long.", reason="too_large")
        for line in lines:
            yield line.rstrip(b"\r")
    if held:
        yield held
