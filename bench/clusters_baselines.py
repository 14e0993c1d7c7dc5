"""Two simpler ways to find markets, to measure the real one against: by genre alone, and by overlapping result lists."""

from __future__ import annotations

import numpy as np

from penstock_systems.appstore.cluster.communities import NONE, numbered
from penstock_systems.appstore.cluster.graph import Ints, Rankings
from penstock_systems.appstore.cluster.libraries import components, sparse
from penstock_systems.appstore.cluster.members import members

RANKS = 10  # of a keyword that are compared
OVERLAP = 0.3  # of the apps of two keywords, from which on they are joined


def by_genre(rankings: Rankings) -> Ints:
    """The market of each app is its genre."""
    return rankings.genre


def by_overlap(rankings: Rankings) -> Ints:
    """Keywords are joined if three in ten of their first ten apps are the same; what hangs together is a market."""
    top = rankings.rank <= RANKS
    keyword, app = rankings.keyword[top], rankings.app[top]
    shape = (rankings.keywords, rankings.apps)
    lists = sparse.csr_matrix((np.ones(len(keyword), np.float32), (keyword, app)), shape=shape)
    shared = (lists @ lists.T).tocoo()
    sizes = np.diff(lists.indptr)
    union = sizes[shared.row] + sizes[shared.col] - shared.data
    joined = shared.data >= OVERLAP * union
    graph = sparse.csr_matrix(
        (shared.data[joined], (shared.row[joined], shared.col[joined])), shape=(shape[0], shape[0])
    )
    labels = numbered(components(graph, directed=False)[1].astype(np.int32))
    found = members(rankings, np.where(sizes > 0, labels, NONE).astype(np.int32), np.ones(shape[0], np.float32))
    return found[0]
