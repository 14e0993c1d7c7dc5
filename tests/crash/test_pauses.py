"""A worker that was paused past its lease, or that let a message go, commits nothing of it afterwards."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.crash.harness import Site, Victim
from tests.crash.journal import wait_until
from tests.crash.leases import LEASE_VARIABLE
from tests.crash.oracle import Oracle
from tests.extent import EVERYTHING

CYCLES = 4 if EVERYTHING else 2  # of each way
LEASE_SECONDS = 1.0
SIGNS_OF_LIFE = set(range(10_000, 10_200))


@pytest.mark.fault("F03")
@pytest.mark.spec("A2-09", "A2-10")
@pytest.mark.parametrize(
    "queue, way",
    [
        ("patient", "block"),  # paused on the processor: it returns late and wants to save an effect and a settlement
        pytest.param("patient", "wait", marks=pytest.mark.slow),  # paused while it waits: the same
        ("brief", "wait"),  # paused past its wall limit as well: it is cancelled late and wants to save a failure
    ],
)
def test_a_worker_paused_past_its_lease_is_refused(
    queue: str, way: str, site: Site, oracle: Oracle, note: Callable[[str], None]
) -> None:
    workers = {worker.pid: worker for worker in (victim(site), victim(site))}
    site.up(*workers.values())
    retried = 0

    for number in range(CYCLES):
        site.send(queue, {"number": number, "way": way, "seconds": 0.35})
        paused = workers[site.journal.wait("began", number=number).pid]
        retried += pause_outside_of_a_transaction(site, paused)
        took_over = site.journal.wait("began", number=number, count=2)
        if number % 2:  # it comes back when the message is done; otherwise while the other worker is still at it
            oracle.wait_until_empty(queue)
        paused.signal(signal.SIGCONT)
        lost = site.journal.wait("lease.lost", count=number + 1)
        oracle.wait_until_empty(queue)

        assert took_over.pid != paused.pid
        assert lost.pid == paused.pid
        assert oracle.settled_by()[queue, number] == took_over.pid

    assert oracle.effects()[queue] == dict.fromkeys(range(CYCLES), 1)
    assert oracle.charged() == []
    assert oracle.unbalanced() == []
    assert oracle.dead() == []
    for worker in workers.values():  # it goes on: each of them can still do a message from beginning to end
        ask_for_a_sign_of_life(site, worker)
    site.stop(*workers.values())  # which also writes the last of their logs
    assert site.said(1_000_000).count("lease.lost") == CYCLES, "each loss is logged once"
    assert site.tracebacks() == []
    note(
        f"{CYCLES} × {way} in {queue}, paused past a lease of {LEASE_SECONDS} s: {CYCLES} late commits refused"
        f"{f', stopped again {retried} times' if retried else ''}"
    )


@pytest.mark.fault("F03")
def test_a_commit_that_comes_after_the_message_was_handed_back_is_refused(site: Site, oracle: Oracle) -> None:
    numbers = range(10)
    worker = site.worker()

    site.send("patient", *({"number": number, "way": "late", "seconds": 0.2} for number in numbers))
    oracle.wait_until_empty()

    site.journal.wait("late.refused", count=len(numbers))
    assert site.journal.all("late.saved") == []
    assert oracle.effects() == {"patient": dict.fromkeys(numbers, 1)}
    assert {entry.attempt for entry in site.journal.all("began")} == {1}
    site.stop(worker)


def victim(site: Site) -> Victim:
    return site.worker(environment={LEASE_VARIABLE: str(LEASE_SECONDS)})


def pause_outside_of_a_transaction(site: Site, worker: Victim) -> int:
    """A process stopped inside its commit would hold what it writes from everybody: it is let go, and stopped again. Gives
    the number of times that this was necessary."""
    let_go = 0
    while True:
        worker.stop()
        try:
            wait_until(lambda: not site.database.in_transaction(worker.pid), "end of its transaction", 0.1)
        except TimeoutError:
            worker.signal(signal.SIGCONT)
            let_go += 1
        else:
            return let_go


def ask_for_a_sign_of_life(site: Site, worker: Victim) -> None:
    """Sends messages until this very worker has finished one."""
    for number in sorted(SIGNS_OF_LIFE):
        site.send("first", {"number": number})
        if site.journal.wait("ended", queue="first", number=number).pid == worker.pid:
            return
    raise AssertionError(f"process {worker.pid} does nothing any more")
