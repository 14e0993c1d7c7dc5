"""Which new market is which old one: a market keeps its id while it is the same, whatever else is computed anew.

An old market goes on in the new one that holds most of its keywords. Of several that go on in the same one, the largest
part keeps its id and the others end: they merged. What else came out of it is a split: new ids, and its lineage, if half
of their keywords come from there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

SAME_SHARE = 0.5  # of the keywords of one of the two, for an old market to go on in a new one
DESCENT_SHARE = 0.5  # of a new market's keywords, for it to belong to the lineage of an old one

Kind = Literal["kept", "split", "new"]


@dataclass(frozen=True, slots=True)
class Known:
    """A market as it was."""

    lineage_id: int
    keywords: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a new market is. `overlap` is what it shares with where it comes from, of the keywords of both."""

    id: int
    lineage_id: int
    kind: Kind
    overlap: float = 0.0
    parent: int | None = None  # the market that it split from


@dataclass(frozen=True, slots=True)
class Ended:
    """A market that is no more. `into` is the one that holds most of what it was, if any does."""

    id: int
    into: int | None
    overlap: float


@dataclass(frozen=True, slots=True)
class Identities:
    new: list[Identity]  # in the order of the new markets
    ended: list[Ended]


def identities(
    known: Mapping[int, Known],
    membership: Iterable[tuple[int, str]],
    markets: Sequence[Sequence[str]],
    *,
    first_free: int,
) -> Identities:
    """`membership` are the old markets' keywords, `markets` those of each new one. New ids count from `first_free`."""
    shared = _shared(membership, markets)
    kept = _kept(known, markets, shared)
    ids = iter(range(first_free, first_free + len(markets)))
    new = [_identity(number, len(keywords), kept, known, shared, ids) for number, keywords in enumerate(markets)]
    going_on = {each.id for each in new}
    ended = [_ended(id, new, known, markets, shared) for id in sorted(known) if id not in going_on]
    return Identities(new, ended)


Shared = Mapping[int, Mapping[int, int]]  # new market, old market, how many keywords


def _shared(membership: Iterable[tuple[int, str]], markets: Sequence[Sequence[str]]) -> Shared:
    place = {keyword: number for number, keywords in enumerate(markets) for keyword in keywords}
    shared: dict[int, Counter[int]] = defaultdict(Counter)
    for id, keyword in membership:
        if keyword in place:
            shared[place[keyword]][id] += 1
    return shared


def _kept(known: Mapping[int, Known], markets: Sequence[Sequence[str]], shared: Shared) -> dict[int, int]:
    """The old id of each new market that has one, the pairs that share the most first."""
    pairs = [
        (count, _overlap(count, known[old].keywords, len(markets[new])), old, new)
        for new, olds in shared.items()
        for old, count in olds.items()
        if old in known and (count >= SAME_SHARE * known[old].keywords or count >= SAME_SHARE * len(markets[new]))
    ]
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, old, new in sorted(pairs, key=lambda pair: (-pair[0], -pair[1], pair[2], pair[3])):
        if new not in kept and old not in taken:
            kept[new] = old
            taken.add(old)
    return kept


def _identity(
    number: int, size: int, kept: Mapping[int, int], known: Mapping[int, Known], shared: Shared, ids: Iterator[int]
) -> Identity:
    olds = {old: count for old, count in shared.get(number, {}).items() if old in known}
    if number in kept:
        old = kept[number]
        return Identity(old, known[old].lineage_id, "kept", _overlap(olds[old], known[old].keywords, size))
    id = next(ids)
    parent = max(olds, key=lambda old: (olds[old], -old), default=None)
    if parent is not None and olds[parent] >= DESCENT_SHARE * size:
        overlap = _overlap(olds[parent], known[parent].keywords, size)
        return Identity(id, known[parent].lineage_id, "split", overlap, parent)
    return Identity(id, id, "new")


def _ended(
    id: int, new: Sequence[Identity], known: Mapping[int, Known], markets: Sequence[Sequence[str]], shared: Shared
) -> Ended:
    counts = {number: olds[id] for number, olds in shared.items() if id in olds}
    into = max(counts, key=lambda number: (counts[number], -number), default=None)
    if into is None:
        return Ended(id, None, 0.0)
    return Ended(id, new[into].id, _overlap(counts[into], known[id].keywords, len(markets[into])))


def _overlap(shared: int, one: int, other: int) -> float:
    return round(shared / max(1, one + other - shared), 4)
