"""The paid services in one ASGI app: chats and a web search."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette

from penstock_systems.standins.brave import Search
from penstock_systems.standins.chat import Chat, Manners


def make_paid(now: Callable[[], float], *, key: str = "sk-stand-in", seconds: float = 0.2, seed: int = 1) -> Starlette:
    """Return the app. Its `state` has the `chat` and the `search`."""
    chat, search = Chat(seed, Manners(key=key, seconds=seconds)), Search(now, key, seed=seed)
    app = Starlette(routes=[*chat.app.routes, search.route])
    app.state.chat, app.state.search = chat, search
    return app
