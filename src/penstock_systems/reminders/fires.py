"""One fire of a reminder: what is to be sent through which channel, with the intent committed before and the result after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.channels import Channel, Outcome, Recorded, Webhook, next_step, send_at
from penstock_systems.reminders import endpoints
from penstock_systems.reminders.app import WEBHOOK, app, channels, db, mail_channels, now_ms, settings, web
from penstock_systems.reminders.keys import address_hash, signing_secrets
from penstock_systems.reminders.notices import make_notice
from penstock_systems.reminders.people import digest_time
from penstock_systems.reminders.recording import keep_for_digest, save_fire
from penstock_systems.reminders.schedule import due_at, next_occurrence
from penstock_systems.reminders.settling import (
    MINUTE_MS,
    Policy,
    Regular,
    Result,
    Standing,
    backoff_ms,
    is_dead,
    settle,
)

POLICY = Policy(settings.retries, settings.backoff_ms)
_log = logging.getLogger("penstock.reminders")

FIRE = db.hot(
    """
    select n.id, n.user_id, n.title, n.body, n.channels, n.email_to, n.endpoint_id, n.chat_to, n.recurrence_rule,
      n.timezone, n.starts, n.urgent, n.nag_every_ms, n.nag_times, n.nag_left, n.occurrence_at, n.count_done, n.extra,
      n.fire_seq, n.error_count, n.acked_at, n.snoozed_until, n.replay_of, n.is_digest, p.email, p.zone, p.quiet_from,
      p.quiet_to, p.digest_at, e.url, e.secret_ref, e.secret_version, e.old_until, e.state as endpoint_state
    from notifications n
    left join people p on p.id = n.user_id
    left join endpoints e on e.id = n.endpoint_id
    where n.id = :id
    and n.claim_token = :token
    """
)
BEFORE = db.hot(
    """
    select channel, status, attempt, intent_at, error
    from notification_deliveries
    where notification_id = :id
    and fire_seq = :fire_seq
    """
)
SUPPRESSED = db.hot("select reason from suppressions where address_hash = :hash")
INTEND = """
insert into notification_deliveries (notification_id, fire_seq, channel, status, attempt, idempotency_key, occurrence_at,
  endpoint_id, intent_at)
values (:id, :fire_seq, :channel, 'sending', 1, :key, :occurrence_at, :endpoint_id, :now)
on conflict (notification_id, fire_seq, channel) do update set
  status = 'sending',
  attempt = notification_deliveries.attempt + 1,
  intent_at = case when notification_deliveries.status in ('sending', 'unknown')
    then notification_deliveries.intent_at else excluded.intent_at end
