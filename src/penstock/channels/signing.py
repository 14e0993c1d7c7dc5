"""Signatures of webhooks as Standard Webhooks 1.0.0 has them, for those that are sent and those that come in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from penstock.model.errors import BadConfig, HttpError
from penstock.model.times import MICROS

PREFIX = "whsec_"
SECRET_BYTES = (24, 64)
TOLERANCE_SECONDS = 300  # between the clocks of both sides


def read_secret(text: str, *, shown: str = "The secret of a webhook") -> bytes:
    """Return the bytes of a secret such as `whsec_AAEC...`, or raise BadConfig."""
    try:
        found = base64.b64decode(text.strip().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    least, most = SECRET_BYTES
    if not least <= len(found) <= most:
        raise BadConfig(f"{shown} is no secret: write `{PREFIX}` and {least} to {most} bytes in base64.")
    return found


def new_secret(random_bytes: bytes) -> str:
    """Return 24 to 64 random bytes as a secret to show."""
    return PREFIX + base64.b64encode(random_bytes).decode()


def sign(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of one body at one time, in seconds since 1970."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


def verify(
    secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, *, now: int, prefix: str = "webhook"
) -> str:
    """Return the id of a webhook that one of these secrets signed; raise HttpError 400 or 401 for every other.

    `headers` are by names in lower case or any case, `now` is in microseconds, and `prefix` is `svix` for those that Resend
    sends. Remember the id for as long as a repeat may come: within five minutes the same request is valid again."""
    id, sent, signatures = (headers.get(f"{prefix}-{part}", "") for part in ("id", "timestamp", "signature"))
    if not (id and sent and signatures):
        raise HttpError(400, f"The headers {prefix}-id, -timestamp and -signature are missing.", name="unsigned")
    if not re.fullmatch("[0-9]{1,12}", sent) or abs(int(sent) - now // MICROS) > TOLERANCE_SECONDS:
        raise HttpError(400, f"{prefix}-timestamp is more than {TOLERANCE_SECONDS} s from now.", name="stale_signature")
    # Every secret is compared with every signature, so that the time tells nothing.
    matches = [
        hmac.compare_digest(sign(secret, id, int(sent), body).encode(), each.encode("utf-8", "replace"))
        for secret in secrets
        for each in signatures.split()[:10]
    ]
    if not any(matches):
        raise HttpError(401, "No signature of this webhook is right.", name="bad_signature")
    return id
