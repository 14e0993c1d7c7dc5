"""The OpenAPI 3.1 description of a site: an app's routes with their types, and Penstock's own by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec
from starlette.routing import Route as HttpRoute

from penstock.app import App
from penstock.routes import EMPTY, Redirect, Reply, Route, ServiceKey, is_stream

SCHEMAS = "#/components/schemas/{name}"


class PenstockProblem(msgspec.Struct):
    """Why a request is refused: `details.field` names the part of the request that is wrong."""

    code: int
    message: str
    name: str
    details: dict[str, Any]


class PenstockEnvelope(msgspec.Struct):
    """The form of every answer that is no content of its own."""

    success: bool
    errors: list[PenstockProblem]
    messages: list[dict[str, Any]]
    result: Any


ENVELOPE = {"application/json": {"schema": {"$ref": "#/components/schemas/PenstockEnvelope"}}}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "The same key with the same request repeats the stored answer and has no further effect.",
}


def describe(app: App, own: Iterable[HttpRoute]) -> dict[str, Any]:
    """Return the description of an app's routes and of these of Penstock's own."""
    routes = app.routes.ordered()
    kinds = [*(kind for route in routes for kind in _kinds(route)), PenstockEnvelope]
    shown, components = msgspec.json.schema_components(kinds, ref_template=SCHEMAS)
    schemas = iter(shown)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_path(route.path), {})[route.method.lower()] = _operation(route, schemas)
    for each in own:
        for method in sorted((each.methods or set()) - {"HEAD"}):
            paths.setdefault(_path(each.path), {})[method.lower()] = _of_penstock(each, method)
    keys = {route.auth.name for route in routes if isinstance(route.auth, ServiceKey)}
    header = {"type": "apiKey", "in": "header", "name": "X-Service-Key"}
    return {
        "openapi": "3.1.0",
        "info": {"title": app.name, "version": "1"},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {"Error": {"description": "The request is refused: `errors` says why.", "content": ENVELOPE}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}, **dict.fromkeys(sorted(keys), header)},
        },
    }


def _kinds(route: Route) -> Iterator[Any]:
    """Yield the types of a route in the order in which `_operation` takes their schemas."""
    for each in route.parameters:
        if each.place in ("path", "query", "body"):
            yield each.kind
    yield _answer(route.answer)


def _answer(answer: Any) -> Any:
    """Return the type of the value inside the envelope, as far as it can be described."""
    try:
        msgspec.json.schema(answer)
    except (TypeError, NameError, RecursionError):
        return Any
    return Any if answer is EMPTY else answer


def _operation(route: Route, schemas: Iterator[dict[str, Any]]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [] if route.method == "GET" else [IDEMPOTENCY_KEY]
    found: dict[str, Any] = {}
    for each in route.parameters:
        required = each.default is EMPTY
        if each.place in ("path", "query"):
            parameters.append({"name": each.name, "in": each.place, "required": required, "schema": next(schemas)})
        elif each.place == "body":
            found["requestBody"] = {"required": required, "content": {"application/json": {"schema": next(schemas)}}}
        elif each.place == "raw":
            found["requestBody"] = {"content": {"*/*": {}}}
    said = inspect.getdoc(route.function) or route.function.__name__.replace("_", " ")
    name = f"{route.function.__name__}_{route.method.lower()}_{re.sub(r'[^A-Za-z0-9]+', '_', route.path).strip('_')}"
    return {
        "operationId": name,
        "summary": said.partition("\n")[0],
        "parameters": parameters,
        **found,
        "responses": {**_responses(route, next(schemas)), "default": {"$ref": "#/components/responses/Error"}},
        "security": _security(route.auth),
    }


def _responses(route: Route, schema: dict[str, Any]) -> dict[str, Any]:
    if route.status in (204, 205):
        return {str(route.status): {"description": "Done; no content."}}
    kinds = {route.answer, *get_args(route.answer)} if route.answer is not EMPTY else set()
    if is_stream(route.answer) or kinds & {Reply, Redirect, bytes}:
        return {"2XX": {"description": "The content.", "content": {"*/*": {}}}, "3XX": {"description": "Elsewhere."}}
    inside = {"type": "object", "properties": {"result": schema}}
    whole = {"allOf": [{"$ref": "#/components/schemas/PenstockEnvelope"}, inside]}
    return {str(route.status): {"description": "The result.", "content": {"application/json": {"schema": whole}}}}


def _security(auth: object) -> list[dict[str, list[str]]]:
    if auth is None:
        return []
    return [{auth.name: []}] if isinstance(auth, ServiceKey) else [{"token": [str(auth)]}]


def _of_penstock(route: HttpRoute, method: str) -> dict[str, Any]:
    names = route.param_convertors
    return {
        "operationId": f"penstock_{method.lower()}_{re.sub(r'[^A-Za-z0-9]+', '_', route.path).strip('_')}",
        "summary": "See Penstock's guide on HTTP.",
        "parameters": [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names],
        "responses": {
            "200": {"description": "The result.", "content": ENVELOPE},
            "default": {"$ref": "#/components/responses/Error"},
        },
        "security": [] if route.path.startswith("/health") else [{"token": []}],
    }


def _path(path: str) -> str:
    return path.replace(":path}", "}")
