"""Communities of keywords: the parts of the graph that hold together, small ones joined to their neighbour or left out.

They are pieces of markets rather than markets: which of them belong together is found out afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from penstock_systems.appstore.cluster.graph import Edges, Floats, Ints, sums
from penstock_systems.appstore.cluster.libraries import leiden

NONE = -1  # the community of a keyword that has none
SEED = 1  # the same graph gives the same communities
KEYWORDS_A_RESOLUTION = 100  # see `resolution_for`
RESOLUTION_MIN = 0.5  # below it everything that is tied at all grows together
KEYWORDS_MIN = 3  # a community has at least so many keywords


def resolution_for(keywords: int) -> float:
    """How finely to divide a graph of so many keywords.

    At a fixed resolution modularity finds ever larger communities in ever larger graphs. Raised with the number of keywords
    it finds pieces of some twenty keywords in a catalogue of a thousand of them and in one of 180,000. Pieces that are too
    small do no harm, since they are joined; what is too large is never parted again."""
    return max(RESOLUTION_MIN, keywords / KEYWORDS_A_RESOLUTION)


def communities(edges: Edges, keywords: int, *, resolution: float) -> Ints:
    """The community of each keyword. It begins from nothing each time: what is found depends on what was crawled, and not
    on what was found before."""
    labels = np.full(keywords, NONE, np.int32)
    if not len(edges.a):
        return labels
    names = [str(number) for number in range(keywords)]
    pairs = [
        (names[a], names[b], weight)
        for a, b, weight in zip(edges.a.tolist(), edges.b.tolist(), edges.weight.tolist(), strict=True)
    ]
    _, found = leiden(pairs, resolution=resolution, seed=SEED)
    for name, community in found.items():
        labels[int(name)] = community
    return numbered(without_small(labels, edges))


def without_small(labels: Ints, edges: Edges) -> Ints:
    """A community of too few keywords joins the one it is tied to most, the smallest first; tied to none, it is dropped."""
    labels = labels.copy()
    members: dict[int, list[int]] = defaultdict(list)
    for keyword in np.flatnonzero(labels != NONE).tolist():
        members[int(labels[keyword])].append(keyword)
    ties = _ties(labels, edges)
    for small in sorted((each for each in members if len(members[each]) < KEYWORDS_MIN), key=lambda c: len(members[c])):
        moving = members.pop(small)
        if len(moving) >= KEYWORDS_MIN:
            members[small] = moving  # others have joined it meanwhile
            continue
        tied = ties.pop(small, {})
        into = max(tied, key=lambda other: (tied[other], -other), default=NONE)
        labels[moving] = into
        if into != NONE:
            members[into] += moving
            _hand_over(ties, small, into, tied)
    return labels


def _ties(labels: Ints, edges: Edges) -> dict[int, dict[int, float]]:
    ties: dict[int, dict[int, float]] = defaultdict(dict)
    for a, b, weight in between(labels, edges):
        ties[a][b] = ties[b][a] = weight
    return ties


def _hand_over(ties: dict[int, dict[int, float]], small: int, into: int, tied: Mapping[int, float]) -> None:
    for other, weight in tied.items():
        ties[other].pop(small, None)
        if other != into:
            ties[into][other] = ties[other][into] = ties[into].get(other, 0.0) + weight


def between(labels: Ints, edges: Edges) -> list[tuple[int, int, float]]:
    """How strongly each two communities are tied, the smaller number first."""
    first, second = labels[edges.a], labels[edges.b]
    across = (first != second) & (first != NONE) & (second != NONE)
    low = np.minimum(first, second)[across].astype(np.int64)
    high = np.maximum(first, second)[across].astype(np.int64)
    size = int(labels.max(initial=0)) + 1
    pairs, places = np.unique(low * size + high, return_inverse=True)
    strength = sums(places, edges.weight[across], len(pairs))
    return list(zip((pairs // size).tolist(), (pairs % size).tolist(), strength.tolist(), strict=True))


def numbered(labels: Ints) -> Ints:
    """Communities counted from 0 in the order of their first keyword."""
    found, first, places = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.where(found == NONE, -1, first), kind="stable")
    number = np.empty(len(found), np.int32)
    number[order] = np.arange(len(found)) - int(NONE in found)
    renamed: Ints = number[places].astype(np.int32)
    return renamed


def cohesion(labels: Ints, edges: Edges) -> Floats:
    """How strongly each keyword is tied to its own community; the strongest of a community has 1."""
    inside = (labels[edges.a] == labels[edges.b]) & (labels[edges.a] != NONE)
    first, second = (sums(end[inside], edges.weight[inside], len(labels)) for end in (edges.a, edges.b))
    tied = first + second
    strongest = np.zeros(int(labels.max(initial=0)) + 1)
    member = labels != NONE
    np.maximum.at(strongest, labels[member], tied[member])
    relative = np.zeros(len(labels), np.float32)
    relative[member] = tied[member] / np.maximum(strongest[labels[member]], 1e-9)
    return relative
