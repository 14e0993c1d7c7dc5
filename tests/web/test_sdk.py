"""The official `cloudflare` SDK, unmodified but for its base URL, works against this server."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.outside import shop_app
from tests.web.server import TOKEN, served

LOCAL = {"account_id": "local"}


@pytest.fixture
def cloudflare() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the HTTP library that it was made for
        import cloudflare

    return cloudflare


@pytest.fixture
def client(cloudflare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY", "CLOUDFLARE_EMAIL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    app = shop_app()
    app.database = str(tmp_path / "shop.db")
    with served(app) as url, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with cloudflare.Cloudflare(api_token=TOKEN, base_url=f"{url}/client/v4", max_retries=0) as made:
            yield made


@pytest.mark.spec("A14-02", "A14-03", "A14-04")
def test_push_pull_ack_and_retry(client: Any) -> None:
    messages = client.queues.messages
    pushed = messages.push("jobs", **LOCAL, body={"a": 1}, content_type="json")
    bulk = messages.bulk_push(
        "jobs",
        **LOCAL,
        messages=[{"body": {"b": 2}, "content_type": "json"}, {"body": "plain", "content_type": "text"}],
    )
    pulled = messages.pull("jobs", **LOCAL, batch_size=10, visibility_timeout_ms=30_000)
    one, two, three = pulled.messages
    acked = messages.ack(
        "jobs",
        **LOCAL,
        acks=[{"lease_id": one.lease_id}, {"lease_id": two.lease_id}],
        retries=[{"lease_id": three.lease_id, "delay_seconds": 0}],
    )
    (again,) = messages.pull("jobs", **LOCAL).messages

    assert pushed.metadata.metrics.backlog_count == 1
    assert bulk.metadata.metrics.backlog_count == 3
    assert json.loads(base64.b64decode(one.body)) == {"a": 1}
    assert json.loads(base64.b64decode(two.body)) == {"b": 2}
    assert (three.body, three.metadata["CF-Content-Type"]) == ("plain", "text")
    assert (acked.ack_count, acked.retry_count, acked.warnings) == (2, 1, {})
    assert (again.id, again.attempts) == (three.id, 2)


@pytest.mark.spec("A14-04")
def test_a_stale_lease_is_no_error_and_is_named(client: Any) -> None:
    messages = client.queues.messages
    messages.push("jobs", **LOCAL, body="job", content_type="text")
    (message,) = messages.pull("jobs", **LOCAL).messages
    messages.ack("jobs", **LOCAL, acks=[{"lease_id": message.lease_id}])
    stale = messages.ack("jobs", **LOCAL, acks=[{"lease_id": message.lease_id}])

    assert stale.ack_count == 0
    assert list(stale.warnings) == [message.lease_id]


def test_peek(client: Any) -> None:
    messages = client.queues.messages
    messages.push("jobs", **LOCAL, body="job", content_type="text")
    (seen,) = messages.peek("jobs", **LOCAL, batch_size=5).messages

    assert (seen.body, seen.ref) == ("job", seen.id)


def test_what_was_peeked_is_purged_by_its_ref(client: Any) -> None:
    messages = client.queues.messages
    for body in ("keep", "drop"):
        messages.push("jobs", **LOCAL, body=body, content_type="text")
    refs = {seen.body: seen.ref for seen in messages.peek("jobs", **LOCAL).messages}
    purged = messages.purge("jobs", **LOCAL, refs=[{"ref": refs["drop"]}])
    again = messages.purge("jobs", **LOCAL, refs=[{"ref": refs["drop"]}])

    assert (purged.errors, purged.warnings) == ([], {})
    assert list(again.warnings) == [refs["drop"]]
    assert [left.body for left in messages.pull("jobs", **LOCAL).messages] == ["keep"]


@pytest.mark.spec("A8-02")
def test_d1_query_and_raw(client: Any) -> None:
    database = client.d1.database
    (made,) = database.query("shop", **LOCAL, sql="insert into items (name, price) values (?, ?)", params=["lamp", 9.5])
    (read,) = database.query("shop", **LOCAL, sql="select name, price from items where name = ?1", params=["lamp"])
    (raw,) = database.raw("shop", **LOCAL, sql="select name, price from items")
    batch = list(
        database.query(
            "shop",
            **LOCAL,
            batch=[
                {"sql": "insert into items (name) values (?)", "params": ["bed"]},
                {"sql": "select count(*) as count from items"},
            ],
        )
    )

    assert (made.success, made.meta.changes, made.meta.last_row_id, made.meta.changed_db) == (True, 1, 1, True)
    assert read.results == [{"name": "lamp", "price": 9.5}]
    assert read.meta.rows_read >= 1
    assert read.meta.timings.sql_duration_ms >= 0
    assert (raw.results.columns, raw.results.rows) == (["name", "price"], [["lamp", 9.5]])
    assert batch[1].results == [{"count": 2}]


def test_failures_are_the_errors_that_its_users_catch(cloudflare: Any, client: Any) -> None:
    messages, database = client.queues.messages, client.d1.database
    with pytest.raises(cloudflare.NotFoundError) as unknown:
        messages.push("nowhere", **LOCAL, body=1, content_type="json")
    with pytest.raises(cloudflare.UnprocessableEntityError):
        messages.push("jobs", **LOCAL, body=1, content_type="json", delay_seconds=-1)
    with pytest.raises(cloudflare.BadRequestError) as refused:
        list(database.query("shop", **LOCAL, sql="select * from nowhere"))
    with pytest.raises(cloudflare.AuthenticationError):
        client.with_options(api_token="wrong").queues.messages.pull("jobs", **LOCAL)

    assert unknown.value.errors[0].code == 10_404
    assert "jobs, orders" in unknown.value.errors[0].message
    assert "no such table: nowhere" in refused.value.errors[0].message