"""


class Step(NamedTuple):
    """What is to be done for one channel."""

    channel: str
    via: Channel
    key: str
    is_lookup: bool
    attempt: int
    intent_at: int


class Plan(NamedTuple):
    row: Any
    steps: Sequence[Step]
    settled: Mapping[str, Result]  # channels that need no call
    kept: Mapping[str, int]  # channels whose notice waits for a digest, and until when


async def run_fire(id: str, token: str, master: bytes) -> str | None:
    """Send what is due of one claimed reminder and settle its row. Return the error of a fire that was given up.

    An unexpected error is a full failure of this row, and of no other."""
    try:
        plan = await _prepare(id, token, master)
        if plan is None:
            return None  # cancelled or changed since the claim
        done = await asyncio.gather(*(_call(plan.row, step, master) for step in plan.steps))
        results = {**plan.settled, **{step.channel: result for step, (result, _) in zip(plan.steps, done, strict=True)}}
        outcomes = {step.channel: outcome for step, (_, outcome) in zip(plan.steps, done, strict=True)}
        return await _finish(plan, token, results, outcomes)
    except Exception as error:
        _log.exception("Reminder %s failed: %s", id, error)
        return await _fail(id, token, f"internal: {type(error).__name__}: {error}")


async def _prepare(id: str, token: str, master: bytes) -> Plan | None:
    """Decide for each channel of the fire, and commit an intent for each call."""
    now = now_ms()

    def decide(transaction: Any) -> Plan | None:
        row = transaction.first(FIRE, id=id, token=token)
        if row is None:
            return None
        before = {each.channel: each for each in transaction.rows(BEFORE, id=id, fire_seq=row.fire_seq)}
        names = list(dict.fromkeys(msgspec.json.decode(row.channels, type=list[str])))
        hash = address_hash(_address(row)) if mail_channels & set(names) and _address(row) else ""
        suppressed = transaction.value(SUPPRESSED, hash=hash) if hash else None
        steps: list[Step] = []
        settled: dict[str, Result] = {}
        kept: dict[str, int] = {}
        for name in names:
            decided = _decide(row, name, before.get(name), suppressed, now, master)
            if isinstance(decided, int):
                kept[name], settled[name] = decided, Result("digest")
            elif isinstance(decided, Step):
                steps.append(decided)
                if not decided.is_lookup:
                    transaction.write(
                        INTEND,
                        id=id,
                        fire_seq=row.fire_seq,
                        channel=name,
                        key=decided.key,
                        occurrence_at=due_at(row),
                        endpoint_id=row.endpoint_id if name == WEBHOOK else None,
                        now=now,
                    )
            else:
                settled[name] = decided
        if not names:
            settled["none"] = Result("given_up", "the reminder has no channel", is_permanent=True)
        return Plan(row, steps, settled, kept)

    async with app.unit():
        decided = db.atomically(decide)
    found: Plan | None = decided.result
    return found


def _decide(row: Any, name: str, before: Any, suppressed: str | None, now: int, master: bytes) -> Step | Result | int:
    """A call, a result that needs none, or the time until which the notice is kept."""
    attempt = 1 if before is None else before.attempt + 1
    if before is not None and before.status not in ("sending", "failed", "unknown"):
        return Result(before.status, before.error or "", before.attempt)
    channel = _channel_of(row, name, master, now)
    if name in mail_channels and suppressed is not None:
        channel = Result("suppressed", f"{suppressed}: this address gets no mail")
    if isinstance(channel, Result):
        if before is not None and before.status in ("sending", "unknown"):
            # It may have arrived, which no later refusal changes.
            return Result("held", f"the outcome is unknown; now {channel.error}", before.attempt)
        return channel._replace(attempt=attempt)
    if (before is None or before.status == "failed") and (until := _kept_until(row, name, now)) > now:
        return until
    key = f"{row.replay_of or f'{row.id}.{row.fire_seq}'}.{name}"
    recorded = None
    if before is not None:
        status: Any = "" if before.status == "sending" else before.status
        recorded = Recorded(before.intent_at * 1000, status)
    intent_at = now if before is None or before.status == "failed" else before.intent_at
    match next_step(recorded, channel, now=now * 1000, unknown=settings.unknown):
        case "hold":
            return Result("held", "the outcome is unknown, and a repeat might be a second copy", before.attempt)
        case "find":
            return Step(name, channel, key, True, before.attempt, intent_at)
        case _:
            return Step(name, channel, key, False, attempt, intent_at)


def _channel_of(row: Any, name: str, master: bytes, now: int) -> Channel | Result:
    """The channel of a reminder by its name, or why there is none."""
    if name == WEBHOOK:
        if row.url is None:
            return Result("given_up", "the reminder has no endpoint", is_permanent=True)
        if row.endpoint_state == "off":
            return Result("missed", "the endpoint is switched off", is_permanent=True)
        made = Webhook(web, row.url, secrets=signing_secrets(master, row, now), is_patient=True)
        made.seconds = endpoints.SECONDS
        return made
    found = channels.get(name)
    if found is None:
        return Result("given_up", f"there is no channel {name!r}", is_permanent=True)
    if name in mail_channels and not _address(row):
        return Result("given_up", "neither the reminder nor the person has a mail address", is_permanent=True)
    return found


def _address(row: Any) -> str:
    return str(row.email_to or row.email or "")


def _kept_until(row: Any, name: str, now: int) -> int:
    """When quiet hours and digests let this be sent. Programs do not sleep: webhooks are sent at once."""
    if name == WEBHOOK or row.is_digest:
        return now
    zone = row.zone or settings.zone
    quiet = settings.quiet_hours(row.quiet_from, row.quiet_to, zone)
    holds_urgent = settings.quiet is not None and settings.quiet.urgent == "hold"
    urgent = bool(row.urgent) and not holds_urgent
    at = send_at(now * 1000, quiet=quiet, digest_at=digest_time(row.digest_at), zone=zone, urgent=urgent)
    return at // 1000


async def _call(row: Any, step: Step, master: bytes) -> tuple[Result, Outcome]:
    notice = await make_notice(row, step.channel, master, _address(row))
    if step.is_lookup:
        found = await step.via.find(notice, step.key, step.intent_at * 1000)
        held = Result("held", "the outcome is unknown, and the provider does not know the mail", step.attempt)
        return (held, Outcome("unknown")) if found is None else (Result("sent", attempt=step.attempt), found)
    outcome = await step.via.send(notice, step.key)
    return _result(step, outcome), outcome


def _result(step: Step, outcome: Outcome) -> Result:
    retry = round((outcome.retry_after or 0) * 1000)
    match outcome.status:
        case "sent":
            return Result("sent", attempt=step.attempt)
        case "unknown":
            recorded = Recorded(step.intent_at * 1000, "unknown")
            step_after = next_step(recorded, step.via, now=now_ms() * 1000, unknown=settings.unknown)
            status: Any = "held" if step_after == "hold" or outcome.is_permanent else "unknown"
            return Result(status, outcome.error, step.attempt, retry_after_ms=retry)
    return Result("failed", outcome.error, step.attempt, outcome.is_permanent, outcome.is_throttled, retry)


async def _finish(plan: Plan, token: str, results: Mapping[str, Result], outcomes: Mapping[str, Outcome]) -> str | None:
    row, now = plan.row, now_ms()

    def next_regular() -> Regular | None:
        if row.extra == "snooze" and row.occurrence_at > now:
            return Regular(row.occurrence_at, row.count_done)
        found = next_occurrence(row, now)
        return None if found is None else Regular(found.at // 1000, found.number)

    # Counted from the minute: a retry after one minute is sent by the next tick, not by the one after it.
    settlement = settle(_standing(row), results, now=now - now % MINUTE_MS, policy=POLICY, next_regular=next_regular)

    def record(transaction: Any) -> None:
        save_fire(transaction, row, token, settlement, results, outcomes, now)
        for name, at in plan.kept.items():
            keep_for_digest(transaction, row, name, at, now)
        if WEBHOOK in outcomes:
            endpoints.note_result(transaction, row, outcomes[WEBHOOK], now)

    async with app.unit():
        db.atomically(record)
    return settlement.dead


def _standing(row: Any) -> Standing:
    return Standing(
        is_recurring=row.recurrence_rule is not None,
        error_count=row.error_count,
        occurrence_at=due_at(row),
        nag_every_ms=row.nag_every_ms,
        nag_left=row.nag_left,
        is_acked=row.acked_at is not None,
        extra=row.extra,
    )


FAIL = """
update notifications
set error_count = :count, next_fire_at = :next_fire_at, last_error = :error, last_attempt_at = :now, updated_at = :now,
  dead_lettered_at = case when :is_dead = 1 then :now else dead_lettered_at end, claimed_until = null, claim_token = null
