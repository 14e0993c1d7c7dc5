"""Completions: after how many letters the store completes a keyword. Users type what it completes early.

The clustering names the typical keywords of each market. A prefix is asked for once a week, whichever keywords begin with it.
"""

from __future__ import annotations

import asyncio

import msgspec

import penstock as ps
from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.crawl.figures import note_new_figures
from penstock_systems.appstore.moments import after
from penstock_systems.appstore.outside import store

KEYWORDS_A_CYCLE = 60
PARALLEL = 4
LETTERS = (2, 3, 4, 5, 6, 7, 8)  # after which the store is asked, and at last with the whole keyword
CACHED_DAYS = 7.0
UNREADABLE_DAYS = 1.0  # before a keyword is asked for again whose answer could not be read

DUE = """
select keyword
from crawl_keywords
where typed_due <= :now
order by typed_due, keyword
limit :most
"""
CACHED = "select value from keyword_cache where key = :key and expires_at > :now"
TYPED = """
update crawl_keywords
set typed = :letters, typed_at = :now, typed_due = null
where keyword = :keyword
"""


PUT_OFF = "update crawl_keywords set typed_due = :due where keyword = :keyword"


async def ask_for_completions(budget: Budget) -> int:
    """Ask the store to complete the keywords that are due, and return how many were answered."""
    keywords = await db.column(DUE, most=KEYWORDS_A_CYCLE, now=await db.now())
    answered = 0
    for at in range(0, len(keywords), PARALLEL):
        if not budget.is_open:
            break
        group = keywords[at : at + PARALLEL]
        try:
            async with budget.cut():
                found = await asyncio.gather(*(_letters_or_none(keyword) for keyword in group))
        except (TimeoutError, ps.Throttled, ps.Unavailable):
            break
        now = await db.now()
        completed = {keyword: letters for keyword, letters in zip(group, found, strict=True) if letters is not None}
        due = after(now, days=UNREADABLE_DAYS)
        async with app.unit():
            db.write_many(
                TYPED, [{"keyword": keyword, "letters": completed[keyword], "now": now} for keyword in completed]
            )
            db.write_many(PUT_OFF, [{"keyword": keyword, "due": due} for keyword in group if keyword not in completed])
            note_new_figures(now)
        answered += len(completed)
    return answered


async def _letters_or_none(keyword: str) -> int | None:
    """None where the store's answer about this keyword cannot be used: the others are asked for all the same."""
    try:
        return await letters_needed(keyword)
    except ps.Permanent:
        return None


async def letters_needed(keyword: str) -> int:
    """The letters after which the store completes this keyword; 0 if it never does."""
    for letters in (*(count for count in LETTERS if count < len(keyword)), len(keyword)):
        if keyword in await _completed(keyword[:letters]):
            return letters
    return 0


async def _completed(prefix: str) -> list[str]:
    key, now = f"hints/{settings.country}/{prefix}", await db.now()
    kept = await db.value(CACHED, key=key, now=now)
    if kept is not None:
        return msgspec.json.decode(kept, type=list[str])
    terms = [term.casefold() for term in await store.hints(prefix)]
    row = {"key": key, "value": msgspec.json.encode(terms).decode(), "expires_at": after(now, days=CACHED_DAYS)}
    async with app.unit():
        db.upsert("keyword_cache", row, key="key")
    return terms
