"""Create, read and change reminders. The functions that write join the current unit of work."""

from __future__ import annotations

import os
from typing import Annotated, Any

import msgspec

import penstock as ps
from penstock.channels import check_address
from penstock.recurrence import Occurrence
from penstock_systems.reminders import endpoints_admin
from penstock_systems.reminders.app import WEBHOOK, channels, db, now_ms, settings
from penstock_systems.reminders.people import check_user, find_person
from penstock_systems.reminders.schedule import (
    Ends,
    local_time,
    make_recurrence,
    read_schedule,
    span_ms,
    stored_recurrence,
)

UPCOMING = 5  # occurrences that an answer shows
NAG_MS_MIN = 60_000
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Body = Annotated[str, msgspec.Meta(max_length=8_000)]
NagTimes = Annotated[int, msgspec.Meta(ge=1, le=100)]


class NewReminder(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"except_dates": "except"}):
    """What a client sends to create a reminder."""

    title: Title
    body: Body = ""
    user: str = "me"
    channels: list[str] | None = None
    email: str | None = None
    webhook: str | None = None  # the id or the address of an endpoint
    chat: str | None = None  # of Telegram
    at: str | None = None  # 2026-12-24T18:00, with or without a zone, or `in 2h`; now where it is missing
    zone: str | None = None
    rule: dict[str, str] | None = None
    until: str | None = None
    count: int | None = None
    except_dates: list[str] = []
    urgent: bool = False
    nag_every: str | None = None
    nag_times: NagTimes = 3
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class Change(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"except_dates": "except"}):
    """What a client changes of a reminder. A field that is left out keeps its value."""

    title: Title | msgspec.UnsetType = msgspec.UNSET
    body: Body | msgspec.UnsetType = msgspec.UNSET
    channels: list[str] | msgspec.UnsetType = msgspec.UNSET
    email: str | msgspec.UnsetType | None = msgspec.UNSET
    webhook: str | msgspec.UnsetType | None = msgspec.UNSET
    chat: str | msgspec.UnsetType | None = msgspec.UNSET
    at: str | msgspec.UnsetType = msgspec.UNSET
    zone: str | msgspec.UnsetType = msgspec.UNSET
    rule: dict[str, str] | msgspec.UnsetType | None = msgspec.UNSET
    until: str | msgspec.UnsetType | None = msgspec.UNSET
    count: int | msgspec.UnsetType | None = msgspec.UNSET
    except_dates: list[str] | msgspec.UnsetType = msgspec.UNSET
    urgent: bool | msgspec.UnsetType = msgspec.UNSET
    nag_every: str | msgspec.UnsetType | None = msgspec.UNSET
    nag_times: NagTimes | msgspec.UnsetType = msgspec.UNSET


FIND = """
select id, key, user_id, title, body, channels, email_to, endpoint_id, chat_to, recurrence_rule, timezone, starts, urgent,
  nag_every_ms, nag_times, nag_left, occurrence_at, count_done, extra, fire_seq, next_fire_at, error_count, last_error,
  last_attempt_at, last_fired_at, acked_at, snoozed_until, dead_lettered_at, done_at, cancelled_at, is_digest, created_at,
  updated_at
from notifications
where id = :id
"""
BY_KEY = "select id from notifications where key = :key"
INSERT = """
insert into notifications (id, key, user_id, title, body, channels, email_to, endpoint_id, chat_to, recurrence_rule, timezone,
  starts, urgent, nag_every_ms, nag_times, nag_left, occurrence_at, count_done, next_fire_at, created_at, updated_at)
values (:id, :key, :user_id, :title, :body, :channels, :email_to, :endpoint_id, :chat_to, :recurrence_rule, :timezone,
  :starts, :urgent, :nag_every_ms, :nag_times, :nag_times, :occurrence_at, :count_done, :occurrence_at, :now, :now)
on conflict do nothing
"""
# A change takes the claim away from a fire that is under way: its results are recorded, and the row stays as it is set here.
UPDATE = """
update notifications
set title = :title, body = :body, channels = :channels, email_to = :email_to, endpoint_id = :endpoint_id, chat_to = :chat_to,
  recurrence_rule = :recurrence_rule, timezone = :timezone, starts = :starts, urgent = :urgent,
  nag_every_ms = :nag_every_ms, nag_times = :nag_times, nag_left = :nag_times, occurrence_at = :occurrence_at,
  count_done = :count_done, next_fire_at = :next_fire_at, fire_seq = fire_seq + :moves, error_count = :error_count,
  extra = case when :moves = 1 then null else extra end,
  dead_lettered_at = case when :moves = 1 then null else dead_lettered_at end,
  done_at = case when :moves = 1 then null else done_at end,
  claimed_until = null, claim_token = null, updated_at = :now
where id = :id
and fire_seq = :fire_seq
"""
CANCEL = """
update notifications
set next_fire_at = null, cancelled_at = :now, claimed_until = null, claim_token = null, updated_at = :now
where id = :id
"""


