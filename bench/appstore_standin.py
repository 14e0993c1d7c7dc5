"""The stand-in store as a process that answers as fast as it can: whole pages, no limit, no latency, no faults.

    python -m bench.appstore_standin FOLDER '{"apps": 300, "seed": 1, "keeps": true}'

With `keeps` every answer is made once and then sent from memory, so that two clients are compared and not the store. Its
first line of output tells where it listens. `/bench/seen` tells how many requests of each kind came since it was last asked.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from starlette.applications import Starlette

from bench.appstore_process import given, tell
from bench.appstore_rows import Size
from penstock_systems.standins.appstore import FIRST_DAY, Manners, make_store

SEEN = "/bench/seen"
BACKLOG = 128
KEPT_SECONDS = 600  # a connection whose side waits for its turn
FRONT = b"x-apple-store-front"
MANNERS = Manners(limits={}, latency_seconds={}, faults=(), whole_pages=True, review_feed="open")

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


def kind_of(path: str) -> str:
    """Which of the questions a path asks."""
    parts = path.strip("/").split("/")
    match parts:
        case ["lookup" | "search" as asked]:
            return asked
        case [_, "app", _]:
            return "redirect"
        case [_, "app", _, _]:
            return "page"
        case [_, "customer-reviews", _]:
            return "ratings"
        case [_, "rss", "customerreviews", *_]:
            return "reviews"
        case _:
            return "other"


class Kept:
    """Sends what was answered before to the same question."""

    def __init__(self, store: Starlette, *, keeps: bool) -> None:
        self._store = store
        self._keeps = keeps
        self._answers: dict[tuple[str, bytes, bytes], list[Event]] = {}
        self._seen: Counter[str] = Counter()

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._store(scope, receive, send)
        if scope["path"] == SEEN:
            return await self._tell(send)
        self._seen[kind_of(scope["path"])] += 1
        if not self._keeps:
            return await self._store(scope, receive, send)
        front = next((value for name, value in scope["headers"] if name == FRONT), b"")
        key = (scope["path"], scope["query_string"], front)
        if key not in self._answers:
            made: list[Event] = []

            async def keep(event: Event) -> None:
                made.append(event)

            await self._store(scope, receive, keep)
            self._answers[key] = made
        for event in self._answers[key]:
            await send(event)
        return None

    async def _tell(self, send: Send) -> None:
        body = json.dumps(self._seen).encode()
        self._seen.clear()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


async def serve(store: Kept, listening: socket.socket) -> None:
    config = uvicorn.Config(store, log_level="warning", lifespan="off", timeout_keep_alive=KEPT_SECONDS)
    await uvicorn.Server(config).serve(sockets=[listening])


def main() -> None:
    options = given()
    # Its calendar stands still: the same question has the same answer.
    store = make_store(Size(options["apps"]).catalogue(options["seed"]), FIRST_DAY.timestamp, MANNERS)
    # Named by its protocol: else nobody turns off the wait that joins small packets, forty milliseconds an answer.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(BACKLOG)
        tell({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"})
        asyncio.run(serve(Kept(store, keeps=options["keeps"]), listening))


if __name__ == "__main__":
    main()
