"""The graph of searches: two keywords are neighbours if the same apps rank for both, and those apps rank for little else.

Pure: arrays in, arrays out. A keyword and an app are their places in the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock_systems.appstore.cluster.libraries import sparse

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Matrix = Any  # a sparse one; scipy has no types

NEIGHBOURS_MAX = 10  # of one keyword: more blur the borders, and cost memory
APP_KEYWORDS_MAX = 300  # an app that ranks for more of them is everywhere, and tells no market from another
SIMILARITY_MIN = 0.02  # what is less alike is alike by chance
ONE_DEVELOPER = 0.5  # from this share of a keyword's places on it is a way to one developer, and to no market
BLOCK_PAIRS = 4_000_000  # numbers multiplied at once: what bounds the memory of a step
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Rankings:
    """Who ranks for what: one entry a place. `developer` and `genre` are numbers of the apps, -1 where nobody knows."""

    keyword: Ints
    app: Ints
    rank: Ints
    keywords: int
    apps: int
    developer: Ints
    genre: Ints


@dataclass(frozen=True, slots=True)
class Edges:
    """Pairs of neighbours, the smaller keyword first, each pair once, with how alike they are from 0 to 1."""

    a: Ints
    b: Ints
    weight: Floats


def presence(rank: Ints) -> Floats:
    """What a place is worth: the first 1, the third a half, the fifteenth a quarter."""
    worth: Floats = (1.0 / np.log2(1.0 + np.maximum(rank, 1))).astype(np.float32)
    return worth


def telling(rankings: Rankings) -> Floats:
    """How much each keyword tells of a market, from 0 to 1.

    Nothing, where one developer holds half of its places: it is a name. Little, where its apps come from all over the
    store, as with "tracker" or "daily". All, where they are of one genre."""
    worth = presence(rankings.rank)
    total = sums(rankings.keyword, worth, rankings.keywords)
    largest = _per_group(rankings.keyword, rankings.developer[rankings.app], worth, rankings.keywords).max(axis=1)
    named = np.asarray(largest.todense()).ravel() >= ONE_DEVELOPER * np.maximum(total, 1e-9)
    genres = _per_group(rankings.keyword, rankings.genre[rankings.app], worth, rankings.keywords)
    known = np.asarray(genres.sum(axis=1)).ravel()
    squares = np.asarray(genres.multiply(genres).sum(axis=1)).ravel()
    concentration = np.where(known > 0, squares / np.maximum(known, 1e-9) ** 2, 1.0)
    told: Floats = np.where(named, 0.0, concentration).astype(np.float32)
    return told


def neighbours(rankings: Rankings, told: Floats) -> Edges:
    """The nearest keywords of each: the cosine of their apps, where an app counts the more the fewer keywords it has."""
    rows = _profiles(rankings, told)
    first, second, weight = (np.concatenate(each) for each in zip(*_nearest(rows), strict=True))
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
    pairs, places = np.unique(low * rankings.keywords + high, return_index=True)
    return Edges(
        (pairs // rankings.keywords).astype(np.int32), (pairs % rankings.keywords).astype(np.int32), weight[places]
    )


def _profiles(rankings: Rankings, told: Floats) -> Matrix:
    """A row a keyword, as long as the keyword is telling: two that tell little are not much alike, whatever they share."""
    used = told[rankings.keyword] > 0
    keyword, app = rankings.keyword[used], rankings.app[used]
    places = np.bincount(app, minlength=rankings.apps)
    rarity = np.log1p(rankings.keywords / np.maximum(places, 1)) * (places <= APP_KEYWORDS_MAX)
    worth = presence(rankings.rank[used]) * rarity[app]
    shape = (rankings.keywords, rankings.apps)
    rows = sparse.csr_matrix((worth.astype(np.float32), (keyword, app)), shape=shape)
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(told, length, out=np.zeros_like(told), where=length > 0)
    profiles = (sparse.diags(scale.astype(np.float32)) @ rows).tocsr()
    profiles.eliminate_zeros()
    return profiles


def _nearest(rows: Matrix) -> Iterator[tuple[Ints, Ints, Floats]]:
    """The best neighbours of each keyword, a block of keywords at a time."""
    across = rows.T.tocsr()
    yield np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)
    for start, end in _blocks(rows, across):
        alike = (rows[start:end] @ across).tocsr()
        alike.sort_indices()
        first = np.repeat(np.arange(start, end, dtype=np.int32), np.diff(alike.indptr))
        second, weight = alike.indices, alike.data
        kept = (first != second) & (weight >= SIMILARITY_MIN)
        first, second, weight = first[kept], second[kept], weight[kept]
        # The most alike first; among equals the earlier keyword, so that the same input gives the same graph. One number
        # that holds both keyword and likeness sorts many times faster than two.
        order = np.argsort(first - 0.5 * weight.astype(np.float64), kind="stable")
        first, second, weight = first[order], second[order], weight[order]
        begins = np.searchsorted(first, np.arange(start, end))
        best = np.arange(len(first)) - begins[first - start] < NEIGHBOURS_MAX
        yield first[best], second[best].astype(np.int32), weight[best]


def _blocks(rows: Matrix, across: Matrix) -> Iterator[tuple[int, int]]:
    """Cuts the keywords so that no block multiplies more pairs than memory is meant for."""
    pairs = np.diff(across.indptr)[rows.indices].astype(np.int64)
    until = np.concatenate(([0], np.cumsum(pairs)))[rows.indptr]
    start = 0
    while start < rows.shape[0]:
        end = max(start + 1, int(np.searchsorted(until, until[start] + BLOCK_PAIRS, side="right")) - 1)
        yield start, end
        start = end


def sums(places: npt.NDArray[np.integer[Any]], worth: Floats, size: int) -> npt.NDArray[np.float64]:
    """What is at each place, added up."""
    return np.bincount(places, weights=worth, minlength=size).astype(np.float64)


def _per_group(keyword: Ints, group: Ints, worth: Floats, keywords: int) -> Matrix:
    """How much of each keyword belongs to each developer or genre; what is unknown belongs to none."""
    known = group != UNKNOWN
    groups = int(group.max(initial=0)) + 1
    return sparse.csr_matrix((worth[known], (keyword[known], group[known])), shape=(keywords, groups))
