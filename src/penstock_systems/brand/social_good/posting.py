"""Posts: a row and a run each. The intent is committed before the call, the outcome after it.

A run whose call has an unknown outcome repeats it only while the network honours the key, looks it up afterwards, and holds
what cannot be looked up for a person.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

import penstock as ps
from penstock.channels import Notice, Outcome, Recorded, next_step
from penstock_systems.brand.app import events, hands, postings, settings, web
from penstock_systems.brand.bindings import read_content
from penstock_systems.brand.messages import SocialCreate, SocialPosted
from penstock_systems.brand.rules.posts import PLATFORMS, Platform, compose
from penstock_systems.brand.social_good.networks import Bluesky, LinkedIn, Mastodon, Network, X

LATE_SECONDS = 3_600
# A network may still carry out a request whose caller is gone: what it does not show before may come.
SETTLE_SECONDS = 120
RETRIES = ps.Retry(8, first=30.0, longest=3_600.0)
MICROS = 1_000_000

ADD = """
insert into sg_posts (id, content_id, brand_slug, platform, title, text, url, due_at, created_at, updated_at)
values (:id, :content_id, :brand_slug, :platform, :title, :text, :url, :due_at, :now, :now)
on conflict do nothing
"""
POST = "select title, text, url, platform, brand_slug, content_id, state, intent_at, created_at from sg_posts where id = :id"
INTENT = """
update sg_posts set state = 'sending', intent_at = coalesce(intent_at, :at), updated_at = :now where id = :id
"""
OUTCOME = """
update sg_posts
set state = :state, remote_id = :remote_id, error = :error, updated_at = :now,
  intent_at = case when :state = 'sending' then intent_at end
