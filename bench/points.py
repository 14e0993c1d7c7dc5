"""What data points cost: microseconds to write one beside a list's append, and to save one beside a plain insert.

    python bench/points.py            also in build/bench/points.json

A write and an append, a save and an insert take turns, and the fastest round of each counts: what others do on the machine
only adds. A plain insert keeps a row and no more; a save also checks the point, keeps its words once, adds it up by hour and
by day, and counts it towards the day's quota.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import penstock as ps
from bench.report import ROOT, Bar, Report, Row, number, size_of, table
from penstock.metrics.point import Noted, Sorts
from penstock.metrics.saving import Rolling, ready, save
from penstock.storage.sqlite.history import SqliteHistory

POINTS = 20_000  # that are saved at once
ROUNDS = 7
BURST = 1_000  # that are written at once, many times: a short round is one that nobody disturbs
BURSTS = 60
PHASES = ("category_scan", "keyword_scan", "rankings", "crawl_idle")
BEGAN = 1_763_200_000_000_000

CREATE = """
create table raw (
  dataset text, at text, index1 text, blob1 text, blob2 text, blob3 text, double1 real, double2 real, double3 real,
  double4 real
)
"""
INDEX = "create index raw_times on raw (dataset, at)"
INSERT = "insert into raw values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

Save = Callable[[list[Noted]], object]


def batches(rounds: int) -> Iterator[list[Noted]]:
    """A point every 50 microseconds, of a few sorts, as tasks of a pipeline write them."""
    chance = Random(7)
    now = BEGAN
    for _ in range(rounds):
        batch: list[Noted] = []
        for _ in range(POINTS):
            now += 50
            doubles = (float(chance.randrange(100)), float(chance.randrange(100)), 1.0, 0.0)
            batch.append(
                Noted("platform_metrics", now, ("pipeline", "cron", chance.choice(PHASES)), doubles, "pipeline")
            )
        yield batch


@contextmanager
def raw(folder: Path) -> Iterator[Save]:
    connection = apsw.Connection(str(folder / "raw.db"))
    for pragma in ("pragma journal_mode = wal", "pragma synchronous = normal"):
        connection.execute(pragma).fetchall()
    connection.execute(CREATE)
    connection.execute(INDEX)

    def insert(points: list[Noted]) -> None:
        with connection:
            connection.executemany(
                INSERT,
                [(each.dataset, "2025-11-15 09:46:40", each.under, *each.blobs, *each.doubles) for each in points],
            )

    yield insert
    connection.close()


@contextmanager
def kept(folder: Path) -> Iterator[Save]:
    file = SqliteHistory(folder / "bench.db")
    sorts, rolling = Sorts(), Rolling()

    def keep(points: list[Noted]) -> None:
        checked = ready(points, sorts)
        file.transact(lambda run: save(run, checked, {}, rolling, now=BEGAN, writes_max=None))

    yield keep
    file.close()


def microseconds(work: Callable[[], object], count: int = POINTS) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / count * 1e6


def saving() -> tuple[float, float]:
    """Microseconds a point: ours and the plain insert, the fastest round of each."""
    ours, plain = [], []
    with (
        tempfile.TemporaryDirectory(dir=ROOT / "build") as folder,
        raw(Path(folder)) as reference,
        kept(Path(folder)) as keep,
    ):
        for batch in batches(ROUNDS):
            plain.append(microseconds(partial(reference, batch)))
            ours.append(microseconds(partial(keep, batch)))
    return min(ours), min(plain)


async def writing() -> tuple[float, float]:
    """Microseconds that whoever writes a point spends on it, and on appending the same to a list."""
    written, appended = [], []
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        app = ps.App("bench", database=Path(folder) / "bench.db", migrations=folder)
        points = app.metrics("platform_metrics")
        held: list[object] = []
        numbers, phase = [float(number) for number in range(BURST)], PHASES[0]

        def write() -> None:
            for apps in numbers:
                points.write(blobs=("pipeline", "cron", phase), doubles=(apps, 2.0, 3.0, 4.0), index="pipeline")

        def append() -> None:
            keep = held.append
            for apps in numbers:
                keep((("pipeline", "cron", phase), (apps, 2.0, 3.0, 4.0), "pipeline"))

        async with app:
            for _ in range(BURSTS):
                appended.append(microseconds(append, BURST))
                held.clear()
                written.append(microseconds(write, BURST))
                await points.query("select 1")  # saves what was written
    return min(written), min(appended)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a data point costs, beside a plain insert.")
    parser.add_argument("--brief", action="store_true", help="no shorter: it is brief as it is")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where points.json goes")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    (ROOT / "build").mkdir(exist_ok=True)
    report = Report("points", seed=7, size=size_of(options))
    written, appended = asyncio.run(writing())
    ours, plain = saving()
    both, insert = 1e6 / (written + ours), 1e6 / (appended + plain)
    report.rows += [
        Row("penstock", "write", written, "us/point", appended, written / appended, durability="normal"),
        Row("penstock", "save", ours, "us/point", plain, ours / plain, durability="normal"),
        Row("penstock", "written and saved", both, "points/s", insert, both / insert, durability="normal"),
    ]
    report.bars += [
        Bar("write", written, 3.0, at_most=True, unit="us/point"),
        Bar("written and saved", both, 50_000, at_most=False, unit="points/s"),
    ]
    lines = [
        (row.measure, number(row.value), number(row.reference or 0), f"{row.ratio:.2f}", row.unit)
        for row in report.rows
    ]
    print(table(("", "points", "append, executemany", "ratio", "unit"), lines))
    print(*report.bars, sep="\n")
    report.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
