"""What was spent, summed by caller, model, correlation, tag or day. The ledger says how much, the gateway's rows what for."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

By = Literal["key", "model", "provider", "correlation", "tag", "day", "status"]
BYS: tuple[By, ...] = ("key", "model", "provider", "correlation", "tag", "day", "status")
ROWS_MAX = 100_000  # that one sum looks at

# Of a call that was killed before its row was written only the ledger knows.
CALLS = """
select l.id as id, l.cost as usd, l.state as status, l.created_at as at, l.provider as provider, l.operation as model,
  s.caller as caller, s.correlation as correlation, s.tags as tags, s.prompt_tokens as prompt_tokens,
  s.completion_tokens as completion_tokens
from api_calls_ledger l left join gateway_spend s on s.id = l.id
where l.service = 'gateway' and l.created_at >= :since
order by l.created_at desc limit 100000
"""
OTHERS = """
select id, 0.0 as usd, status, at, provider, model, caller, correlation, tags, prompt_tokens, completion_tokens
from gateway_spend where status in ('cached', 'refused') and at >= :since order by at desc limit 100000
"""


class Reads(Protocol):
    async def rows(self, sql: str, given: object = None, /, **named: object) -> list[Any]: ...


async def spend(db: Reads, by: By, *, since: str, most: int = 1_000) -> list[dict[str, Any]]:
    """Return what was spent since a time, the largest sum first. A call with two tags counts for both."""
    sums: dict[str, dict[str, Any]] = {}
    for sql in (CALLS, OTHERS):
        for row in await db.rows(sql, since=since):
            for name in _names(row, by):
                found = sums.setdefault(name, dict.fromkeys(_COUNTED, 0) | {by: name, "usd": 0.0, "usd_at_most": 0.0})
                found["calls"] += 1
                found["prompt_tokens"] += row.prompt_tokens or 0
                found["completion_tokens"] += row.completion_tokens or 0
                found["cached"] += row.status == "cached"
                found["refused"] += row.status == "refused"
                found["usd_at_most" if row.status in ("reserved", "unknown") else "usd"] += row.usd
    ordered = sorted(sums.values(), key=lambda each: (-each["usd"] - each["usd_at_most"], str(each[by])))
    return [{by: each[by]} | {name: each[name] for name in (*_MONEY, *_COUNTED)} for each in ordered[:most]]


_MONEY = ("usd", "usd_at_most")
_COUNTED = ("calls", "cached", "refused", "prompt_tokens", "completion_tokens")


def _names(row: Any, by: By) -> list[str]:
    match by:
        case "key":
            return [row.caller or "(killed before its row)"]
        case "correlation":
            return [row.correlation or "(none)"]
        case "tag":
            tags = msgspec.json.decode(row.tags) if row.tags else {}
            return [f"{name}={value}" for name, value in tags.items()] or ["(none)"]
        case "day":
            return [str(row.at)[:10]]
    return [str(getattr(row, by))]
