"""Addresses that get no mail: they bounced, complained or unsubscribed. Only a hash of each is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import penstock as ps
from penstock_systems.reminders.app import db, now_ms
from penstock_systems.reminders.keys import address_hash

ADD = """
insert into suppressions (address_hash, reason, at)
values (:hash, :reason, :now)
on conflict (address_hash) do nothing
"""
FIND = "select reason, at from suppressions where address_hash = :hash"
LIFT = "delete from suppressions where address_hash = :hash"
ARRIVED = """
update notification_deliveries
set status = 'sent', sent_at = :now, answered_at = :now, provider_id = :provider_id, error = null
where idempotency_key = :key
and status in ('sending', 'unknown', 'held')
"""


def suppress(hashes: Sequence[str], reason: str) -> None:
    """Send no more mail to these addresses. Joins the current unit."""
    for hash in hashes:
        db.write(ADD, hash=hash, reason=reason, now=now_ms())


def note_arrival(key: str, provider_id: str) -> None:
    """Settle a mail of unknown outcome that the provider reports on. Joins the current unit."""
    db.write(ARRIVED, key=key, provider_id=provider_id, now=now_ms())


async def show(address: str) -> dict[str, Any]:
    found = await db.first(FIND, hash=address_hash(address))
    if found is None:
        raise ps.HttpError(404, "This address is not suppressed.", name="not_found")
    return {"address": address, "reason": found.reason, "at": found.at}


async def lift(address: str) -> dict[str, Any]:
    """Send mail to an address again."""
    await show(address)
    db.write(LIFT, hash=address_hash(address))
    return {"address": address, "suppressed": False}
