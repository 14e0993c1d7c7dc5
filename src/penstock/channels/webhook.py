"""Webhooks as Standard Webhooks 1.0.0 has them: one id for all attempts, a signature for each secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.channels.channel import SENT, TEXT_CHARACTERS_MAX, Channel, Flight, Notice, Outcome
from penstock.channels.posting import post
from penstock.channels.signing import read_secret, sign
from penstock.model.times import MICROS, iso_z

if TYPE_CHECKING:
    from penstock.outbound.client import Client

KEY_SECONDS = 86_400.0  # the documentation asks receivers to keep an id this long; most keep it longer


class Webhook(Channel):
    """`Webhook(app.http(), "https://ops.example/hooks", secret_env="OPS_HOOK_SECRET")`. It follows no redirect.

    During a rotation `secrets` holds two, and both sign. The body has `type`, `timestamp` and `data`."""

    name = "webhook"
    key_seconds = KEY_SECONDS

    def __init__(
        self, http: Client, url: str, *, secrets: Sequence[bytes] = (), secret_env: str = "", is_patient: bool = False
    ) -> None:
        """With `is_patient` no answer but 410 is final: a receiver may be repaired."""
        self._http = http
        self._url = url
        self._secrets = secrets
        self._is_patient = is_patient
        self.secret_env = secret_env

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        secrets = [read_secret(self.secret, shown=self.secret_env)] if self.secret_env else self._secrets
        data = {"title": notice.subject, "text": notice.text[:TEXT_CHARACTERS_MAX], **notice.data}
        micros = self._http.clock.now()
        body = json.dumps({"type": notice.kind, "timestamp": iso_z(notice.at or micros), "data": data}).encode()
        now = micros // MICROS
        headers = {"Content-Type": "application/json", "webhook-id": key, "webhook-timestamp": str(now)}
        if secrets:
            headers["webhook-signature"] = " ".join(sign(each, key, now, body) for each in secrets)
        address = urlsplit(self._url)
        answer = await post(
            self,
            self._http,
            self._url,
            flight,
            content=body,
            headers=headers,
            secrets=(address.path[1:], address.query),
        )
        if not isinstance(answer, Outcome):
            return SENT
        return replace(answer, is_permanent=answer.is_gone) if self._is_patient else answer
