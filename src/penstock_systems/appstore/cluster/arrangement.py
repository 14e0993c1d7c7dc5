"""What was crawled, arranged for arithmetic: keywords and apps by number, in an order that no database has a say in."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock_systems.appstore import scores
from penstock_systems.appstore.cluster.crawled import Crawled, KeywordFacts, Registry
from penstock_systems.appstore.cluster.graph import UNKNOWN, Ints, Rankings
from penstock_systems.appstore.cluster.titles import Said, said
from penstock_systems.appstore.founder import Rival

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arranged:
    """The rankings, and what is known of each keyword and each app in them, by their numbers."""

    rankings: Rankings
    keywords: list[str]
    track_ids: Longs
    demand: Doubles  # how much each keyword is wanted
    ratings: Longs
    stars: Doubles
    velocity: Doubles
    scored: Doubles  # how hard each app is to compete with, where the agent has come to it
    said: Said  # the words in the apps' titles
    titles: list[str]
    released: Longs
    updated: Longs
    reviews: Longs
    unhappy: Longs
    facts: KeywordFacts
    today: int

    def rivals(self, apps: Longs) -> list[Rival]:
        """What the founder's scores are made of."""
        columns = (self.track_ids, self.ratings, self.stars, self.velocity, self.released, self.updated)
        counts = (self.reviews, self.unhappy)
        return [
            Rival(
                track_id,
                ratings,
                _or_none(stars) if ratings else None,
                _or_none(velocity),
                self.today - released if released else None,
                self.today - updated if updated else None,
                reviews,
                unhappy,
            )
            for track_id, ratings, stars, velocity, released, updated, reviews, unhappy in zip(
                *(column[apps].tolist() for column in (*columns, *counts)), strict=True
            )
        ]

    def strengths(self, apps: Longs) -> list[float]:
        """How hard these apps are to compete with. One that the agent has not come to yet is scored by the same formula."""
        known = self.scored[apps].tolist()
        facts = zip(self.ratings[apps].tolist(), self.stars[apps].tolist(), self.velocity[apps].tolist(), strict=True)
        return [
            scores.competitiveness(ratings, _or_none(stars), _or_none(velocity)) if isnan(score) else score
            for score, (ratings, stars, velocity) in zip(known, facts, strict=True)
        ]


def arranged(crawled: Crawled) -> Arranged:
    places = crawled.places
    order = sorted(range(len(places.keywords)), key=places.keywords.__getitem__)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    track_ids, app = np.unique(_numbers(places.track_id), return_inverse=True)
    apps = _Apps(crawled.registry, track_ids)
    rankings = Rankings(
        keyword=number[_numbers(places.keyword)],
        app=app.astype(np.int32),
        rank=_numbers(places.rank).astype(np.int32),
        keywords=len(order),
        apps=len(track_ids),
        developer=_counted(apps.of("developer", UNKNOWN)),
        genre=_counted(apps.of("genre", UNKNOWN)),
    )
    keywords = [places.keywords[each] for each in order]
    ratings: Longs = apps.of("ratings", 0)
    demand = _demand(keywords, crawled.keywords.demand, rankings, ratings)
    stars, velocity, scored = (apps.of(column, np.nan) for column in ("stars", "velocity", "score"))
    titles = apps.titles()
    words = said(titles, rankings.developer)
    days = (apps.of(column, 0) for column in ("released", "updated", "reviews", "unhappy"))
    known = (titles, *days, crawled.keywords, crawled.today)
    return Arranged(rankings, keywords, track_ids, demand, ratings, stars, velocity, scored, words, *known)


class _Apps:
    """Columns of the registry, in the order of the apps that rank."""

    def __init__(self, registry: Registry, track_ids: Longs) -> None:
        self._registry = registry
        listed = _numbers(registry.track_id)
        self._at = np.minimum(np.searchsorted(listed, track_ids), max(0, len(listed) - 1))
        # An app may rank before the registry has it: nothing is known of it then.
        self._known = listed[self._at] == track_ids if len(listed) else np.zeros(len(track_ids), bool)

    def of(self, column: str, missing: float) -> Any:
        values = _numbers(getattr(self._registry, column))
        if not len(values):  # a registry of a test may leave a column out
            return np.full(len(self._at), missing, values.dtype)
        found = np.full(len(self._at), missing, values.dtype)
        found[self._known] = values[self._at[self._known]]
        return found

    def titles(self) -> list[str]:
        listed = self._registry.title
        return [listed[at] if known else "" for at, known in zip(self._at.tolist(), self._known.tolist(), strict=True)]


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value


def _demand(keywords: list[str], known: dict[str, float], rankings: Rankings, ratings: Longs) -> Doubles:
    """What the demand agent found; for a keyword that it has not come to yet, what it will find."""
    order = np.lexsort((rankings.rank, rankings.keyword))
    begins = np.searchsorted(rankings.keyword[order], np.arange(len(keywords) + 1)).tolist()
    ranked = ratings[rankings.app[order]]
    return np.array(
        [
            known[keyword]
            if keyword in known
            else scores.demand(ranked[begins[at] : min(begins[at] + scores.RANKS_COUNTED, begins[at + 1])].tolist())
            for at, keyword in enumerate(keywords)
        ],
        np.float64,
    )


def _numbers(column: array[Any]) -> Any:
    return np.frombuffer(column, np.float64 if column.typecode == "d" else np.int64)


def _counted(ids: Longs) -> Ints:
    """Numbers from 0 on instead of ids; the unknown stays unknown."""
    known = ids != UNKNOWN
    numbers = np.full(len(ids), UNKNOWN, np.int32)
    numbers[known] = np.unique(ids[known], return_inverse=True)[1]
    return numbers
