"""One object, one tick, one message: never in two processes at the same time, however long one is paused or cut off."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from random import Random

import msgspec
import pytest

from tests.crash.harness import Site, Victim
from tests.crash.journal import Entry
from tests.crash.leases import LEASE_VARIABLE
from tests.crash.oracle import Oracle
from tests.crash.proxy import Proxy
from tests.crash.test_cut_off import elsewhere
from tests.crash.test_pauses import pause_outside_of_a_transaction

LEASE_SECONDS = 4.0  # more than the wall limit and what may pass between a claim and its start, on a busy machine
AWAY_SECONDS = 5.0  # longer than the lease
TAKEN_OVER_SECONDS = 3.0  # after which others take over what a process runs that lost its server
CUT_OFF_SECONDS = 5.0  # longer than others wait for one who has lost his server, before they take over his objects
TURNS, TICKS = 3, 2  # of a round
FIRE = "update penstock_timers set due = 0, scheduled = scheduled - {} where kind = 'cron'"
HOUR = 3_600_000_000
Resumed = tuple[int, float]  # a process, and when it was allowed to go on


@pytest.mark.fault("F03", "F12", "F35")
def test_what_runs_in_one_process_at_a_time_does_so_through_pauses_longer_than_its_lease(
    site: Site, oracle: Oracle, seed: int
) -> None:
    rivals = {worker.pid: worker for worker in (rival(site), rival(site), rival(site))}
    site.up(*rivals.values())
    resumed: list[Resumed] = []

    for number, what in enumerate(Random(seed).sample(["message", "object", "tick"], 3), start=1):
        give_work(site, number)
        paused = rivals[site.journal.wait("step", queue=what, after=time.monotonic()).pid]
        pause_outside_of_a_transaction(site, paused)
        time.sleep(AWAY_SECONDS)
        resumed.append((paused.pid, time.monotonic()))
        paused.signal(signal.SIGCONT)

    check(site, oracle, rounds=3, resumed=resumed)
    site.stop(*rivals.values())
    assert site.tracebacks() == []


@pytest.mark.only_on("postgres")
@pytest.mark.fault("F12", "F22", "F35")
def test_what_runs_in_one_process_at_a_time_does_so_when_one_is_cut_off_from_its_server(
    site: Site, oracle: Oracle, seed: int
) -> None:
    with proxied(site) as (proxy, afar):
        site.up(afar)
        give_work(site, 1)
        site.journal.wait("step", queue="object", pid=afar.pid)  # so that the object lives there
        near = rival(site)
        site.up(near)
        give_work(site, 2)
        site.journal.wait("step", queue="object", number=0, pid=afar.pid, after=time.monotonic())
        epoch = owner_of_the_object(site)

        cut = afar.pid, time.monotonic()
        proxy.cut()
        time.sleep(CUT_OFF_SECONDS)
        proxy.heal()

        check(site, oracle, rounds=2, cut=[cut])
        assert owner_of_the_object(site) > epoch
        site.stop(afar, near)
    assert site.tracebacks() == []


def rival(site: Site, **environment: str) -> Victim:
    named = {LEASE_VARIABLE: str(LEASE_SECONDS), **environment}
    return site.start("worker", grace=20.0, reference="tests.crash.rivals:app", environment=named)


@contextmanager
def proxied(site: Site) -> Iterator[tuple[Proxy, Victim]]:
    proxy = Proxy(site.database.address)
    try:
        yield proxy, rival(site, **elsewhere(site, proxy))
    finally:
        proxy.close()


def give_work(site: Site, number: int) -> None:
    """Messages, calls of one object, and ticks that should have been long ago: each round's are older than the last one's."""
    assert site.database.change(FIRE.format(number * TICKS * HOUR)) == 1
    assert site.start("compete", first=number * TURNS, turns=TURNS).wait() == 0, site.said()


def check(
    site: Site, oracle: Oracle, *, rounds: int, resumed: Sequence[Resumed] = (), cut: Sequence[Resumed] = ()
) -> None:
    """Everything happened once, and nothing while another was at it."""
    oracle.wait_until_empty(seconds=60)
    assert oracle.dead() == []
    effects = oracle.effects()
    numbers = range(TURNS, TURNS + rounds * TURNS)
    for what in ("message", "caller", "object"):
        assert effects[what] == dict.fromkeys(numbers, 1), what
    assert sorted(effects["tick"].values()) == [1] * len(effects["tick"])
    assert len(effects["tick"]) >= rounds * TICKS
    with site.database.reading() as ask:
        ((state,),) = ask("select state from penstock_objects where class = 'Ledger'")
    assert sorted(msgspec.json.decode(bytes(state))["numbers"]) == [*numbers]
    assert overlapping(without_the_last_word(site.journal.all("step"), resumed, cut)) == []
    assert oracle.unbalanced() == []


def without_the_last_word(steps: list[Entry], resumed: Sequence[Resumed], cut: Sequence[Resumed]) -> list[Entry]:
    """Where a process was stopped in the middle of a step, the rest of it comes when it goes on, and nobody can help that:
    no run may take a second one. What ran when its process was cut off from the server is not ended by force, and may
    take longer than the others wait on a busy machine (docs/decisions/0014)."""
    excused = set()
    for pid, at in resumed:
        begun = {step.id for step in steps if step.pid == pid and step.at < at}
        for run in begun:
            after = [number for number, step in enumerate(steps) if step.id == run and step.at >= at]
            excused.update(after[:1])
    for pid, at in cut:
        begun = {step.id for step in steps if step.pid == pid and step.at < at}
        late = at + TAKEN_OVER_SECONDS
        excused.update(number for number, step in enumerate(steps) if step.id in begun and step.at > late)
    return [step for number, step in enumerate(steps) if number not in excused]


def overlapping(steps: list[Entry]) -> list[str]:
    """The runs of one thing that had begun before the last step of another run of it."""
    found = []
    for thing, of_one in groupby(sorted(steps, key=_thing), key=_thing):
        runs: dict[str, list[float]] = {}
        for step in of_one:
            runs.setdefault(step.id, []).append(step.at)
        spans = sorted((min(times), max(times), run) for run, times in runs.items())
        for (_, last, before), (first, _, run) in pairwise(spans):
            if first < last:
                found.append(f"{thing}: run {run} began {last - first:.3f} s before the end of {before}")
    return found


def _thing(step: Entry) -> tuple[str, int]:
    return step.queue, step.number


def owner_of_the_object(site: Site) -> int:
    """Its epoch, which rises with every owner."""
    with site.database.reading() as ask:
        ((epoch,),) = ask("select epoch from penstock_objects where class = 'Ledger'")
    return int(epoch)


def test_two_runs_at_once_are_found() -> None:
    def step(run: str, at: float) -> Entry:
        return Entry("step", at, 1, "tick", id=run)

    assert overlapping([step("a", 1), step("a", 3), step("b", 4)]) == []
    assert overlapping([step("a", 1), step("b", 2), step("a", 3)]) == [
        "('tick', 0): run b began 1.000 s before the end of a"
    ]
