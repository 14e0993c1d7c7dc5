"""Ready-made sinks: a signed webhook, a mail through Resend, a line in a chat. Each raises what a queue understands: what
passes is tried again, what does not becomes a dead letter. No secret is in an error."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

from penstock.alerts.alert import RECOVERED, Alert
from penstock.contracts.clock import Clock
from penstock.model.errors import BadConfig, PenstockError, Refused, Throttled, Unavailable

RESEND = "https://api.resend.com"
SECRET_PREFIX = "whsec_"
RECEIVERS_MAX = 50  # what Resend takes for one mail
CHAT_CHARACTERS_MAX = 3_000
AGAIN_SECONDS = 5.0
DAY_MICROS = 86_400_000_000

_log = logging.getLogger("penstock.alerts")


class Posting(Protocol):
    """The way out: what `app.http()` gives."""

    @property
    def clock(self) -> Clock: ...
    async def post(
        self,
        url: str,
        *,
        json: object = ...,
        content: bytes = ...,
        headers: Mapping[str, str] = ...,
        follow: bool = ...,
    ) -> object: ...


class WebhookSink:
    """Posts alerts as JSON, signed as Standard Webhooks wants it where `secret_env` names a variable with a secret."""

    name = "webhook"

    def __init__(self, http: Posting, url: str, *, secret_env: str | None = None) -> None:
        self._http = http
        self._url = url
        self._secret_env = secret_env

    async def __call__(self, alert: Alert) -> None:
        data = {"title": alert.subject, "text": alert.text, "condition": alert.condition, "facts": alert.facts}
        body = json.dumps({"type": alert.kind, "timestamp": alert.at, "data": data}).encode()
        now = self._http.clock.now() // 1_000_000
        headers = {"Content-Type": "application/json", "webhook-id": alert.id, "webhook-timestamp": str(now)}
        if self._secret_env is not None:
            headers["webhook-signature"] = signature(_secret(self._secret_env), alert.id, now, body)
        try:
            await self._http.post(self._url, content=body, headers=headers, follow=False)
        except PenstockError as error:
            address = urlsplit(self._url)
            _raise_as(f"The webhook at {address.hostname}", error, self._url, address.path)


class MailSink:
    """Sends alerts by mail through Resend. Where `key_env` names no key, it says so in the log and sends nothing."""

    name = "mail"

    def __init__(
        self,
        http: Posting,
        *,
        sender: str,
        to: str | Sequence[str],
        key_env: str = "RESEND_API_KEY",
        base_url: str = RESEND,
    ) -> None:
        self._http = http
        self._sender = sender
        self._to = [to] if isinstance(to, str) else list(to)
        self._key_env = key_env
        self._url = f"{base_url.rstrip('/')}/emails"
        if not 1 <= len(self._to) <= RECEIVERS_MAX:
            raise BadConfig(f"A mail goes to 1 to {RECEIVERS_MAX} addresses, not to {len(self._to)}.")

    @property
    def is_offline(self) -> bool:
        """Whether there is no key for the service, so that mails are only logged."""
        return not os.environ.get(self._key_env, "").strip()

    async def __call__(self, alert: Alert) -> None:
        if self.is_offline:
            _log.warning("No mail is sent without %s: %s", self._key_env, alert.subject)
            return
        key = os.environ[self._key_env].strip()
        # The same key on every try: a mail whose answer was lost is not sent twice.
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": alert.id, "User-Agent": "Penstock"}
        body = {"from": self._sender, "to": self._to, "subject": alert.subject, "text": alert.text}
        try:
            await self._http.post(self._url, json=body, headers=headers, follow=False)
        except PenstockError as error:
            _raise_as("Resend", _of_resend(error, self._http.clock.now()), key)


class SlackSink:
    """Writes alerts into a channel of Slack. The address is a secret, so `url_env` names the variable that holds it; where
    that is not set, it says so in the log and writes nothing."""

    name = "slack"

    def __init__(self, http: Posting, *, url_env: str = "SLACK_WEBHOOK_URL") -> None:
        self._http = http
        self._url_env = url_env

    async def __call__(self, alert: Alert) -> None:
        url = os.environ.get(self._url_env, "").strip()
        if not url:
            _log.warning("Nothing is written to Slack without %s: %s", self._url_env, alert.subject)
            return
        sign = ":white_check_mark:" if alert.kind == RECOVERED else ":rotating_light:"
        told = _plain(f"{alert.subject}\n{alert.text}" if alert.text != alert.title else alert.subject)
        try:
            await self._http.post(url, json={"text": f"{sign} {told}"[:CHAT_CHARACTERS_MAX]}, follow=False)
        except PenstockError as error:
            _raise_as("Slack", error, url, urlsplit(url).path)


def signature(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """As Standard Webhooks 1.0.0 has it, with one symmetric key."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


def _secret(variable: str) -> bytes:
    text = os.environ.get(variable, "").strip().removeprefix(SECRET_PREFIX)
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) < 24:
        raise BadConfig(f"{variable} holds no secret for a webhook: `{SECRET_PREFIX}` and 24 to 64 bytes in base64.")
    return found


def _of_resend(error: PenstockError, now: int) -> PenstockError:
    """What the name in the body of an error means, where its status alone does not tell."""
    said = str(error.facts.get("excerpt") or "")
    if "concurrent_idempotent_requests" in said:
        return Unavailable(str(error), **error.facts | {"retry_after": AGAIN_SECONDS})
    if isinstance(error, Throttled) and "daily_quota_exceeded" in said:
        left = DAY_MICROS - now % DAY_MICROS
        return Throttled(str(error), **error.facts | {"retry_after": left / 1_000_000})
    if isinstance(error, Throttled) and "monthly_quota_exceeded" in said:
        return Refused(str(error), **error.facts | {"retry_after": None})
    return error


def _raise_as(shown: str, error: PenstockError, *secrets: str) -> NoReturn:
    """The same failure told anew: an address may be a secret, and so may be what the error came from."""
    said = str(error.facts.get("excerpt") or "")
    for secret in secrets:
        said = said.replace(secret, "[redacted]") if len(secret) > 1 else said
    status, reason = error.facts.get("status"), error.facts.get("reason")
    what = f"was answered with {status}" if status else f"cannot be told: {reason or type(error).__name__}"
    facts: dict[str, Any] = {"status": status, "reason": reason}
    if isinstance(error, Throttled | Unavailable):
        facts["retry_after"] = error.retry_after
    raise type(error)(f"{shown} {what}. {said}".strip(), **facts) from None


def _plain(text: str) -> str:
    """Nothing in it is a link, a mention or a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
