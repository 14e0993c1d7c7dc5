"""Writes what became of a fire: the results of its channels, the next state of its row, and what a digest keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.channels import Outcome
from penstock.web import hashed
from penstock_systems.reminders.schedule import due_at
from penstock_systems.reminders.settling import Result, Settlement

CAUSE_CHARACTERS_MAX = 120
_NUMBERS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")

SAVE_DELIVERY = """
insert into notification_deliveries (notification_id, fire_seq, channel, status, attempt, idempotency_key, occurrence_at,
  endpoint_id, intent_at, answered_at, sent_at, provider_id, error)
values (:id, :fire_seq, :channel, :status, :attempt, :key, :occurrence_at, :endpoint_id, :now, :now, :sent_at, :provider_id,
  :error)
on conflict (notification_id, fire_seq, channel) do update set
  status = excluded.status,
  answered_at = excluded.answered_at,
  sent_at = excluded.sent_at,
  provider_id = excluded.provider_id,
  error = excluded.error
"""
# A row that was cancelled or changed meanwhile has lost its claim, and stays as it is now.
SETTLE = """
update notifications
set next_fire_at = :next_fire_at,
  error_count = :error_count,
  last_error = :last_error,
  fire_seq = fire_seq + :advances,
  occurrence_at = coalesce(:occurrence_at, occurrence_at),
  count_done = coalesce(:count_done, count_done),
  extra = :extra,
  nag_left = case when :nag_left < 0 then nag_times else :nag_left end,
  acked_at = case when :occurrence_at is null then acked_at else null end,
  snoozed_until = case when :advances = 1 then null else snoozed_until end,
  last_fired_at = case when :is_delivered = 1 then :now else last_fired_at end,
  last_attempt_at = :now,
  dead_lettered_at = case when :parks = 1 then :now else null end,
  done_at = case when :is_done = 1 then :now else null end,
  claimed_until = null,
  claim_token = null,
  updated_at = :now
where id = :id
and claim_token = :token
"""
DIED = """
insert into notification_dead_letters (notification_id, fire_seq, dead_at, cause, error)
values (:id, :fire_seq, :now, :cause, :error)
on conflict (notification_id, fire_seq) do update set dead_at = excluded.dead_at, cause = excluded.cause,
  error = excluded.error, resolved_at = null
"""
DIGEST = "select id, next_fire_at, claim_token from notifications where key = :key"
NEW_DIGEST = """
insert into notifications (id, key, user_id, title, channels, email_to, chat_to, timezone, starts, occurrence_at,
  next_fire_at, is_digest, created_at, updated_at)
values (:id, :key, :user_id, 'Reminders', :channels, :email_to, :chat_to, 'UTC', '', :at, :at, 1, :now, :now)
"""
KEEP = """
insert into digest_items (digest_id, notification_id, fire_seq, channel, title, body, kept_at)
values (:digest_id, :id, :fire_seq, :channel, :title, :body, :now)
on conflict (digest_id, notification_id, fire_seq, channel) do nothing
"""
IN_DIGEST = """
update notification_deliveries
set digest_id = :digest_id
where notification_id = :id
and fire_seq = :fire_seq
and channel = :channel
"""


def save_fire(
    transaction: Any,
    row: Any,
    token: str,
    settlement: Settlement,
    results: Mapping[str, Result],
    outcomes: Mapping[str, Outcome],
    now: int,
) -> None:
    """Record the results, and settle the row if its claim still stands."""
    for name, result in results.items():
        status = result.status
        if name in settlement.gives_up:
            status = "held" if status == "unknown" else "given_up"
        if name not in outcomes and status in ("sent", "replayed"):
            continue  # recorded by an earlier attempt
        outcome = outcomes.get(name)
        transaction.write(
            SAVE_DELIVERY,
            id=row.id,
            fire_seq=row.fire_seq,
            channel=name,
            status=status,
            attempt=result.attempt,
            key=f"{row.replay_of or f'{row.id}.{row.fire_seq}'}.{name}",
            occurrence_at=due_at(row),
            endpoint_id=row.endpoint_id if name == "webhook" else None,
            now=now,
            sent_at=now if status == "sent" else None,
            provider_id=None if outcome is None else _storable(outcome.provider_id),
            error=_storable(result.error) or None,
        )
    regular = settlement.occurrence
    transaction.write(
        SETTLE,
        id=row.id,
        token=token,
        now=now,
        next_fire_at=settlement.next_fire_at,
        error_count=settlement.error_count,
        last_error=None if settlement.last_error is None else _storable(settlement.last_error),
        advances=int(settlement.advances),
        occurrence_at=None if regular is None else regular.at,
        count_done=None if regular is None else regular.number,
        extra=settlement.extra,
        nag_left=settlement.nag_left,
        is_delivered=int(settlement.is_delivered),
        parks=int(settlement.parks),
        is_done=int(settlement.is_done),
    )
    if settlement.dead is not None:
        error = _storable(settlement.dead)
        transaction.write(DIED, id=row.id, fire_seq=row.fire_seq, now=now, cause=cause_of(error), error=error)


def keep_for_digest(transaction: Any, row: Any, channel: str, at: int, now: int) -> None:
    """Keep the notice of a fire for the digest of its person at this time. Call it after `save_fire`."""
    key = f"digest {row.user_id} {channel} {at} {row.email_to or row.chat_to or ''}"
    found = transaction.first(DIGEST, key=key)
    if found is not None and (found.next_fire_at is None or found.claim_token is not None):
        key, at, found = f"{key} {row.id}.{row.fire_seq}", now, None  # that digest is being sent already
    digest_id = f"digest-{hashed(key)[:32]}" if found is None else found.id
    if found is None:
        transaction.write(
            NEW_DIGEST,
            id=digest_id,
            key=key,
            user_id=row.user_id,
            channels=f'["{channel}"]',
            email_to=row.email_to,
            chat_to=row.chat_to,
            at=at,
            now=now,
        )
    fire = {"id": row.id, "fire_seq": row.fire_seq, "channel": channel, "digest_id": digest_id}
    transaction.write(KEEP, fire | {"title": row.title, "body": row.body, "now": due_at(row)})
    transaction.write(IN_DIGEST, fire)


def cause_of(error: str) -> str:
    """The part of an error that rows of one cause share."""
    return _NUMBERS.sub("#", error)[:CAUSE_CHARACTERS_MAX]


def _storable(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
