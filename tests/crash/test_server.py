"""A PostgreSQL server that restarts and ends connections at random: nothing lost or doubled, and soon at work again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from random import Random

import psycopg
import pytest

from penstock.runtime.supervisor import EXIT_STORE
from penstock.storage.schema import VERSION
from tests.crash.harness import Site
from tests.crash.journal import wait_until
from tests.crash.killer import quantile
from tests.crash.oracle import Oracle, read_ids
from tests.extent import EVERYTHING, patient
from tests.postgres import server

pytestmark = pytest.mark.only_on("postgres")

SECONDS = 60.0 if EVERYTHING else 6.0
RESTARTED_EVERY = (5.0, 20.0) if EVERYTHING else (1.5, 2.5)
ENDED_EVERY_SECONDS = 0.2
AT_WORK_AGAIN_SECONDS = 5.0  # the promise, from the return of the server
PICKED_UP_SECONDS = 0.5  # with nobody listening it would be up to a second
STAGES = ("first", "second")
OTHERS = "select pid from pg_stat_activity where datname = %s and application_name <> 'penstock tests'"
BELLS = "select pid from pg_stat_activity where datname = %s and application_name = 'penstock bell'"


@pytest.mark.fault("F20", "F21")
def test_a_server_that_restarts_and_ends_connections_loses_and_doubles_nothing(
    site: Site, oracle: Oracle, seed: int, note: Callable[[str], None]
) -> None:
    random = Random(seed)
    producer = site.start("producer", first_number=0, ledger=str(site.ids))
    workers = [site.worker(), site.worker()]
    site.up(producer, *workers)
    ends = time.monotonic() + SECONDS
    ended, returns = 0, []

    while time.monotonic() < ends:
        restart_at = time.monotonic() + random.uniform(*RESTARTED_EVERY)
        while time.monotonic() < min(restart_at, ends):
            ended += end_one_connection(site, random)
            time.sleep(ENDED_EVERY_SECONDS)
        server().restart(random.choice([signal.SIGINT, signal.SIGQUIT]))
        returned = time.monotonic()
        returns.append(site.journal.wait("ended", after=returned, seconds=20).at - returned)
        assert oracle.unbalanced() == []
    site.stop(producer)
    oracle.wait_until_empty()
    site.stop(*workers)

    sent, begun = read_ids(site.ids)
    note(
        f"{len(returns)} restarts, {ended} connections ended, {len(sent):,} messages: at work again after "
        f"{max(returns):.2f} s at most"
    )
    assert oracle.lost_or_doubled(sent, begun, STAGES) == []
    assert oracle.unbalanced() == []
    assert {(entry.attempt, entry.crashes) for entry in site.journal.all("began")} == {(1, 0)}, "the living were blamed"
    assert oracle.dead() == []
    assert max(returns) <= patient(AT_WORK_AGAIN_SECONDS)
    assert site.tracebacks() == []
    assert site.lock_files() == []


@pytest.mark.fault("F21")
def test_a_worker_whose_connections_are_all_ended_listens_again(site: Site, note: Callable[[str], None]) -> None:
    worker = site.worker()
    site.up(worker)
    wait_until(lambda: backends(site, BELLS), "somebody who listens")

    while end_one_connection(site, Random(0)):
        pass

    wait_until(lambda: backends(site, BELLS), "somebody who listens again", AT_WORK_AGAIN_SECONDS)
    waits = [picked_up_after(site, number) for number in range(9)]
    note(f"after all its connections were ended, a worker picked up within {quantile(waits, 0.5) * 1000:.0f} ms")
    assert quantile(waits, 0.5) < patient(PICKED_UP_SECONDS)
    site.stop(worker)
    assert site.tracebacks() == []


@pytest.mark.fault("F20")
def test_a_supervisor_waits_for_a_server_that_is_away(site: Site, oracle: Oracle) -> None:
    """Also if its workers die meanwhile, and nobody can give back what they held."""
    supervisor = site.supervisor(workers=2, waits={"restart_seconds_longest": 0.05})
    wait_until(lambda: len(site.supervised()) == 2, "second worker")
    site.send("first", *({"number": number, "seconds": 0.3} for number in range(20)))
    site.journal.wait("began", count=4)

    server().stop()
    try:
        for worker in site.supervised():
            os.kill(worker.pid, signal.SIGKILL)
        site.journal.wait("worker.died", count=2)
    finally:
        server().start()
    returned = time.monotonic()

    assert site.journal.wait("ended", after=returned).at - returned <= patient(AT_WORK_AGAIN_SECONDS)
    oracle.wait_until_empty()
    assert oracle.lost_or_doubled(set(range(20)), set(range(20)), STAGES) == []
    supervisor.terminate()
    assert supervisor.wait(timeout=patient(30)) == 0, site.said()
    assert site.lock_files() == []


@pytest.mark.fault("F54")
def test_a_worker_refuses_a_schema_newer_than_it_knows_and_one_that_runs_goes_on(site: Site, oracle: Oracle) -> None:
    before = site.worker()
    site.up(before)
    assert site.database.change(f"update penstock_facts set value = '{VERSION + 1}' where name = 'schema'") == 1

    late = site.worker()

    assert late.wait() == EXIT_STORE
    assert "Upgrade Penstock" in site.said()
    assert site.database.change(f"update penstock_facts set value = '{VERSION}' where name = 'schema'") == 1
    site.send("first", *({"number": number} for number in range(5)))
    oracle.wait_until_empty()
    assert oracle.lost_or_doubled(set(range(5)), set(range(5)), STAGES) == []
    site.stop(before)


def picked_up_after(site: Site, number: int) -> float:
    """Seconds from a commit that sent a message to its handler, in another process."""
    site.send("first", {"number": number})
    sent = time.monotonic()
    return max(0.0, site.journal.wait("began", queue="first", number=number).at - sent)


def end_one_connection(site: Site, random: Random) -> int:
    found = backends(site, OTHERS)
    if found:
        with psycopg.connect(server().url(), autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(%s)", [random.choice(found)])
    return bool(found)


def backends(site: Site, which: str) -> list[int]:
    with psycopg.connect(server().url(), autocommit=True) as connection:
        return [pid for (pid,) in connection.execute(which.encode(), [site.database.address.rpartition("/")[2]])]
