"""Controllers over HTTP: what one does, and start, stop, reset and tune. Every path is matched whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
from starlette.requests import Request

from penstock.app import App
from penstock.model.errors import BadMessage, BadParameter, NoSuchController, PenstockError
from penstock.objects.host import Elsewhere
from penstock.routes import VERBS
from penstock.web.intake import BadField, read_json
from penstock.web.reply import Result, UnknownPath

CONTROLLERS_READ, CONTROLLERS_WRITE = "controllers:read", "controllers:write"
REQUEST_BYTES_MAX = 10_000  # a few numbers
Answering = Callable[[Request], Awaitable[Result]]


class BadTune(PenstockError):
    """What is to be tuned does not fit."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a reset."""

    keep_stopped: bool = False


class ControllerRoutes:
    """The routes under `/v1/controllers/{name}` and under the aliases of controllers."""

    def __init__(self, app: App) -> None:
        self._app = app

    def paths(self) -> Iterator[tuple[str, str, Answering]]:
        """Yield each path with its verb and what answers it."""
        for verb in VERBS:
            yield f"/v1/controllers/{{name}}/{verb}", verb, getattr(self, verb)
        for path, name in self._app.routes.aliases.items():
            verb = path.rpartition("/")[2]
            yield path, verb, _aliased(getattr(self, verb), name)

    async def status(self, request: Request) -> Result:
        try:
            return Result(await self._app.controllers.status(_name(request)))
        except NoSuchController as error:
            raise UnknownPath(str(error)) from error

    async def start(self, request: Request) -> Result:
        return await self._operate(request, "start", {})

    async def stop(self, request: Request) -> Result:
        return await self._operate(request, "stop", {})

    async def reset(self, request: Request) -> Result:
        wanted = await read_json(request, Wanted, REQUEST_BYTES_MAX, may_be_empty=True)
        return await self._operate(request, "reset", {"keep_stopped": wanted.keep_stopped})

    async def tune(self, request: Request) -> Result:
        try:
            wanted = await read_json(request, dict[str, Any], REQUEST_BYTES_MAX, may_be_empty=True)
        except BadField as error:
            raise BadTune(str(error)) from error
        if not wanted or None in wanted.values():
            raise BadTune("Name what to tune: rate and parallel, or batch_size and interval_ms.")
        return await self._operate(request, "tune", wanted)

    async def _operate(self, request: Request, verb: str, wanted: dict[str, Any]) -> Result:
        controllers, name = self._app.controllers, _name(request)
        try:
            return Result(await controllers.operate(name, verb, **wanted))
        except NoSuchController as error:
            raise UnknownPath(str(error)) from error
        except (BadMessage, BadParameter) as error:
            raise BadTune(error.message, **error.facts) from error
        except Elsewhere as error:
            return Result(await controllers.status(name), [str(error)])


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _aliased(answering: Answering, name: str) -> Answering:
    async def answer(request: Request) -> Result:
        request.path_params["name"] = name
        return await answering(request)

    return answer
