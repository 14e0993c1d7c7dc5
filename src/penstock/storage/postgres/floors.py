"""Where claims begin to look. While an old snapshot is held, no entry of an index is cleaned away: every claim would
walk over all that were claimed since. So it starts a second before the newest it knows of, and once a second at the start.

Nothing is missed for long, whatever others do. A row that is due below the floor was saved late by another process, was
locked in a transaction that failed, or was moved by hand: the next look at everything finds it. That look comes a second
after the last one. It needs no other event: a queue that was looked at above its floor is never said to have nothing due
before then, nor are leases said to end later.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.message import PRIORITIES, NewMessage

BELOW_MICROS = 1_000_000  # how much later than its due time a row may be saved and still be found by every claim
EVERY_MICROS = 1_000_000  # everything is looked at so often, at most
SHARE = 50  # ... and a look at everything is this many times cheaper than what passes until the next
ENOUGH = 1_000  # rows that this process has taken from a queue before it has floors; fewer entries delay no claim
EVERYTHING: dict[int, int] = {}


class _KnownFloor:
    """What is known of one queue since everything in it was looked at."""

    def __init__(self, at: int, again: int, taken: int) -> None:
        self.taken = taken
        self.at = at
        self.again = again
        self.above = False  # whether the last look was above the floors
        self.floors: dict[int, int] = {}  # by priority


class Floors:
    def __init__(self) -> None:
        self._known: dict[str, _KnownFloor] = {}
        self._lapse: int | None = None
        self._again: int | None = None  # when to look at everything, if no look of this transaction did
        self._took = False  # whether this transaction claimed anything

    def begin(self) -> None:
        self._again, self._took = None, False

    def rolled_back(self) -> None:
        """What was claimed waits again, below the floors that its claim has raised."""
        if self._took:
            for known in self._known.values():
                known.again = 0

    def sent(self, rows: Sequence[NewMessage]) -> None:
        """A row is due when its handler sent it, and saved when that handler is done, which may be much later."""
        for row in rows if self._known else ():
            known = self._known.get(row.queue)
            if known is not None and row.due < known.floors.get(row.priority, 0):
                known.floors[row.priority] = row.due

    def of(self, queue: str, now: int) -> dict[int, int]:
        """Where to begin, by priority; EVERYTHING if it is time for that."""
        known = self._known.get(queue)
        if known is None or known.taken < ENOUGH or not known.at <= now < known.again:
            return EVERYTHING
        return known.floors

    def looked(
        self,
        queue: str,
        took: Sequence[tuple[int, int]],
        *,
        everything: bool,
        dry: bool,
        now: int,
        lease_end: int,
        seconds: float,
    ) -> None:
        """`took` are priorities and due times; `dry` is whether nothing is left above the floors."""
        known = self._known.get(queue)
        if known is None or everything:
            again = now + max(EVERY_MICROS, int(SHARE * seconds * 1_000_000))
            known = self._known[queue] = _KnownFloor(now, again, known.taken if known else 0)
        known.taken += len(took)
        known.above = not everything
        self._again = None if everything else known.again
        self._took = self._took or bool(took)
        for priority, due in took:
            known.floors[priority] = max(due - BELOW_MICROS, known.floors.get(priority, 0))
            self._lapse = lease_end if self._lapse is None else min(self._lapse, lease_end)
        if dry:
            known.floors = dict.fromkeys(PRIORITIES, now - BELOW_MICROS)

    def after(self, queue: str, now: int) -> tuple[list[int], int] | None:
        """The floors by which this queue was looked at last, and when everything is to be; None if everything was."""
        known = self._known.get(queue)
        if known is None or not known.above or not known.at <= now < known.again:
            return None
        return [known.floors.get(priority, 0) for priority in PRIORITIES], known.again

    def lapse_known(self) -> int | None:
        """When the first lease ends, as far as it need not be asked; None if it does."""
        if self._again is None:
            return None
        return self._again if self._lapse is None else min(self._lapse, self._again)

    def lapse_is(self, lapse: int | None) -> None:
        self._lapse = lapse
