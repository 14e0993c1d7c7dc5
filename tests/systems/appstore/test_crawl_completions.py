"""Completions: after how many letters the store completes a keyword, asked for by the crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

import penstock as ps
from penstock_systems.appstore import outside
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import NEVER, THEN, crawling, cycle, insert_keywords, leap

FOUND = "select keyword, typed, typed_at, typed_due from crawl_keywords order by keyword"


class Completing:
    """Completes prefixes from a list of terms, and notes what it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *terms: str) -> None:
        self.terms: Sequence[str] = terms
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self.seconds = 0.0
        self.refusal: Exception | None = None
        self.instead: dict[str, list[str]] = {}  # of the terms, by prefix
        self.unreadable: set[str] = set()  # prefixes
        monkeypatch.setattr(outside.store, "hints", self.hints)

    async def hints(self, prefix: str) -> list[str]:
        self.asked.append(prefix)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        if self.refusal is not None:
            raise self.refusal
        if prefix in self.unreadable:
            raise ps.Unparsable("The hints cannot be read.", reason="bad_xml")
        return self.instead.get(prefix) or [term for term in self.terms if term.casefold().startswith(prefix)]


async def due(it: Pipeline, *keywords: str) -> None:
    searched = {"status": "searched", "next_search_at": NEVER, "typed_due": THEN}
    await insert_keywords(it, *({"keyword": keyword, **searched} for keyword in keywords))


async def letters(it: Pipeline) -> dict[str, int | None]:
    return {row.keyword: row.typed for row in await it.sql(FOUND)}


async def test_a_keyword_is_typed_letter_by_letter_until_the_store_completes_it(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch, "Sleep Sounds", "Yoga")
        await due(it, "sleep sounds", "go", "yoga")
        store.instead = {"sl": ["sleep"]}

        stats = await cycle(it)

        assert stats["keywords_completed"] == 3
        assert await letters(it) == {"go": 0, "sleep sounds": 3, "yoga": 2}
        assert sorted(store.asked) == ["go", "sl", "sle", "yo"]
        assert {(row.typed_at is not None, row.typed_due) for row in await it.sql(FOUND)} == {(True, None)}


async def test_a_long_keyword_that_is_never_completed_is_asked_for_whole_at_last(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch)
        await due(it, "meditation")

        await cycle(it)

        assert store.asked == [*("meditation"[:count] for count in range(2, 9)), "meditation"]
        assert await letters(it) == {"meditation": 0}


async def test_a_prefix_is_asked_for_once_a_week_whichever_keywords_begin_with_it(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch, "sleep", "slim")
        for keyword, days, asked in [("sleep", 0, 1), ("slim", 6, 1), ("sled", 0, 3), ("slip", 2, 6)]:
            await leap(it, days=days)
            await due(it, keyword)
            await cycle(it)
            assert len(store.asked) == asked, keyword

        assert store.asked == ["sl", "sle", "sled", "sl", "sli", "slip"]


async def test_keywords_are_completed_four_at_a_time_and_sixty_in_a_cycle(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords = [f"{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch, *keywords)
        store.seconds = 0.1
        await due(it, *keywords)

        first, second = await cycle(it), await cycle(it)

        assert (first["keywords_completed"], second["keywords_completed"]) == (60, 4)
        assert store.most_at_once == 4
        assert store.asked == keywords
        assert set((await letters(it)).values()) == {2}


@pytest.mark.parametrize("refusal", [ps.Throttled("slow down"), ps.Unavailable("closed")])
async def test_a_refusal_ends_the_completions_of_a_cycle_and_keeps_their_keywords_due(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch, "aa", "bb", "cc", "dd", "ee")
        store.refusal = refusal
        await due(it, "aa", "bb", "cc", "dd", "ee")

        refused = await cycle(it)
        assert (refused["keywords_completed"], refused["error"]) == (0, None)
        assert len(store.asked) <= 4
        store.refusal = None
        again = await cycle(it)

        assert again["keywords_completed"] == 5
        assert set((await letters(it)).values()) == {2}


async def test_a_keyword_whose_answer_cannot_be_read_is_put_off_for_a_day_and_holds_up_no_other(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords = ["aa", "bb", "cc", "dd", "ee"]
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch, *keywords)
        store.unreadable = {"bb"}
        await due(it, *keywords)

        stats = await cycle(it)

        assert (stats["keywords_completed"], stats["error"]) == (4, None)
        assert await letters(it) == {"aa": 2, "bb": None, "cc": 2, "dd": 2, "ee": 2}
        await leap(it, hours=23)
        await cycle(it)
        assert store.asked == keywords, "it was asked for again within the day"

        store.unreadable = set()
        await leap(it, hours=2)
        await cycle(it)

        assert store.asked == [*keywords, "bb"]
        assert (await letters(it))["bb"] == 2


async def test_completions_that_take_too_long_end_with_their_cycle(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords = [f"{letter}{letter}" for letter in "abcdefghijklmnop"]
    async with crawling(pipeline) as it:
        store = Completing(monkeypatch, *keywords)
        await due(it, *keywords)

        store.seconds = 150.0  # the second group begins in time and is cut off
        late = await cycle(it)
        assert late["keywords_completed"] == 4
        store.seconds = 143.0  # the second group ends just after the last moment at which one may begin
        later = await cycle(it)

        assert later["keywords_completed"] == 8
        assert sum(found is not None for found in (await letters(it)).values()) == 12
