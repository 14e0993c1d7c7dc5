"""The routes of Social-Good: posts by their state, and what becomes of one that nobody can look up."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

import penstock as ps
from penstock_systems.brand.app import hands
from penstock_systems.brand.social_good.posting import Word

LISTED = hands.db.hot(
    """
select id, content_id, brand_slug, platform, state, remote_id, error, due_at, updated_at
from sg_posts
where state = :state
order by due_at
limit :most
"""
)
STATE = "select state from sg_posts where id = :id"
DECIDED = "update sg_posts set state = 'sending', updated_at = :now where id = :id"


@hands.get("/v1/posts")
async def posts(
    state: Literal["due", "sending", "posted", "unknown", "missed", "failed"] = "unknown",
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50,
) -> list[dict[str, object]]:
    return [row.asdict() for row in await hands.db.rows(LISTED, state=state, most=limit)]


@hands.post("/v1/posts/{content_id}/{platform}/{action}")
async def decide(
    content_id: str,
    platform: Literal["mastodon", "bluesky", "x", "linkedin"],
    action: Literal["lookup", "resend", "drop"],
) -> str:
    """Say what becomes of a post whose outcome is unknown."""
    return await decide_post(f"{content_id}/{platform}", action)


async def decide_post(id: str, action: Literal["lookup", "resend", "drop"]) -> str:
    """Continue the run of the post, when the current unit commits. The first decision counts."""
    state = await hands.db.value(STATE, id=id)
    if state is None:
        raise ps.HttpError(404, f"There is no post {id!r}.")
    if state != "unknown":
        raise ps.HttpError(409, f"{id} waits for no decision; its state is {state}.")
    # A second decision would wait for the next time that the outcome is unknown.
    hands.db.write(DECIDED, id=id, now=await hands.db.now())
    hands.workflows["social-post"][id].signal("decide", Word(action))
    return id
