"""The keys of callers: only their hashes are stored, with the budgets, models and providers of each caller."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import sha256

import msgspec

import penstock as ps
from penstock_systems.gateway.app import web
from penstock_systems.gateway.settings import FromZero

PREFIX = "pk_"
NAME_MAX = 60
KEYS_MAX = 10_000
KEPT_MICROS = 1_000_000  # a key that another process revokes is refused after so long at the latest
INSERT = (
    "insert into gateway_keys (name, hash, settings, created_at) values (:name, :hash, :settings, :now)"
    " on conflict (name) do nothing"
)
FIND = "select name, settings from gateway_keys where hash = :hash and revoked_at is null"
LIST = "select name, settings, created_at, revoked_at from gateway_keys order by name limit 10000"
CURRENT = "select settings from gateway_keys where name = :name and revoked_at is null"
CHANGE = "update gateway_keys set settings = :settings where name = :name and revoked_at is null and settings = :before"
REVOKE = "update gateway_keys set revoked_at = :now where name = :name and revoked_at is null"


class Allowed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller may do: dollars of each run, day and month, and which models and providers. None is no bound."""

    run: FromZero | None = None
    day: FromZero | None = None
    month: FromZero | None = None
    models: tuple[str, ...] | None = None
    providers: tuple[str, ...] | None = None


class Caller(msgspec.Struct, frozen=True):
    name: str
    allowed: Allowed

    @property
    def budgets(self) -> ps.Budgets:
        return ps.Budgets(run=self.allowed.run, day=self.allowed.day, month=self.allowed.month)

    def may_use(self, *, provider: str, model: str = "") -> bool:
        allowed = self.allowed
        in_models = not model or allowed.models is None or model in allowed.models
        return in_models and (allowed.providers is None or provider in allowed.providers)


_kept: dict[str, tuple[int, Caller]] = {}  # by hash: when the key was read, and whose it is


class NoSuchKey(ps.PenstockError):
    """There is no key of this name."""


class KeyExists(ps.PenstockError):
    """A caller of this name has a key already."""


async def create(app: ps.App, name: str, allowed: Allowed) -> str:
    """Store a new key and return its secret, which cannot be read again."""
    if not (0 < len(name) <= NAME_MAX and name.isprintable() and name.strip() == name):
        raise ps.errors.BadParameter(f"The name {name[:100]!r} is not possible: 1 to {NAME_MAX} printable characters.")
    check_budgets(name, allowed)
    secret = f"{PREFIX}{secrets.token_urlsafe(32)}"
    stored = msgspec.json.encode(allowed).decode()
    now = await app.db.now()
    async with app.unit():
        written = app.db.write(INSERT, name=name, hash=_hash(secret), settings=stored, now=now)
    if written.changes == 0:
        raise KeyExists(f"There is a key {name!r} already. Choose another name: one that was revoked stays taken.")
    return secret


async def change(app: ps.App, name: str, new: Mapping[str, object]) -> Allowed:
    """Change what a key allows: the fields of `new` alone. Calls that are reserved already go on."""
    while (before := await app.db.value(CURRENT, name=name)) is not None:
        allowed = msgspec.convert(msgspec.to_builtins(read(before)) | dict(new), Allowed)
        check_budgets(name, allowed)
        async with app.unit():
            settings = msgspec.json.encode(allowed).decode()
            written = app.db.write(CHANGE, name=name, settings=settings, before=before)
        if written.changes:  # else another operator was quicker
            _kept.clear()
            return allowed
    raise NoSuchKey(f"There is no key {name[:100]!r}. See them with: penstock gateway keys list")


def check_budgets(name: str, allowed: Allowed) -> None:
    """Raise BadParameter where a budget is no amount of money."""
    try:
        _ = Caller(name, allowed).budgets
    except ps.errors.BadApp as error:
        raise ps.errors.BadParameter(error.message) from error


async def revoke(app: ps.App, name: str) -> None:
    """Revoke a key at once. Calls that are under way end as they would have."""
    now = await app.db.now()
    async with app.unit():
        written = app.db.write(REVOKE, name=name, now=now)
    _kept.clear()
    if written.changes == 0:
        raise NoSuchKey(f"There is no key {name[:100]!r}. See them with: penstock gateway keys list")


async def caller_of(app: ps.App, headers: Mapping[str, str]) -> Caller | None:
    """Return the caller whose key a request has: as a bearer token, or in `X-Service-Key` or `X-Subscription-Token`."""
    bearer = headers.get("authorization", "").partition(" ")[2]
    given = (bearer, headers.get("x-service-key", ""), headers.get("x-subscription-token", ""))
    secret = next((each.strip() for each in given if each.strip().startswith(PREFIX)), None)
    if secret is None:
        return None
    hash, now = _hash(secret), web.clock.now()
    kept = _kept.get(hash)
    if kept is not None and 0 <= now - kept[0] < KEPT_MICROS:
        return kept[1]
    found = await app.db.first(FIND, hash=hash)
    caller = None if found is None else Caller(found.name, read(found.settings))
    if len(_kept) >= KEYS_MAX:
        _kept.clear()
    if caller is not None:
        _kept[hash] = now, caller
    return caller


def read(stored: str) -> Allowed:
    return msgspec.json.decode(stored, type=Allowed)


def _hash(secret: str) -> str:
    return sha256(secret.encode("latin-1", "replace")).hexdigest()
