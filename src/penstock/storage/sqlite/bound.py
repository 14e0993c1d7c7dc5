"""The most that can have happened: the largest sum over closed walks whose counters are the ones that were seen.

Every closed walk is made of cycles, so what was seen is a sum of cycles, each gone some number of times. Which sum
counts the most rows is a linear programme with one unknown for each cycle. It is solved exactly, in fractions, and the
cycles are not listed: the next one worth looking at is found as the heaviest way round. The answer also gives a price
for each counter that no cycle beats, and that is the proof: rows <= sum of price * counter, whatever the walk was.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

PIVOTS_MAX = 400  # far above what programs need; a solution that takes longer is given up, not waited for
ANSWERS_MAX = 16  # solved cases kept; one holds for all counters in its cone
_NEVER = -(10**15)  # the worth of leaving one of a counter unexplained
_NUDGE = Fraction(1, 10**12)  # each counter is moved by its own power of this, or the search might go in circles

Vector = tuple[int, ...]


class _Answer:
    """A basis of cycles: optimal for all counters that are a sum of these cycles, and an upper bound for any."""

    def __init__(self, inverse: list[list[Fraction]], worths: list[int], explained: list[bool]) -> None:
        self.shares = [_whole(row) for row in inverse]
        self.explained = explained
        size = range(len(inverse))
        prices = [sum((worths[row] * inverse[row][column] for row in size), Fraction(0)) for column in size]
        self.scale = lcm(*(price.denominator for price in prices))
        self.prices = [int(price * self.scale) for price in prices]

    def fits(self, counters: Vector) -> bool:
        for share, explained in zip(self.shares, self.explained, strict=True):
            found = sum(map(int.__mul__, share, counters))
            if found < 0 or (found and not explained):
                return False
        return True

    def most(self, counters: Vector) -> int:
        return sum(map(int.__mul__, self.prices, counters)) // self.scale


class Bound:
    """`arcs`: from, to, worth, counters; there are `size` counters."""

    def __init__(self, arcs: Sequence[tuple[int, int, int, Vector]], size: int) -> None:
        places = {place: number for number, place in enumerate(sorted({end for arc in arcs for end in arc[:2]}))}
        self._ends = [(places[source], places[target]) for source, target, _, _ in arcs]
        self._worths = [worth for _, _, worth, _ in arcs]
        self._counters = [counters for _, _, _, counters in arcs]
        self._places = len(places)
        self._size = size
        self._answers: list[_Answer] = []

    def most(self, counters: Vector) -> int | None:
        """The largest worth that fits the counters; None where no walk has them, or where there is no largest."""
        if not self._ends:
            return None
        for answer in self._answers:
            if answer.fits(counters):
                return answer.most(counters)
        if len(self._answers) >= ANSWERS_MAX:
            return min(answer.most(counters) for answer in self._answers)
        found = self._solve(counters)
        if found is None or not found.fits(counters):
            return None
        self._answers.append(found)
        return found.most(counters)

    def _solve(self, counters: Vector) -> _Answer | None:
        """The simplex method; it begins with every counter unexplained and takes in one cycle after another."""
        size = range(self._size)
        inverse = [[Fraction(row == column) for column in size] for row in size]
        amounts = [counters[row] + _NUDGE ** (row + 1) for row in size]
        worths = [_NEVER] * self._size
        explained = [False] * self._size
        for _ in range(PIVOTS_MAX):
            answer = _Answer(inverse, worths, explained)
            found = self._heavier(answer)
            if found is None:
                return answer
            worth, cycle = found
            shares = [sum((inverse[row][column] * cycle[column] for column in size), Fraction(0)) for row in size]
            rows = [row for row in size if shares[row] > 0]
            if not rows:
                return None
            leaves = min(rows, key=lambda row: amounts[row] / shares[row])
            _pivot(inverse, amounts, shares, leaves)
            worths[leaves], explained[leaves] = worth, True
        return None

    def _heavier(self, answer: _Answer) -> tuple[int, Vector] | None:
        """A cycle worth more than its counters cost at these prices, by relaxing arcs until none gives more."""
        weights = [
            worth * answer.scale - sum(map(int.__mul__, answer.prices, counters))
            for worth, counters in zip(self._worths, self._counters, strict=True)
        ]
        best = [0] * self._places
        by: list[int | None] = [None] * self._places
        arcs = [(number, source, target, weights[number]) for number, (source, target) in enumerate(self._ends)]
        for _ in range(self._places + 1):
            changed = False
            for number, source, target, weight in arcs:
                if best[source] + weight > best[target]:
                    best[target] = best[source] + weight
                    by[target] = number
                    changed = True
            if not changed:
                return None
            if cycle := self._cycle(by):
                columns = zip(*(self._counters[number] for number in cycle), strict=True)
                return sum(self._worths[number] for number in cycle), tuple(map(sum, columns))
        raise AssertionError("relaxing must end or close a cycle")

    def _cycle(self, by: list[int | None]) -> list[int]:
        seen = [0] * self._places
        for start in range(self._places):
            place, path = start, []
            while not seen[place] and (arc := by[place]) is not None:
                seen[place] = start + 1
                path.append(arc)
                place = self._ends[arc][0]
            if path and seen[place] == start + 1:
                closes = next(index for index, arc in enumerate(path) if self._ends[arc][1] == place)
                return path[closes:]
        return []


def _pivot(inverse: list[list[Fraction]], amounts: list[Fraction], shares: list[Fraction], leaves: int) -> None:
    inverse[leaves] = [value / shares[leaves] for value in inverse[leaves]]
    amounts[leaves] /= shares[leaves]
    for row, share in enumerate(shares):
        if row != leaves and share:
            inverse[row] = [a - share * b for a, b in zip(inverse[row], inverse[leaves], strict=True)]
            amounts[row] -= share * amounts[leaves]


def _whole(row: list[Fraction]) -> list[int]:
    """The row times a positive number that makes it whole: only its sign is asked for."""
    scale = lcm(*(value.denominator for value in row))
    return [int(value * scale) for value in row]
