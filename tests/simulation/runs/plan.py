"""What a seed stands for where workflows run: their shapes, who starts, signals and operates runs, and the faults."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from penstock.contracts.faults import CRASH_POINTS
from tests.simulation.plan import TICK_SECONDS, FaultPlan
from tests.simulation.runs.shape import SIGNALS, Child, Do, Drawing, Patched, Sequence, Sleep, Wait, nodes

FAULTS_END = 20.0  # virtual seconds; after that nothing new goes wrong, and in the end every run must end
LEASE_SLACK = 30.0
DISASTERS = {"kill": 4, "trap": 8, "pause": 2, "long_pause": 3, "restart": 4, "jump": 3, "hunt": 5}
POINTS = (*CRASH_POINTS, *(("step.before", "step.after", "step.saved") * 4), *(("commit.before", "commit.after") * 3))
ACTS = {"pause": 6, "terminate": 3, "restart": 2, "restart_step": 3}


@dataclass(frozen=True, slots=True)
class WorkflowPlan:
    name: str
    shape: Sequence
    parallel: int
    wall: float
    fails: bool  # raises at its end


@dataclass(frozen=True, slots=True)
class StartPlan:
    """At this time somebody starts these runs in one unit: (workflow, id or nothing, value)."""

    at: float
    worker: int
    runs: tuple[tuple[int, str, int], ...]
    spoilt: bool  # its unit has a bad statement, so nothing of it may be saved
    slow: float  # seconds that its unit stays open
    signals: tuple[str, ...]  # for the first of them, in the same unit


@dataclass(frozen=True, slots=True)
class SignalPlan:
    """`run` says where in the list of what was started, from 0 to 1, whoever is signalled stands."""

    at: float
    worker: int
    run: float
    name: str
    doubled: bool


@dataclass(frozen=True, slots=True)
class OperatePlan:
    at: float
    kind: str
    worker: int
    run: float
    among: str  # whom it may befall, if there is anybody of that kind
    step: float
    seconds: float  # until a paused run is resumed


@dataclass(frozen=True, slots=True)
class RunsPlan:
    seed: int
    workers: int
    workflows: tuple[WorkflowPlan, ...]
    starts: tuple[StartPlan, ...]
    signals: tuple[SignalPlan, ...]
    acts: tuple[OperatePlan, ...]
    faults: tuple[FaultPlan, ...]
    upgrade_at: float | None  # when the new code comes
    grace: float
    tick_seconds: float | None
    latency: float
    rings_lost: float
    rings_doubled: float
    shuffled: bool
    peaceful: bool = False

    @property
    def calm_at(self) -> float:
        """When the last fault is over."""
        pauses = [fault.at + fault.seconds for fault in self.faults if fault.kind == "pause"]
        return max([FAULTS_END, *pauses]) + 0.1

    @property
    def lease(self) -> float:
        return max(workflow.wall for workflow in self.workflows) + LEASE_SLACK

    @property
    def jumps(self) -> bool:
        return any(fault.kind == "jump" for fault in self.faults)

    @property
    def set_back(self) -> float:
        """How far the clock on the wall may be behind what somebody has seen."""
        return sum(-fault.seconds for fault in self.faults if fault.kind == "jump" and fault.seconds < 0)

    def seconds_of(self, workflow: WorkflowPlan) -> float:
        """The most that its parts take, one after the other, and what it begins."""
        total = 0.0
        for node in nodes(workflow.shape):
            if isinstance(node, Do):
                total += node.times * (node.after + node.seconds + 2.0) + 2.0
                if node.kind == "start":
                    total += self.seconds_of(self.workflows[node.workflow])
            elif isinstance(node, Sleep):
                total += node.seconds + 1.0
            elif isinstance(node, Wait):
                total += (node.timeout or 0.0) + 3.0
            elif isinstance(node, Child):
                total += self.seconds_of(self.workflows[node.workflow])
        return total

    @property
    def lateness(self) -> float:
        """Seconds that a run may wait longer than it has to: a worker that stood still said too late when to go on."""
        return (
            5.0
            + 20 * self.latency
            + sum(abs(fault.seconds) for fault in self.faults if fault.kind in ("pause", "jump"))
        )


def planned(seed: int) -> RunsPlan:
    chance = Random(f"{seed}/runs")
    workers = chance.choices((1, 2, 3, 4), (5, 7, 3, 1))[0]
    # Without ticks a wake-up that gets lost is never made good. A worker that is alone can do without them.
    ticking = workers > 1 or chance.random() < 0.4
    number = chance.randint(1, 3)
    longest = chance.choice((20.0, 45.0)) if ticking else chance.choice((20.0, 3_600.0, 2 * 86_400.0))
    workflows = tuple(_workflow(chance, each, number, longest) for each in range(number))
    starts = _starts(chance, workers, number)
    wall = max(workflow.wall for workflow in workflows)
    patched = any(isinstance(node, Patched) for workflow in workflows for node in nodes(workflow.shape))
    return RunsPlan(
        seed,
        workers,
        workflows,
        starts,
        _signals(chance, workers),
        _acts(chance, workers),
        _faults(chance, starts, workers, ticking, wall),
        upgrade_at=chance.uniform(0.0, FAULTS_END) if patched and chance.random() < 0.7 else None,
        grace=chance.choice((0.5, 5.0, 25.0)),
        tick_seconds=TICK_SECONDS if ticking else None,
        latency=chance.choice((0.0, 0.002, 0.02, 0.1)),
        rings_lost=chance.choice((0.0, 0.0, 0.3, 1.0)) if workers > 1 else 0.0,
        rings_doubled=chance.choice((0.0, 0.2)),
        shuffled=chance.random() < 0.5,
    )


def _workflow(chance: Random, number: int, workflows: int, longest: float) -> WorkflowPlan:
    return WorkflowPlan(
        f"flow{number}",
        Drawing(chance, number, workflows, longest=longest).shape(),
        parallel=chance.choice((1, 2, 4)),
        # Half of a lease, which is all that a jump of the clock leaves of it, is still longer than this.
        wall=chance.choice((10.0, 20.0, 30.0)),
        fails=chance.random() < 0.1,
    )


def _starts(chance: Random, workers: int, workflows: int) -> tuple[StartPlan, ...]:
    starts: list[StartPlan] = []
    left = chance.choice((3, 5, 8, 15))
    while left > 0:
        number = min(left, chance.choice((1, 1, 2, 4)))
        runs = tuple(
            (
                chance.randrange(workflows),
                "" if chance.random() < 0.15 else f"run-{left - each}",
                chance.randrange(1_000),
            )
            for each in range(number)
        )
        left -= number
        at = chance.choice((0.0, chance.uniform(0.0, 3.0), chance.uniform(0.0, FAULTS_END / 2)))
        signals = tuple(chance.choices(SIGNALS, k=chance.choice((0, 0, 1, 2))))
        slow = chance.choice((0.0, 0.0, chance.uniform(0.1, 2.0)))
        start = StartPlan(at, chance.randrange(workers), runs, chance.random() < 0.1, slow, signals)
        starts.append(start)
        if chance.random() < 0.25:
            again = tuple((workflow, id, value + 1) for workflow, id, value in runs if id)
            later = at + chance.choice((0.0, 0.01, chance.uniform(0.0, FAULTS_END / 2)))
            if again:
                starts.append(StartPlan(later, chance.randrange(workers), again, False, 0.0, ()))
    return tuple(starts)


def _signals(chance: Random, workers: int) -> tuple[SignalPlan, ...]:
    return tuple(
        SignalPlan(
            chance.uniform(0.0, FAULTS_END),
            chance.randrange(workers),
            chance.random(),
            chance.choice(SIGNALS),
            chance.random() < 0.2,
        )
        for _ in range(chance.choice((0, 4, 10, 25)))
    )


def _acts(chance: Random, workers: int) -> tuple[OperatePlan, ...]:
    kinds = {kind: weight for kind, weight in ACTS.items() if chance.random() < 0.5}
    if not kinds:
        return ()
    return tuple(
        OperatePlan(
            chance.uniform(0.0, FAULTS_END),
            kind,
            chance.randrange(workers),
            chance.random(),
            chance.choice(("anybody", "at work", "running", "running", "parents")),
            chance.random(),
            chance.choice((0.0, 0.05, chance.uniform(0.1, 6.0))),
        )
        for kind in chance.choices(list(kinds), list(kinds.values()), k=chance.randint(1, 9))
    )


def _faults(
    chance: Random, starts: tuple[StartPlan, ...], workers: int, ticking: bool, wall: float
) -> tuple[FaultPlan, ...]:
    kinds = {kind: weight for kind, weight in DISASTERS.items() if chance.random() < 0.5}
    if not ticking:
        kinds.pop("jump", None)  # without ticks nobody looks at the wall clock
    if not kinds:
        return ()
    faults = []
    for kind in chance.choices(list(kinds), list(kinds.values()), k=chance.randint(0, 7)):
        # Mostly while there is something to do: what befalls an idle worker shows little.
        busy_at = chance.choice(starts).at + chance.uniform(0.0, 3.0)
        at = chance.choice((busy_at, busy_at, chance.uniform(0.0, FAULTS_END)))
        if kind == "hunt":
            faults += _hunt(chance, at, chance.randrange(workers))
        else:
            faults.append(_fault(chance, kind, at, chance.randrange(workers), wall))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _hunt(chance: Random, at: float, worker: int) -> list[FaultPlan]:
    """One worker after another dies as soon as it has got a step further, or had nearly."""
    points = chance.choice((("step.saved",), ("step.after",), ("step.saved", "step.after", "handler.after")))
    return [
        FaultPlan(at + 0.4 * number, "trap", worker, seconds=0.05, point=chance.choice(points), nth=1)
        for number in range(chance.randint(5, 15))
    ]


def _fault(chance: Random, kind: str, at: float, worker: int, wall: float) -> FaultPlan:
    match kind:
        case "pause":
            return FaultPlan(at, kind, worker, seconds=chance.uniform(0.1, 5.0))
        case "long_pause":
            return FaultPlan(at, "pause", worker, seconds=wall + LEASE_SLACK + chance.uniform(1.0, 15.0))
        case "jump":
            leap = chance.choice((chance.uniform(2.0, 20.0), chance.uniform(20.0, 100.0)))
            return FaultPlan(at, kind, worker, seconds=leap * chance.choice((1, 1, -1)))
        case "trap":
            return FaultPlan(
                at,
                kind,
                worker,
                seconds=chance.uniform(0.05, 3.0),
                point=chance.choice(POINTS),
                nth=chance.randint(1, 8),
            )
    return FaultPlan(at, kind, worker, seconds=chance.uniform(0.05, 3.0))
