"""The site: which route needs which scopes, and one place where every failure becomes an answer."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock.app import App
from penstock.model.errors import HandlerExit, PenstockError
from penstock.runtime.clock import HostClock
from penstock.runtime.slots import Metered, Slot, contained
from penstock.web.controllers import CONTROLLERS_READ, CONTROLLERS_WRITE, Answering, ControllerRoutes
from penstock.web.d1 import D1
from penstock.web.health import Health
from penstock.web.messages import Messages
from penstock.web.reply import Reply, TooSlow, problem, refused, sent
from penstock.web.tokens import APP_READ, QUEUES_READ, QUEUES_WRITE, Keyring, Token, configured, require

ACCOUNT = "/client/v4/accounts/{account}"  # any account will do: there is one, and it is called `local`

_log = logging.getLogger("penstock.web")


def make_site(app: App, *, tokens: Iterable[Token] | None = None, now: Callable[[], int] | None = None) -> Starlette:
    """An ASGI application for the app's queues and database. Without `tokens` those of the configuration count; `now`
    gives microseconds."""
    keyring = Keyring(configured(app.config, os.environ) if tokens is None else tokens)
    messages, d1, health = Messages(app), D1(app), Health(app, now or HostClock().now)
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
        Route(ACCOUNT + path, _guarded(app, keyring, needed, answering), methods=["POST"])
        for path, answering, needed in posts
    ]
    for path, verb, answering in ControllerRoutes(app).paths():
        scope, method = (CONTROLLERS_READ, "GET") if verb == "status" else (CONTROLLERS_WRITE, "POST")
        routes.append(Route(path, _guarded(app, keyring, [scope], answering), methods=[method]))
    for own in app.routes.known.values():
        allowed = app.limits.http_invocation
        in_time = _in_time(allowed.wall_seconds, allowed.cpu_seconds, own.answer)
        routes.append(Route(own.path, _guarded(app, keyring, [APP_READ], in_time), methods=["GET"]))
    routes += [Route("/health", health.shallow), Route("/health/deep", health.deep)]
    site = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    site.router.redirect_slashes = False  # it would answer outside the envelope, with the client's Host header in it
    return site


def _guarded(
    app: App, keyring: Keyring, needed: Sequence[str], answering: Answering
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            request.state.scopes = keyring.scopes(request.headers.get("authorization"))
            require(request.state.scopes, needed)
            app._life.count("requests", "http")  # of those who may come in: a stranger uses up nobody's ceiling
            return sent(await answering(request))
        except Exception as error:
            if isinstance(error, PenstockError) and not isinstance(error, HandlerExit):
                return refused(error)
            # A mistake of ours: its traceback is for the log, not for whoever ran into it.
            _log.exception("an answer failed: %s %s", request.method, request.url.path)
            return problem(500, "internal", "Penstock itself failed, and has logged it.")

    return answer


def _in_time(seconds: float, cpu_seconds: float | None, answer: Callable[[], Awaitable[object]]) -> Answering:
    """A route of the app's own, within the wall and the processor time of its profile."""

    async def reply(_: Request) -> Reply:
        slot = Slot(0)
        slot.task = asyncio.current_task()
        try:
            async with asyncio.timeout(seconds) as limit:
                work: Any = answer()
                if cpu_seconds is not None:
                    work = Metered(work, slot, cpu_seconds)
                return Reply(await contained(work))
        except asyncio.CancelledError as error:
            if slot.overdue != "cpu" or slot.task is None:
                raise
            slot.task.uncancel()
            raise TooSlow(f"The answer held the processor for over {cpu_seconds:g} s, and was given up.") from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TooSlow(f"The answer took longer than {seconds:g} s, and was given up.") from error

    return reply


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name, message = {
        404: ("no_route", "There is nothing at this path."),
        405: ("bad_method", "This path does not take this method."),
    }.get(error.status_code, ("bad_request", str(error.detail)))
    return problem(error.status_code, name, message, headers=error.headers)
