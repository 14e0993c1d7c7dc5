"""Whatever path, query and body a route gets, it answers with the envelope and never with a 5xx."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.web.site import make_site
from tests.web.test_fuzz import fuzzed, numbers, text, values
from tests.web.test_user_routes import echo_app

FIELDS = ("limit", "share", "exact", "id", "day", "since", "kind", "tag", "q")
words = (
    text | numbers.map(str) | st.sampled_from(["red", "true", "nan", "-0", "1e5", "2026-02-03", "\0", "null", "new"])
)
pairs = st.lists(st.tuples(st.sampled_from(FIELDS), words), max_size=4)
queries = pairs.map(lambda found: "&".join(f"{name}={quote(value)}" for name, value in found).encode())
paths = st.builds("/echo/{}/{}".format, words.map(quote), words.map(quote)) | words.map(
    lambda word: f"/files/{quote(word)}"
)
points = st.fixed_dictionaries({}, optional={"x": values, "y": values})
bodies = st.binary(max_size=40) | (points | values).map(lambda value: json.dumps(value).encode())


class Fuzzed:
    """A site on a real file. It is called below any client: what goes in is not made valid first."""

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        self._app = echo_app()
        self._app.database = str(folder / "shop.db")
        self._site = make_site(self._app, tokens=[])
        self._runner = runner

    def send(self, method: str, path: str, query: bytes = b"", body: bytes = b"") -> tuple[int, dict[str, Any]]:
        return self._runner.run(self._sent(method, path, query, body))

    async def _sent(self, method: str, path: str, query: bytes, body: bytes) -> tuple[int, dict[str, Any]]:
        sent: list[Any] = []
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query,
            "root_path": "",
            "scheme": "http",
            "server": ("shop", 80),
            "client": ("10.0.0.1", 1),
            "headers": [(b"content-type", b"application/json"), (b"x-signature", b"1")],
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._site(scope, receive, send)
        return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))

    def close(self) -> None:
        self._runner.run(self._app.close())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with asyncio.Runner() as runner:
        site = Fuzzed(tmp_path_factory.mktemp("fuzz"), runner)
        yield site
        site.close()


@fuzzed
@given(path=paths, query=queries | st.binary(max_size=30))
@example(path="/echo/1/red", query=b"tag=%ff")
@example(path="/files/%ff", query=b"q=\xff")
def test_no_path_or_query_breaks_a_route(site: Fuzzed, path: str, query: bytes) -> None:
    status, told = site.send("GET", path, query)

    assert status in (200, 404, 422), told
    assert told["success"] is (status == 200)
    if status == 422:
        assert told["errors"][0]["details"]["field"]


@fuzzed
@given(body=bodies, path=st.sampled_from([("PUT", "/point"), ("PATCH", "/points"), ("POST", "/raw")]))
def test_no_body_breaks_a_route(site: Fuzzed, body: bytes, path: tuple[str, str]) -> None:
    status, told = site.send(*path, body=body)

    assert status in ((200,) if path[1] == "/raw" else (200, 400, 422)), told
    assert told["success"] is (status == 200)