async def create(given: NewReminder, *, id: str | None = None) -> dict[str, Any]:
    """Create a reminder. A second one with the same key changes nothing, and returns the first."""
    if given.key is not None and (known := await db.value(BY_KEY, key=given.key)) is not None:
        return await show(known) | {"is_new": False}
    now = now_ms()
    check_user(given.user)
    person = await find_person(given.user)
    zone = given.zone or (person.zone if person is not None else settings.zone)
    due = read_schedule(
        given.at, zone, now, rule=given.rule, until=given.until, count=given.count, except_dates=given.except_dates
    )
    names = check_channels(given.channels, has_endpoint=given.webhook is not None)
    if given.email is not None:
        check_address(given.email)
    endpoint = await endpoints_admin.endpoint_for(given.webhook, given.user)
    row = {
        "id": id or new_id(now),
        "key": given.key,
        "user_id": given.user,
        "title": given.title,
        "body": given.body,
        "channels": msgspec.json.encode(names).decode(),
        "email_to": given.email,
        "endpoint_id": None if endpoint is None else endpoint["id"],
        "chat_to": given.chat,
        "recurrence_rule": due.stored,
        "timezone": zone,
        "starts": due.starts,
        "urgent": int(given.urgent),
        "nag_every_ms": nag_ms(given.nag_every),
        "nag_times": given.nag_times if given.nag_every else 0,
        "occurrence_at": due.at,
        "count_done": due.number,
        "now": now,
    }
    db.write(INSERT, row)
    answer = shown(_Fresh(row))
    answer |= {"is_new": True, "upcoming": upcoming(_Fresh(row), now)}
    if endpoint is not None and "secret" in endpoint:
        answer["webhook_secret"] = endpoint["secret"]
    return answer


class _Fresh:
    """A row that is about to be written, with the columns that the table fills in."""

    def __init__(self, row: dict[str, Any]) -> None:
        empty = dict.fromkeys(
            ("last_error", "last_fired_at", "acked_at", "snoozed_until", "dead_lettered_at", "done_at", "cancelled_at")
        )
        self.__dict__.update(empty, fire_seq=1, error_count=0, is_digest=0, extra=None)
        self.__dict__.update(row, next_fire_at=row["occurrence_at"], created_at=row["now"], updated_at=row["now"])


async def find(id: str) -> Any:
    """The row of a reminder; raise HttpError 404 where there is none."""
    row = await db.first(FIND, id=id)
    if row is None:
        raise ps.HttpError(
            404, f"There is no reminder {id[:100]!r}. List them with GET /v1/reminders.", name="not_found"
        )
    return row


async def show(id: str) -> dict[str, Any]:
    row = await find(id)
    return shown(row) | {"upcoming": upcoming(row, now_ms())}


