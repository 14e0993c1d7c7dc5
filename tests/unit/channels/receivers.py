"""What tests of channels share: a notice with hostile text, a client of fake servers, and a clock that a test sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import penstock as ps
from penstock.channels import Notice
from penstock.outbound.client import Client
from penstock_systems.standins.notifications import make_servers
from penstock_systems.standins.notifications.server import HOSTS

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEXT_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
KEY = "re_fake"
AT = 1_763_197_200  # 2025-11-15T09:00:00Z
NOTICE = Notice(
    "Pay the <b>rent</b>\r\nBcc: all@example.com\x00",
    "12 % off \U0001f600\u202e <!channel> @everyone",
    to="ann@example.org",
    kind="reminder.due",
    data={"reminder": "7"},
    at=AT * 1_000_000,
)


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = float(AT)

    def now(self) -> int:
        return int(self.seconds * 1_000_000)

    def monotonic(self) -> float:
        return self.seconds


class Answers:
    """A host that answers what it is told to, and keeps what was posted."""

    def __init__(self, *answers: tuple[int, bytes, dict[str, str]]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive()).get("body", b"")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["path"], headers, body))
        status, answer, more = self.answers.pop(0) if self.answers else (200, b"ok", {})
        given = [(name.encode(), value.encode()) for name, value in more.items()]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": answer})


def client(host: Any, *origins: str, watch: Watch | None = None) -> Client:
    made = Client(clock=watch or Watch())
    for origin in origins or HOSTS:
        made.mount(origin, host)
    return made


def fakes(watch: Watch, **options: Any) -> tuple[ps.Client, Any]:
    """A client of all fake servers, and their state."""
    now: Callable[[], float] = lambda: watch.seconds  # noqa: E731
    app = make_servers(now, **options)
    return client(app, watch=watch), app.state
