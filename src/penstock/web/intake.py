"""What comes in: a body is read up to its bound, is JSON by one strict verdict, and has the fields it should have."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from penstock.model.errors import PenstockError, TooLarge
from penstock.model.strict_json import parse
from penstock.runtime.lanes import in_thread

T = TypeVar("T")

SLACK_BYTES = 64_000  # for the fields around bodies
KEY_LENGTH_MAX = 255
IN_PLACE_BYTES_MAX = 1_000_000  # other requests would wait while a larger body is read

_PLACE = re.compile(r"(?P<reason>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_IN_REASON = re.compile(r"(?:unknown|required) field `(?P<field>[^`]*)`")
_KEY = re.compile(r"[\x20-\x7e]*[\x21-\x7e][\x20-\x7e]*")


class BadField(PenstockError):
    """A field of the request does not fit. Its `field` says which."""


class BadKind(PenstockError):
    """The body is of a kind that is not supported here. Send JSON, with `Content-Type: application/json`."""


class KeyReused(PenstockError):
    """The Idempotency-Key was used for another request. Use a new key for a new request."""


class Disconnected(PenstockError):
    """The client has gone before its request was complete."""


def request_bytes_max(content_bytes_max: int) -> int:
    """What a request may have whose content may have so much: escapes and Base64 make it up to four times as long."""
    return 4 * content_bytes_max + SLACK_BYTES


async def read_body(request: Request, bytes_max: int, *, is_json: bool = True) -> bytes:
    """The body, or a refusal as soon as it is certain that it is too long."""
    _check_kind(request, is_json)
    claimed = request.headers.get("content-length", "")
    if claimed.isdecimal() and len(claimed) < 20 and int(claimed) > bytes_max:
        raise _too_long(int(claimed), bytes_max)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > bytes_max:
                raise _too_long(len(body), bytes_max)
    except ClientDisconnect as error:
        raise Disconnected from error
    return bytes(body)


async def read_json(request: Request, kind: type[T], bytes_max: int, *, may_be_empty: bool = False) -> T:
    """The body as a struct of this kind."""
    body = await read_body(request, bytes_max)
    if may_be_empty and not body.strip():
        return fitted({}, kind)
    return await decode_json(body, kind)


async def decode_json(body: bytes, kind: type[T]) -> T:
    """Return the body as a value of this type. Raises BadJson, or BadField with the name of the field."""
    value = parse(body) if len(body) <= IN_PLACE_BYTES_MAX else await in_thread(parse, body)
    return fitted(value, kind)


def fitted(value: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise _named(str(error)) from error


def idempotency_key(request: Request) -> str | None:
    """The header `Idempotency-Key`: the same key again means the same request again."""
    key = request.headers.get("idempotency-key")
    if key is not None and (len(key) > KEY_LENGTH_MAX or not _KEY.fullmatch(key)):
        raise BadField(
            f"Idempotency-Key: give 1 to {KEY_LENGTH_MAX} characters of printable ASCII.", field="Idempotency-Key"
        )
    return key


def whole(value: float, field: str, *, least: int, most: int) -> int:
    """A number without a fraction between two bounds."""
    if value != int(value) or not least <= value <= most:
        raise BadField(
            f"{field}: {value:g} does not fit. It is a whole number from {least:,} to {most:,}.", field=field, most=most
        )
    return int(value)


def between(value: float, field: str, *, most: float, least: float = 0.0) -> float:
    if not least <= value <= most:
        raise BadField(f"{field}: {value:g} does not fit. It can be {least:g} to {most:,.0f}.", field=field, most=most)
    return value


def _check_kind(request: Request, is_json: bool) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower() if is_json else ""
    if kind and kind not in ("application/json", "text/json") and not kind.endswith("+json"):
        raise BadKind(f"Content-Type {kind[:100]!r} is not supported here. Send JSON as application/json.", kind=kind)
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise BadKind(f"Content-Encoding {coding[:100]!r} is not supported here. Send the body as it is.", kind=coding)


def _too_long(size: int, bytes_max: int) -> TooLarge:
    return TooLarge(
        f"The request has {size:,} bytes or more, and at most {bytes_max:,} are read.", bytes=size, bytes_max=bytes_max
    )


def _named(error: str) -> BadField:
    """`$.messages[0].body` and the reason, as a sentence that begins with the field."""
    found = _PLACE.fullmatch(error)
    reason, path = (error, "") if found is None else (found["reason"], found["path"] or "")
    inside = _IN_REASON.search(reason)
    place = path.removeprefix("$").removeprefix(".")
    if inside is not None:
        place = f"{place}.{inside['field']}".removeprefix(".")
    return BadField(f"{place or 'the body'}: {reason}.", field=place)