async def change(id: str, given: Change) -> dict[str, Any]:
    """Change a reminder. A change of its schedule starts it anew: it is due at its new time."""
    row, now = await find(id), now_ms()
    fields = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not msgspec.UNSET}
    new = {name: row[name] for name in row.columns}
    for name in ("title", "body"):
        new[name] = fields.get(name, new[name])
    if "channels" in fields or "webhook" in fields:
        names = fields.get("channels", msgspec.json.decode(row.channels, type=list[str]))
        new["channels"] = msgspec.json.encode(check_channels(names, has_endpoint=bool(fields.get("webhook")))).decode()
    if "email" in fields:
        new["email_to"] = check_address(fields["email"]) if fields["email"] else None
    if "chat" in fields:
        new["chat_to"] = fields["chat"]
    if "webhook" in fields:
        endpoint = await endpoints_admin.endpoint_for(fields["webhook"], row.user_id)
        new["endpoint_id"] = None if endpoint is None else endpoint["id"]
    if "urgent" in fields:
        new["urgent"] = int(fields["urgent"])
    if "nag_every" in fields:
        new["nag_every_ms"] = nag_ms(fields["nag_every"])
    new["nag_times"] = fields.get("nag_times", row.nag_times or 3) if new["nag_every_ms"] else 0
    moves = bool({"at", "zone", "rule", "until", "count", "except_dates"} & set(fields))
    if moves:
        due = _moved(row, fields, now)
        new |= {"recurrence_rule": due.stored, "starts": due.starts, "occurrence_at": due.at, "count_done": due.number}
        new |= {"timezone": fields.get("zone", row.timezone), "next_fire_at": due.at, "error_count": 0}
    elif row.cancelled_at is not None:
        raise ps.HttpError(409, "This reminder is cancelled. Give it a new time with `at`.", name="cancelled")
    names = set("id title body channels email_to endpoint_id chat_to recurrence_rule timezone starts urgent".split())
    names |= set("nag_every_ms nag_times occurrence_at count_done next_fire_at error_count".split())
    db.write(
        UPDATE,
        {name: new[name] for name in names} | {"moves": int(moves), "now": now, "fire_seq": row.fire_seq},
        expect=1,
    )
    changed = _Fresh({**new, "now": now})
    changed.__dict__.update({name: new[name] for name in new})
    return shown(changed) | {"upcoming": upcoming(changed, now)}


def _moved(row: Any, fields: dict[str, Any], now: int) -> Any:
    stored = Ends(rule={}) if row.recurrence_rule is None else msgspec.json.decode(row.recurrence_rule, type=Ends)
    rule = fields.get("rule", stored.rule or None)
    keeps = rule is not None
    return read_schedule(
        fields.get("at", row.starts),
        fields.get("zone", row.timezone),
        now,
        rule=rule,
        until=fields.get("until", stored.until if keeps else None),
        count=fields.get("count", stored.count if keeps else None),
        except_dates=fields.get("except_dates", stored.except_dates if keeps else ()),
    )


async def cancel(id: str) -> dict[str, Any]:
    """Cancel a reminder. What is under way is sent; nothing is sent after it."""
    row = await find(id)
    db.write(CANCEL, id=id, now=now_ms())
    return {"id": id, "title": row.title, "state": "cancelled"}


def preview(
    rule: dict[str, str] | None,
    at: str | None,
    zone: str,
    until: str | None = None,
    count: int | None = None,
    except_dates: tuple[str, ...] = (),
) -> list[dict[str, str]]:
    """The next five times of a schedule."""
    now = now_ms()
    due = read_schedule(at, zone, now, rule=rule, until=until, count=count, except_dates=except_dates)
    if rule is None:
        return [Occurrence(due.at * 1000).shown(zone)]
    ends = Ends(rule=rule, until=until, count=count, except_dates=except_dates)
    recurrence = make_recurrence(ends, local_time(at, zone, now), zone)
    return [each.shown(zone) for each in recurrence.upcoming(max(now, due.at - 1) * 1000, UPCOMING)]


