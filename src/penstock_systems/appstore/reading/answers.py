"""What people ask the pipeline, answered: each function runs a few bounded queries and gives back plain values."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from penstock_systems.appstore.reading.queries import MOST, Reading, ask, ask_one

WINDOW_DAYS = 7  # how far back a change is looked for
PART_MOST = 25  # rows of one part of an answer in depth: keywords, reviews, days ...
LINES_MOST = 100  # of a debate
JSON_COLUMNS = ("rating_histogram", "in_app_purchases", "similar_apps", "languages", "facts", "metrics")
TIME = "%Y-%m-%d %H:%M:%S"

ORDERS = ("ratings", "velocity", "competitiveness", "newest")
STATUSES = ("pending", "waiting", "searched", "failed")


async def apps(
    reading: Reading,
    *,
    by: str = "ratings",
    genre: str | None = None,
    market: int | None = None,
    keyword: str | None = None,
    developer: int | None = None,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """Apps in one of the ORDERS, or those of a category, a market, a keyword or a developer."""
    if genre is not None:
        return await ask(reading, "apps_of_genre", genre=genre, most=most)
    if market is not None:
        return await ask(reading, "apps_of_market", market=market, most=most)
    if keyword is not None:
        return await ask(reading, "apps_of_keyword", keyword=keyword, most=most)
    if developer is not None:
        return await ask(reading, "apps_of_developer", developer=developer, most=most)
    return await ask(reading, f"apps_by_{by}", most=most)


async def app(reading: Reading, id: int) -> dict[str, Any] | None:
    """One app in depth; None where nobody has met it."""
    found = await ask_one(reading, "app", id=id)
    if found is None:
        return None
    parts = {"keywords": "app_keywords", "charts": "app_charts", "markets": "app_markets", "days": "app_days"}
    parts |= {"reviews": "app_reviews", "versions": "app_versions"}
    depth = {part: await ask(reading, name, id=id, most=PART_MOST) for part, name in parts.items()}
    findings = await ask(reading, "findings", kind="app", subject=str(id), most=PART_MOST)
    return {**_unfolded(found), **depth, "findings": findings}


async def keywords(
    reading: Reading,
    *,
    status: str | None = None,
    market: int | None = None,
    app: int | None = None,
    tracked: bool = False,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """Keywords by demand, or those of a status, a market or an app, or those that somebody tracks."""
    if tracked:
        return await ask(reading, "keywords_tracked", most=most)
    if status is not None:
        return await ask(reading, "keywords_of_status", status=status, most=most)
    if market is not None:
        return await ask(reading, "keywords_of_market", market=market, most=most)
    if app is not None:
        return await ask(reading, "keywords_of_app", app=app, most=most)
    return await ask(reading, "keywords_by_demand", most=most)


async def keyword(reading: Reading, word: str) -> dict[str, Any] | None:
    """One keyword in depth: who ranks for it, which markets it belongs to, its last days and who ranked on them."""
    found = await ask_one(reading, "keyword", keyword=word)
    if found is None:
        return None
    days = await ask(reading, "keyword_days", keyword=word, most=PART_MOST)
    return {
        **found,
        "ranked": await apps(reading, keyword=word, most=PART_MOST),
        "markets": await ask(reading, "keyword_markets", keyword=word, most=PART_MOST),
        "days": [_unfolded(day) for day in days],
        "places": await ask(reading, "keyword_places", keyword=word, most=PART_MOST),
        "findings": await ask(reading, "findings", kind="keyword", subject=word, most=PART_MOST),
    }


async def clusters(reading: Reading, *, days: int = WINDOW_DAYS, most: int = MOST) -> list[dict[str, Any]]:
    return await ask(reading, "clusters", since=await window(reading, days), most=most)


async def cluster(reading: Reading, id: int) -> dict[str, Any] | None:
    """One market in depth: who is in it, what became of it, who is near it, what could be built."""
    found = await ask_one(reading, "cluster", id=id)
    if found is None:
        return None
    parts = {"history": "cluster_history", "neighbours": "cluster_neighbours", "concepts": "cluster_concepts"}
    depth = {part: await ask(reading, name, id=id, most=PART_MOST) for part, name in parts.items()}
    newest = await ask_one(reading, "opportunity_of_market", market=id)
    return {
        **found,
        **depth,
        "members": await apps(reading, market=id, most=PART_MOST),
        "words": await keywords(reading, market=id, most=PART_MOST),
        "tips": await ask(reading, "cluster_tips", id=id, most=PART_MOST),
        "findings": await ask(reading, "findings", kind="cluster", subject=str(id), most=PART_MOST),
        "evaluation": None if newest is None else _unfolded(newest),
    }


async def opportunities(reading: Reading, *, most: int = MOST) -> list[dict[str, Any]]:
    """The newest evaluation of each market, with the apps that it refers to and its tips."""
    found = await ask(reading, "opportunities", most=most)
    for rank, each in enumerate(found, start=1):
        each["rank"] = rank
        each["reference_apps"] = await ask(reading, "references", id=each["id"], most=PART_MOST)
        each["tips"] = await ask(reading, "tips", market=each["cluster_id"], id=each["id"], most=PART_MOST)
    return found


async def opportunity(reading: Reading, id: str) -> dict[str, Any] | None:
    """One evaluation in depth. `id` is its own, or the number of the market, of which it is then the newest."""
    found = await ask_one(reading, "opportunity", id=id)
    if found is None and id.isdecimal() and len(id) <= 18:
        found = await ask_one(reading, "opportunity_of_market", market=int(id))
    if found is None:
        return None
    named = found["id"]
    debates = await ask(reading, "debates", id=named, most=PART_MOST)
    for debate in debates:
        debate["messages"] = await ask(reading, "debate_messages", id=debate["id"], most=LINES_MOST)
    return {
        **_unfolded(found),
        "reference_apps": await ask(reading, "references", id=named, most=PART_MOST),
        "tips": await ask(reading, "tips", market=found["cluster_id"], id=named, most=PART_MOST),
        "methods": await ask(reading, "methods", id=named, most=PART_MOST),
        "debates": debates,
        "playbooks": await ask(reading, "playbooks", id=named, most=PART_MOST),
        "concepts": await ask(reading, "cluster_concepts", id=found["cluster_id"], most=PART_MOST),
        "evaluations": await ask(reading, "earlier_evaluations", lineage=found["lineage_id"], most=PART_MOST),
    }


async def trends(reading: Reading, *, days: int = WINDOW_DAYS, most: int = MOST) -> dict[str, Any]:
    """What moved in the window: apps that win ratings, apps that climb the charts, markets whose score rises."""
    since = await window(reading, days)
    return {
        "since": since,
        "rising_apps": await ask(reading, "rising_apps", most=most),
        "climbers": await ask(reading, "climbers", since=since, most=most),
        "rising_clusters": await ask(reading, "rising_clusters", since=since, most=most),
    }


async def newest(reading: Reading) -> str | None:
    """The newest moment in the data, None where there is none."""
    found = await ask_one(reading, "newest")
    return found["at"] if found else None


async def window(reading: Reading, days: int) -> str:
    """Where the window begins: so many days before the newest moment in the data. What the clock says does not matter."""
    at = await newest(reading)
    return "" if at is None else (datetime.fromisoformat(at) - timedelta(days=days)).strftime(TIME)


def _unfolded(row: dict[str, Any]) -> dict[str, Any]:
    """With what is kept as JSON text as what it says; text that is no JSON stays text."""
    return {name: _meant(value) if name in JSON_COLUMNS else value for name, value in row.items()}


def _meant(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
