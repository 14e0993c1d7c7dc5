"""All that the brand system calls in one app: a gateway with a search and a model, the pages it finds, the networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock_systems.standins.brave import Search
from penstock_systems.standins.notifications import Arrivals
from penstock_systems.standins.publishing.ghost import Ghost
from penstock_systems.standins.publishing.pages import Pages
from penstock_systems.standins.publishing.social import Social, SocialFaults
from penstock_systems.standins.publishing.writer import write_reply

PAGES = "https://web.example"
CHARACTERS_A_TOKEN = 4


def make_world(
    now: Callable[[], float],
    *,
    arrivals: Arrivals | None = None,
    faults: SocialFaults | None = None,
    seed: int = 1,
    pages_at: str = PAGES,
) -> Starlette:
    """Return the app. Its `state` has the `social` networks, the `pages`, the `search` and the site of `ghost`.

    A real gateway can take it as its provider of searches and models.
    """
    arrived, given = arrivals or Arrivals(), faults or SocialFaults()
    search, pages, reply = Search(now, hosts=(pages_at,), seed=seed), Pages(seed), write_reply()
    social = Social(now, arrived, given, seed)
    ghost = Ghost(now, arrived, given.lost, given.lost_seconds, given.slow, given.slow_seconds, seed)

    async def web_search(request: Request) -> Response:
        search.requests += 1
        asked = request.query_params.get("q", "")
        return JSONResponse(search.results(asked, int(request.query_params.get("count", "10")), 0))

    async def chat(request: Request) -> Response:
        asked: dict[str, Any] = await request.json()
        text = reply(asked)
        size = sum(len(message["content"]) for message in asked["messages"])
        usage = {"prompt_tokens": size // CHARACTERS_A_TOKEN, "completion_tokens": len(text) // CHARACTERS_A_TOKEN}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = {"id": "chatcmpl-1", "object": "chat.completion", "model": asked["model"], "choices": [choice]}
        return JSONResponse(body | {"usage": usage})

    gateway = [
        Route("/v1/brave/web_search", web_search),
        Route("/v1/chat/completions", chat, methods=["POST"]),
    ]
    app = Starlette(routes=[*gateway, search.route, *social.routes, *ghost.app.routes, *pages.app.routes])
    app.state.social, app.state.pages, app.state.search, app.state.ghost = social, pages, search, ghost
    return app