def upcoming(row: Any, now: int, most: int = UPCOMING) -> list[dict[str, str]]:
    """The next fires of a reminder: the one that it waits for, and the occurrences after it."""
    if row.next_fire_at is None:
        return []
    moments = [Occurrence(row.next_fire_at * 1000)]
    recurrence = stored_recurrence(row)
    if recurrence is not None:
        after = max(row.next_fire_at, row.occurrence_at if not row.extra else 0, now)
        since = Occurrence(row.occurrence_at * 1000, row.count_done) if row.count_done else None
        moments += recurrence.upcoming(after * 1000, most - 1, since)
    return [each.shown(row.timezone) for each in moments[:most]]


def shown(row: Any) -> dict[str, Any]:
    """A reminder as the API and the command line show it."""
    rule = _readable(row.recurrence_rule, Ends)
    return {
        "id": row.id,
        "key": row.key,
        "state": state_of(row, now_ms()),
        "user": row.user_id,
        "title": row.title,
        "body": row.body,
        "channels": _readable(row.channels, list[str]) or [],
        "email": row.email_to,
        "endpoint": row.endpoint_id,
        "chat": row.chat_to,
        "zone": row.timezone,
        "starts": row.starts,
        "rule": None if rule is None else rule.rule,
        "until": None if rule is None else rule.until,
        "count": None if rule is None else rule.count,
        "except": [] if rule is None else list(rule.except_dates),
        "urgent": bool(row.urgent),
        "nag_every_seconds": None if row.nag_every_ms is None else row.nag_every_ms // 1000,
        "nag_times": row.nag_times,
        "next_fire_at": row.next_fire_at,
        "fire": row.fire_seq,
        "error_count": row.error_count,
        "last_error": row.last_error,
        "last_fired_at": row.last_fired_at,
        "acked_at": row.acked_at,
        "snoozed_until": row.snoozed_until,
        "dead_lettered_at": row.dead_lettered_at,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _readable(text: str | None, kind: Any) -> Any:
    """A stored value, or None for one that something else has written: such a reminder is listed as well."""
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return None


def state_of(row: Any, now: int) -> str:
    """One word for where a reminder is."""
    if row.cancelled_at is not None:
        return "cancelled"
    if row.next_fire_at is None:
        return "parked" if row.dead_lettered_at is not None else "done"
    if row.error_count:
        return "retrying"
    return "due" if row.next_fire_at <= now else "pending"


def check_channels(given: list[str] | None, *, has_endpoint: bool) -> list[str]:
    """The channels of a reminder. Names are checked when it is sent, too: a channel may go."""
    if given is None:
        return [WEBHOOK] if has_endpoint else list(settings.channels)
    known = sorted({WEBHOOK, *channels})
    if wrong := [name for name in given if name not in known]:
        raise ps.errors.BadParameter(
            f"channels cannot have {wrong[0][:100]!r}. Write some of {', '.join(known)}.", field="channels"
        )
    if not given:
        raise ps.errors.BadParameter(f"channels is empty. Write some of {', '.join(known)}.", field="channels")
    return list(dict.fromkeys(given))


def nag_ms(text: str | None) -> int | None:
    if text is None:
        return None
    found = span_ms(text, "nag_every")
    if found < NAG_MS_MIN:
        raise ps.errors.BadParameter(
            f"nag_every cannot be {text!r}. The minimum is a minute, such as 10m.", field="nag_every"
        )
    return found


def new_id(now: int) -> str:
    """A UUIDv7."""
    bits = int.from_bytes(os.urandom(10), "big")
    high = now << 80 | 0x7 << 76 | (bits >> 62 & 0xFFF) << 64
    text = f"{high | 0x2 << 62 | bits & (2**62 - 1):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
