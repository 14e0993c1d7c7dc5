"""Routes: what an app answers over HTTP. `@app.get("/v1/digests/{user}")` above an async function with typed parameters."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from penstock.contracts.clock import Clock
from penstock.model.arguments import SpanFromZero, checked
from penstock.model.errors import BadApp
from penstock.model.stack import function_place
from penstock.model.times import in_seconds

VERBS = ("status", "start", "stop", "reset", "tune")  # of a controller
RESERVED = ("/client", "/health", "/metrics", "/ui", "/static", "/openapi.json", "/v1/controllers", "/v1/operate")
CACHED_MAX = 1_000  # answers that are kept; a client that varies its query removes the oldest
EMPTY = inspect.Parameter.empty
_ALIAS = re.compile(r"/v1(/[a-z0-9][a-z0-9_-]*)+")
PATH = re.compile(r"/|(/(?!\.{1,2}(/|$))([\w.~:@-]|\{[A-Za-z_]\w*(:path)?\})+)+", re.ASCII)
_PLACE = re.compile(r"\{(\w+)(:path)?\}", re.ASCII)
_SCOPE = re.compile(r"[a-z][a-z0-9_-]*:[a-z0-9_-]+")
_HEADER = re.compile(r"[^\r\n\0]*")
_PLAIN = (str, int, float, Enum, UUID, date, time, Decimal)  # what the text of a parameter can stand for

_log = logging.getLogger("penstock.web")
AnyHandler = TypeVar("AnyHandler", bound=Callable[..., Any])
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """The `auth=` of a route that another service calls: its header `X-Service-Key` holds the secret.

    The secret is the environment variable of this name, or a token of this name in `penstock.toml`.
    """

    name: str = "SERVICE_KEY"


Auth = str | ServiceKey | None


@dataclass(frozen=True, slots=True)
class Request:
    """The request that a route answers, for a route with a parameter of this type."""

    method: str
    path: str
    headers: Mapping[str, str]  # by names in any case
    query: Mapping[str, list[str]]
    principal: str  # the name of the token or service key; empty where the route needs none
    scopes: frozenset[str]
    client: str  # the address that the request came from


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer without the envelope: bytes, text, an async iterator of bytes, or a value that becomes JSON."""

    content: Any = b""
    content_type: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for text in (self.content_type or "", *self.headers, *self.headers.values()):
            if not _HEADER.fullmatch(text):
                raise BadApp(f"{text[:100]!r} is not a valid header of an answer: it contains a line break or NUL.")


@dataclass(frozen=True, slots=True)
class Redirect:
    """An answer that sends the client to another address."""

    url: str
    status: int = 303


class Parameter(NamedTuple):
    """A parameter of a route's function, and the part of the request that it is read from."""

    name: str
    place: Literal["path", "query", "body", "raw", "request"]
    kind: Any
    default: Any = EMPTY

    @property
    def is_repeated(self) -> bool:
        return _is_list(self.kind)


class Route(NamedTuple):
    method: str
    path: str
    function: Callable[..., Any]
    auth: Auth
    status: int
    cache: float
    parameters: tuple[Parameter, ...]
    answer: Any  # the annotation of what the function returns

    @property
    def shape(self) -> str:
        """The path without the names of its parameters: two routes of one shape answer the same requests."""
        return shape_of(self.path)

    @property
    def order(self) -> list[tuple[bool, bool, int, str]]:
        """The sort key that puts `/v1/notes/latest` before `/v1/notes/{id}.ics`, and that before `/v1/notes/{id}`."""
        return [(":path}" in each, "{" in each, -len(each), each) for each in self.shape.split("/")]

    @property
    def is_status(self) -> bool:
        """Whether a token and its path alone get an answer: `penstock smoke` calls such routes."""
        given = [each for each in self.parameters if each.place != "request" and each.default is EMPTY]
        is_get = self.method == "GET" and not inspect.isasyncgenfunction(self.function)
        return is_get and not given and not isinstance(self.auth, ServiceKey)

    def at(self, place: str) -> Parameter | None:
        return next((each for each in self.parameters if each.place == place), None)


