"""Two runs of the clustering over a drawn catalogue, with all that follows from them: every row is as it was recorded."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages as stages  # what reacts to events is there once this is imported
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, insert_apps, insert_keywords, leap
from tests.systems.appstore.test_cluster_task import changed

pytestmark = pytest.mark.only_on("sqlite")

RECORDED = Path(__file__).parent / "recorded_tables.txt"
TABLES = """
market_clusters cluster_keywords cluster_apps cluster_lineages cluster_relations cluster_snapshots agent_ledger
agent_core_beliefs agent_memory design_concepts harness_cycles research_tasks opportunity_evaluations
opportunity_method_scores opportunity_reference_apps debate_messages market_tips priority_boosts
""".split()
WORDS = {
    "sleep": "sleep white-noise rain bedtime calm",
    "running": "running marathon jogging pace steps",
    "invoice": "invoice receipts taxes billing quotes",
    "garden": "garden plants watering seeds orchids",
    "recipes": "recipes cooking meal-plan baking pantry",
}
COMPLAINTS = ("It crashes since the update.", "Far too many adverts.", "The subscription is a trap.")
PRAISE = ("I use it every day.", "Simple and quick.")


@pytest.fixture
def seed() -> int:
    """Of the fake store too, which completes keywords: the rows were recorded with this one."""
    return 1


def drawn(random: Random) -> dict[str, list[dict[str, Any]]]:
    """Apps of five themes with reviews, and the keywords under which the store shows them, some of another theme."""
    tables: dict[str, list[dict[str, Any]]] = {"apps": [], "keywords": [], "crawl_rankings": [], "app_reviews": []}
    ids: dict[str, list[int]] = {}
    for place, (theme, words) in enumerate(WORDS.items(), 1):
        ids[theme] = [1_000 * place + number for number in range(14)]
        for number, id in enumerate(ids[theme]):
            ratings = int(10 ** random.uniform(0.5, 6.0 if number == 0 else 4.0))
            year = random.choice(("2015", "2020", "2025"))
            tables["apps"].append(
                {
                    "track_id": id,
                    "track_name": f"{random.choice(words.split()).title()} {random.choice(words.split())} {number}",
                    "seller_name": f"Seller {id % 7}",
                    "developer_id": id % 7 + 1,
                    "primary_genre": theme,
                    "rating_count": ratings,
                    "average_rating": round(random.uniform(2.0, 4.9), 1),
                    "rating_velocity_7d": random.choice((None, 0.0, round(ratings / 500, 2))),
                    "release_date": f"{year}-0{random.randint(1, 9)}-01 00:00:00",
                    "version_released_at": f"{year}-1{random.randint(0, 2)}-01 00:00:00",
                    "enriched_at": "2025-12-30 00:00:00",
                }
            )
            for review in range(random.choice((0, 3, 8))):
                tone = random.choice((-0.8, 0.7))
                tables["app_reviews"].append(
                    {
                        "review_id": f"{id}-{review}",
                        "track_id": id,
                        "rating": 1 if tone < 0 else 5,
                        "title": "",
                        "body": random.choice(COMPLAINTS if tone < 0 else PRAISE),
                        "sentiment": tone,
                        "reviewed_at": f"2025-12-{review + 1:02} 00:00:00",
                        "seen_at": "2025-12-31 00:00:00",
                    }
                )
    for theme, words in WORDS.items():
        for word in words.split():
            keyword = word.replace("-", " ")
            demand = random.choice((None, round(random.uniform(20, 90), 1)))
            tables["keywords"].append({"keyword": keyword, "status": "searched", "demand": demand})
            shown = random.sample(ids[theme], 9) + random.sample(ids[random.choice(list(WORDS))], 1)
            for rank, id in enumerate(dict.fromkeys(shown), 1):
                ranked = {"keyword": keyword, "track_id": id, "rank": rank, "crawled_at": "2026-01-01 00:00:00"}
                tables["crawl_rankings"].append(ranked)
    return tables


async def rows_of(it: Pipeline) -> str:
    parts: list[str] = []
    for table in TABLES:
        found = [_plain(tuple(row)) for row in await it.sql(f"select * from {table} limit 1000")]
        parts.append("\n".join([f"== {table}", *sorted(msgspec.json.encode(row).decode() for row in found)]))
    return "\n".join(parts) + "\n"


def _plain(value: Any) -> Any:
    """Numbers to three places: processors add up in different orders."""
    match value:
        case float():
            return round(value, 3)
        case bytes():
            return value.hex()
        case tuple():
            return [_plain(each) for each in value]
    return value


async def played(pipeline: Opened) -> str:
    random = Random(7)
    async with crawling(pipeline) as it:
        tables = drawn(random)
        await insert_apps(it, *tables["apps"])
        await insert_keywords(it, *tables["keywords"])
        await insert(it, "crawl_rankings", *tables["crawl_rankings"])
        await insert(it, "app_reviews", *tables["app_reviews"])
        for _ in range(2):
            await changed(it)
            await shared.app.crons.trigger("cluster")
            await it.running.advance(hours=1)
            await leap(it, days=2)
            async with it.running.unit():
                # A market ends, one loses apps to another, and the rest grow.
                shared.db.write("delete from crawl_rankings where keyword in ('garden', 'plants', 'watering', 'seeds')")
                shared.db.write("update crawl_rankings set keyword = 'sleep' where keyword = 'jogging' and rank > 5")
                shared.db.write("update app_registry set rating_count = rating_count * 3 / 2 where track_id % 3 = 0")
        return await rows_of(it)


async def test_every_row_that_follows_from_the_rankings_is_as_recorded(pipeline: Opened, tmp_path: Path) -> None:
    found = await played(pipeline)

    written = tmp_path / RECORDED.name
    written.write_text(found, encoding="utf-8")
    assert found.splitlines() == RECORDED.read_text("utf-8").splitlines(), f"if it is meant, copy {written}"
