"""The truth: what a client cannot see. For tests, for the line in a plot that it should find, and as a file to judge by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock_systems.standins.appstore.book import Book
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.manners import Limit
from penstock_systems.standins.appstore.markets import Market
from penstock_systems.standins.appstore.reviews import complaint_of


@dataclass(frozen=True, slots=True)
class Truth:
    limits: Mapping[str, Limit]  # by endpoint
    books: Mapping[str, Book]
    markets: tuple[Market, ...]

    def limit(self, endpoint: str, now: float) -> float:
        """The requests a second that one address may make at this moment; infinite without a limit."""
        limit = self.limits.get(endpoint)
        return limit.at(now) / limit.seconds if limit else float("inf")


def write_truth(catalogue: Catalogue, path: str | Path) -> None:
    """Which app belongs to which planted market, and where the openings are. A pipeline that reads it proves nothing."""
    head = {
        "seed": catalogue.seed,
        "apps": catalogue.apps,
        "markets": [_told(catalogue, market) for market in catalogue.markets],
    }
    with Path(path).open("w", encoding="utf-8") as file:
        file.write(msgspec.json.encode(head).decode()[:-1] + ',"market_of":{')
        lines = (f'\n"{track_id}":{msgspec.json.encode(name).decode()}' for track_id, name in market_of(catalogue))
        file.write(next(lines, ""))
        file.writelines(f",{line}" for line in lines)
        file.write("}}\n")


def market_of(catalogue: Catalogue) -> Iterator[tuple[int, str]]:
    """The track id of every app of a planted market, and the market's name."""
    for market in catalogue.markets:
        for position in range(market.apps):
            yield catalogue.track_id(catalogue.at(market, position)), market.name


def _told(catalogue: Catalogue, market: Market) -> dict[str, Any]:
    return {
        "name": market.name,
        "kind": market.kind,
        "niche": market.niche,
        "trap": market.trap,
        "climate": asdict(market.climate),
        "franchise": market.franchise,
        "apps": market.apps,
        "keywords": list(market.keywords),
        "genres": list(market.genres),
        "complaint": complaint_of(catalogue, market)[0],
        "near": [catalogue.fields[number].name for number in market.near],
    }
