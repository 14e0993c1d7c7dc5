"""Fakes of Slack, Discord and Telegram: one line a second, and errors in the shape of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from penstock_systems.standins.notifications.arrivals import Arrivals

LINES_A_SECOND = 1.0
SLACK_CHARACTERS_MAX, DISCORD_CHARACTERS_MAX, TELEGRAM_CHARACTERS_MAX = 40_000, 2_000, 4_096


class Chats:
    """A name `gone` is a channel, webhook or chat that does not exist, `blocked` a person who blocked the bot."""

    def __init__(
        self,
        arrivals: Arrivals,
        now: Callable[[], float],
        *,
        rate: float = LINES_A_SECOND,
        lost: float = 0.0,
        lost_seconds: float = 11.0,
        seed: int = 1,
    ) -> None:
        """`lost` is the share of lines to Telegram that appear, and whose answer comes after `lost_seconds`."""
        self.arrivals = arrivals
        self._lost, self._lost_seconds = lost, lost_seconds
        self._random = Random(f"chats {seed} {len(arrivals.all)}")
        self._now, self._rate = now, rate
        self._last: dict[str, float] = {}
        self.routes = [
            Route("/services/T1/B1/{name}", self._slack, methods=["POST"]),
            Route("/api/webhooks/1/{name}", self._discord, methods=["POST"]),
            Route("/bot{token}/sendMessage", self._telegram, methods=["POST"]),
        ]

    async def _slack(self, request: Request) -> Response:
        name, line = request.path_params["name"], await request.json()
        if name == "gone":
            return PlainTextResponse("no_service", 404)
        if not isinstance(line.get("text"), str) or not 0 < len(line["text"]) <= SLACK_CHARACTERS_MAX:
            return PlainTextResponse("invalid_payload", 400)
        if self._is_too_fast(f"slack {name}"):
            return PlainTextResponse("rate_limited", 429, {"Retry-After": "1"})
        self.arrivals.add("slack", at=self._now(), name=name, text=line["text"])
        return PlainTextResponse("ok")

    async def _discord(self, request: Request) -> Response:
        name, line = request.path_params["name"], await request.json()
        if name == "gone":
            return JSONResponse({"message": "Unknown Webhook", "code": 10015}, 404)
        if not 0 < len(line.get("content") or "") <= DISCORD_CHARACTERS_MAX:
            return JSONResponse({"content": ["Must be between 1 and 2000 in length."]}, 400)
        if self._is_too_fast(f"discord {name}"):
            limited = {"message": "You are being rate limited.", "retry_after": 1.0, "global": False}
            return JSONResponse(limited, 429, {"Retry-After": "1"})
        self.arrivals.add("discord", at=self._now(), name=name, text=line["content"])
        if request.query_params.get("wait") != "true":
            return Response(status_code=204)
        return JSONResponse({"id": str(len(self.arrivals.all)), "content": line["content"]})

    async def _telegram(self, request: Request) -> Response:
        line = await request.json()
        chat, text = str(line.get("chat_id", "")), line.get("text", "")
        if not request.path_params["token"].startswith("1:"):
            return telegram(401, "Unauthorized")
        if chat == "blocked":
            return telegram(403, "Forbidden: bot was blocked by the user")
        if chat in ("", "gone"):
            return telegram(400, "Bad Request: chat not found")
        if not 0 < len(text) <= TELEGRAM_CHARACTERS_MAX:
            return telegram(400, "Bad Request: message is too long")
        if self._is_too_fast(f"telegram {chat}"):
            return telegram(429, "Too Many Requests: retry after 1", {"parameters": {"retry_after": 1}})
        self.arrivals.add("telegram", at=self._now(), name=chat, text=text)
        if self._random.random() < self._lost:
            await asyncio.sleep(self._lost_seconds)
        sent = {"message_id": len(self.arrivals.all), "date": int(self._now()), "chat": {"id": chat}, "text": text}
        return JSONResponse({"ok": True, "result": sent})

    def _is_too_fast(self, who: str) -> bool:
        now = self._now()
        if now - self._last.get(who, -1e9) < 1.0 / self._rate:
            return True
        self._last[who] = now
        return False


def telegram(status: int, description: str, more: dict[str, object] | None = None) -> Response:
    return JSONResponse({"ok": False, "error_code": status, "description": description, **(more or {})}, status)
