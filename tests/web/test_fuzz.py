"""Whatever is sent, the answer has the right shape and is never a 500. PENSTOCK_FUZZ=100000 looks for longer."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.config import Config
from tests.extent import EVERYTHING
from tests.web.outside import Outside, outside, shop_app

EXAMPLES = int(os.environ.get("PENSTOCK_FUZZ") or (1_000 if EVERYTHING else 150))
QUEUES = ("jobs", "orders", "nowhere")
VERBS = ("", "/batch", "/pull", "/ack", "/peek", "/purge")
EXPECTED = {200, 400, 404, 413, 415, 422}

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.sampled_from([0, 1, -1, 5, 1.5, 1e300, 2**63])
leaves = (
    st.none() | st.booleans() | numbers | text | st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode())
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
)
kinds = st.sampled_from(["json", "text", "bytes", "v8", "xml"])
leases = st.from_regex(r"\A[0-9]{1,25}\.[0-9]{1,25}\Z") | text


def fields(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the fields, mostly with values of the right kind, and now and then one that nobody knows."""
    fitting = st.fixed_dictionaries({}, optional={name: kind | values for name, kind in known.items()})
    return st.builds(dict.__or__, fitting, st.dictionaries(text, values, max_size=1))


pushes = fields(
    body=values, content_type=kinds, delay_seconds=numbers, priority=st.integers(-1, 3), id=st.uuids().map(str)
)
requests = {
    "": pushes,
    "/batch": fields(messages=st.lists(pushes, max_size=3), delay_seconds=numbers),
    "/pull": fields(batch_size=numbers, visibility_timeout_ms=numbers, visibility_timeout=numbers, request_id=text),
    "/ack": fields(
        acks=st.lists(fields(lease_id=leases), max_size=3),
        retries=st.lists(fields(lease_id=leases, delay_seconds=numbers), max_size=3),
    ),
    "/peek": fields(batch_size=numbers),
    "/purge": fields(refs=values, delete_messages_permanently=st.booleans()),
}
words = st.sampled_from(
    "select insert into items values ( ) , ; ? ?1 ?2 ' \" from where id name = 1 'x' * update set delete with as a "
    "create table index view drop penstock_messages sqlite_schema explain -- /* */ [ ] $a$ :n x'00' returning null".split()
)
sql = st.lists(words, max_size=12).map(" ".join) | text
statements = fields(sql=sql, params=st.lists(leaves, max_size=3))
questions = fields(sql=sql, params=st.lists(leaves, max_size=3), batch=st.lists(statements, max_size=3))


class Site:
    """A site with an app on a real file, and a loop to talk to it in."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        app = shop_app("cloudflare")
        app.config = Config(profile="cloudflare", synchronous="off")
        app.database = str(folder / "shop.db")

        async def enter() -> Outside:
            await self._stack.enter_async_context(app)
            return await self._stack.enter_async_context(outside(app))

        self._client = self._runner.run(enter())

    def send(self, path: str, body: object = None, **given: Any) -> int:
        answer = self._runner.run(self._client.send(path, body, **given))
        assert answer.status in EXPECTED, answer.told
        if answer.status == 200:
            assert answer.result is not None
        else:
            assert answer.words
        return answer.status

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("fuzz"))
    yield site
    site.close()


fuzzed = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@pytest.mark.fault("F38")
@fuzzed
@given(data=st.data())
def test_no_request_to_a_queue_breaks_anything(site: Site, data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(VERBS))
    queue = data.draw(st.sampled_from(QUEUES))
    key = data.draw(st.none() | st.text("abc \x7f\xe9", max_size=5))

    site.send(
        f"/queues/{queue}/messages{verb}",
        data.draw(requests[verb]),
        **({} if key is None else {"idempotency_key": key}),
    )


@pytest.mark.fault("F37", "F38")
@fuzzed
@given(raw=st.binary(max_size=60) | values.map(lambda value: str(value).encode()), verb=st.sampled_from(VERBS))
def test_no_bytes_break_anything(site: Site, raw: bytes, verb: str) -> None:
    site.send(f"/queues/jobs/messages{verb}", raw=raw)


@pytest.mark.fault("F39")
@fuzzed
@given(body=questions, shape=st.sampled_from(["query", "raw"]))
def test_no_statement_breaks_anything(site: Site, body: dict[str, Any], shape: str) -> None:
    site.send(f"/d1/database/shop/{shape}", body)


@pytest.mark.fault("F38")
@fuzzed
@given(name=st.text(max_size=30))
@example(".py")
@example("Traceback")
def test_no_name_breaks_anything(site: Site, name: str) -> None:
    path = quote(name, safe="", errors="surrogatepass")
    site.send(f"/queues/{path}/messages/peek", {})
    site.send(f"/d1/database/{path}/query", {"sql": "select 1"})
