"""Who may see and do what: sessions, roles, and requests that come from elsewhere.

A session is a signed cookie: the name of a token, when it was made, when it was last used. Its key follows from the token's
hash, so removing a token from the configuration ends its sessions, and no table of sessions has to be kept.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from penstock.config import KnownToken
from penstock.model.errors import PenstockError
from penstock.web.connection import client_network
from penstock.web.tokens import EVERYTHING, UI_ADMIN, UI_OPERATE, UI_VIEW, Keyring

COOKIE = "penstock_session"
SESSION_MICROS = 12 * 3_600_000_000
IDLE_MICROS = 30 * 60_000_000  # of an administrator
RENEW_MICROS = 60_000_000  # a session's last use is written no more often
WRONG_MAX = 10  # tokens from one address in WRONG_MICROS
WRONG_MICROS = 60_000_000
ADDRESSES_MAX = 10_000
LOOPBACK = ("localhost", "127.0.0.1", "::1")
FORMS = ("application/x-www-form-urlencoded", "application/json")


class Role(IntEnum):
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class TooManyAttempts(PenstockError):
    """Too many wrong tokens came from this address."""


class Misdirected(PenstockError):
    """The request names a host that is not served."""


class Forged(PenstockError):
    """The request changes something and does not come from a page of this dashboard."""


def role_of(token: KnownToken) -> Role | None:
    scopes = set(token.scopes)
    if scopes & {EVERYTHING, UI_ADMIN}:
        return Role.ADMIN
    return Role.OPERATOR if UI_OPERATE in scopes else Role.VIEWER if UI_VIEW in scopes else None


@dataclass(frozen=True, slots=True)
class Visitor:
    """The token behind a request. `renewed` is the cookie to set where the session was last used a while ago."""

    name: str
    role: Role
    renewed: str | None = None
    by_cookie: bool = True


class LoginSession(msgspec.Struct, frozen=True, array_like=True):
    token: str
    made_at: int
    used_at: int
    nonce: str


@dataclass(slots=True)
class Attempts:
    """Counts wrong tokens by address, each address by itself: one that guesses cannot keep others out. A token of 16 random
    bytes is not guessed in this way from any number of addresses. What is older than a minute counts no more."""

    wrong: dict[str, list[int]] = field(default_factory=dict)

    def check(self, address: str, now: int) -> None:
        """Raise TooManyAttempts with the seconds to wait."""
        since = now - WRONG_MICROS
        self.wrong = {each: kept for each, times in self.wrong.items() if (kept := [at for at in times if at > since])}
        own = self.wrong.get(network_of(address), [])
        if len(own) >= WRONG_MAX:
            wait = max(1, (sorted(own)[-WRONG_MAX] + WRONG_MICROS - now + 999_999) // 1_000_000)
            raise TooManyAttempts(f"Too many wrong tokens. Try again in {wait} s.", retry_after=wait)

    def add(self, address: str, now: int) -> None:
        network = network_of(address)
        if network in self.wrong or len(self.wrong) < ADDRESSES_MAX:
            self.wrong.setdefault(network, []).append(now)


class Access:
    """Knows the tokens of the configuration, and judges requests."""

    def __init__(self, tokens: Iterable[KnownToken], hosts: Sequence[str] = (), links: Iterable[str] = ()) -> None:
        """`links` are digests of codes that each log in once."""
        self._tokens = list(tokens)
        self._keyring = Keyring(self._tokens)
        self._hosts = {host.lower() for host in hosts}
        self._links = set(links)
        self._attempts = Attempts()

    @property
    def has_tokens(self) -> bool:
        return any(role_of(token) for token in self._tokens)

    # -- coming in ------------------------------------------------------------------------------------------

    def check_host(self, request: Request) -> None:
        """Raise Misdirected unless the Host header names this machine's loopback or a host of the list: a page of a foreign
        name that resolves to this address is not let in."""
        name = _host_name(request.headers.get("host", ""))
        if "*" not in self._hosts and name not in self._hosts and name not in LOOPBACK:
            raise Misdirected(
                f"This dashboard does not serve the host {name[:100]!r}. List it in penstock.toml: "
                f'[dashboard] hosts = ["{name[:100]}"]'
            )

    def login(self, secret: str, address: str, now: int) -> str | None:
        """Return the cookie of a new session; None where the token is not valid or may not see the dashboard."""
        self._attempts.check(address, now)
        token = self._keyring.find(secret, now)
        if token is None or role_of(token) is None:
            self._attempts.add(address, now)
            return None
        return self._signed(token, LoginSession(token.name, now, now, secrets.token_urlsafe(12)))

    def make_link(self) -> str:
        """Return a code that logs in once, for the first token."""
        code = secrets.token_urlsafe(24)
        self._links.add(link_digest(code))
        return code

    def redeem(self, code: str, address: str, now: int) -> str | None:
        """Return the cookie of a new session for a code that was not used before."""
        self._attempts.check(address, now)
        digest = link_digest(code)
        if digest not in self._links or not self._tokens:
            self._attempts.add(address, now)
            return None
        self._links.discard(digest)
        return self._signed(self._tokens[-1], LoginSession(self._tokens[-1].name, now, now, secrets.token_urlsafe(12)))

    def visitor(self, request: Request, now: int) -> Visitor | None:
        """Return who asks: by the Authorization header, or by the cookie of a session."""
        if header := request.headers.get("authorization"):
            return self._bearer(header, request.client.host if request.client else "-", now)
        for token in self._tokens:
            if (session := _opened(token, request.cookies.get(COOKIE, ""))) is None:
                continue
            role, is_old = role_of(token), now - session.made_at > SESSION_MICROS
            is_idle = role is Role.ADMIN and now - session.used_at > IDLE_MICROS
            if role is None or is_old or is_idle or not self._keyring.is_current(token, now):
                return None
            used = msgspec.structs.replace(session, used_at=now)
            renewed = self._signed(token, used) if now - session.used_at > RENEW_MICROS else None
            return Visitor(token.name, role, renewed)
        return None

    def _bearer(self, header: str, address: str, now: int) -> Visitor | None:
        self._attempts.check(address, now)
        scheme, _, secret = header.partition(" ")
        token = self._keyring.find(secret, now) if scheme.lower() == "bearer" else None
        if token is None:
            self._attempts.add(address, now)
            return None
        role = role_of(token)
        return None if role is None else Visitor(token.name, role, by_cookie=False)

    def _signed(self, token: KnownToken, session: LoginSession) -> str:
        body = base64.urlsafe_b64encode(msgspec.json.encode(session)).decode().rstrip("=")
        return f"{body}.{_signature(token, body)}"


def check_origin(request: Request, visitor: Visitor | None) -> None:
    """Raise Forged unless a request that changes something comes from a page of this site, or bears a token itself."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMS:
        raise Forged(f"A form or JSON is accepted here, not {kind[:60] or 'a body without a type'}.")
    if visitor is not None and not visitor.by_cookie:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_own = site == "same-origin"
    else:
        is_own = origin is not None and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    if not is_own:
        raise Forged("Send the form from a page of this dashboard.")


