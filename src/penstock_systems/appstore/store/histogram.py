"""Five counts of stars, whichever end they start from."""

from __future__ import annotations

from penstock_systems.appstore.store.facts import Ratings
from penstock_systems.appstore.store.values import whole

OFF_BY = 0.5  # stars: by so much a mean may miss the average that stands beside it


def ratings_of(
    counts: object, *, average: float | None, total: int | None = None, best_first: bool = True
) -> Ratings | None:
    """The histogram, one star first; None if it is none.

    The order is what it is said to be unless the average speaks against it and fits the other one.
    """
    if not isinstance(counts, list) or len(counts) != 5:
        return None
    read = [whole(count) for count in counts]
    numbers = [number for number in read if number is not None]
    if len(numbers) != 5:
        return None
    if best_first:
        numbers.reverse()
    one, two, three, four, five = numbers
    told = Ratings(sum(numbers), (one, two, three, four, five))
    turned = Ratings(sum(numbers), (five, four, three, two, one))
    if average is not None and not _fits(told, average) and _fits(turned, average):
        told = turned
    return Ratings(total, told.histogram) if total is not None else told


def _fits(ratings: Ratings, average: float) -> bool:
    mean = ratings.average
    return mean is None or abs(mean - average) <= OFF_BY
