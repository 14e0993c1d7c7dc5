"""The shape of a workflow, drawn from a seed: a tree of steps, sleeps, waits, children and branches beside each other.

Everything that a run computes goes through `mixed`, so that one number at its end tells whether each part of it had the
right result, and the right one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from zlib import crc32

# What a step may do. Each history has its own selection, so that no behaviour always hides another.
STEPS = {
    "write": 6,
    "flaky": 3,  # raises the first times it is called
    "throttled": 3,  # is told to wait the first times, by others than itself
    "refused": 2,  # the database does not take what it writes the first times
    "slow": 2,  # runs into its time limit the first time
    "send": 3,  # a message to a queue
    "start": 2,  # a run that nobody waits for
    "permanent": 2,  # fails for good
    "hopeless": 1,  # fails as often as it is tried
}
FAILING = {"permanent", "hopeless"}
WAITS = {"sleep": 4, "wait": 4, "child": 5, "patched": 2, "together": 5}
SIGNALS = ("a", "b")
DEPTH_MAX = 3


@dataclass(frozen=True, slots=True)
class Do:
    """One step. `times` is how often it goes wrong before it goes well; `caught` whether its workflow minds for good."""

    name: str
    kind: str
    seconds: float = 0.0
    times: int = 0
    after: float = 0.0  # seconds for which it is told to wait, or for which its message is delayed
    caught: bool = True
    workflow: int = 0  # which one it starts


@dataclass(frozen=True, slots=True)
class Sleep:
    name: str
    seconds: float
    named: bool  # or the engine gives it its name


@dataclass(frozen=True, slots=True)
class Wait:
    name: str
    signal: str
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    workflow: int


@dataclass(frozen=True, slots=True)
class Patched:
    """The old code does `old`; the new one asks which of the two it is to be."""

    name: str
    new: Do
    old: Do


@dataclass(frozen=True, slots=True)
class Together:
    name: str
    branches: tuple[tuple[Node, ...], ...]
    grouped: bool  # in a task group, or gathered


Node = Do | Sleep | Wait | Child | Patched | Together
Sequence = tuple[Node, ...]


def mixed(name: str, said: object, value: int) -> int:
    """What a part of a workflow makes of the value before it."""
    return crc32(f"{name}|{said}|{value}".encode())


def nodes(shape: Sequence) -> Iterator[Node]:
    for node in shape:
        yield node
        if isinstance(node, Together):
            for branch in node.branches:
                yield from nodes(branch)
        elif isinstance(node, Patched):
            yield from (node.new, node.old)


class Drawing:
    """Draws shapes. Workflow `number` may have the ones after it for children, so that no family is endless."""

    def __init__(self, chance: Random, number: int, workflows: int, *, longest: float) -> None:
        self._chance = chance
        self._later = range(number + 1, workflows)
        self._longest = longest
        self._names = 0
        self._sleeps = 0
        self._left = chance.randint(4, 16)
        self._steps = {kind: weight for kind, weight in STEPS.items() if kind == "write" or chance.random() < 0.5}
        self._waits = {
            kind: weight * chance.choice((1, 1, 5)) for kind, weight in WAITS.items() if chance.random() < 0.6
        }
        if not self._later:
            self._steps.pop("start", None)
            self._waits.pop("child", None)
        self._waiting = chance.choice((0.2, 0.5, 0.8))  # the share of what is no step
        self._doomed = chance.random() < 0.15  # one of its failures is caught by nobody

    def shape(self) -> Sequence:
        drawn = self._sequence(0)
        return drawn or (self._do("write"),)

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _sequence(self, depth: int) -> Sequence:
        drawn: list[Node] = []
        most = self._chance.randint(2 if depth == 0 else 1, 6)
        while len(drawn) < most and self._left > 0:
            self._left -= 1
            drawn.append(self._node(depth))
        return tuple(drawn)

    def _node(self, depth: int) -> Node:
        chance, waits = self._chance, dict(self._waits)
        if depth >= DEPTH_MAX:
            waits.pop("together", None)
        if not waits or chance.random() > self._waiting:
            return self._do()
        match chance.choices(list(waits), list(waits.values()))[0]:
            case "sleep":
                return self._sleep(depth)
            case "wait":
                timeout = chance.choice((None, 0.0, chance.uniform(0.5, 3.0), chance.uniform(3.0, 12.0)))
                return Wait(self._name("wait"), chance.choice(SIGNALS), timeout)
            case "child":
                return Child(self._name("child"), chance.choice(self._later))
            case "patched":
                return Patched(self._name("patch"), self._do("write"), self._do("write"))
            case _:
                branches = tuple(self._sequence(depth + 1) for _ in range(chance.randint(2, 4)))
                return Together(self._name("beside"), branches, chance.random() < 0.3)

    def _sleep(self, depth: int) -> Sleep:
        chance = self._chance
        seconds = chance.choice((0.0, chance.uniform(0.1, 2.0), chance.uniform(2.0, 9.0), self._longest))
        self._sleeps += 1
        # Only where nothing is beside it does the engine's own name always mean the same sleep.
        if depth == 0 and chance.random() < 0.5:
            return Sleep(f"sleep-{self._sleeps}", seconds, named=False)
        return Sleep(self._name("rest"), seconds, named=True)

    def _do(self, kind: str = "") -> Do:
        chance = self._chance
        kind = kind or chance.choices(list(self._steps), list(self._steps.values()))[0]
        caught = not (self._doomed and kind in FAILING)
        if not caught:
            self._doomed = False
        return Do(
            self._name(kind),
            kind,
            seconds=chance.choice((0.0, 0.0, chance.uniform(0.001, 0.2), chance.uniform(0.1, 1.2))),
            times=chance.randint(1, 3),
            after=chance.choice((0.0, 0.3, chance.uniform(0.5, 4.0))),
            caught=caught,
            workflow=chance.choice(self._later) if kind == "start" else 0,
        )
