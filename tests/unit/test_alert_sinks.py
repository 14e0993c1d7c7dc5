"""Sinks: a webhook that anybody can verify, a mail that is sent once, a line in a chat; and no secret in any error."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

import penstock as ps
from penstock.alerts.sinks import signature
from penstock.gateway.client import Client
from penstock.model.errors import BadConfig
from penstock.testing import virtual

ALERT = ps.Alert(
    "condition.raised",
    "languages 12 % <b>& more</b> \U0001f600\u202e =1+1",
    {"condition": "data-quality"},
    title="[Pipeline] Data quality\r\nBcc: all@example.com",
    condition="data-quality",
    at="2026-11-15T09:00:00.000Z",
    id="0198-alert",
)
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
KEY = "re_0123456789abcdef"
SLACK = "https://hooks.slack.com/services/T000/B000/XXXXSECRET"


class Host:
    """Stands in for a service: keeps what was posted, answers what it is told to."""

    def __init__(self, *answers: tuple[int, bytes, dict[str, str]]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive()).get("body", b"")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["path"], headers, body))
        status, answer, more = self.answers.pop(0) if self.answers else (200, b"ok", {})
        given = [(name.encode(), value.encode()) for name, value in more.items()]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": answer})


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1_763_197_200.0

    def now(self) -> int:
        return int(self.seconds * 1_000_000)

    def monotonic(self) -> float:
        return self.seconds


def client(origin: str, host: Host, watch: Watch | None = None) -> Client:
    made = Client(clock=watch or Watch())
    made.mount(origin, host)
    return made


def error_of(name: str, status: int) -> tuple[int, bytes, dict[str, str]]:
    body = {"statusCode": status, "name": name, "message": f"It failed for {KEY}."}
    return status, json.dumps(body).encode(), {}


# -- webhooks -----------------------------------------------------------------------------------------------------


def test_a_signature_is_the_one_that_others_compute() -> None:
    body = b'{"type":"listing.created","timestamp":"2026-11-15T09:00:00Z","data":{"id":"lst_1"}}'
    secret = base64.b64decode(SECRET.removeprefix("whsec_"))
    assert signature(secret, "msg_demo_0001", 1763197200, body) == "v1,7cJ8mUxm79y4Z9zUSX/pjwEm+CEa7h1ZJH50KPBA9g4="


@pytest.mark.fault("F43")
@pytest.mark.spec("A12-07")
@virtual
async def test_a_webhook_is_signed_over_what_was_sent_with_one_id_for_all_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_HOOK_SECRET", SECRET)
    host, watch = Host((503, b"", {})), Watch()
    web = client("https://hooks.example", host, watch)
    sink = ps.WebhookSink(web, "https://hooks.example/in", secret_env="SHOP_HOOK_SECRET")
    with pytest.raises(ps.Unavailable):
        await sink(ALERT)
    watch.seconds += 60
    await sink(ALERT)

    (_, first, one), (_, second, two) = host.asked
    assert one == two
    assert first["webhook-id"] == second["webhook-id"] == ALERT.id
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 60
    for headers in (first, second):
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + one
        expected = hmac.new(bytes(range(32)), signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()
    told = json.loads(one)
    assert (told["type"], told["timestamp"]) == ("condition.raised", ALERT.at)
    assert (told["data"]["text"], told["data"]["condition"]) == (ALERT.text, "data-quality")
    assert len(one) < 20_000


@virtual
async def test_without_a_secret_it_is_not_signed_and_a_bad_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    web = client("https://hooks.example", host)
    await ps.WebhookSink(web, "https://hooks.example/in")(ALERT)
    assert "webhook-signature" not in host.asked[0][1]
    for secret in ("", "whsec_short", "whsec_" + "?" * 40):
        monkeypatch.setenv("SHOP_HOOK_SECRET", secret)
        with pytest.raises(BadConfig, match="SHOP_HOOK_SECRET"):
            await ps.WebhookSink(web, "https://hooks.example/in", secret_env="SHOP_HOOK_SECRET")(ALERT)
    assert len(host.asked) == 1


@pytest.mark.fault("F43")
@pytest.mark.parametrize(
    "status, error", [(301, ps.Refused), (307, ps.Refused), (410, ps.Gone), (429, ps.Throttled), (502, ps.Unavailable)]
)
@virtual
async def test_a_webhook_follows_no_redirect_and_tells_what_passes_from_what_does_not(
    status: int, error: type[Exception]
) -> None:
    host = Host((status, b"", {"location": "https://hooks.example/elsewhere"}))
    sink = ps.WebhookSink(client("https://hooks.example", host), "https://hooks.example/in/SECRETPATH?token=abc")
    with pytest.raises(error) as raised:
        await sink(ALERT)
    assert len(host.asked) == 1
    assert "hooks.example" in str(raised.value)
    assert "SECRETPATH" not in f"{raised.value!r} {raised.value.__dict__}"


# -- mails --------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F52")
@pytest.mark.spec("A12-07", "G2-31")
@virtual
async def test_a_mail_has_a_clean_subject_and_the_same_key_on_every_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESEND_API_KEY", KEY)
    host = Host(error_of("internal_server_error", 500))
    sink = ps.MailSink(
        client("https://api.resend.com", host), sender="pipeline@alerts.example.com", to="team@example.com"
    )
    with pytest.raises(ps.Unavailable):
        await sink(ALERT)
    await sink(ALERT)

    (path, headers, body), (_, again, same) = host.asked
    assert path == "/emails"
    assert body == same
    assert headers["idempotency-key"] == again["idempotency-key"] == ALERT.id
    assert (headers["authorization"], headers["user-agent"]) == (f"Bearer {KEY}", "Penstock")
    assert json.loads(body) == {
        "from": "pipeline@alerts.example.com",
        "to": ["team@example.com"],
        "subject": "[Pipeline] Data quality Bcc: all@example.com",
        "text": ALERT.text,
    }


@pytest.mark.parametrize(
    "name, status, error, wait",
    [
        ("validation_error", 400, ps.Refused, None),
        ("missing_api_key", 401, ps.Refused, None),
        ("invalid_api_key", 403, ps.Refused, None),
        ("invalid_idempotent_request", 409, ps.Refused, None),
        ("concurrent_idempotent_requests", 409, ps.Unavailable, 5.0),
        ("invalid_from_address", 422, ps.Refused, None),
        ("rate_limit_exceeded", 429, ps.Throttled, None),
        ("daily_quota_exceeded", 429, ps.Throttled, "midnight"),
        ("monthly_quota_exceeded", 429, ps.Refused, None),
        ("security_error", 451, ps.Refused, None),
        ("application_error", 500, ps.Unavailable, None),
    ],
)
@virtual
async def test_what_resend_says_is_retried_where_that_helps(
    monkeypatch: pytest.MonkeyPatch, name: str, status: int, error: type[ps.PenstockError], wait: object
) -> None:
    monkeypatch.setenv("RESEND_API_KEY", KEY)
    web = client("https://api.resend.com", Host(error_of(name, status)))
    with pytest.raises(error) as raised:
        await ps.MailSink(web, sender="a@example.com", to=["b@example.com"])(ALERT)
    assert type(raised.value) is error
    assert name in str(raised.value)
    told = f"{raised.value!r} {raised.value.__dict__} {raised.value.__cause__!r}"
    assert KEY not in told
    if error is not ps.Refused:
        expected = 86_400 - web.clock.now() / 1_000_000 % 86_400 if wait == "midnight" else wait
        assert getattr(raised.value, "retry_after", None) == (None if expected is None else pytest.approx(expected))


@virtual
async def test_without_a_key_no_mail_is_sent_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("RESEND_API_KEY", raising=False)
    host = Host()
    sink = ps.MailSink(client("https://api.resend.com", host), sender="a@example.com", to="b@example.com")
    assert sink.is_offline
    await sink(ALERT)
    assert host.asked == []
    assert "RESEND_API_KEY" in caplog.text


@pytest.mark.fault("F52")
@pytest.mark.parametrize("to", [[], ["a@example.com"] * 51])
def test_nobody_and_everybody_is_refused(to: list[str]) -> None:
    with pytest.raises(BadConfig):
        ps.MailSink(Client(), sender="a@example.com", to=to)


# -- chats --------------------------------------------------------------------------------------------------------


@virtual
async def test_a_line_in_slack_mentions_nobody_and_tells_the_end_by_another_sign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK_URL", SLACK)
    host = Host()
    sink = ps.SlackSink(client("https://hooks.slack.com", host))
    await sink(ps.Alert("message.died", "<!channel> & <script>" + "x" * 9_000, title="A message died"))
    await sink(ps.Alert("condition.recovered", "Recovered", title="Recovered"))

    texts = [json.loads(body)["text"] for _, _, body in host.asked]
    assert texts[0].startswith(":rotating_light: A message died\n&lt;!channel&gt; &amp; &lt;script&gt;")
    assert len(texts[0]) <= 3_000
    assert texts[1] == ":white_check_mark: Recovered"


@pytest.mark.parametrize(
    "status, said, error",
    [(400, b"invalid_payload", ps.Refused), (404, b"no_service", ps.Gone), (500, b"rollup_error", ps.Unavailable)],
)
@virtual
async def test_the_address_of_a_channel_is_a_secret(
    monkeypatch: pytest.MonkeyPatch, status: int, said: bytes, error: type[Exception]
) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK_URL", SLACK)
    host = Host((status, said + b" " + SLACK.encode(), {}))
    with pytest.raises(error, match=said.decode()) as raised:
        await ps.SlackSink(client("https://hooks.slack.com", host))(ALERT)
    told = f"{raised.value!r} {raised.value.__dict__} {raised.value.__cause__!r}"
    assert "XXXXSECRET" not in told


@virtual
async def test_without_an_address_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)
    await ps.SlackSink(Client())(ALERT)
