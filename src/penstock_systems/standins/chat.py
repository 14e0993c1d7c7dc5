"""A stand-in for a service of language models: one OpenAI-compatible path, seeded answers, and the ways in which it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from penstock_systems.standins.appstore.chance import coded, mix, share

Fault = Literal[
    "throttled", "no_quota", "overloaded", "error", "truncated", "no_usage", "slow", "cut", "filtered", "no_content"
]
WORDS = "market users price growth habit review niche ranking search season loyal churn simple crowded open".split()
CHARACTERS_A_TOKEN = 4
CREATED = 1_763_197_200
RETRY_AFTER_SECONDS = 7
_ERRORS: Mapping[str, tuple[int, str, str]] = {
    "throttled": (429, "rate_limit_exceeded", "Rate limit reached. Try again later."),
    "no_quota": (429, "insufficient_quota", "You exceeded your current quota, check your plan and billing details."),
    "overloaded": (529, "overloaded_error", "Overloaded."),
    "error": (500, "server_error", "The server had an error while processing your request."),
}


@dataclass(frozen=True, slots=True)
class Manners:
    """Whose key is taken, how long an answer takes, and what goes wrong: for some requests by their number from 1, for
    others by chance."""

    key: str = "sk-stand-in"
    seconds: float = 0.8
    slow_seconds: float = 600.0
    planned: Mapping[int, Fault] = field(default_factory=dict)
    shares: Mapping[Fault, float] = field(default_factory=dict)

    def fault(self, number: int, seed: int) -> Fault | None:
        struck = (kind for kind, part in self.shares.items() if share(seed, 70, coded(kind), number) < part)
        return self.planned.get(number) or next(struck, None)


@dataclass(slots=True)
class Book:
    """What only the service knows: what it was asked, and what it will send a bill for."""

    requests: int = 0
    answered: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)


Reply = Callable[[dict[str, Any]], str]


class Chat:
    """`Chat(seed=1).app` is mounted in the place of a host. `reply` makes other answers than random words."""

    def __init__(self, seed: int = 1, manners: Manners | None = None, reply: Reply | None = None) -> None:
        self.seed = seed
        self.manners = manners or Manners()
        self.book = Book()
        self._reply = reply or self._words
        self.app = Starlette(routes=[Route("/v1/chat/completions", self._complete, methods=["POST"])])

    async def _complete(self, request: Request) -> Response:
        self.book.requests += 1
        number, manners = self.book.requests, self.manners
        if request.headers.get("authorization") != f"Bearer {manners.key}":
            # As some services do, it repeats what it was given.
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            return _error(401, "invalid_api_key", f"Incorrect API key provided: {given}.")
        asked = await request.json()
        self.book.asked.append(asked)
        fault = manners.fault(number, self.seed)
        if fault is not None and fault in _ERRORS:
            return _error(*_ERRORS[fault])
        await asyncio.sleep(manners.slow_seconds if fault == "slow" else manners.seconds)
        return self._answer(asked, number, fault)

    def _answer(self, asked: dict[str, Any], number: int, fault: Fault | None) -> Response:
        text, limit = self._reply(asked), asked.get("max_tokens") or asked.get("max_completion_tokens") or 100
        finish = {"cut": "length", "filtered": "content_filter", "no_content": "tool_calls"}.get(fault or "", "stop")
        if _tokens(text) > limit or fault == "cut":
            text, finish = text[: min(len(text) // 2, limit * CHARACTERS_A_TOKEN)], "length"
        prompt = sum(_tokens(str(each.get("content"))) + 4 for each in asked["messages"])
        completion = _tokens(text)
        self.book.answered += 1
        self.book.prompt_tokens += prompt
        self.book.completion_tokens += completion
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        if asked.get("stream"):
            stated = usage if fault != "no_usage" and (asked.get("stream_options") or {}).get("include_usage") else None
            name = f"chatcmpl-{mix(self.seed, number):x}"
            pieces = _pieces(name, str(asked["model"]), text, finish, stated, breaks=fault == "truncated")
            return StreamingResponse(pieces, media_type="text/event-stream")
        message = {"role": "assistant", "content": None if fault in ("filtered", "no_content") else text}
        body: dict[str, Any] = {
            "id": f"chatcmpl-{mix(self.seed, number):x}",
            "object": "chat.completion",
            "created": CREATED,
            "model": f"{asked['model']}-stand-in",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        }
        if fault != "no_usage":
            body["usage"] = usage
        sent = json.dumps(body).encode()
        return Response(sent[: len(sent) // 2] if fault == "truncated" else sent, media_type="application/json")

    def _words(self, asked: dict[str, Any]) -> str:
        """The same words to the same question."""
        told = coded(json.dumps(asked["messages"]))
        text = " ".join(WORDS[mix(self.seed, told, place) % len(WORDS)] for place in range(12))
        wants_json = (asked.get("response_format") or {}).get("type") == "json_object"
        return json.dumps({"summary": text, "score": mix(self.seed, told) % 100}) if wants_json else f"{text}."


async def _pieces(
    name: str, model: str, text: str, finish: str, usage: Mapping[str, int] | None, *, breaks: bool
) -> AsyncIterator[bytes]:
    """A word an event, as such services stream; one that breaks off ends in the middle of a line."""
    shared = {"id": name, "object": "chat.completion.chunk", "created": CREATED, "model": f"{model}-stand-in"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in text.split()]
    for number, delta in enumerate(deltas):
        yield _sse(shared | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if breaks and number == 2:
            yield b'data: {"id": "cut'
            raise ConnectionResetError("the stream breaks off")
    yield _sse(shared | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        yield _sse(shared | {"choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _sse(event: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)


def _error(status: int, code: str, message: str) -> Response:
    headers = {"retry-after": str(RETRY_AFTER_SECONDS)} if code == "rate_limit_exceeded" else {}
    return JSONResponse({"error": {"message": message, "type": code, "param": None, "code": code}}, status, headers)
