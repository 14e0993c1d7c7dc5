"""The site: which route needs which scopes, and one place where every failure becomes an answer."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Lifespan

from penstock.app import App
from penstock.config import KnownToken
from penstock.model.errors import PenstockError
from penstock.routes import Auth, ServiceKey
from penstock.routes import Route as UserRoute
from penstock.runtime.audit import operated_by
from penstock.runtime.clock import HostClock
from penstock.web.controllers import CONTROLLERS_READ, CONTROLLERS_WRITE, Answering, ControllerRoutes
from penstock.web.d1 import D1
from penstock.web.health import Health
from penstock.web.messages import Messages
from penstock.web.openapi import describe
from penstock.web.operation import OperationRoutes
from penstock.web.reply import MISTAKES, Result, answered, problem, refused, sent
from penstock.web.routes import UserRoutes
from penstock.web.tokens import QUEUES_READ, QUEUES_WRITE, Keyring, configured, hashed, require
from penstock.web.ui import make_dashboard
from penstock.web.ui.access import Access, Role

ACCOUNT = "/client/v4/accounts/{account}"  # any account will do: there is one, and it is called `local`

_log = logging.getLogger("penstock.web")


def make_site(
    app: App,
    *,
    tokens: Iterable[KnownToken] | None = None,
    now: Callable[[], int] | None = None,
    access: Access | None = None,
    lifespan: Lifespan[Starlette] | None = None,
) -> Starlette:
    """An ASGI application for the app's routes, queues and database. Without `tokens` those of the configuration count;
    `now` gives microseconds. `access` are the sessions of the dashboard at /ui."""
    own, now = app.routes.ordered(), now or HostClock().now
    known = configured(app.config, os.environ) if tokens is None else list(tokens)
    keyring = Keyring(known, _service_keys(own), now)
    messages, d1, health = Messages(app), D1(app), Health(app, now)
    posts: Sequence[tuple[str, Answering, Sequence[str]]] = (
        ("/queues/{queue}/messages", messages.push, [QUEUES_WRITE]),
        ("/queues/{queue}/messages/batch", messages.push_batch, [QUEUES_WRITE]),
        ("/queues/{queue}/messages/pull", messages.pull, [QUEUES_READ, QUEUES_WRITE]),
        ("/queues/{queue}/messages/ack", messages.ack, [QUEUES_READ, QUEUES_WRITE]),
        ("/queues/{queue}/messages/peek", messages.peek, [QUEUES_READ]),
        ("/queues/{queue}/messages/purge", messages.purge, [QUEUES_WRITE]),
        ("/d1/database/{database}/query", d1.query, []),  # what a statement needs is known once it is read
        ("/d1/database/{database}/raw", d1.raw, []),
    )
    routes = [
        Route(ACCOUNT + path, _guarded(app, partial(_admit, keyring, needed), answering), methods=["POST"])
        for path, answering, needed in posts
    ]
    for path, verb, answering in ControllerRoutes(app).paths():
        scope, method = (CONTROLLERS_READ, "GET") if verb == "status" else (CONTROLLERS_WRITE, "POST")
        routes.append(Route(path, _guarded(app, partial(_admit, keyring, [scope]), answering), methods=[method]))
    for method, path, scope, answering in OperationRoutes(app).paths():
        routes.append(Route(path, _guarded(app, partial(_admit, keyring, [scope]), answering), methods=[method]))
    routes += [Route("/health", health.shallow), Route("/health/deep", health.deep)]
    described = partial(_described, app, routes[:])
    routes.append(Route("/openapi.json", _guarded(app, partial(_admit, keyring, []), described), methods=["GET"]))
    served = UserRoutes(app)
    for path, group in groupby(own, key=lambda route: route.path):
        by_method = {
            route.method: _guarded(app, partial(_admit_to, keyring, route.auth), partial(served.answer, route))
            for route in group
        }
        routes.append(Route(path, _by_method(by_method), methods=list(by_method)))
    dashboard = make_dashboard(app, tokens=known, access=access)
    pages: list[BaseRoute] = [Mount("/ui", dashboard), Route("/ui", _to_dashboard)]
    if all(route.path != "/metrics" for route in own):
        made = dashboard.state.dashboard
        pages.append(Route("/metrics", made.guarded(made.metrics, Role.VIEWER), methods=["GET"]))
    if all(route.path != "/" for route in own):
        pages.append(Route("/", _to_dashboard))
    site = Starlette(routes=[*routes, *pages], exception_handlers={HTTPException: _no_route}, lifespan=lifespan)
    site.state.dashboard = dashboard.state.dashboard.live
    site.router.redirect_slashes = False  # it would answer outside the envelope, with the client's Host header in it
    return site


def _service_keys(routes: Iterable[UserRoute]) -> Iterator[KnownToken]:
    """Return the service keys of routes that the environment holds."""
    for name in {route.auth.name for route in routes if isinstance(route.auth, ServiceKey)}:
        if secret := os.environ.get(name, "").strip():
            yield KnownToken(name, hashed(secret), ())


def _admit(keyring: Keyring, needed: Sequence[str], request: Request) -> None:
    token = keyring.bearer(request.headers.get("authorization"))
    request.state.principal, request.state.scopes = token.name, frozenset(token.scopes)
    require(request.state.scopes, needed)


def _admit_to(keyring: Keyring, auth: Auth, request: Request) -> None:
    if isinstance(auth, str):
        return _admit(keyring, [auth], request)
    request.state.principal, request.state.scopes = "", frozenset()
    if auth is not None:
        keyring.check_service(auth.name, request.headers.get("x-service-key"))
        request.state.principal = auth.name
    return None


def _by_method(answers: Mapping[str, Callable[[Request], Awaitable[Response]]]) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await answers["GET" if request.method == "HEAD" else request.method](request)

    return answer


async def _to_dashboard(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/ui/", 307)


async def _described(app: App, own: Sequence[Route], _: Request) -> Response:
    return answered(200, describe(app, own))


def _guarded(
    app: App, admit: Callable[[Request], None], answering: Callable[[Request], Awaitable[Result | Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            admit(request)
            app._life.count("requests", "http")  # of clients with a token: requests without one use up no ceiling
            address = request.client.host if request.client else "-"
            with operated_by(request.state.principal or "-", f"http {address}"):
                replied = await answering(request)
            return sent(replied) if isinstance(replied, Result) else replied
        except Exception as error:
            if isinstance(error, PenstockError) and not isinstance(error, MISTAKES):
                return refused(error)
            # A defect of Penstock: its traceback is for the log, not for the client.
            _log.exception("an answer failed: %s %s", request.method, request.url.path)
            return problem(500, "internal", "Penstock itself failed, and has logged it.")

    return answer


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name, message = {
        404: ("no_route", "There is nothing at this path."),
        405: ("bad_method", "This path does not support this method."),
    }.get(error.status_code, ("bad_request", str(error.detail)))
    return problem(error.status_code, name, message, headers=error.headers)
