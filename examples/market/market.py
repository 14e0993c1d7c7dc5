"""A market crawler: charts by cron, searches through a queue, pages by a controller that finds the store's pace by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import penstock as ps

app = ps.App("market", migrations=Path(__file__).parent / "migrations")
db = app.db
web = app.http()
searching = app.pace("search", patience=120)  # Apple's limit for searches is a rumour: it is found, and held

GENRES = (6000, 6002, 6003, 6005, 6007, 6008, 6010, 6012, 6013, 6014, 6015, 6016, 6017, 6018, 6020, 6023, 6024)
CHART = "https://itunes.apple.com/us/rss/topfreeapplications/limit=100/genre={genre}/json"
SEARCH = "https://itunes.apple.com/search?country=us&entity=software&limit=50&term={word}"
PAGE = "https://apps.apple.com/us/app/id{track_id}"
FOUND = """
insert into apps (track_id, title, genre, found_by, found_at)
values (:track_id, :title, :genre, :found_by, :now)
on conflict do nothing
"""
LINKED = re.compile(r'<script type="application/ld\+json">(.*?)</script>', re.DOTALL)
WORD = re.compile(r"[a-z]{4,}")


class Search(ps.Command, type="search.wanted"):
    word: str


searches = app.queue("searches", accepts=[Search])


async def every_chart_is_fresh() -> bool:
    return not await db.exists("select 1 from charts where crawled_at is null limit 1")


@app.cron("*/5 * * * *", why="charts move within hours; a chart a tick is polite", unless=every_chart_is_fresh)
async def crawl(tick: ps.Tick) -> None:
    for genre in await db.column("select genre from charts where crawled_at is null order by genre limit 4"):
        feed: Any = (await web.get(CHART.format(genre=genre))).json()
        async with app.unit():  # each chart is saved by itself: one that cannot be read costs no other
            for entry in feed["feed"].get("entry", []):
                await found(int(entry["id"]["attributes"]["im:id"]), entry["im:name"]["label"], genre, "chart")
            db.write("update charts set crawled_at = :now where genre = :genre", genre=genre, now=await db.now())
        tick.phase = f"genre {genre}"


@app.cron("0 */2 * * *", why="a chart is looked at every two hours")
async def wilt() -> None:
    for genre in GENRES:
        db.write(
            "insert into charts (genre) values (:genre) on conflict (genre) do update set crawled_at = null",
            genre=genre,
        )


@searches.on(Search)
async def search(wish: Search) -> None:
    async with searching.permit(wish.word):
        answer = await web.get(SEARCH.format(word=wish.word), refusals={403})
    results: Any = answer.json()
    for result in results["results"]:
        await found(result["trackId"], result["trackName"], result.get("primaryGenreId"), "search")
    db.write("update keywords set searched_at = :now where word = :word", word=wish.word, now=await db.now())


async def found(track_id: int, title: str, genre: int | None, found_by: str) -> None:
    """Remembers an app, and looks for more of its kind: a new word of its title becomes a search."""
    db.write(FOUND, track_id=track_id, title=title, genre=genre, found_by=found_by, now=await db.now())
    for word in sorted(set(WORD.findall(title.lower())))[:2]:
        db.write("insert into keywords (word) values (:word) on conflict do nothing", word=word)
        searches.send(Search(word=word), unique=word, delay=1)


@app.controller("enrichment", parallel=8, rate=(0.05, 20.0))
class Enrichment(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return await db.column(
            "select track_id from apps where enriched_at is null order by track_id limit :n", n=limit
        )

    async def work(self, track_id: int) -> None:
        page = await web.page(PAGE.format(track_id=track_id), refusals={403})
        linked = LINKED.search(page.text())
        if linked is None:
            raise ps.Unparsable(f"the page of {track_id} says nothing about it")
        rated = json.loads(linked[1]).get("aggregateRating") or {}
        db.write(
            "update apps set rating = :rating, ratings = :ratings, enriched_at = :now where track_id = :id",
            rating=rated.get("ratingValue"),
            ratings=rated.get("reviewCount"),
            now=await db.now(),
            id=track_id,
        )
