"""A producer that is a hundred times as fast as the consumer: the backlog grows on disk, and nowhere else.

For a few seconds here. `PENSTOCK_SLOW_CONSUMER=300` runs it for that many, as long as the fault is described.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.crash.journal import wait_until
from tests.extent import patient

SECONDS = float(os.environ.get("PENSTOCK_SLOW_CONSUMER") or 6)
START_SECONDS_MAX = 30.0
WARM_SECONDS = 3.0  # until everything that a process loads once is loaded
PER_SECOND, AT_ONCE = 5_000, 50
GROWTH_MAX = 20_000_000
SEND_SECONDS_MAX = 0.020

APP = """
import asyncio
from pathlib import Path

import penstock as ps

app = ps.App("shop")


class Order(ps.Command, type="order"):
    number: int
    note: str = "x" * 200


orders = app.queue("orders", Order, parallel=1)


@orders.handler
async def handle(order: Order) -> None:
    Path("began").touch()
    await asyncio.sleep(0.02)
"""
PRODUCER = """
import asyncio, itertools, sys, time
from pathlib import Path
from shop import Order, app, orders

per_second, at_once = int(sys.argv[1]), int(sys.argv[2])


async def main() -> None:
    async with app:
        began = time.perf_counter()
        for turn in itertools.takewhile(lambda _: not Path("enough").exists(), itertools.count()):
            await asyncio.sleep(max(0.0, began + turn * at_once / per_second - time.perf_counter()))
            before = time.perf_counter()
            async with app.unit():
                orders.send_all(Order(number=number) for number in range(at_once))
            print(time.perf_counter() - before, flush=turn % 20 == 0)


asyncio.run(main())
"""


def fact(pid: int, name: str) -> int:
    """A number that the system tells of a process; 0 once it has ended."""
    try:
        told = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in told.splitlines() if line.startswith(f"{name}:")), 0)


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return fact(pid, "VmRSS") * 1024


def worker_of(supervisor: int) -> int:
    """The worker that a supervisor starts, as soon as it is there; before that it starts others that soon end."""
    until = time.monotonic() + patient(START_SECONDS_MAX)
    while time.monotonic() < until:
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal() or fact(int(process.name), "PPid") != supervisor:
                continue
            if b"penstock.cli.worker" in process.joinpath("cmdline").read_bytes():
                return int(process.name)
        time.sleep(0.1)
    raise AssertionError("no worker was started")


@pytest.mark.fault("F26")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_backlog_grows_on_disk_and_in_no_process(tmp_path: Path, note: Callable[[str], None]) -> None:
    tmp_path.joinpath("shop.py").write_text(APP, "utf-8")
    tmp_path.joinpath("producer.py").write_text(PRODUCER, "utf-8")
    run = [sys.executable, "-m", "penstock", "run", "shop.py", "--workers", "1"]
    produce = [sys.executable, "producer.py", str(PER_SECOND), str(AT_ONCE)]
    took = tmp_path / "took.txt"
    running = subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with took.open("w") as out:
            producing = subprocess.Popen(produce, cwd=tmp_path, stdout=out)
        try:
            worker = worker_of(running.pid)
            wait_until(tmp_path.joinpath("began").exists, "message at work", START_SECONDS_MAX)
            time.sleep(patient(WARM_SECONDS))
            processes = {"supervisor": running.pid, "producer": producing.pid, "worker": worker}
            before = {name: resident(pid) for name, pid in processes.items()}
            assert all(before.values())
            after = dict(before)
            ends = time.monotonic() + SECONDS
            while time.monotonic() < ends:
                after = {name: max(after[name], resident(pid)) for name, pid in processes.items()}
                time.sleep(0.2)
            tmp_path.joinpath("enough").touch()
            assert producing.wait(patient(30)) == 0
        finally:
            producing.kill()
            producing.wait()
    finally:
        running.terminate()
        running.wait(timeout=patient(60))

    grown = {name: after[name] - before[name] for name in processes}
    sends = sorted(float(line) for line in took.read_text("utf-8").split())
    median, late = statistics.median(sends), sends[int(len(sends) * 0.99)]
    note(
        f"a backlog of {len(sends) * AT_ONCE:,}: sends of {AT_ONCE} took {median * 1e3:.1f} ms (99 %: {late * 1e3:.1f} ms); "
        + ", ".join(f"{name} grew by {size / 1e6:.1f} MB" for name, size in grown.items())
    )
    assert {name: size for name, size in grown.items() if size > GROWTH_MAX} == {}
    assert median < patient(SEND_SECONDS_MAX)
    connection = apsw.Connection(str(tmp_path / "shop.db"), flags=apsw.SQLITE_OPEN_READONLY)
    (sent, acked), *_ = connection.execute("select sum(sent), sum(acked) from penstock_counters where queue = 'orders'")
    (waiting,), *_ = connection.execute("select count(*) from penstock_messages")
    connection.close()
    assert sent == len(sends) * AT_ONCE
    assert sent == acked + waiting
    assert waiting > 0.9 * sent
