"""Apps that nobody has seen for ninety days: the store is asked once more, and what it does not sell goes into files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.moments import after, days_between
from penstock_systems.appstore.outside import store

UNSEEN_DAYS = 90
ASKED_A_DAY = 2_000  # apps: ten look-ups of two hundred, half a minute of what the store takes
ASKED_AGAIN_HOURS = 24.0
IDS_A_LOOK = 25

UNSEEN = """
select track_id, last_seen_at
from app_registry
where last_seen_at < :before
order by last_seen_at, track_id
limit :most
"""
ANSWERED = """
select key, value
from app_cache
where key in (
  :k0, :k1, :k2, :k3, :k4, :k5, :k6, :k7, :k8, :k9, :k10, :k11, :k12,
  :k13, :k14, :k15, :k16, :k17, :k18, :k19, :k20, :k21, :k22, :k23, :k24
)
and expires_at > :now
"""
SEEN = "update app_registry set last_seen_at = :now where track_id = :track_id"

archive = app.blobs(Path(settings.blobs, "pipeline-archive"))


class Status(msgspec.Struct, frozen=True):
    sold: bool


async def archive_unseen(now: str) -> dict[str, object]:
    """Apps archived, and apps that turned out to be there still. After a long pause of the pipeline that may be all of them:
    without the question the registry would be emptied."""
    unseen = await db.rows(UNSEEN, before=after(now, days=-UNSEEN_DAYS), most=ASKED_A_DAY)
    if not unseen:
        return {"archived": 0, "still_sold": 0}
    sold = await still_sold([row.track_id for row in unseen], now)
    async with app.unit():
        db.write_many(SEEN, [{"track_id": track_id, "now": now} for track_id in sorted(sold)])
    # Nobody was asked about what comes after the last of a full list; an app of the same second waits for tomorrow.
    bound = unseen[-1].last_seen_at if len(unseen) == ASKED_A_DAY else after(now, days=-UNSEEN_DAYS)
    span = timedelta(days=days_between(bound, await db.now()))
    archived = await db.archive("app_registry", column="last_seen_at", older_than=span, key="track_id", into=archive)
    return {"archived": archived, "still_sold": len(sold)}


async def still_sold(track_ids: Sequence[int], now: str) -> set[int]:
    """Which of these apps the store has. An answer is kept for a day, so that an interrupted run does not ask again."""
    answers = await _answered(track_ids, now)
    asked = [track_id for track_id in track_ids if track_id not in answers]
    found = set(await store.lookup_many(asked))
    expires_at = after(now, hours=ASKED_AGAIN_HOURS)
    async with app.unit():
        rows = [
            {"key": _key(each), "value": db.json(Status(each in found)), "expires_at": expires_at} for each in asked
        ]
        if rows:
            db.upsert("app_cache", rows, key="key")
    return found | {track_id for track_id, status in answers.items() if status.sold}


async def _answered(track_ids: Sequence[int], now: str) -> dict[int, Status]:
    answers: dict[int, Status] = {}
    for start in range(0, len(track_ids), IDS_A_LOOK):
        keys = {_key(track_id): track_id for track_id in track_ids[start : start + IDS_A_LOOK]}
        padded = [*keys, *[next(iter(keys))] * (IDS_A_LOOK - len(keys))]
        for row in await db.rows(ANSWERED, {f"k{place}": key for place, key in enumerate(padded)}, now=now):
            answers[keys[row.key]] = msgspec.json.decode(row.value, type=Status)
    return answers


def _key(track_id: int) -> str:
    return f"app/{settings.country}/{track_id}"