class Routes:
    """The routes of one app."""

    def __init__(self, clock: Clock) -> None:
        self.known: dict[tuple[str, str], Route] = {}  # by method and shape
        self.aliases: dict[str, str] = {}  # further paths of controllers: `/v1/prices/status` and its controller's name
        self._clock = clock
        self._kept: OrderedDict[object, tuple[float, Any]] = OrderedDict()  # cached answers, with the time of each

    def ordered(self) -> list[Route]:
        """Return all routes in the order in which a request is compared with them."""
        return sorted(self.known.values(), key=lambda route: route.order)

    def add(
        self, method: Method, path: str, auth: Auth, status: int, cache: float = 0.0
    ) -> Callable[[AnyHandler], AnyHandler]:
        if PATH.fullmatch(path) is None or path in self.aliases:
            raise BadApp(
                f"{path!r} cannot be a route: write letters, digits, `{{name}}` and . _ ~ : @ - between slashes, without a "
                "slash at the end; no alias of a controller.",
                path=path,
            )
        if any(path == each or path.startswith(f"{each}/") for each in RESERVED):
            raise BadApp(f"{path!r} cannot be a route: {', '.join(RESERVED)} and subpaths are reserved.", path=path)
        if isinstance(auth, str) and not _SCOPE.fullmatch(auth):
            raise BadApp(f"{method} {path}: auth is {auth!r}; write a scope such as app:read, or None for anyone.")
        if not 200 <= status <= 299:
            raise BadApp(f"{method} {path}: status is {status}; give 200 to 299. Other answers are `ps.Reply`.")

        def register(function: AnyHandler) -> AnyHandler:
            parameters, answer = read_signature(method, path, function)
            route = Route(method, path, function, auth, status, cache, parameters, answer)
            if (method, route.shape) in self.known:
                raise BadApp(f"{method} {path} cannot be a route: it has a function already.", path=path)
            if cache and (route.at("request") or inspect.isasyncgenfunction(function)):
                raise BadApp(f"{method} {path}: an answer that is a stream or depends on its request cannot be cached.")
            self.known[method, route.shape] = route
            return function

        return register

    @checked
    def alias(self, path: str, controller: str) -> None:
        """Lets `{path}/status` and the other verbs reach a controller as `/v1/controllers/{controller}/status` does."""
        verbs = [f"{path}/{verb}" for verb in VERBS]
        taken = {shape for _, shape in self.known} | set(self.aliases)
        if _ALIAS.fullmatch(path) is None or taken & set(verbs):
            raise BadApp(
                f"{path!r} cannot be a route: write /v1/ and small letters, digits and -; each path has one function.",
                path=path,
            )
        self.aliases |= dict.fromkeys(verbs, controller)

    def forget(self) -> None:
        """Drop cached answers: they are of the database that was open before, by its clock."""
        self._kept.clear()

    def cached(self, key: object, seconds: float) -> Any:
        """Return the answer kept under this key, or None if there is none or it is older than this."""
        at, answer = self._kept.get(key, (0.0, None))
        return None if self._clock.monotonic() - at > seconds else answer

    def keep(self, key: object, answer: object) -> None:
        self._kept[key] = (self._clock.monotonic(), answer)
        while len(self._kept) > CACHED_MAX:
            self._kept.popitem(last=False)


class Routed:
    """The part of an app that answers over HTTP."""

    routes: Routes

    @checked
    def get(
        self, path: str, *, auth: Auth = "app:read", cache: SpanFromZero = 0.0, status: int = 200
    ) -> Callable[[AnyHandler], AnyHandler]:
        """Answer GET requests: `@app.get("/v1/digests/{user}")`.

        The function's parameters are those of the path, then those of the query. `auth` is the scope that the token needs, a
        `ps.ServiceKey`, or None for anyone. With `cache` an answer is repeated for that many seconds."""
        return self.routes.add("GET", path, auth, status, in_seconds(cache))

    @checked
    def post(self, path: str, *, auth: Auth = "app:write", status: int = 200) -> Callable[[AnyHandler], AnyHandler]:
        """Answer POST requests: `@app.post("/v1/notes", status=201)`.

        A parameter whose type is a struct, dataclass, dict or list of these is the JSON body. What the function writes and
        sends is committed before the answer is sent, once for each `Idempotency-Key`."""
        return self.routes.add("POST", path, auth, status)

    @checked
    def put(self, path: str, *, auth: Auth = "app:write", status: int = 200) -> Callable[[AnyHandler], AnyHandler]:
        """Answer PUT requests, as `post` does."""
        return self.routes.add("PUT", path, auth, status)

    @checked
    def patch(self, path: str, *, auth: Auth = "app:write", status: int = 200) -> Callable[[AnyHandler], AnyHandler]:
        """Answer PATCH requests, as `post` does."""
        return self.routes.add("PATCH", path, auth, status)

    @checked
    def delete(self, path: str, *, auth: Auth = "app:write", status: int = 200) -> Callable[[AnyHandler], AnyHandler]:
        """Answer DELETE requests, as `post` does."""
        return self.routes.add("DELETE", path, auth, status)

    def asgi(self: Any, *, run: bool = False) -> Any:
        """Return the app as an ASGI application, for a server or to mount into FastAPI and Starlette.

        Its lifespan opens and closes the database; with `run` it also runs the handlers in this process."""
        from penstock.web.site import make_site  # only where HTTP is served: its libraries take a while to load

        return make_site(self, lifespan=lambda _: self.lifespan(run=run))

    @asynccontextmanager
    async def lifespan(self: Any, _: object = None, *, run: bool = False) -> AsyncIterator[None]:
        """Open the database for the lifetime of a server: `FastAPI(lifespan=app.lifespan)`. With `run`, also run handlers."""
        async with self:
            running = asyncio.create_task(self.run()) if run else None
            if running is not None:
                running.add_done_callback(_report_end)
            try:
                yield
            finally:
                if running is not None:
                    self.stop()
                    await running


