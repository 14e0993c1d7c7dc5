"""Data quality: what share of the apps that were scraped last has each field, and an alert where it is too little."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from penstock_systems.appstore.app import app, db

LOOKED_AT = 10_000  # apps, those scraped last: a page that changed shows there first
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
select count(*) as total,
  sum(case when content_rating is not null then 1 else 0 end) as content_rating,
  sum(case when length(description) > 10 then 1 else 0 end) as description,
  sum(case when developer_id is not null then 1 else 0 end) as developer,
  sum(case when languages is not null and languages <> '[]' then 1 else 0 end) as languages,
  sum(case when screenshots is not null and screenshots <> '[]' then 1 else 0 end) as screenshots,
  sum(case when similar_apps is not null and similar_apps <> '[]' then 1 else 0 end) as similar,
  sum(case when rating_histogram is not null then 1 else 0 end) as histogram
from (
  select content_rating, description, developer_id, languages, screenshots, similar_apps, rating_histogram
  from app_registry
  where enrichment_source = 'scraper'
  order by enriched_at desc, track_id
  limit :most
) as scraped
"""

_log = logging.getLogger("penstock_systems.appstore")


class Quality(msgspec.Struct, frozen=True):
    """Percentages of `total` apps, by field."""

    total: int
    coverage: dict[str, float]

    @property
    def degraded(self) -> list[str]:
        return [field for field, least in THRESHOLDS.items() if self.total and self.coverage[field] < least]


def quality_of(counted: dict[str, Any]) -> Quality:
    """A threshold without a count is a mistake in here, and is not taken for a field that is missing."""
    total = counted["total"]
    return Quality(total, {field: round(100 * counted[field] / total, 1) if total else 0.0 for field in THRESHOLDS})


async def check_quality(now: str) -> dict[str, object]:
    """The percentages. The same fields on the next day are the same trouble, whatever their numbers of that day."""
    row = await db.first(COVERAGE, most=LOOKED_AT)
    assert row is not None
    quality = quality_of({name: value or 0 for name, value in row.asdict().items()})
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


def told(quality: Quality) -> str:
    """Worst first, which is where the page has changed."""
    worst = sorted(quality.degraded, key=lambda field: (quality.coverage[field], field))
    lines = [f"{field}: {quality.coverage[field]} % instead of {THRESHOLDS[field]} %" for field in worst]
    return "\n".join([f"Of the {quality.total:,} apps scraped last, the share that has each field:", *lines])
