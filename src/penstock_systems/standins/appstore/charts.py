"""Charts: who leads a genre on a day. A slow drift and a daily jitter move the apps; where few buy, mostly jitter."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import islice

from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import bell, coded, share
from penstock_systems.standins.appstore.genres import APP_STORE, GAME_GENRES, GAMES, GENRES

ENTRIES_MAX = 200
CHARTING_SHARE = 0.4  # of a market; nobody downloads the others often enough for a chart
CANDIDATES_MAX = 340  # who can come into a chart at all
LOOKED_AT_MAX = 30_000  # apps of a genre, to find that many
CHARTS_KEPT = 512
DRIFT, DRIFT_DAYS = 0.4, 30  # measured on real charts: 94 % stay overnight, 80 % over 18 days
JITTER, JITTER_PAID = 0.1, 0.4

COLLECTIONS = {  # the feed's name: (what is listed, its title)
    "topfreeapplications": ("free", "Top Free Applications"),
    "toppaidapplications": ("paid", "Top Paid Applications"),
    "topgrossingapplications": ("grossing", "Top Grossing Applications"),
    "topfreeipadapplications": ("free", "Top Free iPad Applications"),
    "toppaidipadapplications": ("paid", "Top Paid iPad Applications"),
    "topgrossingipadapplications": ("grossing", "Top Grossing iPad Applications"),
    "newapplications": ("new", "New Applications"),
    "newfreeapplications": ("new free", "New Free Applications"),
    "newpaidapplications": ("new paid", "New Paid Applications"),
    # Nothing of this catalogue runs on a Mac, so these are empty.
    "topmacapps": ("mac", "Top Mac Applications"),
    "topfreemacapps": ("mac", "Top Free Mac Applications"),
    "toppaidmacapps": ("mac", "Top Paid Mac Applications"),
    "topgrossingmacapps": ("mac", "Top Grossing Mac Applications"),
}
IDS_ONLY = {  # the names at ws/charts
    "freeAppsV2": "free",
    "paidApplications": "paid",
    "appsByRevenue": "grossing",
    "freeIpadApplications": "free",
    "paidIpadApplications": "paid",
    "ipadAppsByRevenue": "grossing",
    "freeMacAppsV2": "mac",
    "toppaidmacapps": "mac",
}
POPULAR_IDS = {27: "free", 30: "paid", 38: "grossing", 44: "free", 47: "paid", 46: "grossing"}  # of the old client


class Charts:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._candidates = lru_cache(CHARTS_KEPT)(self._find_candidates)
        self.ranked = lru_cache(CHARTS_KEPT)(self._rank)

    def _rank(self, kind: str, genre: int, day: int, country: str) -> tuple[int, ...]:
        """The apps of a chart in order. A genre nobody knows is ignored, as Apple does."""
        catalogue = self._catalogue
        known = genre if genre in GENRES or genre in GAME_GENRES else APP_STORE
        # Made the night before: an app that left today is listed still.
        offered = [index for index in self._candidates(kind, known) if catalogue.offered(index, day - 1, country)]
        if kind.startswith("new"):
            sold = (index for index in offered if catalogue.exists(index))
            return tuple(sorted(sold, key=lambda index: -catalogue.life(index)[0])[:ENTRIES_MAX])
        jitter = JITTER_PAID if kind == "paid" and known != GAMES and known not in GAME_GENRES else JITTER
        scores = {
            index: self._drift(index, day, country)
            - math.log(rank + 1)
            + jitter * bell(catalogue.seed, 41, index, day, coded(country))
            for rank, index in enumerate(offered)
        }
        sold = (index for index in offered if catalogue.exists(index))
        ranked = sorted(sold, key=lambda index: -scores[index])[:ENTRIES_MAX]
        # A paid chart often comes with a few entries missing.
        return tuple(index for index in ranked if kind != "paid" or share(catalogue.seed, 42, index, day) > 0.02)

    def _drift(self, index: int, day: int, country: str) -> float:
        knot, rest = divmod(day, DRIFT_DAYS)
        before, after = (bell(self._catalogue.seed, 40, index, coded(country), knot + step) for step in (0, 1))
        return DRIFT * (before + (after - before) * rest / DRIFT_DAYS)

    def _find_candidates(self, kind: str, genre: int) -> tuple[int, ...]:
        part = 1.0 if kind.startswith("new") else CHARTING_SHARE
        looked_at = islice(self._catalogue.popular(genre, part), LOOKED_AT_MAX)
        return tuple(islice((index for index in looked_at if self._listed(kind, index)), CANDIDATES_MAX))

    def _listed(self, kind: str, index: int) -> bool:
        match kind:
            case "paid" | "new paid":
                return self._catalogue.price(index) > 0
            case "free" | "new free":
                return self._catalogue.price(index) == 0
            case "grossing":
                return self._catalogue.price(index) > 0 or bool(self._catalogue.app(index).purchases)
        return kind == "new"
