"""What an owner does with an endpoint: register it, rotate its secret, switch it on, test it, replay what it missed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import penstock as ps
from penstock.channels import Notice, Webhook
from penstock.web import hashed
from penstock_systems.reminders.app import db, now_ms, web
from penstock_systems.reminders.endpoints import SECRET_REF
from penstock_systems.reminders.keys import OLD_SECRET_MS, endpoint_secret, master_key, signing_secrets
from penstock_systems.reminders.people import check_user

URL_CHARACTERS_MAX = 2_000
REPLAYS_MAX = 500  # in one call; the answer says how many are left

FIND = """
select id, id as endpoint_id, url, owner_id, secret_ref, secret_version, old_until, state, failing_since, failures,
  last_error, created_at
from endpoints
where id = :id
"""
BY_URL = "select id from endpoints where url = :url and owner_id = :owner"
ALL = """
select id, url, owner_id, secret_ref, secret_version, old_until, state, failing_since, failures, last_error, created_at
from endpoints
where id > :after
order by id
limit 100
"""
INSERT = """
insert into endpoints (id, url, owner_id, secret_ref, created_at, updated_at)
values (:id, :url, :owner, :secret_ref, :now, :now)
on conflict do nothing
"""
ROTATE = """
update endpoints
set secret_version = secret_version + 1, old_until = :old_until, updated_at = :now
where id = :id
and secret_version = :version
"""
ENABLE = """
update endpoints
set state = 'on', failing_since = null, failures = 0, last_error = null, updated_at = :now
where id = :id
"""
MISSED = """
select d.notification_id, d.fire_seq, d.idempotency_key, d.occurrence_at, n.user_id, n.title, n.body, n.timezone, n.urgent
from notification_deliveries d
join notifications n on n.id = d.notification_id
where d.endpoint_id = :id
and d.status in ('missed', 'given_up')
and d.occurrence_at >= :since
order by d.occurrence_at
limit :most
"""
REPLAY = """
insert into notifications (id, key, user_id, title, body, channels, endpoint_id, timezone, starts, urgent, occurrence_at,
  next_fire_at, replay_of, created_at, updated_at)
values (:id, :key, :user_id, :title, :body, '["webhook"]', :endpoint_id, :timezone, '', :urgent, :occurrence_at, :now,
  :replay_of, :now, :now)
