"""A week of crawling in one database, clustered once: how long it takes and how much memory it needs.

Keywords and rankings are drawn as a crawl finds them: many topics of which a few are huge, and apps that everybody knows in
between. They are written straight into the file, since it is not the writing that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.clusters_truth import v_measure
from penstock_systems.appstore import app as shared
from penstock_systems.appstore.cluster import task

KEYWORDS, RANKINGS, APPS, TOPICS = 180_000, 2_800_000, 1_100_000, 12_000
PARETO = 1.5  # the exponent of the topics' sizes
NOISE = 0.15  # of the places are taken by apps that belong to other topics
KNOWN_SHARE = 0.02  # of the apps are known to everybody
AT = "2026-01-01 00:00:00"
# So that the task finds something to do: rankings have changed since, and those of many keywords.
CHANGED, LATER = "rankings_changed_at", "9999-01-01 00:00:00"
FILE = "clusters.db"


class Drawn:
    """Topics with their keywords and apps, all numbers. The apps of a topic stand side by side."""

    def __init__(self, scale: float, seed: int = 1) -> None:
        self.chance = random.Random(seed)
        self.keywords, self.rankings, self.apps = (int(scale * each) for each in (KEYWORDS, RANKINGS, APPS))
        sizes = [self.chance.paretovariate(PARETO) for _ in range(max(2, int(scale * TOPICS)))]
        self.ends = [round(each * self.apps / sum(sizes)) for each in accumulate(sizes)]
        self.topic_of_keyword = self.chance.choices(range(len(sizes)), sizes, k=self.keywords)

    def topic_of(self, app: int) -> int:
        return bisect_right(self.ends, app)

    def titles(self) -> Iterator[str]:
        """Each app is called by its maker's name and by a word of its topic, if the topic has one."""
        of_topic: dict[int, list[int]] = {}
        for number, topic in enumerate(self.topic_of_keyword):
            of_topic.setdefault(topic, []).append(number)
        for app in range(self.apps):
            words = of_topic.get(self.topic_of(app)) or [app % self.keywords]
            yield f"{maker(app):x}maker: Word {words[app % len(words)]:06}"

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Keyword, app and rank."""
        each = self.rankings / self.keywords
        known = max(1, int(KNOWN_SHARE * self.apps))
        for number, topic in enumerate(self.topic_of_keyword):
            first, end = (self.ends[topic - 1] if topic else 0), self.ends[topic]
            found: dict[int, None] = {}
            wanted = int(each + self.chance.random())
            for _ in range(3 * wanted):
                if len(found) >= wanted:
                    break
                if end <= first or self.chance.random() < NOISE:
                    app = int(self.apps / known * int(known * self.chance.random() ** 3))
                else:
                    app = first + int((end - first) * self.chance.random() ** 2)
                found[app] = None
            yield from ((f"word {number:06}", app + 1, rank) for rank, app in enumerate(found, 1))


def maker(app: int) -> int:
    return app * 31 % 700_000


async def write(path: Path, drawn: Drawn) -> None:
    """The tables as the migrations make them, filled."""
    shared.app.database = str(path)
    async with shared.app:
        pass
    connection = apsw.Connection(str(path))
    connection.execute("pragma synchronous = off")
    with connection:
        connection.executemany(
            "insert into app_registry (track_id, track_name, rating_count, average_rating, developer_id, primary_genre, "
            "first_seen_at, last_seen_at) values (?, ?, ?, 4.0, ?, null, ?, ?)",
            ((app + 1, title, app * 7_919 % 5_000, maker(app), AT, AT) for app, title in enumerate(drawn.titles())),
        )
        connection.executemany(
            "insert into crawl_keywords (keyword, source, status, demand, created_at) values (?, 'bench', 'searched', ?, ?)",
            ((f"word {number:06}", 40.0 + number % 50, AT) for number in range(drawn.keywords)),
        )
        connection.executemany(
            "insert into crawl_rankings (keyword, track_id, rank, crawled_at) values (?, ?, ?, ?)",
            ((keyword, app, rank, AT) for keyword, app, rank in drawn.places()),
        )
        connection.execute(
            "insert into crawl_state (name, value, updated_at) values (?, ?, ?)", (CHANGED, LATER, LATER)
        )
    connection.close()


async def run(path: Path) -> dict[str, float]:
    """One run of the task, as the clock would start it."""
    shared.app.database = str(path)
    began = time.perf_counter()
    async with shared.app:
        await shared.app.crons.trigger(task.NAME)
    await shared.app.run(until_idle=True)
    seconds = time.perf_counter() - began
    async with shared.app:
        run = await shared.db.first("select status, error from pipelines order by started_at desc limit 1")
        assert run is not None
        assert run.status == "done", run.error
        steps = await shared.db.rows("select name, counts, started_at, finished_at from pipeline_steps")
        markets = await shared.db.value("select count(*) from market_clusters where ended_at is null")
        rankings = await shared.db.count("crawl_rankings")
    return {"seconds": seconds, "markets": markets, "rankings": rankings, "steps": len(steps)}


def truth(path: Path, drawn: Drawn) -> tuple[float, float]:
    """How near to the topics the markets are, over the apps in them, and how many apps that is of those that rank."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found: list[Any] = connection.execute("select track_id, cluster_id from cluster_apps").fetchall()
    ranked: Any = connection.execute("select count(distinct track_id) from crawl_rankings").get
    connection.close()
    agreement = v_measure([drawn.topic_of(app - 1) for app, _ in found], [market for _, market in found])
    return agreement, len(found) / ranked


def changed(path: Path) -> None:
    """As if all had been searched for once more."""
    connection = apsw.Connection(str(path))
    state = (CHANGED, LATER, LATER)
    connection.execute("insert or replace into crawl_state (name, value, updated_at) values (?, ?, ?)", state)
    connection.close()


def main() -> None:
    """In a process of its own, so that its peak is the run's, and no other stage of the pipeline is there."""
    parser = argparse.ArgumentParser(description="Part of bench/clusters.py.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("scale", type=float)
    parser.add_argument("part", choices=("write", "first", "later"))
    options = parser.parse_args()
    path = options.folder / FILE
    if options.part == "write":
        asyncio.run(write(path, Drawn(options.scale)))
        return
    if options.part == "later":
        changed(path)
    found = asyncio.run(run(path))
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    if options.part == "first":
        found["v"], found["placed"] = truth(path, Drawn(options.scale))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
