"""Data quality: the share of the scraped apps that has each field, and an alert where it is too small."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

import msgspec

from penstock_systems.appstore.app import app, db

PAGE_APPS = 10_000  # counted in one query: a daily count of all apps holds up no other reader
CONDITION, NOBODY = "data-quality", "data-quality-empty"

# The field, and of how many per cent of the apps it must be known.
THRESHOLDS = {
    "content_rating": 95,
    "description": 90,
    "developer": 90,
    "languages": 85,
    "screenshots": 80,
    "similar": 70,
    "histogram": 60,
}
COVERAGE = """
select max(track_id) as last, count(*) as apps,
  count(scraped) as total,
  count(case when content_rating is not null then scraped end) as content_rating,
  count(case when length(description) > 10 then scraped end) as description,
  count(case when developer_id is not null then scraped end) as developer,
  count(case when languages is not null and languages <> '[]' then scraped end) as languages,
  count(case when screenshots is not null and screenshots <> '[]' then scraped end) as screenshots,
  count(case when similar_apps is not null and similar_apps <> '[]' then scraped end) as similar,
  count(case when rating_histogram is not null then scraped end) as histogram
from (
  select track_id, case when enrichment_source = 'scraper' then 1 end as scraped,
    content_rating, description, developer_id, languages, screenshots, similar_apps, rating_histogram
  from app_registry
  where track_id > :after
  order by track_id
  limit :most
) as scraped_apps
"""

_log = logging.getLogger("penstock_systems.appstore")


class Quality(msgspec.Struct, frozen=True):
    """Percentages of `total` apps, by field."""

    total: int
    coverage: dict[str, float]

    @property
    def degraded(self) -> list[str]:
        return [field for field, least in THRESHOLDS.items() if self.total and self.coverage[field] < least]


def quality_of(counted: Mapping[str, int]) -> Quality:
    """A threshold without a count is a mistake in here, and is not taken for a field that is missing."""
    total = counted["total"]
    return Quality(total, {field: round(100 * counted[field] / total, 1) if total else 0.0 for field in THRESHOLDS})


async def check_quality(now: str) -> dict[str, object]:
    """The percentages. The same fields on the next day are the same trouble, whatever their numbers of that day."""
    quality = quality_of(await _counted())
    if quality.total == 0:
        text = "No scraped app is stored. Check `penstock controllers status enrichment`."
        _log.warning("quality.unknown", extra={"facts": {"reason": text}})
        await app.alert(NOBODY, "[Pipeline] Data quality unknown: no scraped apps", text)
        return {"total": 0}
    await app.recovered(NOBODY)
    if degraded := quality.degraded:
        _log.warning("quality.degraded", extra={"facts": {"fields": degraded, "coverage": quality.coverage}})
        title = f"[Pipeline] Data quality degraded: {len(degraded)} fields"
        await app.alert(CONDITION, title, told(quality), key=", ".join(degraded))
    else:
        await app.recovered(CONDITION)
    return {"total": quality.total, "degraded": degraded, **quality.coverage}


async def _counted() -> Counter[str]:
    """Return how many scraped apps there are, and how many of them have each field."""
    counted, after, apps = Counter[str](), 0, PAGE_APPS
    while apps == PAGE_APPS:
        page = await db.first(COVERAGE, after=after, most=PAGE_APPS)
        assert page is not None
        counts = page.asdict()
        after, apps = counts.pop("last"), counts.pop("apps")
        counted.update(counts)
    return counted


def told(quality: Quality) -> str:
    """Worst first, which is where the page has changed."""
    worst = sorted(quality.degraded, key=lambda field: (quality.coverage[field], field))
    lines = [f"{field}: {quality.coverage[field]} % instead of {THRESHOLDS[field]} %" for field in worst]
    return "\n".join([f"Of the {quality.total:,} scraped apps, the share that has each field:", *lines])
