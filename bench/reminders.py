"""A million reminders, ten thousand of them due in one minute, and a receiver that answers in 50 ms.

    python bench/reminders.py            also in build/bench/reminders.json

The receiver is a process of its own that counts. The worker runs the cron task `deliver` as `penstock run reminders` does, on
a file with full durability. Printed: the seconds from the first arrival to the last, the plans of the statements that look
for what is due, the rows that an idle tick reads, and the memory of the worker during the first and the last fifth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import apsw

from bench.report import ROOT, Bar, Report, Row, number, size_of, table

REMINDERS, DUE = 1_000_000, 10_000
REMINDERS_BRIEF, DUE_BRIEF = 50_000, 1_000
ANSWER_SECONDS = 0.05
MINUTE = 60.0
MEMORY_MORE_MAX = 1.15  # times the memory during the first fifth
WAIT_SECONDS = 300.0
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
DAY_MS = 86_400_000
FILL = """
insert into notifications (id, user_id, title, channels, endpoint_id, starts, occurrence_at, next_fire_at, created_at,
  updated_at)
values (?1, 'bench', 'Benchmark', '["webhook"]', 'ep', '', ?2, ?2, 0, 0)
"""


class Receiver(asyncio.Protocol):
    """Answers every request after 50 ms, and counts."""

    count = 0
    first = last = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._left, self._head = transport, 0, b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        while b"\r\n\r\n" in self._head:
            head, _, body = self._head.partition(b"\r\n\r\n")
            size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            if len(body) < size:
                return
            self._head = body[size:]
            if head.startswith(b"GET"):
                self._answer(json.dumps([Receiver.count, Receiver.first, Receiver.last]).encode())
                continue
            now = time.monotonic()
            Receiver.count, Receiver.first, Receiver.last = Receiver.count + 1, Receiver.first or now, now
            asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._answer)

    def _answer(self, body: bytes | None = None) -> None:
        told = ANSWER if body is None else b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        if not self._transport.is_closing():
            self._transport.write(told)


async def receive() -> None:
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def work() -> None:
    """Send everything that is due, then one idle tick; print the rows that it read and the plans."""
    from penstock_systems.reminders import deliver
    from penstock_systems.reminders.app import now_ms
    from penstock_systems.reminders.system import app

    async with app:
        await app.crons.trigger("deliver")
        running = asyncio.create_task(app.run())
        waiting = "select 1 from notifications where next_fire_at <= :now limit 1"
        await until(lambda: app.db.value(waiting, now=now_ms()), None)
        await app.crons.trigger("deliver")
        idle = "select count(*) from pipeline_log where status = 'idle'"
        await until(lambda: app.db.value(idle), 1)
        rows = await app.db.value("select rows_read from pipeline_log where status = 'idle' limit 1")
        plans = []
        for sql, named in ((deliver.IS_DUE, {"now": 1}), (deliver.DUE, {"now": 1, "most": 100})):
            plans += [row.detail for row in await app.db.rows(f"explain query plan {sql}", **named)]
        statuses = await app.db.rows("select status, count(*) as n from notification_deliveries group by status")
        app.stop()
        await running
    print(json.dumps({"idle_rows": rows, "plans": plans, "statuses": {row.status: row.n for row in statuses}}))


async def until(ask: Callable[[], Awaitable[Any]], wanted: object) -> None:
    for _ in range(round(WAIT_SECONDS / 0.5)):
        if await ask() == wanted:
            return
        await asyncio.sleep(0.5)
    raise TimeoutError


def fill(folder: Path, port: int, reminders: int, due: int) -> None:
    """Create the database, and write the rows past the engine: that takes seconds instead of minutes."""
    (folder / "penstock.toml").write_text(f'history = false\n[systems.reminders]\nallow = ["127.0.0.1:{port}"]\n')
    subprocess.run(
        [sys.executable, "-m", "penstock", "migrate", "reminders"], cwd=folder, check=True, capture_output=True
    )
    connection, now = apsw.Connection(str(folder / "reminders.db")), round(time.time() * 1000)
    url = f"http://127.0.0.1:{port}/hook"
    with connection:
        connection.execute("insert into endpoints (id, url, created_at, updated_at) values ('ep', ?1, 0, 0)", (url,))
        rows = (
            (f"r{number:07}", now - 1_000 if number % (reminders // due) == 0 else now + DAY_MS + number * 1_000)
            for number in range(reminders)
        )
        connection.executemany(FILL, rows)
    connection.close()


def memory_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0.0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(found[0]) / 1024 if found else 0.0


def ask(port: int) -> tuple[int, float, float]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
        text = client.recv(65_536).partition(b"\r\n\r\n")[2]
    count, first, last = json.loads(text)
    return count, first, last


def measured(reminders: int, due: int) -> dict[str, Any]:
    own = [sys.executable, os.path.abspath(__file__)]
    environment = {**os.environ, "REMINDERS_SECRET": "a secret of the benchmark", "PYTHONPATH": str(ROOT)}
    environment.pop("PENSTOCK_DATABASE", None)
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen([*own, "--receive"], stdout=subprocess.PIPE, text=True) as receiver,
    ):
        try:
            assert receiver.stdout is not None
            port, folder = int(receiver.stdout.readline()), Path(name)
            fill(folder, port, reminders, due)
            samples: list[tuple[int, float]] = []
            with subprocess.Popen(
                [*own, "--work"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
            ) as worker:
                began = time.monotonic()
                while worker.poll() is None and time.monotonic() - began < WAIT_SECONDS:
                    samples.append((ask(port)[0], memory_mb(worker.pid)))
                    time.sleep(0.2)
                worker.terminate()
                assert worker.stdout is not None
                told: dict[str, Any] = json.loads(worker.stdout.read())
            count, first, last = ask(port)
        finally:
            receiver.terminate()
    early = [memory for arrived, memory in samples if 0 < arrived <= due / 5 and memory]
    late = [memory for arrived, memory in samples if due * 4 / 5 < arrived and memory]
    return told | {"arrived": count, "seconds": last - first, "early_mb": max(early), "late_mb": max(late)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--brief", action="store_true", help=f"{REMINDERS_BRIEF:,} reminders, {DUE_BRIEF:,} of them due"
    )
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where reminders.json goes")
    options = parser.parse_args()
    if options.receive or options.work:
        asyncio.run(receive() if options.receive else work())
        return
    reminders, due = (REMINDERS_BRIEF, DUE_BRIEF) if options.brief else (REMINDERS, DUE)
    found = measured(reminders, due)
    seconds, share = found["seconds"], found["late_mb"] / found["early_mb"]
    report = Report(
        "reminders", seed=0, size=size_of(options), settings={"reminders": f"{reminders:,}", "due": f"{due:,}"}
    )
    report.rows = [
        Row("penstock", f"seconds to send {due:,} due reminders", seconds, "s", MINUTE, seconds / MINUTE),
        Row("penstock", "webhooks per second", found["arrived"] / seconds, "1/s"),
        Row("penstock", "rows read by an idle tick", found["idle_rows"], "rows"),
        Row("penstock", "memory of the worker", found["late_mb"], "MB", found["early_mb"], share),
    ]
    searches = all("USING" in plan and "notifications_due" in plan for plan in found["plans"])
    report.bars = [
        Bar("seconds to send what is due", seconds, MINUTE, at_most=True, unit="s"),
        Bar("arrived, of those due", found["arrived"] / due, 1.0, at_most=False, unit=""),
        Bar("arrived, of those due", found["arrived"] / due, 1.0, at_most=True, unit=""),
        Bar("rows read by an idle tick", found["idle_rows"], 1, at_most=True, unit="rows"),
        Bar("plans that search the index of due rows", float(searches), 1.0, at_most=False, unit=""),
        Bar("memory, beside that of the first fifth", share, MEMORY_MORE_MAX, at_most=True, unit="times"),
    ]
    report.write(options.out)
    print(table(("", "value", "unit"), [(row.measure, number(row.value), row.unit) for row in report.rows]))
    print(*(f"plan: {plan}" for plan in found["plans"]), f"deliveries: {found['statuses']}", *report.bars, sep="\n")
    if not all(bar.passed for bar in report.bars):
        sys.exit(1)


if __name__ == "__main__":
    main()
