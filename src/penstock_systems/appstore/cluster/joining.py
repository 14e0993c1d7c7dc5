"""Joins small communities into markets: those whose keywords find the same apps, however large the market becomes.

A search for one word of a large market shows other apps than one for the next word, so the graph of keywords falls into many
pieces there, and into few where a market is small. Taken together, the keywords of a piece show which apps it is about, and
by those the pieces of one market are recognised. Joined, they show more of its apps, so that what was joined is compared
anew, until nothing more is alike. An app that a piece shows once or twice may be there by chance, and is not counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock_systems.appstore.cluster.communities import NONE, numbered
from penstock_systems.appstore.cluster.graph import Floats, Ints, Matrix, Rankings, presence
from penstock_systems.appstore.cluster.libraries import sparse

ALIKE = 0.28  # pieces that are more alike than this, on average, are one market
PLACES_MIN = 3  # of an app in a piece, for it to count
FAINT = 0.02  # likenesses below it are taken for none, which keeps the work small


def joined(rankings: Rankings, labels: Ints, told: Floats) -> Ints:
    """The market of each keyword, given its piece."""
    while (pieces := int(labels.max(initial=NONE)) + 1) > 1:
        market = grouped(_likeness(_shown(rankings, labels, told, pieces)))
        if int(market.max()) + 1 == pieces:
            break
        labels = numbered(np.where(labels == NONE, NONE, market[labels]).astype(np.int32))
    return labels


def grouped(alike: Matrix) -> Ints:
    """The group of each piece: the two groups that are most alike are joined again and again, until none are alike enough.

    Two groups are as alike as their pieces are on average. Joined in a round are all pairs of which each is the other's
    nearest: that leads to the same groups as one pair after the other, in a dozen rounds instead of thousands."""
    group: Ints = np.arange(alike.shape[0], dtype=np.int32)
    size = np.ones(alike.shape[0])
    while len(pairs := _mutual(_mean(alike, size))):
        number = np.arange(len(size), dtype=np.int32)
        number[pairs[:, 1]] = pairs[:, 0]
        number = np.unique(number, return_inverse=True)[1].astype(np.int32)
        group = number[group]
        into = sparse.csr_matrix((np.ones(len(number)), (number, np.arange(len(number)))))
        size = np.bincount(number, weights=size)
        alike = (into @ alike @ into.T).tocsr()
    return group


def _mean(alike: Matrix, size: Matrix) -> Matrix:
    """From sums over pairs of pieces to means, without what a group has with itself."""
    mean = alike.tocoo()
    other = mean.row != mean.col
    row, column = mean.row[other], mean.col[other]
    data = mean.data[other] / (size[row] * size[column])
    means = sparse.csr_matrix((data, (row, column)), shape=alike.shape)
    means.sort_indices()
    return means


def _mutual(means: Matrix) -> npt.NDArray[np.int64]:
    """Pairs of which each is the other's nearest, the smaller first; of several that are as near, the first counts."""
    row = np.repeat(np.arange(means.shape[0]), np.diff(means.indptr))
    highest = np.full(means.shape[0], -1.0)
    np.maximum.at(highest, row, means.data)
    top = (means.data == highest[row]) & (means.data >= ALIKE)
    rows, first = np.unique(row[top], return_index=True)
    nearest = np.full(means.shape[0], NONE)
    nearest[rows] = means.indices[top][first]
    found = [(a, b) for a, b in zip(rows.tolist(), nearest[rows].tolist(), strict=True) if a < b and nearest[b] == a]
    return np.array(found, np.int64).reshape(-1, 2)


def _likeness(shown: Matrix) -> Matrix:
    """The cosine of what each two pieces show, where an app counts the more the fewer pieces show it."""
    pieces, apps = shown.shape
    holders = np.bincount(shown.indices, minlength=apps)
    shown = shown @ sparse.diags(np.log1p(pieces / np.maximum(holders, 1)))
    length = np.sqrt(np.asarray(shown.multiply(shown).sum(axis=1)).ravel())
    shown = (sparse.diags(1.0 / np.maximum(length, 1e-9)) @ shown).tocsr()
    both = (shown @ shown.T).tocsr()
    both.data[both.data < FAINT] = 0.0
    both.eliminate_zeros()
    return both


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
