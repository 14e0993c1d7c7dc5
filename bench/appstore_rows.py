"""The rows of a pipeline that has seen a whole store: every app enriched, every keyword searched, each due again some day."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from penstock_systems.appstore.crawl.convergence import BUCKET, SEARCHES
from penstock_systems.appstore.enrich.mentions import mentions
from penstock_systems.appstore.settings import STALE_DAYS
from penstock_systems.standins.appstore import FIRST_DAY, Catalogue
from penstock_systems.standins.appstore.scale import APPS, KEYWORDS_FOUND, MARKETS, RANKED, every_app, every_ranking
from penstock_systems.standins.appstore.texts import description

MARKETS_MIN, KEYWORDS_MIN = 6, 50
TEXT_MAX = 2_000  # characters of a description, as the pipeline cuts it
TEXTS = 997  # descriptions that are written out; every app has one of them
SHOTS = tuple(f"https://is1-ssl.mzstatic.com/image/thumb/Purple/v4/shot/{number}/392x696bb.png" for number in range(6))
SEEN_DAYS = 30  # since the first app was seen
HOURS_LATER = 7

Values = tuple[object, ...]
APP_COLUMNS = """
track_id bundle_id track_name seller_name average_rating rating_count primary_genre price formatted_price artwork_url
track_view_url release_date version content_rating developer_id developer_website subtitle description languages screenshots
rating_histogram similar_apps iap_scraped_at iap_scrape_status data_source first_seen_at last_seen_at ranked_at enriched_at
enrichment_source next_enrich_at competitiveness_score scored_at
""".split()
COLUMNS = {
    "app_registry": APP_COLUMNS,
    "developers": ["developer_id", "name", "portfolio_at", "first_seen_at"],
    "crawl_keywords": """
        keyword source status demand app_count known_count last_searched_at next_search_at created_at
        """.split(),
    "crawl_rankings": ["keyword", "track_id", "rank", "crawled_at"],
    "app_keyword_mentions": ["track_id", "keyword", "field", "count"],
    "crawl_state": ["name", "value", "updated_at"],
}


@dataclass(frozen=True, slots=True)
class Size:
    """As many markets, keywords and rankings as the whole store has for so many apps."""

    apps: int

    @property
    def keywords(self) -> int:
        return max(KEYWORDS_MIN, self.apps * KEYWORDS_FOUND // APPS)

    @property
    def rankings(self) -> int:
        return max(KEYWORDS_MIN, self.apps * RANKED // APPS)

    @property
    def markets(self) -> int:
        return max(MARKETS_MIN, self.apps * MARKETS // APPS)

    def catalogue(self, seed: int) -> Catalogue:
        return Catalogue(self.apps, self.markets, seed)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Nothing is due in the first `quiet` days. From then on apps come due over `enrich` days, keywords over `search` days
    and charts over the period of their tier: evenly, and in an order that has nothing to do with their ids. Apps come due in
    rushes: those of `every` days within the `dense` part of them."""

    quiet: float = 2.0
    enrich: float = 30.0
    search: float = 30.0
    every: int = 1
    dense: float = 1.0
    start: datetime = FIRST_DAY

    def enriched_again(self, number: int) -> str:
        rush, rest = divmod(self.enrich * spread(number) / self.every, 1.0)
        return self.at(self.quiet + self.opens(int(rush)) + rest * self.rush_days)

    @property
    def rush_days(self) -> float:
        return self.every * self.dense

    def opens(self, rush: int) -> float:
        """When a rush begins, in days: each time at another hour."""
        return rush * self.every + (rush * HOURS_LATER % 24) / 24 * (1.0 - self.dense)

    def at(self, days: float) -> str:
        return (self.start + timedelta(days=days)).isoformat(" ", "seconds")[:19]

    def due(self, number: int, days: float) -> str:
        return self.at(self.quiet + days * spread(number))

    def done(self, number: int) -> str:
        return self.at(-SEEN_DAYS * spread(number))


