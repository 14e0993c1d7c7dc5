"""Recomputes from rows what must hold whatever was killed: nothing lost, nothing doubled, every message accounted for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.databases import CrashDatabase
from tests.crash.journal import wait_until

COUNTED = """
select queue, sum(sent), sum(acked), sum(dead), sum(purged), sum(expired)
from penstock_counters
group by queue
"""
WAITING = """
select
  queue,
  count(*) filter (where worker is null and due <= :now),
  count(*) filter (where worker is not null),
  count(*) filter (where worker is null and due > :now)
from penstock_messages
group by queue
"""
DEAD = "select queue, count(*) from penstock_dead where resolution is null group by queue"
HELD = "select id from penstock_messages where worker = :worker"
CHARGED = "select queue, id, attempts from penstock_messages where attempts > 0"
EFFECTS = "select queue, number, count(*) from effects group by queue, number"
SETTLED_BY = "select queue, number, pid from effects"
WHOLE = "."  # the end of a line of the producer's log: one without it was torn by a kill
BURIED = "select queue, reason, attempts, crashes, error_class, body from penstock_dead order by seq"


class Counts(NamedTuple):
    """One queue's side of the equation, as the counters have it and as the rows have it."""

    sent: int
    acked: int
    dead: int
    purged: int
    expired: int


class Waiting(NamedTuple):
    ready: int = 0
    leased: int = 0
    delayed: int = 0


@dataclass(frozen=True)
class Buried:
    queue: str
    reason: str
    attempts: int
    crashes: int
    error_class: str | None
    body: bytes


class Oracle:
    """Looks at the database past the engine."""

    def __init__(self, database: CrashDatabase) -> None:
        self._database = database
        self.damage = database.damage

    # -- conservation -----------------------------------------------------------------------------------

    def unbalanced(self, now_micros: int = 2**62) -> list[str]:
        """The queues for which sent is not acked + ready + leased + delayed + dead + purged + expired."""
        with self._database.reading() as ask:
            counted = {name: Counts(*map(int, rest)) for name, *rest in ask(COUNTED)}
            waiting = {name: Waiting(*rest) for name, *rest in ask(WAITING, now=now_micros)}
            dead: dict[str, int] = dict(tuple(row) for row in ask(DEAD))
        problems = []
        for name in sorted(counted.keys() | waiting.keys() | dead.keys()):
            counts = counted.get(name, Counts(0, 0, 0, 0, 0))
            rows = waiting.get(name, Waiting())
            if counts.sent != counts.acked + sum(rows) + dead.get(name, 0) + counts.purged + counts.expired:
                problems.append(f"{name}: {counts}, {rows}, {dead.get(name, 0)} dead letters")
            if counts.dead != dead.get(name, 0):
                problems.append(f"{name}: counted {counts.dead} dead letters, there are {dead.get(name, 0)}")
        return problems

    def counts(self, queue: str) -> Counts:
        with self._database.reading() as ask:
            found = {name: Counts(*map(int, rest)) for name, *rest in ask(COUNTED)}
        return found.get(queue, Counts(0, 0, 0, 0, 0))

    def left(self, *queues: str) -> int:
        """How many messages of these queues (all if none is named) still wait or are held."""
        with self._database.reading() as ask:
            rows = {name: sum(rest) for name, *rest in ask(WAITING, now=0)}
        return sum(count for name, count in rows.items() if not queues or name in queues)

    def wait_until_empty(self, *queues: str, seconds: float = 30.0) -> None:
        """Returns when nothing of these queues (of any if none is named) waits or is held."""
        # A look takes as much of a processor as a message does, and those it waits for need both.
        wait_until(lambda: self.left(*queues) == 0, f"end of queues {queues}", seconds, every=0.02)

    # -- effects ----------------------------------------------------------------------------------------

    def effects(self) -> dict[str, Counter[int]]:
        """How often each number's effect happened, per queue."""
        found: dict[str, Counter[int]] = {}
        with self._database.reading() as ask:
            for queue, number, count in ask(EFFECTS):
                found.setdefault(queue, Counter())[number] = count
        return found

    def settled_by(self) -> dict[tuple[str, int], int]:
        """The process whose commit brought each effect."""
        with self._database.reading() as ask:
            return {(queue, number): pid for queue, number, pid in ask(SETTLED_BY)}

    def lost_or_doubled(self, sent: set[int], begun: set[int], stages: tuple[str, ...]) -> list[str]:
        """What was sent happened exactly once at every stage. What a killed producer had begun happened once or not at
        all, and at every stage alike. Nothing else happened, and each effect came with one ack."""
        problems = []
        effects = self.effects()
        for stage in stages:
            seen = effects.get(stage, Counter())
            lost = sorted(number for number in sent if not seen[number])
            doubled = sorted(number for number, count in seen.items() if count > 1)
            invented = sorted(number for number in seen if number not in begun)
            for what, numbers in (("lost", lost), ("doubled", doubled), ("invented", invented)):
                if numbers:
                    problems.append(f"{stage}: {len(numbers)} {what}, such as {numbers[:5]}")
            if (acked := self.counts(stage).acked) != seen.total():
                problems.append(f"{stage}: {acked} acked, {seen.total()} effects")
        reached = [set(effects.get(stage, ())) for stage in stages]
        if any(numbers != reached[0] for numbers in reached):
            problems.append(f"not every number passed all of {stages}")
        return problems

    # -- rows -------------------------------------------------------------------------------------------

    def held_by(self, worker: int) -> set[str]:
        """The ids of the messages that a worker holds, as hexadecimal digits."""
        with self._database.reading() as ask:
            return {bytes(id).hex() for (id,) in ask(HELD, worker=worker)}

    def dead(self) -> list[Buried]:
        with self._database.reading() as ask:
            return [Buried(*row) for row in ask(BURIED)]

    def charged(self) -> list[tuple[Any, ...]]:
        """Messages that lost an attempt and are still there."""
        with self._database.reading() as ask:
            return ask(CHARGED)


def read_ids(path: Path) -> tuple[set[int], set[int]]:
    """What the producer's own log says was sent, and what it had at least begun to send. A torn line is no line."""
    sent: set[int] = set()
    begun: set[int] = set()
    for line in path.read_text().split("\n"):
        if line.endswith(f" {WHOLE}"):
            word, *numbers, _ = line.split()
            (sent if word == "sent" else begun).update(map(int, numbers))
    return sent, begun
