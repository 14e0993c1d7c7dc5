"""Endpoints: the receivers of webhooks, their secrets, and what happens to one that fails for days."""

from __future__ import annotations

import re
from typing import Any

from penstock.channels import Outcome
from penstock.web import hashed
from penstock_systems.reminders.app import settings
from penstock_systems.reminders.keys import RESEND_SECRET, SECRET_ENV
from penstock_systems.reminders.settings import CHANNEL_SECONDS

SECONDS = CHANNEL_SECONDS
OWN_SECRETS = (SECRET_ENV, RESEND_SECRET)  # a receiver knows its secret, and these make links and reports of Resend
SECRET_REF = re.compile(rf"(?!(?:{'|'.join(OWN_SECRETS)})$)REMINDERS_[A-Z0-9_]{{1,80}}")
HOUR_MS = 3_600_000

RECOVER = """
update endpoints
set state = 'on', failing_since = null, failures = 0, updated_at = :now
where id = :id
and state = 'failing'
"""
FAIL = """
update endpoints
set failures = failures + 1, failing_since = coalesce(failing_since, :now), last_error = :error, updated_at = :now,
  state = case when state = 'on' then 'failing' else state end
where id = :id
"""
FAILING = "select id, url, owner_id, state, failing_since from endpoints where id = :id"
SWITCH_OFF = "update endpoints set state = 'off', updated_at = :now where id = :id"
TELL_OWNER = """
insert into notifications (id, key, user_id, title, body, channels, timezone, starts, urgent, occurrence_at, next_fire_at,
  created_at, updated_at)
values (:id, :key, :owner, :title, :body, '["email"]', 'UTC', '', 1, :now, :now, :now, :now)
on conflict (key) do nothing
"""


def note_result(transaction: Any, row: Any, outcome: Outcome, now: int) -> None:
    """Count the failures of an endpoint, and switch it off after days of them or if it is gone. Its owner gets a mail."""
    if outcome.status == "sent":
        if row.endpoint_state != "on":
            transaction.write(RECOVER, id=row.endpoint_id, now=now)
        return
    if outcome.is_throttled:
        return
    transaction.write(FAIL, id=row.endpoint_id, now=now, error=outcome.error.replace("\0", " ")[:500])
    found = transaction.first(FAILING, id=row.endpoint_id)
    if found is None or found.state == "off":
        return
    if not outcome.is_gone and now - found.failing_since < settings.endpoint_off_ms:
        return
    transaction.write(SWITCH_OFF, id=found.id, now=now)
    days = (now - found.failing_since) // (24 * HOUR_MS)
    why = "It answered 410 Gone" if outcome.is_gone else f"All webhooks to it failed for {days} days"
    key = f"endpoint-off {found.id} {now}"
    body = (
        f"Penstock sends no more webhooks to {found.url}. {why}: {outcome.error}\n\n"
        f"Switch it on again with: penstock reminders endpoints enable {found.id}\n"
        f"Send what it missed with: penstock reminders endpoints replay {found.id}"
    )
    transaction.write(
        TELL_OWNER,
        id=f"notice-{hashed(key)[:32]}",
        key=key,
        owner=found.owner_id or row.user_id,
        title="A webhook endpoint was switched off",
        body=body.replace("\0", " "),
        now=now,
    )
