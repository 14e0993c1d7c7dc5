"""Joins small communities into markets: those whose keywords find the same apps, however large the market becomes.

A search for one word of a large market shows other apps than one for the next word, so the graph of keywords falls into many
pieces there, and into few where a market is small. Taken together, the keywords of a piece show which apps it is about, and
by those the pieces of one market are recognised. An app that a piece shows only once may be there by chance, and is not
counted.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from penstock_systems.appstore.cluster.communities import NONE, numbered
from penstock_systems.appstore.cluster.graph import Floats, Ints, Matrix, Rankings, presence
from penstock_systems.appstore.cluster.libraries import sparse

ALIKE = 0.15  # pieces that are more alike than this, on average, are one market
PLACES_MIN = 2  # of an app in a piece, for it to count
FAINT = 0.01  # likenesses below it are taken for none, which keeps the work small


def joined(rankings: Rankings, labels: Ints, told: Floats) -> Ints:
    """The market of each keyword, given its piece."""
    pieces = int(labels.max(initial=NONE)) + 1
    if pieces < 2:
        return labels
    market = grouped(_likeness(rankings, labels, told, pieces), pieces)
    return numbered(np.where(labels == NONE, NONE, np.array(market, np.int32)[labels]).astype(np.int32))


def grouped(alike: dict[int, dict[int, float]], pieces: int) -> list[int]:
    """The group of each piece: the two that are most alike are joined again and again, until none are alike enough.

    Two groups are as alike as their pieces are on average. `alike` is used up."""
    size = [1] * pieces
    group = list(range(pieces))
    waiting = [(-value, a, b) for a, others in alike.items() for b, value in others.items() if a < b and value >= ALIKE]
    heapq.heapify(waiting)
    while waiting:
        value, a, b = heapq.heappop(waiting)
        if alike.get(a, {}).get(b) != -value:
            continue  # one of them has been joined to another since
        group[b] = a
        total = size[a] + size[b]
        of_a, of_b = alike.pop(a), alike.pop(b)
        now: dict[int, float] = {}
        for other in sorted((of_a.keys() | of_b.keys()) - {a, b}):
            mean = (size[a] * of_a.get(other, 0.0) + size[b] * of_b.get(other, 0.0)) / total
            alike[other].pop(b, None)
            now[other] = alike[other][a] = mean
            if mean >= ALIKE:
                heapq.heappush(waiting, (-mean, min(a, other), max(a, other)))
        alike[a], size[a] = now, total
    return [_root(group, piece) for piece in range(pieces)]


def _root(group: list[int], piece: int) -> int:
    while group[piece] != piece:
        piece = group[piece]
    return piece


def _likeness(rankings: Rankings, labels: Ints, told: Floats, pieces: int) -> dict[int, dict[int, float]]:
    """The cosine of what each two pieces show, where an app counts the more the fewer pieces show it."""
    shown = _shown(rankings, labels, told, pieces)
    holders = np.bincount(shown.indices, minlength=rankings.apps)
    shown = shown @ sparse.diags(np.log1p(pieces / np.maximum(holders, 1)))
    length = np.sqrt(np.asarray(shown.multiply(shown).sum(axis=1)).ravel())
    shown = (sparse.diags(1.0 / np.maximum(length, 1e-9)) @ shown).tocsr()
    both = (shown @ shown.T).tocoo()
    kept = (both.row != both.col) & (both.data >= FAINT)
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for a, b, value in zip(both.row[kept].tolist(), both.col[kept].tolist(), both.data[kept].tolist(), strict=True):
        found[a][b] = value
    return found


def _shown(rankings: Rankings, labels: Ints, told: Floats, pieces: int) -> Matrix:
    """How visible each app is in each piece. The root takes the edge off those that are at the top of everything."""
    piece = labels[rankings.keyword]
    used = piece != NONE
    where, shape = (piece[used], rankings.app[used]), (pieces, rankings.apps)
    worth = (presence(rankings.rank) * told[rankings.keyword])[used]
    visible = sparse.csr_matrix((worth.astype(np.float64), where), shape=shape)
    places = sparse.csr_matrix((np.ones(len(worth)), where), shape=shape)
    visible.sum_duplicates()
    places.sum_duplicates()
    # Both have the same entries in the same order.
    visible.data = np.sqrt(visible.data) * (places.data >= PLACES_MIN)
    visible.eliminate_zeros()
    return visible