where id = :id
"""
END = "update sg_posts set state = :state, error = :error, updated_at = :now where id = :id"


class Word(msgspec.Struct, frozen=True):
    """What a person says of a post of unknown outcome."""

    action: Literal["lookup", "resend", "drop"]


def _networks() -> dict[Platform, Network]:
    found: dict[Platform, Network] = {}
    for platform, given in settings.networks.items():
        where = {"base_url": given.base_url, "secret_env": given.secret_env}
        match platform:
            case "mastodon":
                found[platform] = Mastodon(web, **where)
            case "bluesky":
                found[platform] = Bluesky(web, identifier=given.account, **where)
            case "x":
                found[platform] = X(web, **where)
            case "linkedin":
                found[platform] = LinkedIn(web, author=given.account, **where)
    return found


networks = _networks()


@postings.handler
async def create(command: SocialCreate) -> None:
    """Add a post for each network of the brand. A repeated command adds nothing."""
    content = await read_content(hands, command.content_id)
    context, now = command.article_context, await hands.db.now()
    moment = datetime.fromisoformat(now)
    for platform in PLATFORMS:
        delay = content.brand.delay_seconds(platform)
        if delay is None or platform not in networks:
            continue
        id = f"{command.content_id}/{platform}"
        text = compose(
            platform,
            title=context.title,
            description=context.meta_description,
            key_points=context.key_points,
            url=command.published_url,
        )
        hands.db.write(
            ADD,
            id=id,
            content_id=command.content_id,
            brand_slug=command.brand_slug,
            platform=platform,
            title=context.title,
            text=text,
            url=command.published_url,
            due_at=str(moment + timedelta(seconds=delay)),
            now=now,
        )
        hands.workflows["social-post"][id].start(id, delay, content.brand.late, content.brand.unknown)


@hands.workflow(name="social-post", retries=RETRIES)
async def social_post(
    run: ps.Run, id: str, delay: float, late: Literal["miss", "post"], unknown: Literal["hold", "resend"]
) -> str:
    """Wait until the post is due, post it once, and report it."""
    due = run.started_at + timedelta(seconds=delay)
    if delay:
        await run.sleep_until(due)
    if late == "miss" and await run.step("is-late", is_late, due):
        await run.step("miss", end, id, "missed", f"more than {LATE_SECONDS // 60} minutes late")
        return "missed"
    number = 1
    while True:
        try:
            state = await run.step(f"post-{number}", post, id, unknown)
        except ps.StepFailed as error:
            if await run.step(f"fail-{number}", give_up, id, str(error)):
                return "failed"
            state = "unknown"
        if state == "posted":
            await run.step("report", report, id)
            return state
        # Nobody knows, and the network cannot be asked: a person says what to do.
        word = await run.wait_for("decide", Word, name=f"decide-{number}")
        if word.action == "drop":
            await run.step("drop", end, id, "failed", "dropped by a person")
            return "dropped"
        unknown = "resend" if word.action == "resend" else "hold"
        number += 1


async def is_late(due: datetime) -> bool:
    now = datetime.fromisoformat(await hands.db.now()).replace(tzinfo=UTC)
    return now - due > timedelta(seconds=LATE_SECONDS)


async def post(id: str, unknown: Literal["hold", "resend"]) -> Literal["posted", "unknown"]:
    """Send or look up a post, as what is saved of it says. Raises where it is to be tried again."""
    row = await hands.db.first(POST, id=id)
    assert row is not None, id
    if row.state == "posted":  # a crash came between that commit and the one of this step
        return "posted"
    now = _micros(await hands.db.now())
    network = networks[row.platform]
    notice = Notice(row.title, row.text, data={"url": row.url}, at=_micros(row.created_at))
    recorded = None if row.intent_at is None else Recorded(row.intent_at, "unknown")
    match next_step(recorded, network, now=now, unknown=unknown):
        case "hold":
            await end(id, "unknown", "The network cannot be asked, and keeps no key.")
            return "unknown"
        case "find":
            found = await network.find(notice, id, row.intent_at)
            if found is None:
                raise ps.Unavailable(f"{row.platform} cannot be asked about {id} now.")
            if found.status == "sent":
                await _save(id, found)
                return "posted"
            if found.status == "unknown" and unknown == "hold":
                await end(id, "unknown", found.error)
                return "unknown"
            if (left := row.intent_at / MICROS + SETTLE_SECONDS - now / MICROS) > 0:
                raise ps.Unavailable(f"{row.platform} does not show {id} yet.", retry_after=min(left, SETTLE_SECONDS))
            async with hands.unit():
                await _save(id, found)  # it did not arrive: the next attempt is the first again
    async with hands.unit():
        hands.db.write(INTENT, id=id, at=now, now=await hands.db.now())
    outcome = await network.send(notice, key=id)
    async with hands.unit():
        await _save(id, outcome)
    outcome.raise_failure()
    return "posted"


async def _save(id: str, outcome: Outcome) -> None:
    """Save the outcome of a call. While the run looks a lost answer up by itself, no person decides about the post."""
    state = {"sent": "posted", "unknown": "sending", "failed": "due"}[outcome.status]
    now = await hands.db.now()
    hands.db.write(OUTCOME, id=id, state=state, remote_id=outcome.provider_id, error=outcome.error, now=now)


async def report(id: str) -> None:
    row = await hands.db.first(
        "select brand_slug, content_id, platform, url, remote_id from sg_posts where id = :id", id=id
    )
    assert row is not None, id
    events.send(
        SocialPosted(
            brand_slug=row.brand_slug,
            content_id=row.content_id,
            platform=row.platform,
            post_url=row.remote_id or row.url,
        )
    )


async def give_up(id: str, error: str) -> bool:
    """After the last attempt, return whether the post failed. One that may have arrived is unknown."""
    row = await hands.db.first(POST, id=id)
    has_failed = row is None or row.intent_at is None
    await end(id, "failed" if has_failed else "unknown", error)
    return has_failed


async def end(id: str, state: str, error: str) -> None:
    hands.db.write(END, id=id, state=state, error=error, now=await hands.db.now())


def _micros(moment: str) -> int:
    return int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()) * MICROS
