"""The words in the titles of apps: what an app says it is, also one that hardly any search shows."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock_systems.appstore.cluster.graph import UNKNOWN, Ints, Matrix
from penstock_systems.appstore.cluster.libraries import sparse
from penstock_systems.appstore.keywords import tokens, words

DEVELOPERS_MIN = 2  # in whose titles a word is, for it to be more than a name


@dataclass(frozen=True, slots=True)
class Said:
    """A row an app, a column a word: 1 where the word is in the app's title."""

    words: list[str]
    titles: Matrix
    developers: Ints  # how many of them have each word in a title

    @property
    def common(self) -> frozenset[str]:
        """The words that several developers have in a title: what is in none, or only one's, is a brand."""
        told = zip(self.words, self.developers.tolist(), strict=True)
        return frozenset(word for word, developers in told if developers >= DEVELOPERS_MIN)


def said(titles: Iterable[str], developer: Ints) -> Said:
    """An app whose developer nobody knows counts as one of its own."""
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__  # a new word gets the next number
    column, ends = array("i"), array("q", [0])
    for title in titles:
        column.extend(map(number.__getitem__, tokens(title)))
        ends.append(len(column))
    matrix = sparse.csr_matrix(
        (np.ones(len(column), np.float32), np.frombuffer(column, np.int32), np.frombuffer(ends, np.int64)),
        shape=(len(ends) - 1, len(number)),
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    known = list(number)
    developers = _developers(matrix, developer)
    for at in np.flatnonzero(developers >= DEVELOPERS_MIN).tolist():
        if not words(known[at]):
            developers[at] = 0  # it says nothing, such as "the"
    return Said(known, matrix, developers)


def _developers(titles: Matrix, developer: Ints) -> Ints:
    apps, known = titles.shape
    own = np.where(developer == UNKNOWN, int(developer.max(initial=0)) + 1 + np.arange(apps), developer).astype(
        np.int64
    )
    app = np.repeat(np.arange(apps), np.diff(titles.indptr))
    pairs = np.unique(titles.indices.astype(np.int64) * (int(own.max(initial=0)) + 1) + own[app])
    counted: Ints = np.bincount(pairs // (int(own.max(initial=0)) + 1), minlength=known).astype(np.int32)
    return counted
