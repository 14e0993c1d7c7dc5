"""What a person decides about an article that waits for a review: saved once, with the signal that continues its run."""

from __future__ import annotations

import penstock as ps
from penstock_systems.brand.app import brain
from penstock_systems.brand.scalable_media.content import Decision, run_state

REVIEW = """
insert into sm_reviews (content_id, decision, reviewer, note, difference, decided_at)
values (:id, :decision, :reviewer, :note, '', :now)
"""
REVIEWED = "select decision, reviewer, decided_at from sm_reviews where content_id = :id"
STAGE = "select stage from sm_content where id = :id"


async def save_review(id: str, decision: Decision) -> None:
    """Save a decision in the current unit. Raises HttpError where a person has decided before, or nothing waits for it.

    Two calls for one article must not overlap: the agent of its brand makes them.
    """
    if before := await brain.db.first(REVIEWED, id=id):
        raise ps.HttpError(409, f"{before.reviewer} decided at {before.decided_at}: {before.decision}.")
    stage = await brain.db.value(STAGE, id=id)
    if stage != "review":
        raise ps.HttpError(409, f"{id} does not wait for a review; its stage is {stage}.")
    if (state := (await run_state(id))[0]) in ("errored", "terminated", "complete", "gone"):
        raise ps.HttpError(409, f"{id} cannot go on: its run is {state}. Archive it, and ask for the keyword again.")
    now = await brain.db.now()
    brain.db.write(REVIEW, id=id, decision=decision.action, reviewer=decision.by, note=decision.note, now=now)
    brain.workflows["content-workflow"][id].signal("review", decision)
