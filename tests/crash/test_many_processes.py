"""Several processes on one file: a message runs in one of them, all get a share, and nobody hears that it is locked."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

import pytest

from tests.crash.harness import Site
from tests.crash.killer import quantile
from tests.crash.oracle import Oracle
from tests.extent import EVERYTHING

MESSAGES = 3_000 if EVERYTHING else 2_000
WORKERS = 4
SHARE_LEAST = 0.01  # each takes part; a process that starts late on a busy machine finds most of the work done
WRITERS, UNITS = 6, 150
HELD_SECONDS = 3.0
WAIT_P99_MOST = 2.0


@pytest.mark.fault("F18")
@pytest.mark.spec("A2-10")
def test_four_processes_share_a_queue_and_each_message_runs_once(
    site: Site, oracle: Oracle, note: Callable[[str], None]
) -> None:
    workers = [site.worker() for _ in range(WORKERS)]
    site.up(*workers)

    for start in range(0, MESSAGES, 1_000):
        site.send("first", *({"number": start + number, "seconds": 0.001} for number in range(1_000)))
    oracle.wait_until_empty()

    runs = site.journal.all("began")
    share = Counter(entry.pid for entry in runs if entry.queue == "first")
    note(f"{MESSAGES:,} messages over {WORKERS} processes: {', '.join(f'{n:,}' for n in sorted(share.values()))}")
    assert len(runs) == 2 * MESSAGES, "a message was delivered twice"
    numbers = set(range(MESSAGES))
    assert oracle.lost_or_doubled(numbers, numbers, ("first", "second")) == []
    assert oracle.unbalanced() == []
    assert len(share) == WORKERS
    assert min(share.values()) >= SHARE_LEAST * MESSAGES
    site.stop(*workers)
    assert site.tracebacks() == []


@pytest.mark.only_on("sqlite")
@pytest.mark.fault("F18")
def test_six_processes_write_at_once_and_none_gets_the_error_that_the_database_is_locked(
    site: Site, oracle: Oracle, note: Callable[[str], None]
) -> None:
    writers = [site.start("write", units=UNITS, writer=writer) for writer in range(WRITERS)]
    site.up(*writers)
    holder = site.start("hold", seconds=HELD_SECONDS)  # another program, which knows nothing of taking turns
    site.journal.wait("holding")
    for writer in writers:
        writer.signal(signal.SIGUSR1)
    assert [victim.wait(60) for victim in (*writers, holder)] == [0] * (WRITERS + 1), site.said()

    waits = [float(wait) for entry in site.journal.all("waits") for wait in entry.reason.split()]
    p50, p99 = quantile(waits, 0.5), quantile(waits, 0.99)
    note(
        f"{WRITERS} processes × {UNITS} units beside a {HELD_SECONDS:g} s holder: p50 {p50 * 1000:.0f} ms, "
        f"p99 {p99 * 1000:.0f} ms, max {max(waits):.2f} s"
    )
    assert len(waits) == WRITERS * UNITS
    assert oracle.effects()["writers"] == dict.fromkeys(range(WRITERS * UNITS), 1)
    assert sum(wait >= HELD_SECONDS / 2 for wait in waits) >= WRITERS, "each of them met the holder once"
    assert (p99 if EVERYTHING else p50) < WAIT_P99_MOST  # beside other tests some wait for the processor
    assert "locked" not in site.said(100_000)
    assert site.tracebacks() == []
