"""Workers that are told to stop claim nothing more, finish or hand back what they hold, and leave within their grace."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from penstock.cli.output import INTERRUPTED
from tests.crash.harness import Site, Victim, gone
from tests.crash.journal import Entry, wait_until
from tests.crash.oracle import Oracle
from tests.extent import patient

GRACE_SECONDS = 1.0
LEAVING_SECONDS = 1.0  # on top of the grace: to hand back, commit and close
REDELIVERED_SECONDS = 1.0
LONG = {"number": 1, "way": "wait", "seconds": 30.0}


@pytest.mark.fault("F04")
@pytest.mark.spec("A1-09")
def test_a_stopped_worker_hands_a_long_message_back_uncharged_within_its_grace(
    site: Site, oracle: Oracle, note: Callable[[str], None]
) -> None:
    worker, began = busy_worker(site, LONG)
    neighbour = site.worker()
    site.up(neighbour)

    told = time.monotonic()
    worker.signal(signal.SIGTERM)
    site.send("patient", *({"number": number, "way": "wait"} for number in range(100, 140)))
    assert worker.wait() == 0, site.said()
    left = time.monotonic()

    again = site.journal.wait("began", count=2, number=1)
    released = site.journal.wait("cancelled", pid=worker.pid).at
    assert GRACE_SECONDS <= left - told <= GRACE_SECONDS + patient(LEAVING_SECONDS)
    assert again.pid == neighbour.pid
    assert again.at - released <= patient(REDELIVERED_SECONDS)
    assert (again.attempt, again.crashes) == (began.attempt, began.crashes) == (1, 0)
    assert site.journal.wait("worker.stopped", pid=worker.pid).released == 1
    wait_until(lambda: oracle.left("patient") == 1, "other messages to be done")
    taken = [entry for entry in site.journal.all("began", pid=worker.pid) if entry.at > told + 0.1]
    assert taken == [], "it went on claiming"
    assert oracle.charged() == []
    assert oracle.unbalanced() == []
    waited = (again.at - released) * 1000
    note(
        f"SIGTERM with a grace of 1 s: gone after {left - told:.2f} s, its message elsewhere after {waited:.0f} ms more"
    )


@pytest.mark.slow("postgres")
@pytest.mark.fault("F04")
def test_a_stopped_worker_lets_a_message_that_is_nearly_done_finish(site: Site, oracle: Oracle) -> None:
    worker, _ = busy_worker(site, {"number": 1, "way": "wait", "seconds": 0.6}, grace=20)

    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, site.said()

    assert oracle.effects() == {"patient": {1: 1}}
    assert len(site.journal.all("began")) == 1
    assert site.journal.wait("worker.stopped").released == 0
    assert oracle.left() == 0
    assert site.lock_files() == []


@pytest.mark.slow("postgres")
@pytest.mark.fault("F04")
def test_a_second_signal_cuts_the_grace_short(site: Site, oracle: Oracle) -> None:
    worker, _ = busy_worker(site, LONG, grace=60)

    told = time.monotonic()
    # A signal that is still pending swallows the next one, so it is said until it is heard.
    while not worker.ended():
        os.kill(worker.pid, signal.SIGTERM)
        assert time.monotonic() - told <= patient(LEAVING_SECONDS)
        time.sleep(0.05)

    assert worker.code == 0, site.said()
    assert oracle.left() == 1
    neighbour = site.worker()
    again = site.journal.wait("began", count=2, number=1)
    assert (again.pid, again.attempt, again.crashes) == (neighbour.pid, 1, 0)


@pytest.mark.slow("postgres")
@pytest.mark.fault("F04")
def test_a_worker_killed_while_it_stops_loses_nothing(site: Site, oracle: Oracle) -> None:
    worker, _ = busy_worker(site, LONG, grace=60)
    neighbour = site.worker()
    site.up(neighbour)

    worker.signal(signal.SIGTERM)
    site.journal.wait("began", pid=worker.pid)
    killed = worker.kill()

    again = site.journal.wait("began", count=2, number=1)
    assert again.pid == neighbour.pid
    assert again.at - killed <= 2.0
    assert again.attempt == 1
    assert oracle.unbalanced() == []


@pytest.mark.fault("F04")
def test_workers_whose_supervisor_was_killed_notice_and_leave(site: Site, oracle: Oracle) -> None:
    site.send("patient", LONG, LONG | {"number": 2})
    supervisor = site.supervisor(workers=2, grace=GRACE_SECONDS)
    site.journal.wait("worker.started", count=2)
    site.journal.wait("began", count=2)
    workers = {entry.pid for entry in site.journal.all("worker.started")}

    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()

    wait_until(lambda: all(map(gone, workers)), "end of the workers", GRACE_SECONDS + LEAVING_SECONDS + 5)
    assert len(site.journal.all("worker.stopped")) == 2
    assert oracle.left() == 2
    neighbour = site.worker()
    again = [site.journal.wait("began", count=1, number=number, pid=neighbour.pid) for number in (1, 2)]
    assert {(entry.attempt, entry.crashes) for entry in again} == {(1, 0)}
    assert len(site.lock_files()) == 1, "the dead supervisor's lock file is still there"


@pytest.mark.slow("postgres")
@pytest.mark.fault("F04")
def test_a_supervisor_that_waits_to_replace_a_worker_leaves_at_once(site: Site, oracle: Oracle) -> None:
    site.send("deadly", {"number": 1, "way": "kill", "seconds": 0.0})
    supervisor = site.supervisor(waits={"restart_seconds_first": 30.0, "restart_seconds_longest": 60.0})
    site.journal.wait("rows.returned")

    told = time.monotonic()
    supervisor.terminate()
    assert supervisor.wait(timeout=patient(20)) == 0, site.said()

    assert time.monotonic() - told <= patient(LEAVING_SECONDS)
    assert oracle.left() == 1
    assert site.lock_files() == []


@pytest.mark.fault("F04")
def test_ctrl_c_reaches_the_group_and_everybody_leaves_well(site: Site, oracle: Oracle) -> None:
    site.send("patient", LONG, LONG | {"number": 2})
    run = site.command("penstock.cli.main", "run", "tests.crash.victim:app", "--workers", "2", "--grace", "1")
    site.journal.wait("worker.started", count=2)
    site.journal.wait("began", count=2)

    told = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=patient(20)) == INTERRUPTED, site.said()

    assert GRACE_SECONDS <= time.monotonic() - told <= GRACE_SECONDS + patient(LEAVING_SECONDS + 1)
    assert len(site.journal.all("worker.stopped")) == 2
    assert "worker.died" not in site.said()
    assert oracle.left() == 2
    assert oracle.charged() == []
    assert site.lock_files() == []
    assert site.tracebacks() == []


def busy_worker(site: Site, task: dict[str, object], *, grace: float = GRACE_SECONDS) -> tuple[Victim, Entry]:
    """A worker inside the handler of this task."""
    site.send("patient", task)
    worker = site.worker(grace=grace)
    return worker, site.journal.wait("began", pid=worker.pid)
