"""A worker that lost its server for longer than its lease, or was stopped inside a commit, saves nothing, holds up nobody."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import pytest

from tests.crash.harness import SOCKETS_VARIABLE, Site, Victim
from tests.crash.journal import wait_until
from tests.crash.leases import LEASE_VARIABLE
from tests.crash.oracle import Oracle
from tests.crash.proxy import Proxy
from tests.crash.test_pauses import LEASE_SECONDS, SIGNS_OF_LIFE, ask_for_a_sign_of_life, victim
from tests.extent import EVERYTHING, patient

pytestmark = pytest.mark.only_on("postgres")

CYCLES = 2 if EVERYTHING else 1
TAKEN_OVER_SECONDS = 3.0  # a lapsed lease is looked for once a second, on a machine that may be busy
ENDED_SECONDS = 10.0  # after which the server ends a connection that does nothing inside a transaction
MESSAGES, PROBES, TRIES = 400, 20, 5


@pytest.fixture
def proxy(site: Site) -> Iterator[Proxy]:
    proxy = Proxy(site.database.address)
    yield proxy
    proxy.close()


@pytest.mark.fault("F22")
@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_worker_cut_off_for_longer_than_its_lease_commits_nothing(
    how: str, site: Site, oracle: Oracle, proxy: Proxy, note: Callable[[str], None]
) -> None:
    afar, near = far_away(site, proxy), victim(site)
    site.up(afar, near)
    waits: list[float] = []

    for number in count():
        site.send("patient", {"number": number, "way": "wait", "seconds": 0.5})
        began = site.journal.wait("began", number=number)
        if began.pid == afar.pid:
            getattr(proxy, how)()
            took_over = site.journal.wait("began", number=number, count=2)
            if (
                len(waits) % 2
            ):  # it comes back when the message is done; otherwise while the other worker is still at it
                oracle.wait_until_empty("patient")
            proxy.heal()
            waits.append(took_over.at - began.at)
            site.journal.wait("lease.lost", count=len(waits), pid=afar.pid)
            oracle.wait_until_empty("patient")
            assert took_over.pid == oracle.settled_by()["patient", number] == near.pid
        oracle.wait_until_empty("patient")
        if len(waits) == CYCLES:
            break

    assert oracle.effects()["patient"] == dict.fromkeys(range(number + 1), 1)
    assert max(waits) <= LEASE_SECONDS + patient(TAKEN_OVER_SECONDS)
    assert oracle.unbalanced() == []
    assert oracle.dead() == []
    for worker in (afar, near):
        ask_for_a_sign_of_life(site, worker)
    site.stop(afar, near)
    assert site.tracebacks() == []
    note(
        f"{CYCLES} × cut off by a {how}: what it ran was taken over after {max(waits):.1f} s at most, its commits refused"
    )


@pytest.mark.fault("F22")
def test_a_worker_stopped_inside_its_commit_delays_no_other_worker(site: Site, oracle: Oracle) -> None:
    stopped, near = victim(site), victim(site)
    site.up(stopped, near)
    sent: set[int] = set()

    for attempt in range(TRIES):
        first = attempt * (MESSAGES + PROBES)
        site.send("first", *({"number": first + number} for number in range(MESSAGES)))
        stop_inside_a_transaction(site, stopped)
        held = {entry.number for entry in site.journal.all("began", pid=stopped.pid)}
        site.send("first", *({"number": first + MESSAGES + number} for number in range(PROBES)))
        sent |= set(range(first, first + MESSAGES + PROBES))
        probes = set(range(first + MESSAGES, first + MESSAGES + PROBES))
        went_on = is_done_before(
            lambda: probes <= {entry.number for entry in site.journal.all("ended", queue="second", pid=near.pid)},  # noqa: B023
            lambda: not site.database.writing(stopped.pid),
        )
        if went_on and EVERYTHING:
            oracle.wait_until_empty(
                seconds=ENDED_SECONDS + LEASE_SECONDS + 5 * TAKEN_OVER_SECONDS
            )  # one after the other
        stopped.signal(signal.SIGCONT)
        oracle.wait_until_empty()
        if went_on:
            break
    else:
        raise AssertionError(f"{TRIES} times nothing new was done until the server ended the transaction")

    assert held
    ask_for_a_sign_of_life(site, stopped)
    oracle.wait_until_empty()
    assert oracle.lost_or_doubled(sent, sent | SIGNS_OF_LIFE, ("first", "second")) == []
    assert oracle.unbalanced() == []
    site.stop(stopped, near)


def is_done_before(done: Callable[[], bool], over: Callable[[], bool]) -> bool:
    """Whether `done` came first. On a busy machine the server may end a transaction before another worker gets its turn."""
    wait_until(lambda: done() or over(), "end of the work or of the transaction", 3 * ENDED_SECONDS)
    return done() and not over()


def stop_inside_a_transaction(site: Site, worker: Victim) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if site.database.writing(worker.pid):
            worker.stop()
            with suppress(TimeoutError):
                wait_until(lambda: not site.database.writing(worker.pid), "end of its transaction", 0.1)
                worker.signal(signal.SIGCONT)
                continue
            return
    raise AssertionError("it was never seen inside a transaction")


def far_away(site: Site, proxy: Proxy) -> Victim:
    return site.worker(environment={LEASE_VARIABLE: str(LEASE_SECONDS), **elsewhere(site, proxy)})


def elsewhere(site: Site, proxy: Proxy) -> dict[str, str]:
    """For a process that reaches the server through the proxy, and whose files nobody here can see: as if on another host."""
    folder = site.folder / "elsewhere"
    folder.mkdir(exist_ok=True)
    return {"PENSTOCK_DATABASE": proxy.url, SOCKETS_VARIABLE: str(folder)}