on conflict do nothing
"""
REPLAYED = """
update notification_deliveries
set status = 'replayed'
where notification_id = :id
and fire_seq = :fire_seq
and channel = 'webhook'
"""
UNPARK = """
update notifications
set dead_lettered_at = null, done_at = :now, updated_at = :now
where id = :id
and next_fire_at is null
and dead_lettered_at is not null
and channels = '["webhook"]'
"""
RESOLVE = """
update notification_dead_letters
set resolved_at = :now
where notification_id = :id
and fire_seq = :fire_seq
"""


async def find_endpoint(id: str) -> Any:
    row = await db.first(FIND, id=id)
    if row is None:
        raise ps.HttpError(404, f"There is no endpoint {id[:100]!r}.", name="not_found")
    return row


async def endpoint_for(given: str | None, user: str) -> dict[str, Any] | None:
    """The endpoint of an id or an address; an address that the user has not named before becomes an endpoint."""
    if given is None:
        return None
    if "://" not in given:
        return {"id": (await find_endpoint(given)).id}
    return await register(given, user)


async def register(url: str, owner: str, secret_ref: str | None = None) -> dict[str, Any]:
    """Add an endpoint in the current unit. Return its id, and its secret if it is new."""
    check_user(owner)
    check_url(url)
    if secret_ref is not None and not SECRET_REF.fullmatch(secret_ref):
        raise ps.errors.BadParameter(
            f"secret_ref cannot be {secret_ref[:100]!r}. Write the name of an environment variable that begins with "
            "REMINDERS_.",
            field="secret_ref",
        )
    known = await db.value(BY_URL, url=url, owner=owner)
    if known is not None:
        return {"id": known}
    id = f"ep-{hashed(f'{owner} {url}')[:24]}"
    db.write(INSERT, id=id, url=url, owner=owner, secret_ref=secret_ref, now=now_ms())
    return {"id": id, "secret": None if secret_ref else endpoint_secret(await master_key(), id, 1)}


def check_url(url: str) -> str:
    """Return the address of an endpoint, or raise BadParameter: it must be public, and have no password in it."""
    try:
        web.rules.target(url)
        if len(url) > URL_CHARACTERS_MAX or "#" in url or urlsplit(url).scheme not in ("http", "https"):
            raise ps.errors.BadParameter("it is too long, or has a fragment")
    except ps.PenstockError as error:
        raise ps.errors.BadParameter(
            f"webhook cannot be {url[:100]!r}: {getattr(error, 'reason', error)}. Write a public address such as "
            "https://example.org/hooks.",
            field="webhook",
        ) from error
    return url


async def rotate(id: str) -> dict[str, Any]:
    """Give an endpoint a new secret. Both sign for 24 hours."""
    row = await find_endpoint(id)
    if row.secret_ref:
        raise ps.HttpError(
            409,
            f"The secret of this endpoint is the environment variable {row.secret_ref}. Change it there.",
            name="own_secret",
        )
    now = now_ms()
    db.write(ROTATE, id=id, version=row.secret_version, old_until=now + OLD_SECRET_MS, now=now, expect=1)
    secret = endpoint_secret(await master_key(), id, row.secret_version + 1)
    return {"id": id, "secret": secret, "old_secret_until": now + OLD_SECRET_MS}


async def enable(id: str) -> dict[str, Any]:
    """Switch an endpoint on again."""
    await find_endpoint(id)
    db.write(ENABLE, id=id, now=now_ms())
    return {"id": id, "state": "on"}


async def test(id: str) -> dict[str, Any]:
    """Send a webhook of the type `reminder.test` now, and return its outcome."""
    row, now = await find_endpoint(id), now_ms()
    hook = Webhook(web, row.url, secrets=signing_secrets(await master_key(), row, now))
    notice = Notice("Test", "This webhook tests the endpoint.", kind="reminder.test", at=now * 1000)
    outcome = await hook.send(notice, f"test-{hashed(f'{id} {now}')[:24]}")
    return {"id": id, "status": outcome.status, "error": outcome.error}


async def replay(id: str, since: int) -> dict[str, Any]:
    """Send what an endpoint missed since a time, with the ids that the webhooks would have had."""
    row, now = await find_endpoint(id), now_ms()
    if row.state == "off":
        raise ps.HttpError(409, f"The endpoint {id} is switched off. Enable it first.", name="endpoint_off")
    missed = await db.rows(MISSED, id=id, since=since, most=REPLAYS_MAX + 1)
    for each in missed[:REPLAYS_MAX]:
        base = each.idempotency_key.removesuffix(".webhook")
        new = {"id": f"replay-{hashed(f'{base} {now}')[:32]}", "key": f"replay {base} {now}", "replay_of": base}
        new |= {name: each[name] for name in ("user_id", "title", "body", "timezone", "urgent", "occurrence_at")}
        db.write(REPLAY, new | {"endpoint_id": id, "now": now})
        fire = {"id": each.notification_id, "fire_seq": each.fire_seq}
        db.write(REPLAYED, fire)
        db.write(RESOLVE, fire | {"now": now})
        db.write(UNPARK, id=each.notification_id, now=now)
    return {"id": id, "replayed": len(missed[:REPLAYS_MAX]), "more": len(missed) > REPLAYS_MAX}


def shown(row: Any) -> dict[str, Any]:
    """An endpoint, without its secret."""
    names = ("id", "url", "owner_id", "secret_ref", "old_until", "state", "failing_since", "failures", "last_error")
    return {name: row[name] for name in names}


async def list_endpoints(after: str = "") -> list[dict[str, Any]]:
    return [shown(row) for row in await db.rows(ALL, after=after)]
