"""Bearer tokens: only their hashes are known here, they are compared in constant time, and each has scopes."""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from penstock.model.errors import BadConfig, PenstockError

QUEUES_READ, QUEUES_WRITE, D1_READ, D1_WRITE = "queues:read", "queues:write", "d1:read", "d1:write"
EVERYTHING = "*"
APP_READ = "app:read"  # the routes of an app's own
SCOPES = (QUEUES_READ, QUEUES_WRITE, D1_READ, D1_WRITE, "controllers:read", "controllers:write", APP_READ, EVERYTHING)

_HASH = re.compile(r"[0-9a-f]{64}")


class Token(Protocol):
    """One entry of `[[tokens]]` in penstock.toml: `sha256` is the hash of the token in hexadecimal."""

    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def scopes(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class KnownToken:
    name: str
    sha256: str
    scopes: tuple[str, ...] = (EVERYTHING,)


class Unauthorized(PenstockError):
    """The request has no valid token. Send `Authorization: Bearer TOKEN`."""


class Forbidden(PenstockError):
    """The token may not do this."""


def hashed(secret: str | bytes) -> str:
    return sha256(secret if isinstance(secret, bytes) else secret.encode()).hexdigest()


def configured(config: object, environ: Mapping[str, str]) -> list[Token]:
    """PENSTOCK_TOKEN, which may do everything, and the tokens of penstock.toml."""
    found: list[Token] = list(getattr(config, "tokens", ()))
    if secret := environ.get("PENSTOCK_TOKEN", "").strip():
        found.append(KnownToken("PENSTOCK_TOKEN", hashed(secret)))
    return found


class Keyring:
    """Knows who may do what."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = list(tokens)
        for token in self._tokens:
            if not _HASH.fullmatch(token.sha256.lower()):
                raise BadConfig(
                    f"tokens: the hash of {token.name!r} is no SHA-256 in 64 hexadecimal digits. Make one: "
                    "`printf %s TOKEN | sha256sum`.",
                    field="tokens",
                )
            if unknown := sorted(set(token.scopes) - set(SCOPES)):
                raise BadConfig(
                    f"tokens: {token.name!r} has the scope {unknown[0]!r}. There are: {', '.join(SCOPES)}.",
                    field="tokens",
                )

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def bearer(self, authorization: str | None) -> Token:
        """Return the token of this header. Raises Unauthorized where the header is missing or no token fits it."""
        if not authorization:
            raise Unauthorized
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthorized("The Authorization header is not of the form `Bearer TOKEN`.")
        # Headers come as Latin-1; a token beyond ASCII was meant as the bytes that it came in.
        given = hashed(secret.strip().encode("latin-1", "replace"))
        mine: Token | None = None
        for token in self._tokens:  # all of them, always: the time taken tells nothing about which was nearly right
            if hmac.compare_digest(given, token.sha256.lower()):
                mine = token
        if mine is None:
            raise Unauthorized("The token is not valid.")
        return mine


def require(scopes: Collection[str], needed: Iterable[str]) -> None:
    missing = [scope for scope in needed if scope not in scopes and EVERYTHING not in scopes]
    if missing:
        raise Forbidden(f"The token has no scope {' and '.join(missing)}.", missing=missing)
