"""Kills workers where it hurts most, and keeps a record: where each one was, what it held, when that was delivered again."""

from __future__ import annotations

import math
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from penstock.contracts.running_handlers import RunningHandler
from tests.crash.harness import Site, Victim
from tests.crash.journal import Entry
from tests.crash.lookout import Place, RunningList
from tests.crash.oracle import Oracle

AIM_SECONDS = 0.4  # a worker that does not get to the wished place by then is killed where it is
PATIENT_SECONDS = 3.0  # the same while too few kills hit a handler
FALL_SECONDS = 3.0  # the same for one that is to kill itself
ANYWHERE_SECONDS = 0.2  # about as long as a start takes
AIMS = {"handler": 40, "processor": 20, "commit": 30, "anywhere": 10}  # how often each is wished for


Aim = Callable[[RunningList], bool]


@dataclass(frozen=True)
class Kill:
    at: float
    pid: int
    worker: int  # 0 if it died before it had a number
    place: Place
    in_commit: bool
    held: frozenset[str]  # ids of the messages that the worker had claimed and not settled
    running: tuple[RunningHandler, ...] = ()
    point: str = ""  # the crash point at which it killed itself


def hit_a_handler(kill: Kill) -> bool:
    return kill.place in (Place.IN_HANDLER, Place.ON_PROCESSOR)


@dataclass
class Killer:
    site: Site
    oracle: Oracle
    random: Random
    is_hit: Callable[[Kill], bool] = hit_a_handler
    kills: list[Kill] = field(default_factory=list)

    def is_done(self, kills: int) -> bool:
        """There were so many, half of them or more with a handler in flight; or twice as many, and it cannot aim."""
        return len(self.kills) >= (kills * 2 if self.misses() else kills)

    def misses(self) -> bool:
        """Too few of the kills hit a handler so far: left to chance, a few kills on a slow machine prove little."""
        return self.hits() * 2 < len(self.kills)

    def hits(self) -> int:
        return sum(map(self.is_hit, self.kills))

    def kill(self, victim: Victim, aim: str | Aim | None = None) -> Kill:
        """Where it is wished for: at one of the places, or once the list of running handlers looks as it should."""
        if aim is None:
            [aim] = ["handler"] if self.misses() else self.random.choices(list(AIMS), list(AIMS.values()))
        reached = self._wait_for(victim, aim)
        at = victim.kill()  # at once: a handler is over in a few milliseconds
        return self._recorded(victim, at, in_commit=aim == "commit" and reached)

    def let_fall(self, victim: Victim, point: str) -> Kill:
        """A worker that kills itself at a crash point. If it does not get there it is killed where it is."""
        ends = time.monotonic() + FALL_SECONDS
        while time.monotonic() < ends and not victim.ended():
            if victim.running is None:  # looked at while it lives: its neighbour may be quick to remove it
                time.sleep(0.001)
            time.sleep(0.001)
        at, is_there = time.monotonic(), victim.ended()
        if not is_there:
            at = victim.kill()
        assert victim.code == -signal.SIGKILL, f"it ended with {victim.code}: {self.site.said()}"
        return self._recorded(victim, at, in_commit=is_there and point.startswith("commit."), point=point * is_there)

    def _recorded(self, victim: Victim, at: float, *, in_commit: bool, point: str = "") -> Kill:
        running = victim.running
        if running is None:
            kill = Kill(at, victim.pid, 0, Place.STARTING, in_commit, frozenset(), point=point)
        else:
            rows = running.rows()
            held = frozenset(self.oracle.held_by(running.worker) | self._ids(victim.pid, rows))
            place = running.place()
            kill = Kill(at, victim.pid, running.worker, place, in_commit, held, tuple(rows), point)
        self.kills.append(kill)
        return kill

    def _wait_for(self, victim: Victim, aim: str | Aim) -> bool:
        """Returns as soon as the worker is where it is to be killed, and whether it got there in time."""
        if aim == "anywhere":
            ends = time.monotonic() + self.random.uniform(0, ANYWHERE_SECONDS)
        else:
            self.site.up(victim)  # on a busy machine it would otherwise never live long enough to do anything
            ends = time.monotonic() + (PATIENT_SECONDS if self.misses() else AIM_SECONDS)
        at_the_place: dict[str, Callable[[], bool]] = {
            "handler": lambda: victim.running is not None and victim.running.busy(),
            "processor": lambda: victim.running is not None and victim.running.on_processor(),
            "commit": lambda: victim.running is not None and self.site.database.writing(victim.pid),
            "anywhere": lambda: False,
        }
        if isinstance(aim, str):
            is_there = at_the_place[aim]
        else:
            is_there = lambda: victim.running is not None and aim(victim.running)  # noqa: E731
        while time.monotonic() < ends:
            if is_there():
                return True
            # Giving way costs aim, but a look that never pauses takes a processor from those it waits for.
            time.sleep(0.0002)
        return False

    def _ids(self, pid: int, rows: list[RunningHandler]) -> set[str]:
        """The messages behind the rows that were running, of those whose handlers came as far as to say so."""
        began = self.site.journal.all("began", pid=pid)
        starts = {(entry.seq, entry.id): entry.at for entry in began}
        running = {row.row: row.started_micros / 1_000_000 for row in rows}
        return {UUID(id).hex for (seq, id), at in starts.items() if seq in running and at >= running[seq]}

    # -- the record ---------------------------------------------------------------------------------------

    def redeliveries(self) -> list[float]:
        """Seconds from each kill to the next delivery of each message it hit. Where the next process died holding it before
        it could begin, its own kill is the one that counts.

        A dead worker's last commit may be complete in the log without anybody seeing it yet; it counts once the log is
        recovered. What it settled was not to be delivered again.
        """
        began: dict[str, list[Entry]] = {}
        for entry in self.site.journal.all("began"):
            began.setdefault(UUID(entry.id).hex, []).append(entry)
        hits: dict[str, list[Kill]] = {}
        for kill in self.kills:
            for id in kill.held:
                hits.setdefault(id, []).append(kill)
        settled_by = self.oracle.settled_by()
        waits = []
        for id, kills in hits.items():
            entries = began.get(id, [])
            for kill, hit_again in zip(kills, [*(later.at for later in kills[1:]), math.inf], strict=True):
                if any(settled_by.get((entry.queue, entry.number)) == kill.pid for entry in entries):
                    continue
                again = min((entry.at for entry in entries if entry.at > kill.at), default=math.inf)
                if again < hit_again or hit_again == math.inf:
                    waits.append(again - kill.at)
        return waits

    def places(self) -> Counter[Place]:
        return Counter(kill.place for kill in self.kills)

    def summary(self) -> str:
        places = ", ".join(f"{count} {place}" for place, count in self.places().most_common())
        commits = sum(kill.in_commit for kill in self.kills)
        return f"{len(self.kills)} kills: {places}; {commits} of them inside a commit"


def spread(seconds: list[float]) -> str:
    return (
        f"p50 {statistics.median(seconds) * 1000:.0f} ms, p95 {quantile(seconds, 0.95) * 1000:.0f} ms, "
        f"max {max(seconds) * 1000:.0f} ms over {len(seconds)}"
    )


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
