"""How one service reaches another: in this process, or over HTTP, always with the key that services share."""

from __future__ import annotations

import os
import secrets
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.model.errors import BadApp
from penstock.model.limits import near

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.outbound.answers import Response
    from penstock.outbound.client import Client
    from penstock.services.service import Service

KEY = "SERVICE_KEY"  # the environment variable with the secret, and the name of the key
HEADER = "X-Service-Key"
ANSWER_BYTES_MAX = 20_000_000
_DRAWN = secrets.token_urlsafe(32)
_clients: weakref.WeakKeyDictionary[App, Client] = weakref.WeakKeyDictionary()


def service_key() -> str:
    """Return the secret that services show each other: that of the environment, else one that this process drew."""
    return os.environ.get(KEY, "").strip() or _DRAWN


def peer(root: App, name: str) -> Service:
    """Return the service of this name. Raises BadApp where there is none."""
    if name not in root.services:
        raise BadApp(f"App {root.name!r} has no service {name!r}. {near(name, root.services)}", service=name)
    return root.services[name]


async def call(
    caller: App, target: Service, method: str, path: str, *, json: object = None, content: bytes = b"", **headers: str
) -> Response:
    """Make one call; raises as `Client.request` does."""
    sent = {HEADER: service_key()} | headers
    return await client_of(caller, target.root).request(
        method,
        f"{target.url}{path}",
        headers=sent,
        json=json,
        content=content,
        max_bytes=ANSWER_BYTES_MAX,
        follow=False,
    )


def client_of(caller: App, root: App) -> Client:
    """Return the client for calls between services. A service that runs in this process answers without a network."""
    if caller not in _clients:
        from penstock.outbound.addresses import Rules
        from penstock.web import KnownToken, hashed
        from penstock.web.site import make_site

        hosts = {urlsplit(each.url) for each in root.services.values()}
        allowed = [f"{each.hostname}:{each.port or (443 if each.scheme == 'https' else 80)}" for each in hosts]
        made = _clients[caller] = caller.http(rules=Rules(allow=allowed), user_agent=None)
        tokens = [KnownToken(KEY, hashed(service_key()), ())]
        for each in root.services.values():
            if not each.is_elsewhere:
                made.mount(each.url, _Site(each.keeper, lambda app: make_site(app, tokens=tokens)))
    return _clients[caller]


class _Site:
    """The routes of an app as they are at the first call: more may be declared until then."""

    def __init__(self, app: App, make: Any) -> None:
        self._app = app
        self._make = make
        self._site: Any = None

    async def __call__(self, *given: Any) -> None:
        if self._site is None:
            self._site = self._make(self._app)
        await (self._app.answering or self._site)(*given)
