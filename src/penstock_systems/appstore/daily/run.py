"""The daily run: its parts one after the other, each on its own, each noted. A part that was done today is not done again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

import penstock as ps
from penstock.data import cut
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.daily.archiving import archive_unseen
from penstock_systems.appstore.daily.costs import check_dedup, report_costs
from penstock_systems.appstore.daily.quality import check_quality
from penstock_systems.appstore.daily.recounting import count_ratings
from penstock_systems.appstore.daily.refreshing import refresh_keywords
from penstock_systems.appstore.daily.retention import prune_history
from penstock_systems.appstore.daily.snapshots import take_snapshots
from penstock_systems.appstore.daily.velocity import measure_velocity
from penstock_systems.appstore.daily.volumes import look_up_volumes
from penstock_systems.appstore.moments import day_of

NAME = "daily"
FAILED = "daily-run"  # the condition that somebody is told of
READS_A_MONTH = 1_000_000_000  # a dollar's worth; with a full registry it reads a tenth of it
WALL_SECONDS = 3_600.0
ERROR_CHARACTERS_MAX = 500

Part = Callable[[str], Awaitable[dict[str, object]]]
# Counts come before the snapshots of them, these before the velocity that is measured from them, and pruning after all.
PARTS: dict[str, Part] = {
    "volumes": look_up_volumes,
    "ratings": count_ratings,
    "snapshots": take_snapshots,
    "velocity": measure_velocity,
    "quality": check_quality,
    "refresh": refresh_keywords,
    "pruning": prune_history,
    "archive": archive_unseen,
    "dedup": check_dedup,
    "costs": report_costs,
}

RAN = "select 1 from pipelines where id = :id and status = 'done' limit 1"
DONE_PARTS = "select name from pipeline_steps where pipeline_id = :id and status = 'done'"
BEGIN = """
insert into pipelines (id, name, status, started_at)
values (:id, 'daily', 'running', :now)
on conflict (id) do update set status = 'running', finished_at = null, error = null
"""
END = "update pipelines set status = :status, finished_at = :now, error = :error where id = :id"
STEP = """
insert into pipeline_steps (pipeline_id, name, status, counts, started_at, finished_at)
values (:id, :name, :status, :counts, :started_at, :finished_at)
on conflict (pipeline_id, name) do update set
  status = excluded.status, counts = excluded.counts, started_at = excluded.started_at, finished_at = excluded.finished_at
"""

_log = logging.getLogger("penstock_systems.appstore")


async def not_done_today() -> bool:
    return not await db.exists(RAN, id=run_id(await db.now()))


@app.cron(
    "0 6 * * *",
    name=NAME,
    reason="a snapshot is taken once a day, before users read it in the morning",
    when=not_done_today,
    ceiling=ps.Ceiling(rows_read=READS_A_MONTH),
    timeout=WALL_SECONDS,
)
async def daily(tick: ps.Tick) -> None:
    """A run that was cut off, or of which a part failed, goes on with what is not done when it is started again."""
    now = await db.now()
    id = run_id(now)
    async with app.unit():
        db.write(BEGIN, id=id, now=now)
    finished = set(await db.column(DONE_PARTS, id=id))
    summary = Summary(skipped=[name for name in PARTS if name in finished])
    for name, part in PARTS.items():
        if name not in finished:
            await _run_part(id, name, part, summary)
    db.write(
        END,
        id=id,
        status="failed" if summary.errors else "done",
        now=await db.now(),
        error="; ".join(summary.errors) or None,
    )
    tick.phase = "failed" if summary.errors else "done"
    _log.info("daily.finished", extra={"facts": msgspec.to_builtins(summary) | {"parts": len(PARTS)}})
    if summary.errors:
        title = f"[Pipeline] Daily run failed: {len(summary.failed)} parts"
        await app.alert(FAILED, title, "\n".join(summary.errors), key=", ".join(summary.failed))
    else:
        await app.recovered(FAILED)


class Summary(msgspec.Struct):
    done: list[str] = []
    failed: list[str] = []
    skipped: list[str] = []
    errors: list[str] = []


async def _run_part(id: str, name: str, part: Part, summary: Summary) -> None:
    """One part's failure is noted and harms no other."""
    started_at = await db.now()
    try:
        status, counts = "done", await part(started_at)
        summary.done.append(name)
    except ps.LeaseLost:
        raise
    except Exception as error:
        _log.exception("The part %s of the daily run failed.", name)
        told = cut(f"{type(error).__name__}: {error}".replace("\0", ""), ERROR_CHARACTERS_MAX)
        status, counts = "failed", {"error": told}
        summary.failed.append(name)
        summary.errors.append(f"{name}: {told}")
    async with app.unit():
        db.write(
            STEP,
            id=id,
            name=name,
            status=status,
            counts=db.json(counts),
            started_at=started_at,
            finished_at=await db.now(),
        )


def run_id(now: str) -> str:
    return f"{NAME} {day_of(now)}"
