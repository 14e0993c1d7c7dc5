"""What the history costs: microseconds an entry in its own thread beside a raw insert, and on the way of a message.

    python bench/history.py            also in build/bench/history.json

Raw insert and history take turns, and the fastest round of each counts: what others do on the machine only adds. Beside
a thread that is busy with Python code, as handlers are, every statement waits for its turn; both are shown there too.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.report import ROOT, Bar, Report, Row, number, size_of, table
from penstock.contracts.history import Entry
from penstock.model.ids import IdSource, derived
from penstock.model.message import Delivery
from penstock.model.outcome import DONE
from penstock.runtime.clock import HostClock
from penstock.runtime.engine import SWITCH_SECONDS
from penstock.runtime.events import Events
from penstock.runtime.history import HistoryLog
from penstock.runtime.lanes import ThreadLane
from penstock.storage.sqlite.history import SqliteHistory

ENTRIES = 20_000  # a second of a busy worker
ROUNDS = 7
CHAIN = 3  # messages that follow from one another
BEGAN = 1_763_200_000_000_000

CREATE = """
create table raw (
  ended_at integer, correlation_id blob, id blob, causation_id blob, kind text, service text, queue text, name text,
  source text, attempt integer, status text, started_at integer, error text
)
"""
INSERT = "insert into raw values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

Append = Callable[[list[Entry]], object]


def batches(rounds: int) -> Iterator[list[Entry]]:
    now = BEGAN
    ids = IdSource(lambda: now, Random(7))
    for _ in range(rounds):
        batch: list[Entry] = []
        while len(batch) < ENTRIES:
            now += 50
            chain = id = ids.new()
            cause: bytes | None = None
            for step in range(CHAIN):
                facts = ("message", "market", "pipeline-events", f"app.step-{step}", "market", 1, "acked")
                batch.append(Entry(now, chain, id, cause, *facts, now - 800, None))
                cause, id = id, derived(id, "handler", str(step))
        yield batch[:ENTRIES]


@contextmanager
def raw(folder: Path) -> Iterator[Append]:
    connection = apsw.Connection(str(folder / "raw.db"))
    for pragma in ("pragma journal_mode = wal", "pragma synchronous = normal"):
        connection.execute(pragma).fetchall()
    connection.execute(CREATE)

    def append(entries: list[Entry]) -> None:
        with connection:
            connection.executemany(INSERT, entries)

    yield append
    connection.close()


@contextmanager
def history(folder: Path) -> Iterator[Append]:
    file = SqliteHistory(folder / "bench.db")
    yield file.append
    file.close()


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Another thread that runs Python code all the time."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(100))

    thread = threading.Thread(target=spin, daemon=True)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if wanted:
            thread.join()


def microseconds(work: Callable[[], object], count: int) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / count * 1e6


def appending(*, beside_python: bool) -> tuple[float, float]:
    """Microseconds an entry: ours and the raw insert, the fastest round of each."""
    ours, plain = [], []
    with (
        tempfile.TemporaryDirectory(dir=ROOT / "build") as folder,
        raw(Path(folder)) as reference,
        history(Path(folder)) as append,
        busy(beside_python),
    ):
        for batch in batches(ROUNDS):
            plain.append(microseconds(partial(reference, batch), ENTRIES))
            ours.append(microseconds(partial(append, batch), ENTRIES))
    return min(ours), min(plain)


async def noting() -> tuple[float, float]:
    """Microseconds that a message spends on its history: to note an entry, and to make it of a settlement as well."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        keeper = HistoryLog(
            lambda: SqliteHistory(Path(folder) / "bench.db"),
            ThreadLane,
            HostClock(),
            Events(),
            share=1.0,
            service="market",
            keep_seconds=1e6,
        )
        entry = next(batches(1))[0]
        facts = {
            "id": entry.id,
            "correlation_id": entry.id,
            "causation_id": None,
            "queue": "q",
            "type": "t",
            "source": "s",
        }
        values: dict[str, Any] = {**dict.fromkeys(Delivery._fields, 0), **facts}
        delivery = Delivery(**values)
        began = asyncio.get_running_loop().time()

        def note() -> None:
            for _ in range(ENTRIES):
                keeper.note(entry)

        def settle() -> None:
            for _ in range(ENTRIES):
                keeper.settled(delivery, DONE, began, began)

        noted, settled = [], []
        for _ in range(ROUNDS):
            noted.append(microseconds(note, ENTRIES))
            settled.append(microseconds(settle, ENTRIES))
            await keeper.flush()
        await keeper.close()
    return min(noted), min(settled)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What it costs to keep a history of every message.")
    parser.add_argument("--brief", action="store_true", help="no shorter: it is brief as it is")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where history.json goes")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    (ROOT / "build").mkdir(exist_ok=True)
    sys.setswitchinterval(SWITCH_SECONDS)  # as the engine sets it
    report = Report("history", seed=7, size=size_of(options))
    for name, beside_python in (("append", False), ("append beside busy Python code", True)):
        ours, plain = appending(beside_python=beside_python)
        report.rows.append(Row("penstock", name, ours, "us/entry", plain, ours / plain, durability="normal"))
        if not beside_python:
            report.bars.append(Bar(name, ours, 3.0, at_most=True, unit="us/entry"))
    noted, settled = asyncio.run(noting())
    report.rows += [
        Row("penstock", "note", noted, "us/message", durability="normal"),
        Row("penstock", "note a settlement", settled, "us/message", durability="normal"),
    ]
    report.bars.append(Bar("note", noted, 1.0, at_most=True, unit="us/message"))
    lines = [
        (row.measure, number(row.value), *((number(row.reference or 0), f"{row.ratio:.2f}") if row.ratio else ("", "")))
        for row in report.rows
    ]
    print(table(("microseconds", "history", "raw executemany, no index", "ratio"), lines))
    print(*report.bars, sep="\n")
    report.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
