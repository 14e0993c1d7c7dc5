"""Wake-ups through the server: many rings in a row cost few notices, and the wait between two of them costs nothing."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest

from penstock.storage.postgres import bell as module
from penstock.storage.postgres.bell import NotifyBell
from penstock.storage.postgres.connection import PostgresSettings
from tests.postgres import empty_database
from tests.real_time import in_real_time

RINGS = 100
SPARE_SECONDS = 0.002  # between two rings beside the wait of the bell, so that each gives a notice
CPU_SECONDS_MAX = 0.0005  # a notice; while the wait for the next one kept the processor busy it took a millisecond
TRIES = 5  # on a machine that is busy otherwise


@in_real_time
async def test_a_bell_waits_for_its_next_notice_without_the_processor() -> None:
    settings = PostgresSettings(empty_database())
    bell, neighbour, heard = NotifyBell(settings, 1), NotifyBell(settings, 2), asyncio.Event()
    neighbour.listen(lambda queues: heard.set())
    bell.listen(lambda queues: None)
    while not heard.is_set():  # both have reached the server
        bell.ring({"orders"})
        await asyncio.sleep(0.01)

    assert min([await cpu_of_a_notice(bell) for _ in range(TRIES)]) < CPU_SECONDS_MAX
    bell.close()
    neighbour.close()


async def cpu_of_a_notice(bell: NotifyBell) -> float:
    thread = bell._thread
    assert thread is not None
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    before = time.clock_gettime(clock)
    for _ in range(RINGS):
        bell.ring({"orders"})
        await asyncio.sleep(module.NOTIFY_EVERY_SECONDS + SPARE_SECONDS)
    return (time.clock_gettime(clock) - before) / RINGS


@in_real_time
async def test_rings_in_a_row_are_one_notice_each_few_milliseconds_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "NOTIFY_EVERY_SECONDS", 0.05)
    settings = PostgresSettings(empty_database())
    bell, neighbour = NotifyBell(settings, 1), NotifyBell(settings, 2)
    heard: list[tuple[float, set[str]]] = []
    last = asyncio.Event()

    def hear(queues: set[str]) -> None:
        heard.append((asyncio.get_running_loop().time(), queues))
        if "queue-39" in queues:
            last.set()

    neighbour.listen(hear)
    async with asyncio.timeout(30):
        while not heard:
            bell.ring({"first"})
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        heard.clear()
        for number in range(40):
            bell.ring({f"queue-{number}"})
            await asyncio.sleep(0.005)
        await last.wait()
    bell.close()
    neighbour.close()

    assert {name for _, queues in heard for name in queues} >= {f"queue-{number}" for number in range(40)}
    assert len(heard) < 20
    assert sum(after - before > 0.03 for (before, _), (after, _) in pairwise(heard)) >= 2
