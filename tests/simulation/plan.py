"""What a seed stands for: a topology, the work that comes in, and the faults that befall it. Nothing happens here."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from penstock.contracts.faults import CRASH_POINTS

FAULTS_END = 20.0  # virtual seconds; after that nothing new goes wrong, and in the end everything must drain
TICK_SECONDS = 1.0
STALL_SECONDS = 40.0  # past the lease of any queue here

# What a handler may do. Each history has its own selection, so that no behaviour always hides another.
BEHAVIOURS = {
    "fail": 4,
    "later": 3,
    "throttled": 2,
    "bad": 4,  # a statement that the database refuses, so that its group must be divided
    "lost_update": 1,
    "overrun": 2,
    "stubborn": 1,  # finishes in spite of being cancelled
    "background": 3,  # leaves a task that writes when the unit has long been closed
    "midway": 3,
    "keyed": 3,
    "once": 2,
    "discard": 1,
    "permanent": 1,
    "cancelled": 2,  # waits for something that is cancelled
    "poison": 1,  # kills its own worker
    "twice": 2,  # sends the same derived id twice
}
HARMLESS = {"background", "midway", "keyed", "once", "twice"}
DISASTERS = {"kill": 3, "trap": 5, "pause": 2, "long_pause": 7, "restart": 5, "jump": 3}


@dataclass(frozen=True, slots=True)
class QueuePlan:
    name: str
    parallel: int
    retries: int
    wall: float
    crashes_max: int
    batch: int = 1
    wait: float = 0.0  # seconds for which a batch that is not full waits
    handlers: int = 1  # each gets its own copy of every message
    pulled: bool = False  # nobody here handles it: somebody outside comes for its messages
    pull_lease: float = 2.0
    rate: float | None = None
    messages_max: int | None = None
    retention: float | None = None


@dataclass(frozen=True, slots=True)
class SendPlan:
    """At this time a producer in this worker sends these: (queue, delay) each."""

    at: float
    worker: int
    jobs: tuple[tuple[int, float], ...]
    spoilt: bool  # its unit has a bad statement, so nothing of it may be saved
    doubled: bool  # the first message is sent a second time while it waits
    slow: float = 0.0  # seconds that its unit stays open; its worker may stop meanwhile
    unique: str = ""  # the key of its only message, which others send too


@dataclass(frozen=True, slots=True)
class FaultPlan:
    at: float
    kind: str
    worker: int
    seconds: float = 0.0
    point: str = ""
    nth: int = 1


@dataclass(frozen=True, slots=True)
class ActPlan:
    """At this time somebody operates a queue, or pulls from it, through this worker."""

    at: float
    kind: str
    worker: int
    queue: int
    seconds: float = 0.0
    parallel: int | None = None
    rate: float | None = None
    limit: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    workers: int
    queues: tuple[QueuePlan, ...]
    served: tuple[tuple[int, ...], ...]  # for each worker the queues it has handlers for
    sends: tuple[SendPlan, ...]
    faults: tuple[FaultPlan, ...]
    acts: tuple[ActPlan, ...] = ()
    behaviours: dict[str, int] = field(default_factory=dict)
    tick_seconds: float | None = TICK_SECONDS
    retry_first: float = 1.0
    latency: float = 0.0  # the mean of what the store takes to begin and to answer
    peaceful: bool = False  # no faults and no delays
    rings_lost: float = 0.0
    rings_doubled: float = 0.0
    shuffled: bool = False
    told: bool = False  # somebody listens to every settlement
    history: bool = False  # the engine keeps its own
    stalls: bool = False  # a worker stops in the middle of a batch, for longer than its lease
    slowness: float = 1.0  # how many times longer its handlers take

    @property
    def calm_at(self) -> float:
        """When the last fault is over."""
        pauses = [fault.at + fault.seconds for fault in self.faults if fault.kind == "pause"]
        return max([FAULTS_END, *pauses]) + 0.1 + (STALL_SECONDS if self.stalls else 0.0)

    @property
    def jumps(self) -> bool:
        return any(fault.kind == "jump" for fault in self.faults)


def plan(seed: int) -> Plan:
    chance = Random(f"{seed}/plan")
    workers = chance.choices((1, 2, 3, 4), (5, 7, 3, 1))[0]
    queues = tuple(_queue(chance, number) for number in range(chance.randint(1, 3)))
    # Without ticks a wake-up that gets lost is never made good. A worker that is alone can do without them; several can
    # as long as nobody dies and nothing is due later, for only ticks tell a worker of what others learnt.
    ticking = chance.random() < (0.4 if workers == 1 else 0.75)
    peaceful = workers > 1 and not ticking
    sends = _trickle(chance, workers, len(queues)) if peaceful else _sends(chance, workers, len(queues))
    faults = () if peaceful else _faults(chance, sends, workers, ticking, max(queue.wall for queue in queues))
    behaviours = _selection(chance, BEHAVIOURS, 0.5)
    if peaceful:
        behaviours = {kind: weight for kind, weight in behaviours.items() if kind in HARMLESS}
    if any(fault.kind == "jump" and fault.seconds < 0 for fault in faults):
        behaviours.pop("poison", None)
    return Plan(
        seed,
        workers,
        queues,
        _served(chance, workers, len(queues), peaceful),
        sends,
        faults,
        behaviours=behaviours,
        tick_seconds=TICK_SECONDS if ticking else None,
        retry_first=chance.choice((0.2, 1.0, 3.0)),
        latency=0.02 if peaceful else chance.choice((0.0, 0.002, 0.02, 0.2)),
        peaceful=peaceful,
        rings_lost=chance.choice((0.0, 0.0, 0.3, 1.0)) if workers > 1 and ticking else 0.0,
        rings_doubled=chance.choice((0.0, 0.2)),
        shuffled=chance.random() < 0.5,
        told=chance.random() < 0.5,
        history=chance.random() < 0.1,
    )


def _served(chance: Random, workers: int, queues: int, peaceful: bool) -> tuple[tuple[int, ...], ...]:
    """Mostly every worker serves every queue; sometimes only some, but each queue is served by somebody. In peace one
    serves and the others only send: then every message is rung for, and no ring may get lost."""
    everything = tuple(range(queues))
    if peaceful:
        return (everything,) + ((),) * (workers - 1)
    if workers == 1 or chance.random() < 0.7:
        return (everything,) * workers
    chosen = [{chance.randrange(queues)} for _ in range(workers)]
    for queue in everything:
        chosen[chance.randrange(workers)].add(queue)
    return tuple(tuple(sorted(each)) for each in chosen)


def _queue(chance: Random, number: int) -> QueuePlan:
    return QueuePlan(
        f"q{number}",
        parallel=chance.choice((1, 1, 2, 3, 5)),
        retries=chance.choice((0, 1, 2, 3)),
        wall=chance.choice((1.0, 3.0, 6.0)),
        crashes_max=chance.choice((2, 3, 50)),
    )


def _trickle(chance: Random, workers: int, queues: int) -> tuple[SendPlan, ...]:
    """Single messages, a few close together each time: the others are sent while the first is being claimed, and then
    nobody else comes to make up for a wake-up that was lost."""
    sends: list[SendPlan] = []
    for _ in range(chance.randint(8, 14)):
        at, queue = chance.uniform(0.0, FAULTS_END), chance.randrange(queues)
        sends += [
            SendPlan(at + after, chance.randrange(workers), ((queue, 0.0),), spoilt=False, doubled=False)
            for after in (0.0, *(chance.uniform(0.02, 0.12) for _ in range(chance.choice((1, 1, 2)))))
        ]
    return tuple(sends)


def _sends(chance: Random, workers: int, queues: int) -> tuple[SendPlan, ...]:
    return tuple(_send(chance, workers, queues) for _ in range(chance.randint(2, 9)))


def _send(chance: Random, workers: int, queues: int) -> SendPlan:
    jobs = tuple(
        (chance.randrange(queues), chance.choice((0.0, 0.0, 0.0, chance.uniform(0.1, 5.0))))
        for _ in range(chance.choice((1, 1, 2, 3, 6)))
    )
    at = chance.choice((0.0, chance.uniform(0.0, 5.0), chance.uniform(0.0, FAULTS_END)))
    slow = chance.choice((0.0, 0.0, chance.uniform(0.1, 4.0)))
    return SendPlan(at, chance.randrange(workers), jobs, chance.random() < 0.1, chance.random() < 0.15, slow)


def _faults(
    chance: Random, sends: tuple[SendPlan, ...], workers: int, ticking: bool, wall: float
) -> tuple[FaultPlan, ...]:
    kinds = _selection(chance, DISASTERS, 0.5)
    if not ticking:
        kinds.pop("jump", None)  # without ticks nobody looks at the wall clock
    if "jump" in kinds and chance.random() < 0.5:
        return _set_back(chance)
    if not kinds:
        return ()
    faults = []
    for kind in chance.choices(list(kinds), list(kinds.values()), k=chance.randint(0, 6)):
        # Mostly while there is something to do: what befalls an idle worker shows little.
        busy_at = chance.choice(sends).at + chance.uniform(0.0, 1.5)
        at = chance.choice((busy_at, busy_at, chance.uniform(0.0, FAULTS_END)))
        faults.append(_fault(chance, kind, at, workers, wall))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _set_back(chance: Random) -> tuple[FaultPlan, ...]:
    """Jumps in both directions and nothing else: a process that starts after the wall was set back, or sleeps through a
    jump forward before that, lives in an earlier time than its neighbours, who wait for the wall to catch up."""
    times = (2.0 + 3.0 * number + chance.uniform(0.0, 1.0) for number in range(chance.randint(1, 5)))
    return tuple(FaultPlan(at, "jump", 0, seconds=_leap(chance) * chance.choice((1, -1))) for at in times)


def _leap(chance: Random) -> float:
    return chance.choice((chance.uniform(2, 20), chance.uniform(20, 100), 3_600.0))


def _fault(chance: Random, kind: str, at: float, workers: int, wall: float) -> FaultPlan:
    worker = chance.randrange(workers)
    if kind == "pause":
        return FaultPlan(at, kind, worker, seconds=chance.uniform(0.1, 5.0))
    if kind == "long_pause":
        return FaultPlan(at, "pause", worker, seconds=wall + 30 + chance.uniform(1.0, 15.0))
    if kind == "jump":
        return FaultPlan(at, kind, worker, seconds=_leap(chance))
    if kind == "trap":
        return FaultPlan(
            at,
            kind,
            worker,
            seconds=chance.uniform(0.05, 3.0),
            point=chance.choice(CRASH_POINTS),
            nth=chance.randint(1, 6),
        )
    return FaultPlan(at, kind, worker, seconds=chance.uniform(0.05, 3.0))


def _selection(chance: Random, weights: dict[str, int], share: float) -> dict[str, int]:
    return {name: weight for name, weight in weights.items() if chance.random() < share}
