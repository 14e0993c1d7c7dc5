"""Hours of constant work in a real `penstock run`: does anything drift?

    make soak HOURS=8        or        python bench/soak.py [--hours 8] [--rate 20] [--kills 8]

The app of bench/soak_app.py sends, retries, writes, prices by objects with alarms and starts runs that sleep, RATE listings
a second. Its database is a file with full durability, or the empty PostgreSQL database that PENSTOCK_DATABASE names. The
worker is killed now and then. Every minute the soak reads from outside what the worker needs and what it did, and times
awaited sends of its own. At the end, the second fifth is compared with the last, in medians: the first fills caches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import penstock as ps
from bench.report import ROOT, Bar, Report, Row, number, table
from bench.soak_app import Probe

SAMPLES_MIN = 10  # fewer have no fifths
SENDS = 20  # awaited ones a sample, whose median counts
DRIFT_MAX = 1.10
LOG_SHOWN = 4_000  # characters of the app's log, where the soak fails
TABLES = """
create table listings (id integer primary key, seen integer not null);
create table shelves (name text primary key, prices integer not null);
"""
NAMES = ("after", "messages/s", "CPU ms each", "send ms", "oldest s", "memory MB", "files", "disk MB")
HEAD = "{:>8}  {:>10}  {:>11}  {:>7}  {:>8}  {:>9}  {:>5}  {:>7}"
FIGURES = ("messages handled", "processor time a message", "awaited send", "memory", "open files")
UNITS = ("1/s", "ms", "ms", "MB", "files")


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory, processor time and open files are those of all processes of the run."""

    seconds: float  # since the begin
    acked: int
    cpu_seconds: float
    send_ms: float
    oldest_seconds: float
    memory_mb: float
    files: int
    disk_mb: float


@dataclass(frozen=True, slots=True)
class Process:
    """What Linux says of a process and its children."""

    cpu_seconds: float
    memory_mb: float
    files: int
    workers: list[int]


def look_at(pid: int) -> Process:
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    ticks = memory = files = 0
    for each in (pid, *children):
        try:
            values = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            # Fields 14 to 17 of proc(5): its own time, and that of its children which have ended.
            ticks += sum(int(value) for value in values[11:15])
            memory += int(values[21]) * os.sysconf("SC_PAGE_SIZE")
            files += len(os.listdir(f"/proc/{each}/fd"))
        except FileNotFoundError:  # it ended meanwhile
            continue
    return Process(ticks / os.sysconf("SC_CLK_TCK"), memory / 1e6, files, children)


@contextmanager
def running(folder: Path, database: str, rate: int) -> Iterator[int]:
    """Run the app in `folder`, and yield the process id of its supervisor."""
    (folder / "migrations").mkdir()
    (folder / "migrations/0001_tables.sql").write_text(TABLES)
    (folder / "soak_app.py").write_text((ROOT / "bench/soak_app.py").read_text("utf-8"))
    environment = {**os.environ, "PENSTOCK_DATABASE": database, "SOAK_RATE": str(rate)}
    command = [sys.executable, "-m", "penstock", "run", "soak_app.py"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            yield process.pid
        except Exception:
            print((folder / "log").read_text("utf-8", "replace")[-LOG_SHOWN:], file=sys.stderr)
            raise
        finally:
            process.terminate()


async def soak(folder: Path, database: str, pid: int, *, hours: float, every: float, kills: int) -> list[Sample]:
    """Sample until the hours are over, and kill the worker `kills` times in between."""
    count = max(SAMPLES_MIN, round(hours * 3_600 / every))
    killed_after = {round(count * (place + 1) / (kills + 1)) for place in range(kills)}
    client = ps.App("soak", database=database)
    probes = client.queue("probes", Probe)
    began, samples = time.monotonic(), list[Sample]()
    print(HEAD.format(*NAMES))
    async with client:
        for place in range(1, count + 1):
            await asyncio.sleep(max(0.0, began + place * every - time.monotonic()))
            process, (acked, oldest) = look_at(pid), await asyncio.to_thread(queues, database)
            samples.append(
                Sample(
                    seconds=time.monotonic() - began,
                    acked=acked,
                    cpu_seconds=process.cpu_seconds,
                    send_ms=await timed_send(client, probes),
                    oldest_seconds=oldest,
                    memory_mb=process.memory_mb,
                    files=process.files,
                    disk_mb=disk_mb(folder),
                )
            )
            print(line(samples), flush=True)
            if place in killed_after and process.workers:
                os.kill(process.workers[0], signal.SIGKILL)
                print(f"          killed worker process {process.workers[0]}", flush=True)
    return samples


def disk_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.glob("soak.db*")) / 1e6


