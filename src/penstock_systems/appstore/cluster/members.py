"""The apps of each market: an app belongs where it is seen the most, and weighs what it is seen there."""

from __future__ import annotations

import numpy as np

from penstock_systems.appstore.cluster.communities import NONE
from penstock_systems.appstore.cluster.graph import Floats, Ints, Rankings, presence
from penstock_systems.appstore.cluster.libraries import sparse

PLACES_MIN = 3  # of an app in its market, unless all that it has are there
PLACES_FEW = 2


def members(rankings: Rankings, labels: Ints, told: Floats) -> tuple[Ints, Floats]:
    """The market of each app, and its weight there: the most visible app of a market has 1.

    Searches bring along what nobody asked for. So an app belongs to a market if it is seen there three times, or twice and
    nowhere else; before that it belongs nowhere."""
    belongs = np.full(rankings.apps, NONE, np.int32)
    weight = np.zeros(rankings.apps, np.float32)
    label = labels[rankings.keyword]
    used = label != NONE
    if not used.any():
        return belongs, weight
    seen = (presence(rankings.rank) * told[rankings.keyword])[used]
    where, shape = (rankings.app[used], label[used]), (rankings.apps, int(labels.max()) + 1)
    visible, places = (sparse.csr_matrix((each, where), shape=shape) for each in (seen, np.ones(len(seen), np.int32)))
    visible.sum_duplicates()
    places.sum_duplicates()
    app = np.repeat(np.arange(rankings.apps), np.diff(visible.indptr))
    # The most visible market of each app first; among equals the one with the smaller number.
    order = np.lexsort((visible.indices, -visible.data, app))
    apps, first = np.unique(app[order], return_index=True)
    best = order[first]
    here, everywhere = places.data[best], np.bincount(rankings.app, minlength=rankings.apps)[apps]
    sure = (here >= PLACES_MIN) | ((here >= PLACES_FEW) & (here == everywhere))
    apps, best = apps[sure], best[sure]
    belongs[apps] = visible.indices[best]
    weight[apps] = visible.data[best]
    strongest = np.zeros(shape[1], np.float32)
    np.maximum.at(strongest, belongs[apps], weight[apps])
    weight[apps] /= np.maximum(strongest[belongs[apps]], 1e-9)
    return belongs, weight