def came_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Tell whether a link of another site was followed: the browser then left out the cookie of the session."""
    return headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode", "navigate") == "navigate"


def own_path(text: str, prefix: str) -> str:
    """Return a path of this dashboard to go to, whatever a link asks for."""
    parts = urlsplit(text)
    is_own = not parts.scheme and not parts.netloc and text.startswith("/") and not text.startswith(("//", "/\\"))
    is_plain = text.isprintable() and "\\" not in text
    return text if is_own and is_plain and (text == prefix or text.startswith(f"{prefix}/")) else f"{prefix}/"


def _opened(token: KnownToken, cookie: str) -> LoginSession | None:
    body, _, signature = cookie.partition(".")
    if not body or not hmac.compare_digest(_signature(token, body).encode(), signature.encode("utf-8", "replace")):
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=LoginSession)
    except (ValueError, msgspec.DecodeError):
        return None


def _signature(token: KnownToken, body: str) -> str:
    key = sha256(b"penstock dashboard session\n" + token.sha256.lower().encode()).digest()
    return hmac.new(key, f"{token.name}\n{body}".encode(), sha256).hexdigest()


def network_of(address: str) -> str:
    """Return what a client has of its own: an IPv4 address, or the 64 bits of an IPv6 address that it was assigned."""
    try:
        return str(client_network(address))
    except ValueError:
        return address


def link_digest(code: str) -> str:
    return sha256(code.encode("utf-8", "replace")).hexdigest()


def _host_name(header: str) -> str:
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def allowed(visitor: Visitor | None, needed: Role) -> bool:
    return visitor is not None and visitor.role >= needed
