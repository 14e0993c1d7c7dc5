"""Resend, against a fake that its own OpenAPI description validates: one key, one mail."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate
from starlette.testclient import TestClient

import penstock as ps
from penstock.channels import Notice, Resend, read_mail_event
from penstock.testing import virtual
from penstock_systems.standins.notifications import Faults, make_servers
from penstock_systems.standins.notifications.resend import bounce
from tests.unit.channels.receivers import KEY, NOTICE, Answers, Watch, client, fakes

OPENAPI = json.loads(Path(__file__).with_name("resend_openapi.json").read_text("utf-8"))
FAST = Faults(rate=1_000.0)


def check(instance: object, schema: str) -> None:
    jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{schema}", **OPENAPI}).validate(instance)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RESEND_API_KEY", KEY)
    return KEY


def resend(web: ps.Client) -> Resend:
    return Resend(web, sender="Reminders <r@example.org>")


@virtual
async def test_what_is_asked_and_what_the_fake_answers_is_as_resend_describes_it() -> None:
    validate(OPENAPI)
    host = Answers((200, b"{}", {}))
    web = client(host)
    notice = Notice("Title", "Text", to="ann@example.org", html="<p>Text</p>", headers={"X-A": "b"})
    await resend(web).send(notice, "7-1-email")
    _, headers, body = host.asked[0]
    check(json.loads(body), "SendEmailRequest")
    assert (
        len(headers["idempotency-key"]) <= OPENAPI["paths"]["/emails"]["post"]["parameters"][0]["schema"]["maxLength"]
    )
    assert headers["user-agent"] == "Penstock"

    with TestClient(make_servers(lambda: 1.8e9, faults=FAST), headers={"Authorization": f"Bearer {KEY}"}) as fake:
        sent = fake.post("/emails", content=body, headers=headers).json()
        check(sent, "SendEmailResponse")
        check(fake.get("/emails?limit=10").json(), "ListEmailsResponse")
        check(fake.get(f"/emails/{sent['id']}").json(), "Email")
        arrived = fake.app.state.arrivals.all[0]  # type: ignore[attr-defined]
    for kind, schema in (("email.bounced", "EmailBouncedEvent"), ("email.complained", "EmailComplainedEvent")):
        check(bounce(arrived, kind), schema)


@pytest.mark.fault("F52")
@pytest.mark.spec("C-09", "G3-06", "G3-07")
@virtual
async def test_a_mail_whose_answer_was_lost_is_sent_once() -> None:
    watch = Watch()
    web, servers = fakes(watch, faults=Faults(rate=1_000, lost=1.0))
    first = await resend(web).send(NOTICE, "7-1-email")
    assert (first.status, first.error) == ("unknown", "email timed out after 10 s.")
    second = await resend(web).send(NOTICE, "7-1-email")
    assert second.status == "sent"
    [mail] = servers.arrivals.all
    assert second.provider_id == mail["id"]
    assert mail["subject"] == "Pay the <b>rent</b> Bcc: all@example.com"
    assert mail["tags"] == {"delivery": "7-1-email"}

    watch.seconds += 86_401  # the key is forgotten: now it would be a second mail
    await resend(web).send(NOTICE, "7-1-email")
    assert len(servers.arrivals.all) == 2


@virtual
async def test_two_requests_with_one_key_at_once_are_one_mail() -> None:
    web, servers = fakes(Watch(), faults=FAST)
    both = await asyncio.gather(*(resend(web).send(NOTICE, "7-1-email") for _ in range(2)))
    assert sorted(each.status for each in both) == ["sent", "unknown"]
    assert len(servers.arrivals.all) == 1


@virtual
async def test_a_key_that_was_used_for_another_text_leaves_it_unknown_for_good() -> None:
    web, _ = fakes(Watch(), faults=FAST)
    await resend(web).send(NOTICE, "7-1-email")
    found = await resend(web).send(Notice("Other", "Text", to="ann@example.org"), "7-1-email")
    assert (found.status, found.is_permanent) == ("unknown", True)


@virtual
async def test_two_a_second_are_taken_and_a_third_learns_when() -> None:
    watch = Watch()
    web, _ = fakes(watch)
    found = [await resend(web).send(NOTICE, f"{number}-1-email") for number in range(3)]
    assert [each.status for each in found] == ["sent", "sent", "failed"]
    assert (found[2].is_throttled, found[2].retry_after) == (True, 1.0)


def failure(name: str, status: int) -> tuple[int, bytes, dict[str, str]]:
    return status, json.dumps({"statusCode": status, "name": name, "message": f"It failed for {KEY}."}).encode(), {}


@pytest.mark.parametrize(
    "name, status, is_throttled, is_permanent, wait",
    [
        ("validation_error", 400, False, True, None),
        ("missing_api_key", 401, False, True, None),
        ("invalid_api_key", 403, False, True, None),
        ("invalid_from_address", 422, False, True, None),
        ("rate_limit_exceeded", 429, True, False, None),
        ("daily_quota_exceeded", 429, True, False, 54_000.0),
        ("monthly_quota_exceeded", 429, False, True, None),
        ("security_error", 451, False, True, None),
        ("application_error", 500, False, False, None),
    ],
)
@virtual
async def test_what_resend_says_tells_whether_and_when_to_try_again(
    name: str, status: int, is_throttled: bool, is_permanent: bool, wait: float | None
) -> None:
    found = await resend(client(Answers(failure(name, status)))).send(NOTICE, "7-1-email")
    assert found.status == "failed"
    assert name in found.error
    assert KEY not in found.error
    assert (found.is_throttled, found.is_permanent, found.retry_after) == (is_throttled, is_permanent, wait)


@pytest.mark.fault("F52")
@pytest.mark.parametrize(
    "to",
    [
        "",
        "ann",
        "a@b",
        "a@b.c",
        "a b@example.org",
        "a@example.org, b@example.org",
        "a@example.org\r\nBcc: b@example.org",
        "<a@example.org>",
        "a@[127.0.0.1]",
        "a@-example.org",
        f"{'a' * 65}@example.org",
        f"a@{'b.' * 130}org",
        "a@\x00b.org",
    ],
)
@virtual
async def test_what_is_no_address_of_one_mailbox_is_refused_before_the_call(to: str) -> None:
    host = Answers()
    found = await resend(client(host)).send(Notice("Title", "Text", to=to), "7-1-email")
    assert found.status == "failed"
    assert host.asked == []


@pytest.mark.parametrize(
    "to", ["ann@example.org", "a+b.c_d@mail.example.co.uk", "jürgen@münchen.example", "o'neil@x.org"]
)
@virtual
async def test_addresses_of_all_scripts_are_taken(to: str) -> None:
    assert (await resend(client(Answers())).send(Notice("Title", "Text", to=to), "7-1-email")).status == "sent"


@pytest.mark.parametrize("sender", ["", "Reminders", "r@example.org\r\nBcc: x@example.org", "Reminders <r@>"])
def test_a_bad_sender_is_refused_at_once(sender: str) -> None:
    with pytest.raises(ps.BadConfig, match="cannot send mail"):
        Resend(ps.Client(), sender=sender)


@pytest.mark.spec("G7-03")
@virtual
async def test_a_mail_of_unknown_outcome_is_found_by_its_receiver_subject_and_text() -> None:
    watch = Watch()
    web, servers = fakes(watch, faults=Faults(rate=10_000, lost=0.0))
    for number in range(120):  # more than a page of others
        watch.seconds += 1
        text = NOTICE.text if number == 5 else f"{number}"
        await resend(web).send(Notice(NOTICE.title, text, to=NOTICE.to), f"{number}-1-email")
    since = watch.now() - 120_000_000

    found = await resend(web).find(NOTICE, "7-1-email", since)
    assert found is not None
    assert (found.status, found.provider_id) == ("sent", servers.arrivals.all[5]["id"])
    assert await resend(web).find(NOTICE, "7-1-email", watch.now() + 600_000_000) is None
    assert await resend(web).find(Notice("Other", to=NOTICE.to), "7-1-email", since) is None
    assert await resend(client(Answers((500, b"", {})))).find(NOTICE, "7-1-email", since) is None


@pytest.mark.parametrize(
    "kind, bounced, reason, arrived, addresses",
    [
        ("email.delivered", None, "", True, ()),
        ("email.bounced", "Permanent", "bounce", True, ("ann@example.org",)),
        ("email.bounced", "Transient", "bounce", True, ()),
        ("email.complained", None, "complaint", True, ("ann@example.org",)),
        ("email.failed", None, "", False, ()),
        ("contact.created", None, "", False, ()),
    ],
)
def test_reports_of_resend_say_whom_to_suppress_and_what_arrived(
    kind: str, bounced: str | None, reason: str, arrived: bool, addresses: tuple[str, ...]
) -> None:
    data: dict[str, Any] = {"email_id": "1", "to": ["ann@example.org"], "tags": {"delivery": "7-1-email"}}
    data |= {"bounce": {"type": bounced}} if bounced else {}
    found = read_mail_event({"type": kind, "data": data})
    assert (found.key, found.provider_id) == ("7-1-email", "1")
    assert (found.reason, found.has_arrived, found.addresses) == (reason, arrived, addresses)
    data["tags"] = [{"name": "delivery", "value": "7-1-email"}]  # as older reports write them
    assert read_mail_event({"type": kind, "data": data}) == found


@pytest.mark.parametrize(
    "body", [{}, {"type": "email.bounced"}, {"type": "email.bounced", "data": []}, {"type": 1, "data": 2}]
)
def test_a_report_of_another_shape_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ps.PenstockError, match="no event of Resend"):
        read_mail_event(body)
