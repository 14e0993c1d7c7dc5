"""The enrichment: one controller finds out about every app, at the pace that it finds for the store's pages."""

from __future__ import annotations

from typing import Any, ClassVar

import penstock as ps
from penstock.data import chunks
from penstock_systems.appstore import moments
from penstock_systems.appstore.app import IDS_A_MESSAGE, AppEnriched, app, db, events, settings
from penstock_systems.appstore.enrich import picking
from penstock_systems.appstore.enrich.ahead import IDS_A_CALL
from penstock_systems.appstore.enrich.asking import ahead, ask
from penstock_systems.appstore.enrich.parts import Known, Part, Parts
from penstock_systems.appstore.enrich.saving import save
from penstock_systems.appstore.enrich.verdict import Verdict, is_refresh, judged

NAME = "enrichment"
PARALLEL = 8
ITEM_SECONDS = 60.0
# As often as the crawl may find new apps. One that is due again can wait as long; on the whole store one comes due every
# four seconds, and a look for each would cost more than all the rest.
IDLE_SECONDS = 300.0
FLUSH_SECONDS = 60.0


@app.controller(
    NAME,
    alias="/v1/enrichment",
    hint=settings.location,
    parallel=PARALLEL,
    rate=(0.001, 200.0),
    timeout=ITEM_SECONDS,
    idle_backoff=(IDLE_SECONDS, IDLE_SECONDS),
    flush_after=FLUSH_SECONDS,
)
class Enrichment(ps.Controller[int]):
    sets_aside: ClassVar[bool] = False  # the registry tells when an app that failed is due again

    def __init__(self) -> None:
        self._picked: dict[int, Known] = {}

    async def pick(self, limit: int) -> list[int]:
        """Looks further ahead than it is asked to, so that one look-up serves many."""
        waiting = await picking.waiting(max(limit, IDS_A_CALL))
        await ahead.expect(each.track_id for each in waiting)
        self._picked = {each.track_id: each for each in waiting[:limit]}
        return list(self._picked)

    async def work(self, item: int) -> None:
        """In the controller's unit if all went well. Where the store refused something, what succeeded is saved before the
        controller hears of the refusal."""
        known = self._picked.pop(item, None) or await picking.known(item)
        try:
            now = await db.now()
            known = await picking.with_mentions(known)
            parts, verdict = await found_out(known, now)
            if verdict.told is None:
                save(item, parts, known, verdict, now)
                return
            async with app.unit():
                save_and_tell(known, parts, verdict, now)
        except Exception as ours:
            await _charge(known, ours)
            raise
        raise verdict.told

    async def after(self, done: list[int]) -> None:
        tell(done)


class EnrichmentController(ps.Object, singleton=True):
    """The controller as the rest of the pipeline calls it: there is one, its name is "main", and no cron enriches."""

    async def wake(self) -> None:
        """There is something to do."""
        await app.controllers[NAME].wake()

    async def start(self) -> None:
        await app.controllers[NAME].start()

    async def stop(self) -> None:
        await app.controllers[NAME].stop()

    async def status(self) -> dict[str, Any]:
        return await app.controllers.status(NAME)


controllers = app.object(EnrichmentController, tag="v1", hint=settings.location)


async def enrich(track_id: int) -> Verdict:
    """Finds out about one app, whatever is known of it, and saves that. Raises what the store said where it refused."""
    known, now = await picking.with_mentions(await picking.known(track_id)), await db.now()
    parts, verdict = await found_out(known, now)
    async with app.unit():
        save_and_tell(known, parts, verdict, now)
    if verdict.told is not None:
        raise verdict.told
    return verdict


async def found_out(known: Known, now: str) -> tuple[Parts, Verdict]:
    parts = await ask(known.track_id, refresh=is_refresh(known, moments.after(now, days=-1)))
    return parts, judged(parts, known, now, settings.refresh)


def save_and_tell(known: Known, parts: Parts, verdict: Verdict, now: str) -> None:
    """Joins the unit."""
    save(known.track_id, parts, known, verdict, now)
    if verdict.is_enriched:
        tell([known.track_id])


def tell(track_ids: list[int]) -> None:
    """Joins the unit."""
    events.send_all([AppEnriched(track_ids=ids) for ids in chunks(track_ids, IDS_A_MESSAGE)])


async def _charge(known: Known, ours: Exception) -> None:
    """An app that we fail at waits as if the store had failed, and is given up as late."""
    part: Part[Any] = Part(error=ours)
    parts = Parts(part, part, part, part)
    now = await db.now()
    async with app.unit():
        save(known.track_id, parts, known, judged(parts, known, now, settings.refresh), now)