where id = :id
and claim_token = :token
"""
ERRORS = "select error_count, fire_seq from notifications where id = :id and claim_token = :token"
DIED = """
insert into notification_dead_letters (notification_id, fire_seq, dead_at, cause, error)
values (:id, :fire_seq, :now, 'internal', :error)
on conflict (notification_id, fire_seq) do nothing
"""


async def _fail(id: str, token: str, error: str) -> str | None:
    """The way out for a row that cannot even be read: it backs off and is parked, without a look at its contents."""
    now, shown = now_ms(), error.replace("\0", " ")[:500]

    def fail(transaction: Any) -> bool:
        row = transaction.first(ERRORS, id=id, token=token)
        if row is None:
            return False
        dead = is_dead(row.error_count + 1, POLICY.retries)
        at = None if dead else now - now % MINUTE_MS + backoff_ms(row.error_count, POLICY.backoff_ms)
        given = {"count": row.error_count + 1, "next_fire_at": at, "error": shown, "now": now, "is_dead": int(dead)}
        transaction.write(FAIL, given | {"id": id, "token": token})
        if dead:
            transaction.write(DIED, id=id, fire_seq=row.fire_seq, now=now, error=shown)
        return dead

    async with app.unit():
        failed = db.atomically(fail)
    return shown if failed.result else None
