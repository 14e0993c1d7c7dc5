"""The pages of the gateway in the dashboard: what was spent, and the keys of callers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from penstock.pages import Column, Input
from penstock_systems.gateway import keys, reading
from penstock_systems.gateway.app import app, db

SPEND = [
    Column("name", "spent by"),
    Column("usd", "spent", "small_usd"),
    Column("usd_at_most", "at most, of unknown outcome", "small_usd"),
    *(Column("calls", "calls", "count"), Column("cached", "cached", "count"), Column("refused", "refused", "count")),
    *(Column("prompt_tokens", "prompt", "count"), Column("completion_tokens", "answer", "count")),
]
KEYS = [
    Column("name", "caller"),
    Column("state", "state", "state"),
    *(Column(name, f"a {name}", "usd") for name in ("run", "day", "month")),
    Column("models", "models", of=lambda row: ", ".join(row["models"] or ()) or "all"),
    Column("created_at", "created", "time"),
]
Days = Annotated[int, Input("Days"), msgspec.Meta(ge=1, le=400)]


@app.page("/spend", "Spend", SPEND, empty="Nothing was spent.", every=5, group="Gateway")
async def show_spend(by: reading.By = "key", days: Days = 30) -> list[dict[str, Any]]:
    rows = await reading.spend(db, by, since=await db.ago(f"{days}d"), most=100)
    return [{"name": row[by], **row} for row in rows]


@app.page("/keys", "Keys", KEYS, empty="There is no key. Make one: penstock gateway keys add NAME", group="Gateway")
async def show_keys() -> list[dict[str, Any]]:
    return [
        {
            **row.asdict(),
            **msgspec.to_builtins(keys.read(row.settings)),
            "state": "revoked" if row.revoked_at else "active",
        }
        for row in await db.rows(keys.LIST)
    ]


@show_keys.action("Revoke", on="row", role="admin", confirm="Its calls are refused from now on.", dangerous=True)
async def revoke(name: str) -> str:
    await keys.revoke(app, name)
    return f"Revoked key {name}."