def spread(number: int) -> float:
    """From 0 to 1, evenly over any run of numbers (Knuth's multiplier)."""
    return number * 2_654_435_761 % 2**32 / 2**32


class Rows:
    def __init__(self, size: Size, seed: int, calendar: Calendar) -> None:
        self.size = size
        self.calendar = calendar
        self.catalogue = size.catalogue(seed)
        self._texts = [
            description(self.catalogue.app(index))[:TEXT_MAX] for index in range(min(TEXTS, self.catalogue.apps))
        ]

    def apps(self) -> Iterator[Values]:
        """In the order of `APP_COLUMNS`."""
        calendar, first = self.calendar, self.calendar.at(-SEEN_DAYS)
        for number, (track_id, fields) in enumerate(every_app(self.catalogue)):
            done = calendar.done(number)
            told = {
                **fields,
                "track_id": track_id,
                "description": self._texts[number % len(self._texts)],
                "languages": json.dumps(fields["languages"]),
                "screenshots": json.dumps(SHOTS[: number % 7]),
                "rating_histogram": json.dumps([fields["rating_count"], 0, 0, 0, 0]),
                "similar_apps": json.dumps([track_id + step for step in range(1, 13)]),
                "iap_scraped_at": done,
                "iap_scrape_status": "none",
                "data_source": "search",
                "first_seen_at": first,
                "last_seen_at": done,
                "ranked_at": done,
                "enriched_at": done,
                "enrichment_source": "scraper",
                "next_enrich_at": calendar.enriched_again(number),
                "competitiveness_score": round(100 * spread(number + 1), 2),
                "scored_at": done,
            }
            yield tuple([told[name] for name in APP_COLUMNS])

    def developers(self) -> Iterator[Values]:
        """Each once. Their portfolios are known: the pipeline does not look them up again."""
        catalogue, first, done = self.catalogue, self.calendar.at(-SEEN_DAYS), self.calendar.at(-1)
        for developer in dict.fromkeys(map(catalogue.developer, range(catalogue.apps))):
            yield catalogue.artist_id(developer), catalogue.brand(developer), done, first

    def ranked(self) -> list[tuple[str, list[int]]]:
        """By keyword: the index that cannot be taken off is only added to."""
        return sorted(every_ranking(self.catalogue, self.size.keywords, self.size.rankings))

    def keywords(self, ranked: list[tuple[str, list[int]]]) -> Iterator[Values]:
        calendar, first = self.calendar, self.calendar.at(-SEEN_DAYS)
        for number, (keyword, ids) in enumerate(ranked):
            demand, due = round(100 * spread(number + 7), 2), calendar.due(number, calendar.search)
            yield keyword, "search", "searched", demand, len(ids), len(ids), calendar.done(number), due, first

    def rankings(self, ranked: list[tuple[str, list[int]]]) -> Iterator[Values]:
        for number, (keyword, ids) in enumerate(ranked):
            done = self.calendar.done(number)
            for rank, track_id in enumerate(ids, 1):
                yield keyword, track_id, rank, done

    def mentions(self) -> Iterator[Values]:
        for number, (track_id, fields) in enumerate(every_app(self.catalogue)):
            text = self._texts[number % len(self._texts)]
            for each in mentions(fields["track_name"], fields["subtitle"], text):
                yield track_id, each.keyword, each.field, each.count

    def state(self) -> Iterator[Values]:
        """The crawl has seen nearly everything: what searches find gives no new keywords."""
        done = self.calendar.at(-1 / 24)
        bucket = {"searches": BUCKET, "found": 25 * BUCKET, "known": 25 * BUCKET}
        yield "convergence", json.dumps([bucket] * (SEARCHES // BUCKET)), done
        yield "rankings_changed_at", done, done

    def scan(self, id: Any, priority: Any) -> Values:
        return self.calendar.at(-1), self.calendar.due(id, STALE_DAYS[priority]), id
