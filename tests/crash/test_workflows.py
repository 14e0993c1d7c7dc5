"""Workers die, or stand still, at any boundary of any step: every run is completed, and every effect is there once."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from random import Random

import pytest

from tests.crash.harness import KILLS, Site, Victim
from tests.crash.journal import Entry, wait_until
from tests.crash.leases import LEASE_VARIABLE
from tests.crash.oracle import Oracle
from tests.crash.test_pauses import pause_outside_of_a_transaction
from tests.crash.workflow_app import PARALLEL, RUNGS, effect_of
from tests.extent import EVERYTHING
from tests.long_runs import LongRun

QUEUE = "workflow.twenty_steps"
BOUNDARIES = ("step.before", "step.after", "step.saved")
KILLED_AT = [
    *(("step.before", 1), ("step.before", 9), ("step.after", 1), ("step.after", 7), ("step.after", 20)),
    *(("step.saved", 1), ("step.saved", 12), ("step.saved", 20), ("commit.before", 5), ("commit.before", 14)),
    *(("commit.after", 3), ("commit.after", 16)),
]
RANDOM_KILLS = KILLS // 10 if EVERYTHING else 8
RUNS_AT_ONCE, KILLS_A_ROUND = 20, 8
LEASE_SECONDS = 2.5
RUNS = "select id, state, result from penstock_runs"
BLAMED = "select count(*) from penstock_messages where crashes > 1"
STEPS = "select count(*) from penstock_steps where state = 'done' and attempts = 1"


@pytest.mark.fault("F32")
@pytest.mark.spec("A7-02", "A7-03", "A7-05")
def test_a_run_of_twenty_steps_is_completed_whichever_boundary_its_worker_is_killed_at(
    site: Site, oracle: Oracle, note: Callable[[str], None]
) -> None:
    began = time.monotonic()
    cases = [*product(BOUNDARIES, range(1, RUNGS + 1)), *KILLED_AT[-4:]] if EVERYTHING else KILLED_AT
    for number, (point, nth) in enumerate(cases):
        start(site, number, seconds=0.002)
        doomed = worker(site, PENSTOCK_CRASH_AT=f"{point}=kill@{nth}")
        assert doomed.wait() == -signal.SIGKILL, site.said()
        survivor = worker(site)
        oracle.wait_until_empty(QUEUE)
        site.stop(survivor)

        calls = calls_of(site, number)
        again = sum(calls.values()) - RUNGS
        assert len(calls) == RUNGS, f"{point} {nth}: {calls}"
        assert again == int(point == "step.after") or (point == "commit.before" and again <= 1), (
            f"{point} {nth}: {calls}"
        )
    check(site, oracle, runs=len(cases))
    note(f"a run of {RUNGS} steps, killed at {len(cases)} boundaries: {time.monotonic() - began:.1f} s")


@pytest.mark.fault("F32")
@pytest.mark.spec("A7-02", "A7-03")
def test_runs_in_flight_survive_workers_that_are_killed_at_random_moments(
    site: Site, oracle: Oracle, seed: int, note: Callable[[str], None], store: str, long_run: LongRun
) -> None:
    random, runs, kills = Random(seed), 0, 0
    workers = [worker(site), worker(site)]
    site.up(*workers)
    while kills < RANDOM_KILLS:
        start(site, runs, count=RUNS_AT_ONCE, seconds=0.04)
        runs += RUNS_AT_ONCE
        for _ in range(KILLS_A_ROUND):
            turn = random.randrange(2)
            site.up(*workers)
            wait_until(lambda: not is_nearly_blamed(site), "progress of whoever died with two workers", every=0.02)
            time.sleep(random.uniform(0.0, 0.15))
            workers[turn].kill()
            workers[turn] = worker(site)
            kills += 1
            assert oracle.unbalanced() == []
        oracle.wait_until_empty(QUEUE)
    site.stop(*workers)

    check(site, oracle, runs=runs)
    again = sum(sum(calls_of(site, number).values()) - RUNGS for number in range(runs))
    assert again <= kills * PARALLEL
    long_run.counted(f"kills during runs of {RUNGS} steps, {store}", kills=kills, runs=runs)
    note(f"{runs} runs of {RUNGS} steps, {kills} kills at random moments: {again} calls outside were made again")


@pytest.mark.fault("F03", "F32")
@pytest.mark.spec("A7-02", "A7-03")
def test_a_worker_paused_past_its_lease_saves_no_step_of_a_run_that_goes_on_elsewhere(
    site: Site, oracle: Oracle
) -> None:
    workers = {each.pid: each for each in (worker(site, lease=LEASE_SECONDS), worker(site, lease=LEASE_SECONDS))}
    site.up(*workers.values())
    start(site, 0, seconds=0.04)
    paused = workers[site.journal.wait("call", count=3).pid]
    pause_outside_of_a_transaction(site, paused)
    stopped = time.monotonic()
    taken_over = wait_for_another(site, paused, after=stopped)
    paused.signal(signal.SIGCONT)
    oracle.wait_until_empty(QUEUE)

    lost = site.journal.wait("lease.lost")
    assert lost.pid == paused.pid
    assert taken_over.at - stopped > LEASE_SECONDS / 2
    assert max(calls_of(site, 0).values()) <= 2
    check(site, oracle, runs=1)
    site.stop(*workers.values())


def worker(site: Site, *, lease: float | None = None, **environment: str) -> Victim:
    named = environment if lease is None else {LEASE_VARIABLE: str(lease), **environment}
    return site.start("worker", grace=20.0, reference="tests.crash.workflow_app:app", environment=named)


def start(site: Site, first: int, *, count: int = 1, seconds: float) -> None:
    assert site.start("climb", first=first, runs=count, seconds=seconds).wait() == 0, site.said()


def calls_of(site: Site, number: int) -> Counter[str]:
    """How often each key of a run was used outside."""
    entries = (entry for entry in site.journal.all("call") if entry.number // 100 == number)
    return Counter(entry.id for entry in entries)


def is_nearly_blamed(site: Site) -> bool:
    """Whether a run would be errored if it were the one that runs at the next kill: three times in one step is enough."""
    with site.database.reading() as ask:
        return ask(BLAMED) != [(0,)]


def wait_for_another(site: Site, paused: Victim, *, after: float) -> Entry:
    """The first call that somebody else makes."""
    found: list[Entry] = []

    def there() -> bool:
        found[:] = [entry for entry in site.journal.all("call", after=after) if entry.pid != paused.pid]
        return bool(found)

    wait_until(there, "worker that goes on")
    return found[0]


def check(site: Site, oracle: Oracle, *, runs: int) -> None:
    """Each run has come to its result, each of its steps has its effect once, and nobody was blamed for a kill."""
    with site.database.reading() as ask:
        ended = {id: (state, bytes(result)) for id, state, result in ask(RUNS)}
        ((steps,),) = ask(STEPS)
    right = b"%d" % sum(range(RUNGS))
    assert ended == {f"run-{number}": ("complete", right) for number in range(runs)}
    assert steps == runs * RUNGS
    wanted = [effect_of(number, rung) for number in range(runs) for rung in range(RUNGS)]
    assert oracle.effects() == {"twenty_steps": dict.fromkeys(wanted, 1)}
    assert oracle.unbalanced() == []
    assert oracle.damage() == []
    assert oracle.dead() == []
    assert site.tracebacks() == []