def queues(database: str) -> tuple[int, float]:
    """How many messages were handled, and the age of the oldest one that waits, as `penstock queues list` says."""
    command = [sys.executable, "-m", "penstock", "--json", "queues", "list", database]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["queues"]
    return sum(each["acked"] for each in listed), max(each["oldest_age_seconds"] or 0.0 for each in listed)


async def timed_send(client: ps.App, probes: ps.Queue[Probe]) -> float:
    """The median of a few awaited sends, in milliseconds."""
    timings = []
    for _ in range(SENDS):
        start = time.perf_counter()
        async with client.unit():
            probes.send(Probe())
        timings.append((time.perf_counter() - start) * 1_000)
    return statistics.median(timings)


def line(samples: list[Sample]) -> str:
    last = samples[-1]
    rate, cpu = work(samples[-2:]) if len(samples) > 1 else (0.0, 0.0)
    values = (rate, cpu, last.send_ms, last.oldest_seconds, last.memory_mb, last.files, last.disk_mb)
    return HEAD.format(f"{last.seconds / 60:.0f} min", *map(number, values))


def work(samples: list[Sample]) -> tuple[float, float]:
    """Messages a second, and milliseconds of processor time for each, between the first sample and the last."""
    first, last = samples[0], samples[-1]
    acked = max(1, last.acked - first.acked)
    return acked / (last.seconds - first.seconds), 1_000 * (last.cpu_seconds - first.cpu_seconds) / acked


def judge(report: Report, samples: list[Sample], kills: int) -> None:
    fifth = len(samples) // 5
    early, late = samples[fifth : 2 * fifth + 1], samples[-fifth - 1 :]
    figures = [(*work(part), *(statistics.median(column) for column in columns(part))) for part in (early, late)]
    for name, unit, before, after in zip(FIGURES, UNITS, *figures, strict=True):
        report.rows.append(
            Row("penstock", f"{name}, last fifth beside the second", after, unit, before, after / before)
        )
    for name in ("processor time a message", "memory", "open files"):
        row = report.rows[FIGURES.index(name)]
        assert row.ratio is not None
        report.bars.append(
            Bar(f"{name}: last fifth beside the second", row.ratio, DRIFT_MAX, at_most=True, unit="times")
        )
    hours = (samples[-1].seconds - samples[fifth].seconds) / 3_600
    grown = (samples[-1].disk_mb - samples[fifth].disk_mb) / hours
    report.rows.append(Row("penstock", "disk, growth an hour", grown, "MB"))
    report.settings |= {"hours": f"{samples[-1].seconds / 3_600:.2f}", "kills": str(kills)}


def columns(samples: list[Sample]) -> list[list[float]]:
    return [
        [each.send_ms for each in samples],
        [each.memory_mb for each in samples],
        [float(each.files) for each in samples],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Hours of constant work: does anything drift?")
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--rate", type=int, default=20, help="listings a second")
    parser.add_argument("--kills", type=int, help="of the worker; one an hour by default")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two samples")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where soak.json goes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: the app under test ends with the soak
    kills = int(options.hours) if options.kills is None else options.kills
    report = Report("soak", seed=0, settings={"rate": f"{options.rate} listings/s"})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = os.environ.get("PENSTOCK_DATABASE", str(folder / "soak.db"))
        with running(folder, database, options.rate) as pid:
            samples = asyncio.run(soak(folder, database, pid, hours=options.hours, every=options.every, kills=kills))
    judge(report, samples, kills)
    head = ("", "last fifth", "second fifth", "times", "unit")
    shown = [
        (row.measure.partition(",")[0], number(row.value), number(row.reference), f"{row.ratio:.2f}", row.unit)
        for row in report.rows
        if row.reference is not None and row.ratio is not None
    ]
    print(
        "",
        table(head, shown),
        *(f"{row.measure}: {number(row.value)} {row.unit}" for row in report.rows[-1:]),
        sep="\n",
    )
    print(*report.bars, report.write(options.out), sep="\n")


if __name__ == "__main__":
    main()
