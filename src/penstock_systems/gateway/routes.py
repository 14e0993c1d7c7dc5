"""The gateway's own routes: its keys, and what was spent."""

from __future__ import annotations

from typing import Any

import msgspec

import penstock as ps
from penstock_systems.gateway import keys, reading
from penstock_systems.gateway.app import app, db
from penstock_systems.gateway.keys import Allowed
from penstock_systems.gateway.settings import FromZero

READ, WRITE = "gateway:read", "gateway:write"


class NewKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    allowed: Allowed = Allowed()


class ChangedKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    run: FromZero | msgspec.UnsetType | None = msgspec.UNSET
    day: FromZero | msgspec.UnsetType | None = msgspec.UNSET
    month: FromZero | msgspec.UnsetType | None = msgspec.UNSET
    models: tuple[str, ...] | msgspec.UnsetType | None = msgspec.UNSET
    providers: tuple[str, ...] | msgspec.UnsetType | None = msgspec.UNSET


@app.get("/v1/keys", auth=READ)
async def list_keys() -> list[dict[str, Any]]:
    """List all keys, without their secrets."""
    return [
        {"name": row.name, "created_at": row.created_at, "revoked_at": row.revoked_at}
        | msgspec.to_builtins(keys.read(row.settings))
        for row in await db.rows(keys.LIST)
    ]


@app.post("/v1/keys", auth=WRITE, status=201)
async def create_key(new: NewKey) -> dict[str, str]:
    """Create a key. Its secret is in this answer alone."""
    try:
        return {"name": new.name, "key": await keys.create(app, new.name, new.allowed)}
    except keys.KeyExists as error:
        raise ps.HttpError(409, error.message, name="key_exists") from error


@app.patch("/v1/keys/{name}", auth=WRITE)
async def change_key(name: str, new: ChangedKey) -> dict[str, Any]:
    """Change what a key may do; what is not named stays."""
    named = {each: value for each, value in msgspec.structs.asdict(new).items() if value is not msgspec.UNSET}
    try:
        changed = await keys.change(app, name, named)
    except keys.NoSuchKey as error:
        raise ps.HttpError(404, error.message, name="no_such_key") from error
    return {"name": name, **msgspec.to_builtins(changed)}


@app.delete("/v1/keys/{name}", auth=WRITE)
async def revoke_key(name: str) -> dict[str, str]:
    """Revoke a key."""
    try:
        await keys.revoke(app, name)
    except keys.NoSuchKey as error:
        raise ps.HttpError(404, error.message, name="no_such_key") from error
    return {"revoked": name}


@app.get("/v1/spend", auth=READ)
async def spent(by: reading.By = "key", days: int = 1) -> list[dict[str, Any]]:
    """Return what was spent in so many days, summed by key, model, provider, correlation, tag, day or status."""
    if not 1 <= days <= 400:
        raise ps.HttpError(422, f"days is {days}; it is 1 to 400.", field="days")
    return await reading.spend(db, by, since=await db.ago(f"{days}d"))
