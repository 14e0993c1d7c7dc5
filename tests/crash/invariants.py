"""What must hold of everything at once: each effect of each kind happened once, and what is saved agrees with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tests.crash.databases import CrashDatabase
from tests.crash.everything import COUNTERS, ITEM_EVERY, PARTS, RUN_EVERY, SECOND, result_of

DOUBLED = "select queue, number, count(*) from effects group by queue, number having count(*) > 1"
EFFECTS = "select queue, number, value from effects"
OBJECTS = "select name, state, alarm_lost from penstock_objects where class = 'Counter'"
ALARMS = "select name from penstock_timers where kind = 'alarm' and name like 'Counter/%'"
RUNS = "select workflow, id, state, result from penstock_runs"
STEPS = "select count(*) from penstock_steps where kind = 'step' and state = 'done' and attempts = 1"
TICKS = "select due, status from penstock_ticks where schedule = 'tick' order by due"
ITEMS = "select number, done from items"
NOTES = "select item, state from penstock_items"
BUSY = "select distinct queue from penstock_messages"
# Those that wait, and those that are done and have not reached an `after`.
ITEMS_LEFT = "select (select count(*) from items where done = 0), (select count(*) from penstock_items)"

Seen = Mapping[str, Mapping[int, list[int]]]  # what, number, and the value of each time it happened


class Invariants:
    """Looks at the database past the engine, as the oracle does."""

    def __init__(self, database: CrashDatabase) -> None:
        self._database = database

    def doubled(self) -> list[str]:
        """What has happened more than once: wrong at any moment."""
        with self._database.reading() as ask:
            return [f"{what} {number} happened {times} times" for what, number, times in ask(DOUBLED)]

    def is_at_rest(self, *queues: str) -> bool:
        """Whether nothing is left of these queues, no alarm is set, and no item waits: all in one look."""
        with self._database.reading() as ask:
            busy = {name for (name,) in ask(BUSY)} & set(queues)
            return not busy and not ask(ALARMS) and ask(ITEMS_LEFT) == [(0, 0)]

    def items_waiting(self) -> int:
        with self._database.reading() as ask:
            return int(ask(ITEMS_LEFT)[0][0])

    def problems(self, numbers: int) -> list[str]:
        """Of all five kinds, once nothing is under way, after so many numbers. Ticks may go on meanwhile."""
        with self._database.reading() as ask:
            seen = _seen(ask(EFFECTS))
            objects = {name: msgspec.json.decode(bytes(state)) | {"lost": lost} for name, state, lost in ask(OBJECTS)}
            alarms = [name for (name,) in ask(ALARMS)]
            runs, ((steps,),) = ask(RUNS), ask(STEPS)
            ticks, items, notes = ask(TICKS), dict(map(tuple, ask(ITEMS))), ask(NOTES)
        given = range(numbers)
        return [
            *_once(seen, "first", given),
            *_once(seen, "second", given),
            *_objects(seen, numbers, objects, alarms),
            *_ticks(seen, ticks),
            *_workflows(seen, range(0, numbers, RUN_EVERY), runs, steps),
            *_controller(seen, range(0, numbers, ITEM_EVERY), items, notes),
        ]

    def ticks(self) -> int:
        with self._database.reading() as ask:
            return len(ask(TICKS))


def _seen(effects: Iterable[tuple[Any, ...]]) -> Seen:
    found: dict[str, dict[int, list[int]]] = {}
    for what, number, value in effects:
        found.setdefault(what, {}).setdefault(number, []).append(value)
    return found


def _once(seen: Seen, what: str, wanted: Iterable[int]) -> list[str]:
    """Each of those once, and nothing else."""
    times, expected = seen.get(what, {}), set(wanted)
    found = {
        "lost": sorted(expected - times.keys()),
        "doubled": sorted(number for number, values in times.items() if len(values) > 1),
        "invented": sorted(times.keys() - expected),
    }
    return [f"{what}: {len(which)} {how}, such as {which[:5]}" for how, which in found.items() if which]


def _objects(seen: Seen, numbers: int, objects: Mapping[str, Mapping[str, Any]], alarms: list[str]) -> list[str]:
    """Each call counted once, one after another, and each was seen by an alarm that came after it."""
    problems = [*_once(seen, "told", range(numbers)), *_once(seen, "called", range(numbers))]
    problems += [f"the alarm of {name} is still set" for name in alarms]
    for name in map(str, range(min(COUNTERS, numbers))):
        state = {"count": 0, "seen": 0, "rung": 0, "is_set": False, "lost": 0, **objects.get(name, {})}
        calls = {what: dict(_of(seen.get(what, {}), int(name))) for what in ("told", "called")}
        counted = sorted(value for values in calls.values() for value in values.values())
        if counted != [*range(1, state["count"] + 1)]:
            problems.append(f"counter {name}: it says {state['count']}, and {len(counted)} calls were counted")
        if state["seen"] != state["count"] or state["is_set"] or state["lost"]:
            problems.append(f"counter {name}: its alarm saw {state['seen']} of {state['count']} calls")
        answers = dict(_of(seen.get("second", {}), int(name)))
        if answers != calls["called"]:
            problems.append(f"counter {name}: who called it was told something else than it counted")
        rung = range(int(name) * SECOND + 1, int(name) * SECOND + 1 + state["rung"])
        alarmed = {number: values for number, values in seen.get("rung", {}).items() if number // SECOND == int(name)}
        problems += _once({"rung": alarmed}, "rung", rung)
    return problems


def _of(times: Mapping[int, list[int]], name: int) -> Iterable[tuple[int, int]]:
    return ((number, values[0]) for number, values in times.items() if number % COUNTERS == name)


def _ticks(seen: Seen, ticks: list[tuple[Any, ...]]) -> list[str]:
    """One for each second from the first to the last. Those that have not ended yet have no effect yet."""
    problems = _once(seen, "tick", (due // SECOND for due, status in ticks if status == "done"))
    dues = [due // SECOND for due, _ in ticks]
    missing = sorted(set(range(min(dues, default=0), max(dues, default=-1))) - set(dues))
    if missing:
        problems.append(f"tick: {len(missing)} seconds without one, such as {missing[:5]}")
    strange = Counter(status for _, status in ticks if status not in ("done", "due"))
    return problems + ([f"tick: {dict(strange)}"] if strange else [])


def _workflows(seen: Seen, numbers: Iterable[int], runs: list[tuple[Any, ...]], steps: int) -> list[str]:
    numbers = [*numbers]
    problems = _once(seen, "step", (number * 10 + which for number in numbers for which in range(PARTS)))
    ended = {
        (name, id): (state, None if result is None else msgspec.json.decode(bytes(result)))
        for name, id, state, result in runs
    }
    for number in numbers:
        there = ended.pop(("journey", f"run-{number}"), None)
        child = ended.pop(("errand", f"run-{number}/errand"), None)
        if there != ("complete", result_of(number)) or child != ("complete", 2 * number + 5):
            problems.append(f"run-{number}: {there}, its child {child}")
    if ended:
        problems.append(f"workflow: {len(ended)} runs that nobody started, such as {[*ended][:3]}")
    if steps != len(numbers) * PARTS:
        problems.append(f"workflow: {steps} steps are recorded as done at once, of {len(numbers) * PARTS}")
    return problems


def _controller(
    seen: Seen, numbers: Iterable[int], items: Mapping[int, int], notes: list[tuple[Any, ...]]
) -> list[str]:
    numbers = [*numbers]
    problems = [*_once(seen, "worked", numbers), *_once(seen, "after", numbers)]
    if items != dict.fromkeys(numbers, 1):
        problems.append(f"items: {dict(Counter(items.values()))} were done so many times, of {len(numbers)}")
    return problems + ([f"items: there are notes of {len(notes)}, such as {notes[:3]}"] if notes else [])
