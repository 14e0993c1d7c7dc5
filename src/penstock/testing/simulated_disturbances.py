"""What befalls a simulated app, drawn from chance: its worker dies, stalls or is stopped, and the clock on its wall jumps."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from penstock.contracts.faults import CRASH_POINTS

DISTURBANCES_MAX = 6
DISTURBANCES = {"crash": 8, "kill": 2, "stop": 2, "stall": 2, "jump": 2}
POINTS = {point: 3 if point.startswith(("handler.", "unit.", "commit.")) else 1 for point in CRASH_POINTS}
TURNS_MAX = 3  # of the scenario, between two of them
AFTER_SECONDS = (0.02, 0.3, 5.0)  # on average from the beginning of a turn: most work is done soon after it is sent
NTH = (1, 1, 2, 4)  # the time a crash point is reached at which somebody dies there
STALL_SECONDS = 30.0
LEAP_SECONDS = (90.0, 3_600.0, 86_400.0)  # forward; backward never so far that what waits is not done in the calm
BACK_SECONDS = 60.0


class Disturbance(NamedTuple):
    """It comes so many seconds after time begins to pass once more, when that has happened `turns` times without it."""

    kind: str
    text: str
    turns: int
    after: float
    seconds: float = 0.0
    point: str = ""
    nth: int = 1


def disturbance(number: int, chance: Random) -> Disturbance:
    kind = _weighed(chance, DISTURBANCES)
    turns, after = chance.randint(0, TURNS_MAX), chance.expovariate(1 / chance.choice(AFTER_SECONDS))
    name = f"disturbance {number}"
    match kind:
        case "crash":
            point, nth = _weighed(chance, POINTS), chance.choice(NTH)
            text = f"crash: at {point}, time {nth} ({name})"
            return Disturbance(kind, text, turns, after, point=point, nth=nth)
        case "stall":
            seconds = chance.uniform(0.0, STALL_SECONDS)
            return Disturbance(kind, f"stall: {seconds:.3f} s ({name})", turns, after, seconds)
        case "jump":
            seconds = chance.choice((1, -1)) * chance.uniform(0.0, 1.0)
            seconds *= chance.choice(LEAP_SECONDS) if seconds > 0 else BACK_SECONDS
            return Disturbance(kind, f"jump: {seconds:+.3f} s ({name})", turns, after, seconds)
        case _:
            return Disturbance(kind, f"{kind}: the worker ({name})", turns, after)


def _weighed(chance: Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]
