"""`/openapi.json`: a valid description of every route, which the answers keep to."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest
from openapi_spec_validator import validate
from starlette.routing import Route

import penstock as ps
from penstock.testing import TestApp, virtual
from penstock.web.site import make_site
from tests.flow.notes import Note, noted_app
from tests.web.test_user_routes import echo_app


def described_app() -> ps.App:
    app = noted_app()
    app.routes.known |= echo_app().routes.known

    @app.post("/hooks/{name:path}", auth=ps.ServiceKey("HOOK_KEY"))
    async def hook(name: str, body: bytes) -> ps.Reply:
        return ps.Reply(body)

    @app.get("/odd")
    async def odd(tag: list[int] | None = None) -> complex:
        return 1j

    @app.controller("prices", alias="/v1/prices")
    class Prices(ps.Controller[str]):
        async def pick(self, limit: int) -> list[str]:
            return []

        async def work(self, item: str) -> None: ...

    return app


@virtual
async def test_the_description_is_valid_and_names_every_route() -> None:
    app = described_app()
    async with TestApp(app) as shop, shop.client("nothing:else") as client:
        told = (await client.get("/openapi.json")).json()
        stranger = await client.get("/openapi.json", headers={"authorization": "Bearer x"})

    validate(told)
    served = {
        (route.path.replace(":path}", "}"), method.lower())
        for route in make_site(app, tokens=[]).routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(path, method) for path, methods in told["paths"].items() for method in methods}
    assert described == served - {("/openapi.json", "get"), ("/", "get"), ("/ui", "get"), ("/metrics", "get")}
    assert stranger.status_code == 401


@virtual
async def test_parameters_bodies_answers_and_auth_are_described() -> None:
    async with TestApp(described_app()) as shop, shop.client() as client:
        told = (await client.get("/openapi.json")).json()

    echo, add, hook = (
        told["paths"][path][method]
        for path, method in (
            ("/echo/{number}/{colour}", "get"),
            ("/v1/items/{name}", "post"),
            ("/hooks/{name}", "post"),
        )
    )
    parameters = {each["name"]: each for each in echo["parameters"]}
    assert parameters["number"] == {"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100}
    assert (parameters["limit"]["required"], echo["security"]) == (False, [])
    assert add["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Note"}
    assert (add["security"], hook["security"]) == ([{"token": ["app:write"]}], [{"HOOK_KEY": []}])
    assert "Idempotency-Key" in {each["name"] for each in add["parameters"]}
    assert "Note" in told["components"]["schemas"]


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("post", "/v1/items/{name}", Note(text="a", tags=["b"])),
        ("post", "/v1/items/{name}", {"text": 1}),
        ("get", "/v1/items", None),
        ("put", "/point", {"x": 1, "y": 2.5}),
        ("get", "/odd", None),
    ],
)
@virtual
async def test_an_answer_keeps_to_its_description(method: str, path: str, body: Any) -> None:
    async with TestApp(described_app()) as shop, shop.client() as client:
        told = (await client.get("/openapi.json")).json()
        content = b"" if body is None else msgspec.json.encode(body)
        answer = await client.request(method, path.format(name="lamp"), content=content)

    responses = told["paths"][path][method]["responses"]
    found = responses.get(str(answer.status_code)) or told["components"]["responses"]["Error"]
    schema = {**found["content"]["application/json"]["schema"], "components": told["components"]}
    jsonschema.validate(answer.json(), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**answer.json(), "errors": 5}, schema)
