"""The most that can have happened: the largest sum over closed walks whose counters are the ones that were seen.

Every closed walk is made of cycles, so what was seen is a sum of cycles, each gone some number of times. Which sum
counts the most rows is a linear programme with one unknown for each cycle. It is solved exactly, in whole numbers, and
the cycles are not listed: the next one worth looking at is found as a way round that is heavier than its price. The
answer gives a price for each counter that no cycle beats, and that is the proof: rows <= sum of price * counter,
whatever the walk was.
"""

from __future__ import annotations

from collections.abc import Sequence

PIVOTS_MAX = 400  # far above what programs need; a solution that takes longer is given up, not waited for
WORK_MAX = (
    1_500_000  # arcs looked at for one answer, a fraction of a second; a statement that needs more is given up too
)
ANSWERS_MAX = 16  # solved cases kept; one holds for all counters that are sums of the same cycles
_NEVER = -(10**15)  # the worth of leaving one of a counter unexplained

Vector = tuple[int, ...]


class Bound:
    """`arcs`: from, to, worth, counters; there are `size` counters."""

    def __init__(self, arcs: Sequence[tuple[int, int, int, Vector]], size: int) -> None:
        places = {place: number for number, place in enumerate(sorted({end for arc in arcs for end in arc[:2]}))}
        self._arcs = [(places[source], places[target], worth, counters) for source, target, worth, counters in arcs]
        self._places = len(places)
        self._size = size
        self._answers: list[_Basis] = []
        self._work = 0

    def most(self, counters: Vector) -> int | None:
        """The largest worth that fits the counters; None where no walk has them, or where there is no largest."""
        for answer in self._answers:
            if answer.explains(counters):
                return answer.most(counters)
        if len(self._answers) >= ANSWERS_MAX:
            return min(answer.most(counters) for answer in self._answers)
        found = self._solve(counters)
        if found is None or not found.explains(counters):
            return None
        self._answers.append(found)
        return found.most(counters)

    def _solve(self, counters: Vector) -> _Basis | None:
        """The simplex method: it begins with every counter unexplained and takes in one cycle after another."""
        basis = _Basis(self._size)
        self._work = 0
        for _ in range(PIVOTS_MAX if self._arcs else 0):
            cycle = self._heavier(basis)
            if cycle is None:
                return basis if self._work <= WORK_MAX else None
            worths, vectors = zip(*((self._arcs[arc][2], self._arcs[arc][3]) for arc in cycle), strict=True)
            if not basis.take_in(sum(worths), tuple(map(sum, zip(*vectors, strict=True))), counters):
                return None
        return None

    def _heavier(self, basis: _Basis) -> list[int] | None:
        """The arcs of a cycle worth more than its price, found by relaxing arcs until none gives more."""
        scale, prices = basis.scale, basis.prices()
        arcs = [
            (number, source, target, worth * scale - _product(prices, counters))
            for number, (source, target, worth, counters) in enumerate(self._arcs)
        ]
        best = [0] * self._places
        by: list[int | None] = [None] * self._places
        for _ in range(self._places + 1):
            changed = False
            self._work += len(arcs)
            if self._work > WORK_MAX:
                return None
            for number, source, target, weight in arcs:
                if best[source] + weight > best[target]:
                    best[target] = best[source] + weight
                    by[target] = number
                    changed = True
            if not changed:
                return None
            if cycle := self._cycle(by):
                return cycle
        raise AssertionError("relaxing must end or close a cycle")

    def _cycle(self, by: list[int | None]) -> list[int]:
        seen = [0] * self._places
        for start in range(self._places):
            place, path = start, []
            while not seen[place] and (arc := by[place]) is not None:
                seen[place] = start + 1
                path.append(arc)
                place = self._arcs[arc][0]
            if path and seen[place] == start + 1:
                closes = next(index for index, arc in enumerate(path) if self._arcs[arc][1] == place)
                return path[closes:]
        return []


class _Basis:
    """As many cycles as there are counters: the best for all counters they sum up to, and a bound for any.

    Kept is the inverse of the matrix they form, in whole numbers, times `scale`.
    """

    def __init__(self, size: int) -> None:
        self.scale = 1
        self._inverse = [[int(row == column) for column in range(size)] for row in range(size)]
        self._worths = [_NEVER] * size
        self._is_cycle = [False] * size

    def prices(self) -> list[int]:
        """What each counter is worth, times `scale`."""
        return [_product(self._worths, column) for column in zip(*self._inverse, strict=True)]

    def most(self, counters: Vector) -> int:
        return _product(self.prices(), counters) // self.scale

    def explains(self, counters: Vector) -> bool:
        amounts = [_product(row, counters) for row in self._inverse]
        return all(amount == 0 or (amount > 0 and cycle) for amount, cycle in zip(amounts, self._is_cycle, strict=True))

    def take_in(self, worth: int, cycle: Vector, counters: Vector) -> bool:
        """Puts a cycle in the place of the one that is used up first; False if none ever is."""
        shares = [_product(row, cycle) for row in self._inverse]
        leaves = None
        for row, share in enumerate(shares):
            if share > 0 and (leaves is None or self._sooner(row, leaves, shares, counters)):
                leaves = row
        if leaves is None:
            return False
        pivot, used = shares[leaves], self._inverse[leaves]
        for row, share in enumerate(shares):
            if row != leaves:
                changed = zip(self._inverse[row], used, strict=True)
                self._inverse[row] = [(pivot * a - share * b) // self.scale for a, b in changed]
        self.scale = pivot
        self._worths[leaves], self._is_cycle[leaves] = worth, True
        return True

    def _sooner(self, row: int, other: int, shares: list[int], counters: Vector) -> bool:
        """Ties are broken by the rows of the inverse, as if each counter were larger by a trifle of its own."""
        mine = (_product(self._inverse[row], counters), *self._inverse[row])
        theirs = (_product(self._inverse[other], counters), *self._inverse[other])
        for a, b in zip(mine, theirs, strict=True):
            if a * shares[other] != b * shares[row]:
                return a * shares[other] < b * shares[row]
        return False


def _product(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(map(int.__mul__, left, right))
