"""Where an app belongs, from all that is known of it: the searches that show it, the words of its title, and its genre.

Searches alone say little of an app that ranks twice. But of the apps that rank often it is known to which market they belong,
and so which words, genres and searches the apps of a market have. Each app is put where what it has is the likeliest: all of
them, since one that is often seen next door is known by its title too. Then it is learned and decided once more, with what
all the apps have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock_systems.appstore.cluster.communities import NONE
from penstock_systems.appstore.cluster.graph import Floats, Ints, Matrix, Rankings, presence
from penstock_systems.appstore.cluster.libraries import sparse
from penstock_systems.appstore.cluster.titles import DEVELOPERS_MIN, Said

ROUNDS = 2
DOUBT = 8.0  # a market is taken to be like all others until it has more apps than this
PLACE_WORTH = 3.0  # of a first place for a keyword that tells all; a word in a title is worth 1
WORD_MARKETS_MAX = 300  # a word that is in more of them tells none from another
SIGN_MARKETS_MAX = 30  # of one sign, those that have it most often: in the others it is taken for absent
BLOCK_APPS = 50_000  # decided at once: what bounds the memory of a step
WEIGHT_LEAST = 1e-4  # of an app in its market, also where no search shows it there

Doubles = npt.NDArray[np.float64]


def placed(rankings: Rankings, labels: Ints, told: Floats, sure: Ints, said: Said) -> tuple[Ints, Floats]:
    """The market of each app, and its weight there: the most visible app of a market has 1.

    `sure` are those that searches alone have placed. Another one is placed if more speaks for a market than against it."""
    markets = int(labels.max(initial=NONE)) + 1
    shown = _shown(rankings, labels, told, markets)
    belongs = sure
    if markets:
        known = _Known.of(rankings, shown, said, sure)
        for _ in range(ROUNDS):
            belongs = _decided(known, _learned(known, belongs, markets), sure)
    return belongs, _weights(shown, belongs, markets)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of each app: `signs` are a column each, the words of titles first and then the markets it is seen in."""

    signs: Matrix
    genre: Ints
    genres: int

    @classmethod
    def of(cls, rankings: Rankings, shown: Matrix, said: Said, sure: Ints) -> _Known:
        spread = np.diff((said.titles.T @ _member(sure, shown.shape[1])).tocsr().indptr)
        words = np.flatnonzero((said.developers >= DEVELOPERS_MIN) & (spread <= WORD_MARKETS_MAX))
        signs = sparse.hstack([said.titles[:, words].astype(np.float64), PLACE_WORTH * shown], format="csr")
        return cls(signs, rankings.genre, int(rankings.genre.max(initial=NONE)) + 1)


@dataclass(frozen=True, slots=True)
class _Learned:
    """How much likelier each sign and each genre is in each market than in all, as logarithms, beyond what is `absent`.

    What no app of a market has is the less likely there the more apps the market has, whatever it is."""

    signs: Matrix
    genres: Doubles
    absent: Doubles


def _learned(known: _Known, belongs: Ints, markets: int) -> _Learned:
    apps = np.flatnonzero(belongs != NONE)
    size = np.bincount(belongs[apps], minlength=markets).astype(np.float64)
    signs = (known.signs.T @ _member(belongs, markets)).tocsr()
    usual = np.asarray(signs.sum(axis=1)).ravel() / max(1, len(apps))
    signs = _commonest(signs)
    signs.data = np.log1p(signs.data / (DOUBT * np.repeat(usual, np.diff(signs.indptr))))
    told = apps[known.genre[apps] != NONE]
    cell = known.genre[told].astype(np.int64) * markets + belongs[told]
    # The last row is for the one that nobody knows.
    genres = np.bincount(cell, minlength=(known.genres + 1) * markets).reshape(-1, markets).astype(np.float64)
    expected = DOUBT * genres.sum(axis=1, keepdims=True) / max(1, len(apps))
    return _Learned(signs, np.log1p(genres / np.maximum(expected, 1e-9)), np.log(DOUBT / (size + DOUBT)))


def _member(belongs: Ints, markets: int) -> Matrix:
    apps = np.flatnonzero(belongs != NONE)
    return sparse.csr_matrix((np.ones(len(apps)), (apps, belongs[apps])), shape=(len(belongs), markets))


def _commonest(signs: Matrix) -> Matrix:
    """The markets that have a sign most often; among equals those with the smaller number."""
    row = np.repeat(np.arange(signs.shape[0]), np.diff(signs.indptr))
    order = np.lexsort((signs.indices, -signs.data, row))
    kept = np.sort(order[np.arange(len(order)) - signs.indptr[row] < SIGN_MARKETS_MAX])
    return sparse.csr_matrix((signs.data[kept], (row[kept], signs.indices[kept])), shape=signs.shape)


def _decided(known: _Known, learned: _Learned, sure: Ints) -> Ints:
    """The likeliest market of each app, of those that any of its signs point to."""
    belongs = sure.copy()
    for start in range(0, len(sure), BLOCK_APPS):
        rows = slice(start, min(start + BLOCK_APPS, len(sure)))
        signs, genre = known.signs[rows], known.genre[rows]
        likely = (signs @ learned.signs).tocsr()
        likely.sort_indices()
        many = np.diff(likely.indptr)
        app, market = np.repeat(np.arange(len(many)), many), likely.indices
        weight = np.asarray(signs.sum(axis=1)).ravel() + (genre != NONE)
        # The genre that nobody knows comes last, and is as likely everywhere.
        score = likely.data + weight[app] * learned.absent[market] + learned.genres[genre[app], market]
        seen = np.flatnonzero(many)  # the others have no sign, and so no place in `score`
        highest = np.repeat(np.maximum.reduceat(score, likely.indptr[seen]), many[seen]) if len(seen) else score
        top = np.flatnonzero(score == highest)
        # Among equals the market with the smaller number.
        apps, first = np.unique(app[top], return_index=True)
        best = top[first]
        found = (score[best] > 0) | (sure[rows][apps] != NONE)
        belongs[start + apps[found]] = market[best][found]
    return belongs


def _shown(rankings: Rankings, labels: Ints, told: Floats, markets: int) -> Matrix:
    """How visible each app is in each market."""
    label = labels[rankings.keyword]
    used = label != NONE
    seen = (presence(rankings.rank) * told[rankings.keyword])[used].astype(np.float64)
    shown = sparse.csr_matrix((seen, (rankings.app[used], label[used])), shape=(rankings.apps, markets))
    shown.sum_duplicates()
    return shown


def _weights(shown: Matrix, belongs: Ints, markets: int) -> Floats:
    weight = np.zeros(len(belongs), np.float32)
    app = np.repeat(np.arange(len(belongs)), np.diff(shown.indptr))
    here = shown.indices == belongs[app]
    weight[app[here]] = shown.data[here]
    inside = belongs != NONE
    strongest = np.zeros(markets, np.float32)
    np.maximum.at(strongest, belongs[inside], weight[inside])
    weight[inside] = np.maximum(weight[inside] / np.maximum(strongest[belongs[inside]], 1e-9), WEIGHT_LEAST)
    return weight
