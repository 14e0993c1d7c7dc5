"""Mail through Resend: a key that it honours for a day, a look-up afterwards, and its reports of bounces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.channels.channel import Channel, Flight, Notice, Outcome
from penstock.channels.mail import check_address, check_sender
from penstock.channels.posting import id_of, post
from penstock.model.errors import BadParameter, PenstockError
from penstock.model.times import MICROS, to_micros

if TYPE_CHECKING:
    from penstock.outbound.client import Client

BASE = "https://api.resend.com"
KEY_SECONDS = 86_400.0
AGAIN_SECONDS = 5.0
DAY_MICROS = 86_400 * MICROS
TAG = "delivery"  # carries the key through Resend, and back in its reports
PAGES_MAX, PAGE = 10, 100  # mails that a look-up goes through
CLOCKS_MICROS = 300 * MICROS  # by which the two clocks may differ


class Resend(Channel):
    """`Resend(app.http(), sender="Reminders <r@example.org>")`; its key is in RESEND_API_KEY."""

    name = "email"
    key_seconds = KEY_SECONDS

    def __init__(
        self, http: Client, *, sender: str, to: str = "", secret_env: str = "RESEND_API_KEY", base_url: str = BASE
    ) -> None:
        self._http = http
        self._sender = check_sender(sender)
        self._to = to
        self._url = f"{base_url.rstrip('/')}/emails"
        self.secret_env = secret_env

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}", "User-Agent": "Penstock"}

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        to = check_address(notice.to or self._to)
        mail: dict[str, Any] = {"from": self._sender, "to": [to], "subject": notice.subject, "text": notice.text}
        mail |= {"html": notice.html} if notice.html is not None else {}
        mail |= {"headers": dict(notice.headers)} if notice.headers else {}
        mail |= {"tags": [{"name": TAG, "value": key}]}
        headers = self._headers | {"Idempotency-Key": key}
        answer = await post(self, self._http, self._url, flight, json=mail, headers=headers)
        if not isinstance(answer, Outcome):
            return Outcome("sent", provider_id=id_of(answer, "id"))
        return self._explained(answer)

    def _explained(self, failed: Outcome) -> Outcome:
        """What the name in the body of an error means, where its status does not tell."""
        if "concurrent_idempotent_requests" in failed.error:  # the first request is still being worked on
            return Outcome("unknown", failed.error, retry_after=AGAIN_SECONDS)
        if "invalid_idempotent_request" in failed.error:  # a request with this key, and another text, came before
            return Outcome("unknown", failed.error, is_permanent=True)
        if "daily_quota_exceeded" in failed.error:
            left = DAY_MICROS - self._http.clock.now() % DAY_MICROS
            return replace(failed, retry_after=left / MICROS)
        if "monthly_quota_exceeded" in failed.error:
            return replace(failed, retry_after=None, is_throttled=False, is_permanent=True)
        return failed

    async def find(self, notice: Notice, key: str, since: int) -> Outcome | None:
        """Look for a mail to this receiver with this subject and text, made after the first attempt."""
        after = ""
        try:
            for _ in range(PAGES_MAX):
                page = await self._get(f"?limit={PAGE}{after}")
                for mail in page["data"]:
                    if to_micros(datetime.fromisoformat(mail["created_at"])) < since - CLOCKS_MICROS:
                        return None
                    if mail["to"] == [notice.to or self._to] and mail["subject"] == notice.subject:
                        whole = await self._get(f"/{mail['id']}")
                        if str(whole.get("text")).split() == notice.text.split():
                            return Outcome("sent", provider_id=str(mail["id"]))
                if not page.get("has_more"):
                    return None
                after = f"&after={page['data'][-1]['id']}"
        except (PenstockError, KeyError, TypeError, ValueError, IndexError):
            return None  # it cannot tell now
        return None

    async def _get(self, path: str) -> Any:
        return (await self._http.get(self._url + path, headers=self._headers, follow=False)).json()


class MailEvent(NamedTuple):
    """What Resend reports of a mail. `key` is the key it was sent with, `addresses` are to be suppressed."""

    kind: str  # such as email.bounced
    key: str
    provider_id: str
    addresses: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why the addresses get no more mail: bounce, complaint, or nothing."""
        return {"email.bounced": "bounce", "email.suppressed": "bounce", "email.complained": "complaint"}.get(
            self.kind, ""
        )

    @property
    def has_arrived(self) -> bool:
        """Whether Resend accepted the mail, which settles an unknown outcome."""
        return self.kind.startswith("email.") and self.kind not in (
            "email.failed",
            "email.suppressed",
            "email.scheduled",
        )


def read_mail_event(event: Mapping[str, Any]) -> MailEvent:
    """Read the body of a webhook of Resend, once its signature is verified. A passing bounce suppresses no address."""
    try:
        kind, data = str(event["type"]), event["data"]
        tags = data.get("tags") or {}
        if isinstance(tags, list):
            tags = {each["name"]: each["value"] for each in tags}
        passes = kind == "email.bounced" and data["bounce"].get("type") == "Transient"
        addresses = tuple(map(str, data.get("to") or ()))
        found = MailEvent(kind, str(tags.get(TAG, "")), str(data.get("email_id", "")), addresses)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadParameter("The body is no event of Resend: it lacks type or data.", field="body") from error
    return found if found.reason and not passes else found._replace(addresses=())
