"""Purchases backfill: apps whose page was read without its list of purchases, the best known first."""

from __future__ import annotations

import asyncio

import msgspec

import penstock as ps
from penstock.data import chunks
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.crawl.gaps import many_without_purchases
from penstock_systems.appstore.crawl.stats import Stats
from penstock_systems.appstore.outside import store
from penstock_systems.appstore.store.facts import Purchase

PARALLEL = 3
PAUSE_SECONDS = 1.5
APPS_FEW, APPS_MANY = 10, 20  # a cycle, with a small gap and a large one
PURCHASES_MAX = 100  # of an app

WITHOUT = """
select track_id
from app_registry
where enrichment_source = 'scraper'
and iap_scraped_at is null
order by rating_count desc, track_id
limit :most
"""
SAVE = """
update app_registry
set in_app_purchases = :iaps, iap_scraped_at = :now, iap_scrape_status = :scrape_status
where track_id = :track_id
"""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of one app says about purchases."""

    track_id: int
    scrape_status: str  # found, none, gone, unparsable, failed
    iaps: tuple[Purchase, ...] = ()

    @property
    def has_iaps(self) -> bool:
        return bool(self.iaps)


async def backfill_purchases(stats: Stats, budget: Budget) -> None:
    """Each app that is looked at is stamped, also where there is nothing. What the store refuses keeps its place."""
    most = APPS_MANY if await many_without_purchases() else APPS_FEW
    ids = await db.column(WITHOUT, most=most)
    for number, chunk in enumerate(chunks(ids, PARALLEL)):
        if (number and not await budget.pause(PAUSE_SECONDS)) or not budget.is_open:
            break
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(_check(track_id, budget)) for track_id in chunk]
        ended = [task.result() for task in running]
        await save([each for each in ended if isinstance(each, Checked)])
        stats.enrichment.purchases_checked += sum(isinstance(each, Checked) for each in ended)
        if refused := [each for each in ended if isinstance(each, Exception)]:
            stats.errors.append(f"purchases: {type(refused[0]).__name__}: {refused[0]}")
            answered = [each for each in ended if isinstance(each, Checked)]
            if answered and all(isinstance(each, ps.Unavailable) for each in refused):
                # The store answers others: it is this page that fails, and it must not stand at the head for ever.
                bad = [track_id for track_id, each in zip(chunk, ended, strict=True) if isinstance(each, Exception)]
                await save([Checked(track_id=track_id, scrape_status="failed") for track_id in bad])
                continue
            break


async def _check(track_id: int, budget: Budget) -> Checked | Exception:
    """What was found out, or what the store said instead."""
    try:
        async with budget.cut():
            page = await store.page(track_id)
    except ps.Gone:
        return Checked(track_id=track_id, scrape_status="gone")
    except (ps.Throttled, ps.Unavailable, TimeoutError) as error:
        return error
    except Exception:
        return Checked(track_id=track_id, scrape_status="unparsable")
    iaps = page.purchases[:PURCHASES_MAX]
    return Checked(track_id=track_id, scrape_status="found" if iaps else "none", iaps=iaps)


async def save(checked: list[Checked]) -> None:
    """All of them in one unit. No purchases are NULL and a stamp."""
    now = await db.now()
    async with app.unit():
        db.write_many(
            SAVE,
            [
                {
                    "track_id": each.track_id,
                    "iaps": db.json(each.iaps) if each.has_iaps else None,
                    "now": now,
                    "scrape_status": each.scrape_status,
                }
                for each in checked
            ],
        )
