"""Who may come in: no token, a wrong one and one without the scope are told apart, and none of them leaves anything."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.config import Config, KnownToken
from penstock.model.errors import BadConfig
from penstock.model.times import to_micros
from penstock.testing import TestApp
from penstock.web.tokens import Keyring, Unauthorized, configured, hashed
from tests.web.outside import outside, stored

QUEUE = "/queues/jobs/messages"
D1 = "/d1/database/shop/query"
SELECT = {"sql": "select 1 as one"}
INSERT = {"sql": "insert into items (name) values ('x')"}

# A path, a body that would do something, and the tokens that may do it.
ALLOWED: list[tuple[str, object, set[str]]] = [
    (QUEUE, {"body": 1}, {"all", "queues", "queues-write"}),
    (f"{QUEUE}/batch", {"messages": [{"body": 1}]}, {"all", "queues", "queues-write"}),
    (f"{QUEUE}/pull", {}, {"all", "queues"}),
    (f"{QUEUE}/ack", {"acks": []}, {"all", "queues"}),
    (f"{QUEUE}/peek", {}, {"all", "queues", "queues-read"}),
    (f"{QUEUE}/purge", {}, {"all", "queues", "queues-write"}),
    (D1, SELECT, {"all", "d1-read"}),
    ("/d1/database/shop/raw", SELECT, {"all", "d1-read"}),
    (D1, INSERT, {"all", "d1-write"}),
    (D1, {"batch": [INSERT | {"sql": "insert into items (name) values ('y')"}, SELECT]}, {"all"}),
]
EVERYBODY = ("all", "queues", "queues-read", "queues-write", "d1-read", "d1-write", "nothing")


@pytest.mark.spec("A14-06")
@pytest.mark.parametrize("path, body, allowed", ALLOWED, ids=[f"{path} {body}"[:80] for path, body, _ in ALLOWED])
async def test_a_token_does_what_its_scopes_say_and_no_more(
    shop: TestApp, path: str, body: object, allowed: set[str]
) -> None:
    async with outside(shop) as client:
        for token in (name for name in EVERYBODY if name not in allowed):
            refused = await client.send(path, body, token=token)
            assert (token, refused.status) == (token, 403)
            assert "scope" in refused.words
        assert await stored(shop) == 0
        assert await shop.app.db.value("select count(*) from items") == 0
        for token in allowed if body != INSERT and "batch" not in str(body) else {"all"}:
            assert (await client.send(path, body, token=token)).status == 200


@pytest.mark.fault("F45")
@pytest.mark.spec("A14-06")
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic YWxsOg==", "all", "Bearer wrong", "Bearer ALL", "Bearer all x", "Bearer \xff\xfe"],
)
async def test_without_a_valid_token_nothing_is_done(shop: TestApp, authorization: str) -> None:
    async with outside(shop) as client:
        for path, body, _ in ALLOWED:
            refused = await client.send(path, body, token=None, authorization=authorization)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        missing = await client.send(QUEUE, {"body": 1}, token=None)

    assert missing.status == 401
    assert "Authorization: Bearer" in missing.words
    assert await stored(shop) == 0


async def test_a_token_is_asked_for_before_the_body_is_looked_at(shop: TestApp) -> None:
    async with outside(shop) as client:
        assert (await client.send(QUEUE, raw=b"{", token=None)).status == 401
        assert (await client.send("/queues/nowhere/messages", raw=b"{", token="d1-read")).status == 403


def test_the_scheme_may_be_written_in_any_case_and_the_token_may_not() -> None:
    keyring = Keyring([KnownToken("a", hashed("sEcret").upper(), ("queues:read",))])

    assert set(keyring.bearer("bEARER sEcret").scopes) == {"queues:read"}
    with pytest.raises(Unauthorized):
        keyring.bearer("Bearer secret")


def test_without_tokens_no_client_comes_in() -> None:
    keyring = Keyring([])

    assert not keyring
    with pytest.raises(Unauthorized):
        keyring.bearer("Bearer ")


def test_tokens_come_from_the_environment_and_the_configuration() -> None:
    config = Config(tokens=(KnownToken("ci", hashed("one"), ("d1:read",)),))
    keyring = Keyring(configured(config, {"PENSTOCK_TOKEN": " two\n"}))

    assert set(keyring.bearer("Bearer one").scopes) == {"d1:read"}
    assert set(keyring.bearer("Bearer two").scopes) == {"*"}
    assert configured(Config(), {"PENSTOCK_TOKEN": ""}) == []


def test_a_service_key_of_the_configuration_ends_when_it_expires() -> None:
    ends = datetime(2026, 3, 1, tzinfo=UTC)
    now = [to_micros(ends) - 1]
    keyring = Keyring([KnownToken(name="FEED", sha256=hashed("key"), scopes=(), expires=ends)], (), lambda: now[0])

    keyring.check_service("FEED", "key")
    now[0] += 1
    with pytest.raises(Unauthorized):
        keyring.check_service("FEED", "key")


@pytest.mark.parametrize(
    "token, told",
    [
        (KnownToken("ci", "secret in plain"), "sha256sum"),
        (KnownToken("ci", hashed("a"), ("queue:read",)), "queues:read, queues:write"),
    ],
)
def test_a_token_that_cannot_work_is_refused_at_the_start(token: KnownToken, told: str) -> None:
    with pytest.raises(BadConfig, match=told):
        Keyring([token])