def _report_end(running: asyncio.Task[None]) -> None:
    if not running.cancelled() and (error := running.exception()) is not None:
        _log.critical("the worker of this server ended: %s", error, exc_info=error)


def shape_of(path: str) -> str:
    """Return a path without the names of its parameters."""
    return _PLACE.sub(r"{\2}", path)


def read_signature(method: str, path: str, function: Callable[..., Any]) -> tuple[tuple[Parameter, ...], Any]:
    """Return where each parameter of a route's function is read from, and the annotation of its answer."""
    shown = f"The route {method} {path} is answered by {function_place(function)}, "
    if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        raise BadApp(f"{shown}which is not async. Write `async def`.", path=path)
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadApp(
            f"{shown}whose annotation {error.name!r} is unknown there. Define it at the module's top."
        ) from error
    places = {name: "path" for name, _ in _PLACE.findall(path)}
    if len(places) < len(_PLACE.findall(path)):
        raise BadApp(f"{shown}and names a parameter of the path twice.", path=path)
    found = []
    for name, declared in inspect.signature(function).parameters.items():
        kind = hints.get(name, str if name in places else EMPTY)
        if kind is EMPTY or declared.kind not in (declared.POSITIONAL_OR_KEYWORD, declared.KEYWORD_ONLY):
            raise BadApp(f"{shown}whose parameter {name!r} has no type. Annotate it.", parameter=name)
        place: Any = places.pop(name, None) or _place(kind)
        if place == "path" and not _is_plain(kind):
            raise BadApp(f"{shown}whose parameter {name!r} is part of the path and cannot be {kind}.", parameter=name)
        found.append(Parameter(name, place, kind, declared.default if place != "path" else EMPTY))
    if places:
        raise BadApp(f"{shown}which has no parameter {next(iter(places))!r} of the path.", parameter=next(iter(places)))
    bodies = [each for each in found if each.place in ("body", "raw")]
    if len(bodies) > 1 or (bodies and method == "GET"):
        problem = "a GET has no body" if method == "GET" else f"{bodies[0].name!r} is the body already"
        raise BadApp(
            f"{shown}whose parameter {bodies[-1].name!r} would be the body: {problem}.", parameter=bodies[-1].name
        )
    for each in found:
        if each.place not in ("raw", "request"):
            _check_kind(each, shown)
    return tuple(found), hints.get("return", EMPTY)


def _check_kind(parameter: Parameter, shown: str) -> None:
    try:
        msgspec.json.schema(parameter.kind)
    except (TypeError, NameError) as error:
        raise BadApp(
            f"{shown}whose parameter {parameter.name!r} cannot be read from a request: {error}. Use a msgspec.Struct, a "
            "dataclass or plain types.",
            parameter=parameter.name,
        ) from error


def _place(kind: Any) -> str:
    if kind is Request:
        return "request"
    if kind is bytes:
        return "raw"
    return "query" if _is_plain(kind) or _is_list(kind) else "body"


def _is_plain(kind: Any) -> bool:
    """Whether the text of one parameter can stand for it."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_plain(parts[0])
    if origin in (Union, UnionType):
        return all(part is NoneType or _is_plain(part) for part in parts)
    kind = getattr(kind, "__supertype__", kind)
    return origin is Literal or (isinstance(kind, type) and issubclass(kind, _PLAIN))


def _is_list(kind: Any) -> bool:
    """Whether it is a list, set or tuple of plain values, or such a list or None: a key that is repeated in the query."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_list(parts[0])
    if origin in (Union, UnionType):
        return all(part is NoneType or _is_list(part) for part in parts)
    return origin in (list, set, frozenset, tuple) and all(part is Ellipsis or _is_plain(part) for part in parts)


def is_stream(answer: Any) -> bool:
    """Whether an annotation says that a function answers with a stream."""
    return get_origin(answer) in (AsyncIterator, AsyncGenerator)
