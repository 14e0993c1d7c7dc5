"""Rank the markets of a real catalogue: `python -m tools.try_catalogue FOLDER [--first 15]`.

The folder holds AppleStore.csv (a row an app) and any number of *description*.csv (their texts). Keywords come from the
titles, as in the crawl. A search is simulated: an app is found if all words are in its title or at the beginning of its
text, titles count three times, and ratings decide the rest. Markets, franchises, scores and names are the system's own.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from penstock_systems.appstore.cluster.crawled import NOT_KNOWN, Crawled, KeywordFacts, Places, Registry
from penstock_systems.appstore.cluster.franchises import owner
from penstock_systems.appstore.cluster.market import Market
from penstock_systems.appstore.cluster.markets import computed
from penstock_systems.appstore.keywords import discovered, tokens

RESULTS = 25  # of one search
TEXT_CHARACTERS = 600  # of a description that a search looks at
TITLE_WORTH = 3.0
MOST_RATED, LEADER_RATINGS, UPPER, APPS_LEAST = 300, 5_000, 10, 8  # what the first markets are measured by


class Listed(NamedTuple):
    """An app of the catalogue."""

    id: int
    title: str
    genre: str
    ratings: int
    stars: float
    text: str


class Line(NamedTuple):
    """A market of the list. `size_rank` is 1 for the market with the most ratings of all its apps together."""

    name: str
    score: float
    apps: int
    leader: str
    leader_ratings: int
    total_ratings: int
    size_rank: int
    largest: tuple[str, ...]
    franchise: str | None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.try_catalogue", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=15)
    options = parser.parse_args(arguments)
    listed = catalogue(options.folder)
    print(f"{len(listed):,} apps")
    ranked = ranking(listed)
    lines = lines_of(ranked, {app.id: app for app in listed})
    first = [line for line in lines if line.franchise is None][: options.first]
    for at, line in enumerate(first, 1):
        print(
            f"{at:2} {line.score:5.1f}  {line.name} | {line.apps} apps | {line.leader} {line.leader_ratings:,} | "
            f"all {line.total_ratings:,}, rank {line.size_rank} of {len(lines)} | {'; '.join(line.largest)}"
        )
    print(f"{sum(line.franchise is not None for line in lines)} markets belong to a franchise and are left out.")
    print(measured(first, lines, listed))
    return 0


def measured(first: list[Line], lines: list[Line], listed: list[Listed]) -> str:
    """How many of the first markets a newcomer could want: no giant ahead, many apps, and ratings enough."""
    giant = sorted((app.ratings for app in listed), reverse=True)[:MOST_RATED][-1]
    held = [line.leader for line in first if line.leader_ratings >= giant]
    large, known = (
        [line for line in of if line.size_rank <= len(lines) / 2 and line.apps >= APPS_LEAST] for of in (first, lines)
    )
    leaders = statistics.median(line.leader_ratings for line in first)
    # No choice of as many markets does better: those of the upper half with the weakest leaders, and the weakest of all.
    weakest = [sorted(line.leader_ratings for line in of) for of in (known, lines)]
    least = statistics.median([*weakest[0][:UPPER], *weakest[1][: max(0, len(first) - UPPER)]] or [0])
    return (
        f"Leaders among the {MOST_RATED} most rated apps: {', '.join(held) or 'none'}. Median leader: {leaders:,.0f} "
        f"ratings (under {LEADER_RATINGS:,}). In the upper half by ratings, with {APPS_LEAST} apps or more: "
        f"{len(large)} of {len(first)} (at least {UPPER}). With {UPPER} such markets, no choice of {len(first)} has a "
        f"median leader of fewer than {least:,.0f} ratings."
    )


def catalogue(folder: Path) -> list[Listed]:
    texts: dict[int, str] = {}
    for file in sorted(folder.glob("*description*.csv")):
        with file.open(encoding="utf-8", newline="") as rows:
            texts.update((int(row["id"]), row["app_desc"]) for row in csv.DictReader(rows))
    with (folder / "AppleStore.csv").open(encoding="utf-8", newline="") as rows:
        found = [
            Listed(
                int(row["id"]),
                row["track_name"],
                row["prime_genre"],
                int(row["rating_count_tot"]),
                float(row["user_rating"]),
                texts.get(int(row["id"]), ""),
            )
            for row in csv.DictReader(rows)
        ]
    return sorted({app.id: app for app in found}.values(), key=lambda app: app.id)


def ranking(listed: list[Listed]) -> list[Market]:
    """All markets with their franchises, the best first."""
    texts = {app.id: app.text.replace(app.title, " ") for app in listed}
    markets = [owner(market, texts.get) for market in computed(crawl(listed)).markets]
    return sorted(markets, key=lambda market: -market.score.opportunity)


def lines_of(ranked: Iterable[Market], apps: Mapping[int, Listed]) -> list[Line]:
    markets = [
        (market, sorted((apps[id] for id in market.apps), key=lambda app: (-app.ratings, app.id))) for market in ranked
    ]
    totals = sorted((sum(app.ratings for app in inside) for _, inside in markets), reverse=True)
    return [
        Line(
            market.name,
            market.score.opportunity,
            len(inside),
            inside[0].title,
            inside[0].ratings,
            total := sum(app.ratings for app in inside),
            totals.index(total) + 1,
            tuple(f"{app.title[:40]} {app.ratings:,}" for app in inside[1:4]),
            market.franchise,
        )
        for market, inside in markets
    ]


def crawl(listed: list[Listed]) -> Crawled:
    """Every keyword of every title, searched once."""
    search, places, keywords = Search(listed), Places(), dict[str, None]()
    for app in listed:
        keywords.update(dict.fromkeys(discovered(app.title)))
    for keyword in keywords:
        if found := search.ranked(keyword):
            number = len(places.keywords)
            places.keywords.append(keyword)
            places.keyword.extend([number] * len(found))
            places.track_id.extend(listed[at].id for at in found)
            places.rank.extend(range(1, len(found) + 1))
    genres = {genre: at for at, genre in enumerate(sorted({app.genre for app in listed}))}
    count = len(listed)
    unknown, none = array("d", [NOT_KNOWN]) * count, array("q", [0]) * count
    registry = Registry(
        track_id=array("q", [app.id for app in listed]),
        ratings=array("q", [app.ratings for app in listed]),
        stars=array("d", [app.stars or NOT_KNOWN for app in listed]),
        velocity=unknown,
        score=unknown,
        developer=array("q", [-1]) * count,
        genre=array("q", [genres[app.genre] for app in listed]),
        priority=none,
        title=[app.title for app in listed],
        released=none,
        updated=none,
        reviews=none,
        unhappy=none,
    )
    return Crawled(places, registry, KeywordFacts())


class Search:
    """Which apps hold all words of a term, the best match first."""

    def __init__(self, listed: list[Listed]) -> None:
        self._ratings = [app.ratings for app in listed]
        self._titles, self._texts = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
        for at, app in enumerate(listed):
            for word in tokens(app.title):
                self._titles[word].add(at)
            for begin in range(0, TEXT_CHARACTERS, TEXT_CHARACTERS // 2):
                for word in tokens(app.text[begin : begin + TEXT_CHARACTERS // 2]):
                    self._texts[word].add(at)

    def ranked(self, term: str) -> list[int]:
        words = term.split()
        holding = [self._titles[word] | self._texts[word] for word in words]
        found = set.intersection(*holding) if holding else set()
        return sorted(found, key=lambda at: (-self._worth(at, words), at))[:RESULTS]

    def _worth(self, at: int, words: list[str]) -> float:
        said = sum(TITLE_WORTH if at in self._titles[word] else 1.0 for word in words)
        return said + math.log10(1 + self._ratings[at])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
