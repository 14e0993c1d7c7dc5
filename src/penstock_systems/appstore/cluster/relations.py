"""Who a market's neighbours are, and what it came from or went into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from penstock_systems.appstore.cluster.identity import Identities

NEIGHBOURS_MAX = 5  # of one market
WEIGHT_MIN = 0.001  # less is no neighbourhood

Kind = Literal["neighbour", "split", "merge"]


class Relation(NamedTuple):
    """`a` and `b` are neighbours; or `a` split from `b`; or `a` merged into `b`."""

    a: int
    b: int
    kind: Kind
    weight: float


def nearest(ties: Iterable[tuple[int, int, float]], sizes: Sequence[float]) -> list[tuple[int, int, float]]:
    """The nearest of each market: what ties the two, of all that ties keywords in either."""
    close = {(a, b): round(weight / max(1e-9, (sizes[a] * sizes[b]) ** 0.5), 4) for a, b, weight in ties if weight > 0}
    of: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for (a, b), weight in close.items():
        if weight >= WEIGHT_MIN:
            of[a].append((-weight, a, b))
            of[b].append((-weight, a, b))
    kept = {(a, b) for pairs in of.values() for _, a, b in sorted(pairs)[:NEIGHBOURS_MAX]}
    return [(a, b, close[a, b]) for a, b in sorted(kept)]


def relations(near: Iterable[tuple[int, int, float]], found: Identities) -> list[Relation]:
    """What this run found. Neighbours are today's; where markets came from and went stays true for ever."""
    ids = [each.id for each in found.new]
    today = [Relation(min(ids[a], ids[b]), max(ids[a], ids[b]), "neighbour", weight) for a, b, weight in near]
    today += [Relation(each.id, each.parent, "split", each.overlap) for each in found.new if each.parent is not None]
    today += [Relation(each.id, each.into, "merge", each.overlap) for each in found.ended if each.into is not None]
    return sorted(today)
