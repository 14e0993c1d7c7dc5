"""Signed webhooks: the library `standardwebhooks` verifies what is sent, and what comes in is verified as it would."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.channels import Webhook, new_secret, read_secret, sign, verify
from penstock.testing import virtual
from tests.unit.channels.receivers import AT, NEXT_SECRET, NOTICE, SECRET, Answers, Watch, client

BODY = b'{"type":"listing.created","timestamp":"2026-11-15T09:00:00Z","data":{"id":"lst_1"}}'
VECTOR = "v1,7cJ8mUxm79y4Z9zUSX/pjwEm+CEa7h1ZJH50KPBA9g4="
ID = "msg_demo_0001"


@pytest.mark.spec("C-10", "G3-14")
def test_a_signature_is_the_one_that_others_compute() -> None:
    assert sign(read_secret(SECRET), ID, 1763197200, BODY) == VECTOR


@pytest.mark.spec("C-10", "G3-14")
@given(st.binary(min_size=24, max_size=64), st.text("abcdef_-0123456789.", min_size=1), st.text())
def test_the_library_signs_every_body_alike(secret: bytes, id: str, body: str) -> None:
    if any("\ud800" <= each <= "\udfff" for each in body):
        return
    theirs = standardwebhooks.Webhook(new_secret(secret)).sign(id, datetime.fromtimestamp(AT, UTC), body)
    assert sign(secret, id, AT, body.encode()) == theirs


@pytest.mark.fault("F43")
@pytest.mark.spec("C-10", "G3-14", "G3-06")
@virtual
async def test_every_attempt_has_the_same_id_its_own_time_and_a_signature_of_each_secret() -> None:
    host, watch = Answers((503, b"", {})), Watch()
    secrets = [read_secret(SECRET), read_secret(NEXT_SECRET)]
    channel = Webhook(client(host, watch=watch), "https://hooks.example.com/in", secrets=secrets)
    assert (await channel.send(NOTICE, "7-1-webhook")).status == "failed"
    watch.seconds += 60
    assert (await channel.send(NOTICE, "7-1-webhook")).status == "sent"

    (_, first, one), (_, second, two) = host.asked
    assert one == two
    assert first["webhook-id"] == second["webhook-id"] == "7-1-webhook"
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 60
    for secret in (SECRET, NEXT_SECRET):
        sent = datetime.fromtimestamp(int(first["webhook-timestamp"]), UTC)
        expected = standardwebhooks.Webhook(secret).sign(first["webhook-id"], sent, one.decode())
        assert expected in first["webhook-signature"].split(" ")
    told = json.loads(one)
    assert (told["type"], told["timestamp"]) == ("reminder.due", "2025-11-15T09:00:00.000Z")
    assert told["data"] == {"title": NOTICE.subject, "text": NOTICE.text, "reminder": "7"}


@virtual
async def test_a_notice_without_a_time_has_that_of_its_send() -> None:
    host, watch = Answers(), Watch()
    await Webhook(client(host, watch=watch), "https://hooks.example.com/in").send(ps.channels.Notice("Price"), "1")
    [(_, headers, body)] = host.asked
    sent = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    assert json.loads(body)["timestamp"] == sent.strftime("%Y-%m-%dT%H:%M:%S.000Z")


@virtual
async def test_without_a_secret_nothing_is_signed_and_a_bad_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Answers()
    assert (await Webhook(client(host), "https://hooks.example.com/in").send(NOTICE, "7")).status == "sent"
    assert "webhook-signature" not in host.asked[0][1]
    for secret in ("whsec_short", "whsec_" + "?" * 40):
        monkeypatch.setenv("SHOP_HOOK_SECRET", secret)
        channel = Webhook(client(host), "https://hooks.example.com/in", secret_env="SHOP_HOOK_SECRET")
        outcome = await channel.send(NOTICE, "7")
        assert outcome.status == "failed"
        assert "SHOP_HOOK_SECRET is no secret" in outcome.error
        assert secret not in outcome.error
    assert len(host.asked) == 1


def given_headers(prefix: str = "webhook", **more: str) -> dict[str, str]:
    whole = {"id": ID, "timestamp": str(AT), "signature": sign(read_secret(SECRET), ID, AT, BODY)} | more
    return {f"{prefix}-{name}": value for name, value in whole.items() if value}


@pytest.mark.fault("F42")
@pytest.mark.parametrize("prefix", ["webhook", "svix"])
def test_a_webhook_that_comes_in_is_verified_with_every_secret(prefix: str) -> None:
    headers = given_headers(prefix)
    secrets = [read_secret(NEXT_SECRET), read_secret(SECRET)]
    for skew in (-300, 0, 300):
        assert verify(secrets, headers, BODY, now=(AT + skew) * 1_000_000, prefix=prefix) == ID
    several = given_headers(prefix, signature=f"v1,AAAA v1a,BBBB {headers[f'{prefix}-signature']}")
    assert verify(secrets, several, BODY, now=AT * 1_000_000, prefix=prefix) == ID


@pytest.mark.fault("F42")
@pytest.mark.parametrize(
    "status, changed",
    [
        (400, {"headers": {}}),
        (400, {"headers": given_headers(id="")}),
        (400, {"now": (AT + 301) * 1_000_000}),
        (400, {"now": (AT - 301) * 1_000_000}),
        (400, {"headers": given_headers(timestamp="yesterday")}),
        (400, {"headers": given_headers(timestamp="1e9")}),
        (400, {"headers": given_headers(timestamp="９" * 10)}),
        (401, {"body": BODY + b" "}),
        (401, {"headers": given_headers(id="another")}),
        (401, {"headers": given_headers(signature="v1,AAAA")}),
        (401, {"headers": given_headers(signature="v1,\xe4 \u2603")}),
        (401, {"secrets": [read_secret(NEXT_SECRET)]}),
        (401, {"secrets": []}),
        (401, {"body": json.dumps(json.loads(BODY)).encode()}),
    ],
)
def test_what_is_old_changed_or_signed_by_another_is_refused(status: int, changed: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"secrets": [read_secret(SECRET)], "headers": given_headers(), "body": BODY}
    whole |= {"now": AT * 1_000_000} | changed
    with pytest.raises(ps.HttpError) as refused:
        verify(whole["secrets"], whole["headers"], whole["body"], now=whole["now"])
    assert refused.value.status == status


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_AAAA", "whsec_" + base64.b64encode(bytes(65)).decode()])
def test_a_secret_has_24_to_64_bytes(text: str) -> None:
    with pytest.raises(ps.BadConfig, match="24 to 64 bytes"):
        read_secret(text)
    assert read_secret(new_secret(bytes(24))) == bytes(24)
