"""Eight kinds of receivers of webhooks. Each remembers the ids that it has seen, as receivers are told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from penstock_systems.standins.notifications.arrivals import Arrivals

CHARACTERS = ("good", "slow", "hangs", "broken", "redirects", "gone", "clock", "verifies")
TOLERANCE_SECONDS = 300
HOUR, DAY = 3_600.0, 86_400.0
Verify = Callable[[str, bytes, Mapping[str, str]], None]  # raises if a webhook to this name is not signed well


@dataclass(frozen=True, slots=True)
class Times:
    """When each character is bad, in seconds after the beginning."""

    slow: float = 9.9
    hangs: float = 60.0
    broken: tuple[float, float] = (5 * DAY + 8 * HOUR, 5 * DAY + 10 * HOUR)
    gone: float = 3 * DAY
    clock: tuple[float, float] = (6 * DAY, 8 * DAY)  # its clock is ten minutes ahead
    seconds: float = 0.05  # that an answer takes


class Receivers:
    """Paths are `/hooks/{character}/{name}`. What `verify` raises is answered with 401."""

    def __init__(
        self,
        arrivals: Arrivals,
        now: Callable[[], float],
        *,
        begins: float | None = None,
        times: Times | None = None,
        verify: Verify | None = None,
    ) -> None:
        self.arrivals, self.times = arrivals, times or Times()
        self._now, self._begins, self._verify = now, begins, verify
        self._seen = {(each["name"], each["id"]) for each in arrivals.of("webhook")}
        self.repeats = self.refusals = self.answers = 0
        self.routes = [Route("/hooks/{character}/{name}", self._take, methods=["POST"])]

    async def _take(self, request: Request) -> Response:
        character, name = request.path_params["character"], request.path_params["name"]
        body, headers = await request.body(), request.headers
        if self._begins is None:
            self._begins = self._now()
        passed, self.answers = self._now() - self._begins, self.answers + 1
        await asyncio.sleep(self.times.slow if character == "slow" else self.times.seconds)
        match character:
            case "broken" if self.times.broken[0] <= passed < self.times.broken[1]:
                return PlainTextResponse("Something broke.", 500)
            case "redirects":
                return RedirectResponse("http://127.0.0.1:1/elsewhere", 302)
            case "gone" if passed >= self.times.gone:
                return PlainTextResponse("Gone.", 410)
            case "clock":
                ahead = 600 if self.times.clock[0] <= passed < self.times.clock[1] else 0
                if abs(self._now() + ahead - int(headers.get("webhook-timestamp", "0"))) > TOLERANCE_SECONDS:
                    return PlainTextResponse("The timestamp is too old.", 400)
            case "verifies" if self._verify is not None:
                try:
                    self._verify(name, body, headers)
                except Exception as wrong:
                    self.refusals += 1
                    return PlainTextResponse(f"Bad signature: {wrong}", 401)
        self._note(name, character, headers.get("webhook-id", ""), body)
        if character == "hangs":
            await asyncio.sleep(self.times.hangs)
        return PlainTextResponse("ok")

    def _note(self, name: str, character: str, id: str, body: bytes) -> None:
        if (name, id) in self._seen:
            self.repeats += 1
            return
        self._seen.add((name, id))
        data: dict[str, Any] = json.loads(body).get("data", {})
        about = f"{data['reminder']} {data['fire']}" if "fire" in data else None
        self.arrivals.add("webhook", at=self._now(), name=name, character=character, id=id, about=about)


def library_verify(secrets: Callable[[str], Sequence[str]]) -> Verify:
    """Return a check by the library `standardwebhooks`, which knows the wall clock alone: for real time."""
    from standardwebhooks import Webhook  # of the development tools

    def verify(name: str, body: bytes, headers: Mapping[str, str]) -> None:
        for secret in secrets(name):
            Webhook(secret).verify(body, dict(headers))

    return verify
