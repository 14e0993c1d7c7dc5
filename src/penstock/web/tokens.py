"""Bearer tokens: only their hashes are known here, they are compared in constant time, and each has scopes."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC
from difflib import get_close_matches
from hashlib import sha256

from penstock.config import Config, KnownToken
from penstock.model.errors import BadConfig, PenstockError
from penstock.model.times import to_micros

QUEUES_READ, QUEUES_WRITE, D1_READ, D1_WRITE = "queues:read", "queues:write", "d1:read", "d1:write"
UI_VIEW, UI_OPERATE, UI_ADMIN = "ui:view", "ui:operate", "ui:admin"  # of the dashboard; each includes the one before
EVERYTHING = "*"
SCOPES = (
    *(QUEUES_READ, QUEUES_WRITE, D1_READ, D1_WRITE, "controllers:read", "controllers:write"),
    *("operate:read", "operate:write"),
    *("app:read", "app:write", UI_VIEW, UI_OPERATE, UI_ADMIN, EVERYTHING),
)

_HASH = re.compile(r"[0-9a-f]{64}")
_OF_ROUTES = re.compile(r"[a-z][a-z0-9_-]*:[a-z0-9_-]+")  # scopes that routes ask for
MISSPELT = 0.85  # so similar to a scope of ours it is meant to be that


class Unauthorized(PenstockError):
    """The request has no valid token. Send `Authorization: Bearer TOKEN`."""


class MissingScope(PenstockError):
    """The token may not do this."""


def hashed(secret: str | bytes) -> str:
    return sha256(secret if isinstance(secret, bytes) else secret.encode()).hexdigest()


def configured(config: Config, environ: Mapping[str, str]) -> list[KnownToken]:
    """PENSTOCK_TOKEN, which may do everything, and the tokens of penstock.toml."""
    found = list(config.tokens)
    if secret := environ.get("PENSTOCK_TOKEN", "").strip():
        found.append(KnownToken("PENSTOCK_TOKEN", hashed(secret)))
    return found


class Keyring:
    """Knows who may do what."""

    def __init__(
        self,
        tokens: Iterable[KnownToken],
        service_keys: Iterable[KnownToken] = (),
        now: Callable[[], int] | None = None,
    ) -> None:
        self._tokens = list(tokens)
        self._now = now
        self._service_keys = [*self._tokens, *service_keys]
        self._ends = {token.name: ends for token in self._tokens if (ends := _expiry(token)) is not None}
        for token in self._tokens:
            if not _HASH.fullmatch(token.sha256.lower()):
                raise BadConfig(
                    f"tokens: the hash of {token.name!r} is no SHA-256 in 64 hexadecimal digits. Make one: "
                    "`printf %s TOKEN | sha256sum`.",
                    field="tokens",
                )
            others = sorted(set(token.scopes) - set(SCOPES))
            if unknown := [
                each
                for each in others
                if not _OF_ROUTES.fullmatch(each) or get_close_matches(each, SCOPES, cutoff=MISSPELT)
            ]:
                raise BadConfig(
                    f"tokens: {token.name!r} has the scope {unknown[0]!r}. There are: {', '.join(SCOPES)}, and those that "
                    "routes ask for, such as digests:write.",
                    field="tokens",
                )

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def bearer(self, authorization: str | None) -> KnownToken:
        """Return the token of an `Authorization` header. Raises Unauthorized where it is missing or not valid."""
        if not authorization:
            raise Unauthorized
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Unauthorized("The Authorization header is not of the form `Bearer TOKEN`.")
        if (found := self.find(secret, 0 if self._now is None else self._now())) is None:
            raise Unauthorized("The token is not valid.")
        return found

    def find(self, secret: str, now: int) -> KnownToken | None:
        """Return the token of this secret, unless it has expired."""
        found = _match(self._tokens, secret)
        return found if found is not None and self.is_current(found, now) else None

    def is_current(self, token: KnownToken, now: int) -> bool:
        """Return whether a token has not expired; `now` is in microseconds."""
        return (ends := self._ends.get(token.name)) is None or now < ends

    def check_service(self, name: str, given: str | None) -> None:
        """Raises Unauthorized unless the given secret is the service key of this name."""
        found = _match((each for each in self._service_keys if each.name == name), given) if given else None
        if found is None or (self._now is not None and not self.is_current(found, self._now())):
            raise Unauthorized("The request needs a valid service key. Send it as `X-Service-Key`.")


def _expiry(token: KnownToken) -> int | None:
    expires = token.expires
    return None if expires is None else to_micros(expires if expires.tzinfo else expires.replace(tzinfo=UTC))


def _match(tokens: Iterable[KnownToken], secret: str) -> KnownToken | None:
    """Compare with all of them, always: the time taken does not show which was nearly right."""
    # Headers come as Latin-1; a token beyond ASCII was meant as the bytes that it came in.
    given = hashed(secret.strip().encode("latin-1", "replace"))
    found: KnownToken | None = None
    for token in tokens:
        if hmac.compare_digest(given, token.sha256.lower()):
            found = token
    return found


def require(scopes: Collection[str], needed: Iterable[str]) -> None:
    missing = [scope for scope in needed if scope not in scopes and EVERYTHING not in scopes]
    if missing:
        raise MissingScope(f"The token has no scope {' and '.join(missing)}.", missing=missing)
