"""Keyword mapping: searches for pending keywords, a group at a time, and saves each group as it comes."""

from __future__ import annotations

from penstock.data import chunks
from penstock_systems.appstore.crawl import keyword_list
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.crawl.rankings import Keyword, Results
from penstock_systems.appstore.crawl.searching import PARALLEL, PAUSE_SECONDS, Searches

KEYWORDS_A_CYCLE = 100
KEYWORDS_BESIDE = 50  # where something else is the cycle's task


async def map_keywords(searches: Searches, results: Results, budget: Budget, *, most: int = KEYWORDS_A_CYCLE) -> None:
    """What is not reached stays pending for the next cycle."""
    await keyword_list.make_ready()
    rows = await keyword_list.pending(most)
    for number, group in enumerate(chunks(rows, PARALLEL)):
        if (number and not await budget.pause(PAUSE_SECONDS)) or not searches.is_open:
            break
        keywords = {row.keyword: Keyword(row.depth, row.attempts) for row in group}
        await results.save(await searches.group(list(keywords)), keywords)
