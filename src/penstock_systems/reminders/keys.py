"""Secrets of endpoints, and the tokens in the links of mails: all derived from one secret of the deployment.

The secret is REMINDERS_SECRET in the environment. Without it the first use stores a random one in the database.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import Any, Literal

import penstock as ps
from penstock.channels import new_secret, read_secret
from penstock.web import hashed
from penstock_systems.reminders.app import app, db, environment_secret, now_ms

SECRET_ENV = "REMINDERS_SECRET"  # the name of the variable
RESEND_SECRET = "REMINDERS_RESEND_WEBHOOK_SECRET"
SECRET_CHARACTERS_MIN = 16
OLD_SECRET_MS = 86_400_000  # after a rotation both secrets sign for a day
SIGNATURE_BYTES = 18
LINK_DAYS = 30
DAY_MS = 86_400_000
Purpose = Literal["unsubscribe", "ack", "snooze", "calendar"]


async def master_key() -> bytes:
    """The key that all secrets and tokens are derived from."""
    given = environment_secret(SECRET_ENV)
    if given:
        if len(given) < SECRET_CHARACTERS_MIN:
            raise ps.BadConfig(f"{SECRET_ENV} is too short. Write at least {SECRET_CHARACTERS_MIN} random characters.")
        return hashlib.sha256(given.encode()).digest()
    saved = await db.value("select value from reminder_secrets where name = 'master'")
    if saved is None:
        async with app.unit():
            db.write(
                "insert into reminder_secrets (name, value) values ('master', :value) on conflict (name) do nothing",
                value=os.urandom(32).hex(),
            )
        saved = await db.value("select value from reminder_secrets where name = 'master'")
    return hashlib.sha256(str(saved).encode()).digest()


def derive(master: bytes, *parts: object) -> bytes:
    """32 bytes for one use."""
    return hmac.new(master, "\n".join(map(str, parts)).encode(), hashlib.sha256).digest()


def endpoint_secret(master: bytes, id: str, version: int) -> str:
    """The secret of an endpoint as its owner gets it: `whsec_...`."""
    return new_secret(derive(master, "endpoint", id, version))


def signing_secrets(master: bytes, endpoint: Any, now: int) -> list[bytes]:
    """The secrets that sign a webhook: two for a day after a rotation."""
    if endpoint.secret_ref:
        return [read_secret(environment_secret(endpoint.secret_ref), shown=endpoint.secret_ref)]
    versions = [endpoint.secret_version]
    if endpoint.old_until is not None and now < endpoint.old_until:
        versions.append(endpoint.secret_version - 1)
    return [read_secret(endpoint_secret(master, endpoint.endpoint_id, version)) for version in versions]


def make_token(master: bytes, purpose: Purpose, *subject: str) -> str:
    """A token for one purpose, to be put into a link."""
    text = "\n".join(subject).encode()
    signature = derive(master, purpose, *subject)[:SIGNATURE_BYTES]
    return base64.urlsafe_b64encode(signature + text).decode().rstrip("=")


def read_token(master: bytes, purpose: Purpose, token: str) -> list[str]:
    """The subject of a token; raise HttpError 404 if it was not made here."""
    try:
        raw = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        subject = raw[SIGNATURE_BYTES:].decode().split("\n")
    except ValueError:
        raw, subject = b"", [""]
    if not hmac.compare_digest(raw[:SIGNATURE_BYTES], derive(master, purpose, *subject)[:SIGNATURE_BYTES]):
        raise ps.HttpError(404, "This link is not valid. Use the link of the mail as it is.", name="bad_token")
    return subject


def check_expiry(expires: str) -> None:
    """Raise HttpError 410 if the time of a link has passed."""
    if int(expires) < now_ms():
        raise ps.HttpError(410, "This link has expired.", name="expired")


def link_expiry(occurrence_at: int) -> str:
    """When a link of a fire expires: the same for every attempt, so that the mail stays the same."""
    return str(occurrence_at + LINK_DAYS * DAY_MS)


def address_hash(address: str) -> str:
    """What a suppression keeps of an address."""
    return hashed(address.strip().lower())
