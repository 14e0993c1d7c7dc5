"""Routes of an app: typed arguments, one commit before the answer, answers that can be repeated, and who may call them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest

import penstock as ps
from penstock.model.errors import BadApp
from penstock.testing import TestApp, virtual
from tests.flow.notes import Note, Unreadable, error
from tests.web.outside import shop_app


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float = 0.0


# -- arguments ------------------------------------------------------------------------------------------------------


def echo_app() -> ps.App:
    app = shop_app()

    @app.get("/echo/{number}/{colour}", auth=None)
    async def echo(
        number: int,
        colour: Colour,
        limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20,
        share: float = 0.5,
        exact: bool = False,
        id: UUID | None = None,
        day: date | None = None,
        since: datetime | None = None,
        kind: Literal["new", "old"] = "new",
        tag: list[str] = [],  # noqa: B006
    ) -> list[Any]:
        return [number, colour, limit, share, exact, id, day, since, kind, tag]

    @app.get("/files/{name:path}", auth=None)
    async def file(name: str, q: str) -> str:
        return f"{name}?{q}"

    @app.put("/point", auth=None)
    async def point(point: Point) -> Point:
        return point

    @app.patch("/points", auth=None)
    async def points(points: dict[str, Point] | None = None) -> object:
        return points

    @app.post("/raw", auth=None)
    async def raw(body: bytes, request: ps.Request) -> list[object]:
        return [len(body), request.headers["X-Signature"], request.client]

    return app


@virtual
async def test_the_path_and_the_query_give_typed_arguments() -> None:
    async with TestApp(echo_app()) as shop, shop.client() as client:
        plain = await client.get("/echo/7/red")
        full = await client.get(
            "/echo/-7/red?limit=100&share=0.25&exact=true&id=00000000-0000-0000-0000-000000000007&day=2026-02-03"
            "&since=2026-02-03T04:05:06Z&kind=old&tag=a&tag=b%20c&unknown=1"
        )
        path = await client.get("/files/a/b.txt?q=")

    assert plain.json()["result"] == [7, "red", 20, 0.5, False, None, None, None, "new", []]
    id = "00000000-0000-0000-0000-000000000007"
    assert full.json()["result"] == [
        -7,
        "red",
        100,
        0.25,
        True,
        id,
        "2026-02-03",
        "2026-02-03T04:05:06Z",
        "old",
        ["a", "b c"],
    ]
    assert path.json()["result"] == "a/b.txt?"


@pytest.mark.parametrize(
    "path, field",
    [
        ("/echo/x/red", "number"),
        ("/echo/1.5/red", "number"),
        (f"/echo/{'9' * 30}/red", "number"),
        (f"/echo/{'9' * 5_000}/red", "number"),
        ("/echo/1/blue", "colour"),
        ("/echo/1/red?limit=0", "limit"),
        ("/echo/1/red?limit=", "limit"),
        ("/echo/1/red?limit=1&limit=2", "limit"),
        ("/echo/1/red?share=nan", "share"),
        ("/echo/1/red?share=1e999", "share"),
        ("/echo/1/red?exact=maybe", "exact"),
        ("/echo/1/red?id=7", "id"),
        ("/echo/1/red?day=2026-02-30", "day"),
        ("/echo/1/red?since=yesterday", "since"),
        ("/echo/1/red?kind=NEW", "kind"),
        ("/echo/1/red?tag=a%00", "tag"),
        ("/echo/1/red?tag=%ff", "query"),
        ("/echo/1/red?" + "a=1&" * 1_001, "query"),
        ("/files/a%ff?q=1", "query"),
        ("/files/a%00?q=1", "name"),
        ("/files/a", "q"),
    ],
)
@virtual
async def test_a_wrong_argument_is_a_422_that_names_it(path: str, field: str) -> None:
    async with TestApp(echo_app()) as shop, shop.client() as client:
        assert error(await client.get(path)) == (422, "bad_field", field)


@pytest.mark.parametrize(
    "body, expected",
    [
        (b'{"x": 1, "y": 2}', None),
        (b'{"x": "1"}', (422, "bad_field", "x")),
        (b"{}", (422, "bad_field", "x")),
        (b"[1]", (422, "bad_field", "")),
        (b"", (400, "bad_json", None)),
        (b"{", (400, "bad_json", None)),
        (b'{"x": 1, "x": 2}', (400, "bad_json", None)),
        (b'{"x": 1, "y": NaN}', (400, "bad_json", None)),
        (b'{"x": ' + b"9" * 30 + b"}", (400, "bad_json", None)),
        (b'{"x": "\\u0000"}', (400, "bad_json", None)),
        (b'{"x": "\xff"}', (400, "bad_json", None)),
        (b"[" * 100_000, (400, "bad_json", None)),
        (b'{"x": 1}' + b" " * 4_200_000, (413, "message_too_large", None)),
    ],
)
@virtual
async def test_a_wrong_body_is_refused_with_its_field_or_position(body: bytes, expected: object) -> None:
    async with TestApp(echo_app()) as shop, shop.client() as client:
        answer = await client.put("/point", content=body)
        if expected is None:
            assert answer.json()["result"] == {"x": 1, "y": 2.0}
        else:
            assert error(answer) == expected


@virtual
async def test_bodies_may_be_absent_nested_or_raw() -> None:
    async with TestApp(echo_app()) as shop, shop.client() as client:
        absent = await client.patch("/points")
        nested = await client.patch("/points", json={"a": {"x": 1}, "b": {"x": "2"}})
        raw = await client.post(
            "/raw", content=b"\xff\x00", headers={"x-signature": "v1", "content-type": "text/plain"}
        )
        form = await client.put("/point", data={"x": "1"})

    assert absent.json()["result"] is None
    assert error(nested)[:2] == (422, "bad_field")
    assert nested.json()["errors"][0]["details"]["field"].endswith(".x")
    assert raw.json()["result"] == [2, "v1", "127.0.0.1"]
    assert error(form)[:2] == (415, "bad_kind")


@virtual
async def test_the_more_exact_path_is_taken_and_other_methods_are_a_405() -> None:
    app = shop_app()
    for path in ("/{any:path}", "/{id}", "/{id}.ics", "/latest", "/{id}/notes", "/latest/{note}"):
        parameters = [f"{name}: str" for name in ("any", "id", "note") if f"{{{name}" in path]
        made: dict[str, Any] = {"path": path}
        exec(f"async def answer({', '.join(parameters)}) -> str: return path", made)
        app.get(path, auth=None)(made["answer"])

    @app.post("/latest", auth=None)
    async def renew() -> str:
        return "renewed"

    async with TestApp(app) as shop, shop.client() as client:
        found = [
            (await client.get(path)).json()["result"]
            for path in ("/latest", "/7", "/7.ics", "/latest/notes", "/7/notes", "/a/b/c")
        ]
        posted = await client.post("/latest")
        refused = await client.put("/latest")

    assert found == ["/latest", "/{id}", "/{id}.ics", "/latest/{note}", "/{id}/notes", "/{any:path}"]
    assert posted.json()["result"] == "renewed"
    assert error(refused)[:2] == (405, "bad_method")


# -- answers --------------------------------------------------------------------------------------------------------


@virtual
async def test_an_answer_is_a_value_bytes_a_redirect_or_a_stream() -> None:
    app = shop_app()
    closed: list[str] = []

    @app.get("/bytes", auth=None)
    async def some_bytes() -> bytes:
        return b"\x00\xff"

    @app.get("/feed", auth=None)
    async def feed() -> ps.Reply:
        return ps.Reply("<rss/>", "application/rss+xml", headers={"etag": '"1"'})

    @app.get("/bare", auth=None)
    async def bare() -> ps.Reply:
        return ps.Reply({"at": datetime(2026, 1, 2, tzinfo=UTC)}, status=418)

    @app.get("/old", auth=None)
    async def old() -> ps.Redirect:
        return ps.Redirect("/feed?a=ü\r\nset-cookie: x")

    @app.get("/stream", auth=None)
    async def stream(count: int = 3) -> AsyncIterator[str]:
        try:
            for number in range(count):
                yield f"{number}\n"
        finally:
            closed.append("stream")

    async with TestApp(app) as shop, shop.client() as client:
        raw, rss, json, moved, streamed = [
            await client.get(path) for path in ("/bytes", "/feed", "/bare", "/old", "/stream")
        ]

    assert (raw.content, raw.headers["content-type"]) == (b"\x00\xff", "application/octet-stream")
    assert (rss.text, rss.headers["content-type"], rss.headers["etag"]) == ("<rss/>", "application/rss+xml", '"1"')
    assert (json.status_code, json.json()) == (418, {"at": "2026-01-02T00:00:00Z"})
    assert (moved.status_code, "set-cookie" in moved.headers) == (303, False)
    assert (streamed.text, closed) == ("0\n1\n2\n", ["stream"])
    with pytest.raises(BadApp, match="line break"):
        ps.Reply("", headers={"x": "a\r\nset-cookie: b"})


@virtual
async def test_a_stream_that_stalls_is_cut_and_holds_no_unit() -> None:
    app = shop_app("cloudflare")
    failed: list[str] = []

    @app.post("/stream", auth=None)
    async def stream() -> ps.Reply:
        app.db.write("insert into items (name) values ('begun')")
        return ps.Reply(chunks())

    async def chunks() -> AsyncIterator[bytes]:
        assert await app.db.column("select name from items limit 2") == ["begun"]
        try:
            app.db.write("insert into items (name) values ('lost')")
        except ps.NoUnit as error:
            failed.append(type(error).__name__)
        yield b"x"
        await asyncio.sleep(31)
        yield b"never"

    async with TestApp(app) as shop, shop.client() as client:
        before = shop.now
        with pytest.raises(ps.PenstockError, match="longer than 30 s"):
            await client.post("/stream")
        assert (shop.now - before).total_seconds() == 30
    assert failed == ["NoUnit"]


@virtual
async def test_a_cached_answer_is_repeated_for_the_same_arguments() -> None:
    app = shop_app()
    runs: list[int] = []

    @app.get("/size", cache=60, auth=None)
    async def size(of: int = 0) -> int:
        runs.append(of)
        return len(runs)

    async with TestApp(app) as shop, shop.client() as client:
        found = [
            (await client.get(path)).json()["result"] for path in ("/size", "/size?of=1", "/size?of=0", "/size?of=1")
        ]
        await shop.advance(seconds=61)
        later = (await client.get("/size")).json()["result"]
        for number in range(1_100):
            await client.get(f"/size?of={number}")
        assert len(app.routes._kept) == 1_000

    assert (found, later) == ([1, 2, 1, 2], 3)


# -- who may call ---------------------------------------------------------------------------------------------------


@virtual
async def test_a_route_asks_for_its_scope_or_service_key_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILLING_KEY", "s3cret")
    app = shop_app()
    routes: dict[str, dict[str, Any]] = {
        "/default": {},
        "/custom": {"auth": "digests:write"},
        "/service": {"auth": ps.ServiceKey("BILLING_KEY")},
        "/unset": {"auth": ps.ServiceKey()},
        "/open": {"auth": None},
    }
    for path, given in routes.items():

        async def who(request: ps.Request) -> str:
            return request.principal

        app.post(path, **given)(who)

    async def asked(*scopes: str, **headers: str) -> list[int]:
        async with shop.client(*scopes) as client:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            return [(await client.post(path, headers=sent)).status_code for path in routes]

    async with TestApp(app) as shop:
        assert await asked("app:write") == [200, 403, 401, 401, 200]
        assert await asked("app:read", "digests:write") == [403, 200, 401, 401, 200]
        assert await asked("app:read", x_service_key="s3cret") == [403, 403, 200, 401, 200]
        assert await asked("app:read", x_service_key="wrong") == [403, 403, 401, 401, 200]
        assert await asked("*", x_service_key="") == [200, 200, 401, 401, 200]
        assert await asked("*", authorization="Bearer s3cret") == [401, 401, 401, 401, 200]


# -- declaring ------------------------------------------------------------------------------------------------------


async def fine(user: str) -> None: ...
async def two_bodies(user: str, one: Note, two: Point) -> None: ...
async def odd(user: str, value: Unreadable) -> None: ...
async def untyped(user, value) -> None: ...  # type: ignore[no-untyped-def]
async def open_ended(user: str, *values: str) -> None: ...
async def no_user() -> None: ...
async def listed(user: list[str]) -> None: ...
async def unknown(user: str, value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def blocking(user: str) -> None: ...


@pytest.mark.parametrize(
    "function, told",
    [
        (two_bodies, "'two' would be the body: 'one' is the body already"),
        (odd, "'value' cannot be read from a request"),
        (untyped, "'value' has no type"),
        (open_ended, "'values' has no type"),
        (no_user, "no parameter 'user'"),
        (listed, "'user' is part of the path"),
        (unknown, "'Nowhere' is unknown"),
        (blocking, "not async"),
    ],
)
def test_a_function_that_cannot_answer_is_refused_where_it_is_declared(function: Any, told: str) -> None:
    with pytest.raises(BadApp, match=told):
        shop_app().post("/v1/{user}")(function)


@pytest.mark.parametrize(
    "path",
    [
        *("/client", "/client/x", "/health/{user}", "/metrics", "/ui/{user}", "/static/a", "/openapi.json"),
        *(
            "/v1/controllers/{user}/status",
            "",
            "v1",
            "/v1/",
            "//",
            "/a//b",
            "/a/../b",
            "/a b",
            "/{user}/{user}",
            "/{1}",
            "/{user:int}",
        ),
    ],
)
def test_a_path_that_is_reserved_or_none_is_refused(path: str) -> None:
    with pytest.raises(BadApp):
        shop_app().post(path)(fine)


def test_two_functions_for_one_path_and_a_get_with_a_body_are_refused() -> None:
    app = shop_app()
    app.post("/v1/{user}")(fine)
    app.put("/v1/{user}")(fine)
    app.post("/clients/{user}")(fine)

    async def other(name: str) -> None: ...
    async def asks(user: str, request: ps.Request) -> None: ...
    async def reads(user: str, note: Note) -> None: ...

    with pytest.raises(BadApp, match="has a function already"):
        app.post("/v1/{name}")(other)
    with pytest.raises(BadApp, match="a GET has no body"):
        app.get("/v1/{user}")(reads)
    with pytest.raises(BadApp, match="cannot be cached"):
        app.get("/v1/{user}", cache=5)(asks)
