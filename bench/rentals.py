"""Rows a second that connectors load into SQLite, beside plain inserts and dlt; what an unchanged answer costs; memory.

    make bench-rentals        or        python bench/rentals.py [--brief] [--out FOLDER]

dlt is compared where PENSTOCK_DLT names the Python of an environment with `dlt[sqlalchemy]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import penstock as ps
from bench.disk import fdatasync_seconds
from bench.report import ROOT, Report, Row, number, size_of, table
from penstock.connect import Http, Page, Record

PAGE = 500  # records: what a commit takes
SOURCES = 50
TABLE = "create table listings (id text primary key, data text not null, seen_at text not null)"
INSERT = "insert into listings (id, data, seen_at) values (?, ?, ?) on conflict (id) do update set data = excluded.data"


def make_records(count: int) -> list[dict[str, Any]]:
    chance = Random(1)
    return [
        {"id": f"r{number}", "title": f"flat {number} in a quiet street", "price": chance.randrange(400, 3_000)}
        | {
            "rooms": chance.randrange(1, 6),
            "lat": 50 + chance.random(),
            "lon": 20 + chance.random(),
            "city": "Modelton",
        }
        for number in range(count)
    ]


class Known(ps.Connector):
    """Yields records that are in memory already, 500 a page."""

    reads_all = True

    def __init__(self, name: str, records: list[dict[str, Any]]) -> None:
        self.name = name
        self.records = records

    async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
        for start in range(0, len(self.records), PAGE):
            page = [Record(each["id"], each) for each in self.records[start : start + PAGE]]
            yield Page(page, cursor=str(start))


async def collect(app: ps.App) -> float:
    """Run everything once, and return the seconds."""
    async with app.unit():
        app.db.write("update source_state set next_run_at = null")
    began = time.perf_counter()
    await app.sources.run()
    return time.perf_counter() - began


async def load(folder: Path, records: list[dict[str, Any]]) -> tuple[float, float]:
    app = ps.App("bench", database=folder / "penstock.db")
    app.collector(budget=600)
    app.connector(Known("known", records))
    async with app:
        first, again = await collect(app), await collect(app)
        found = await app.db.value("select count(*) from source_records")
    assert found == len(records)
    return first, again


def plain(folder: Path, records: list[dict[str, Any]]) -> float:
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute(TABLE)
    began = time.perf_counter()
    for start in range(0, len(records), PAGE):
        connection.execute("begin immediate")
        rows = [(each["id"], json.dumps(each), "2026-11-02") for each in records[start : start + PAGE]]
        connection.executemany(INSERT, rows)
        connection.execute("commit")
    seconds = time.perf_counter() - began
    connection.close()
    return seconds


def dlt(folder: Path, records: list[dict[str, Any]]) -> dict[str, Any] | str:
    python = os.environ.get("PENSTOCK_DLT")
    if not python:
        return "PENSTOCK_DLT names no Python with dlt[sqlalchemy]"
    lines = folder / "records.jsonl"
    lines.write_text("\n".join(map(json.dumps, records)))
    script = Path(__file__).parent / "peers" / "dlt_rentals.py"
    done = subprocess.run(
        [python, script, lines, folder],
        capture_output=True,
        text=True,
        env={"RUNTIME__DLTHUB_TELEMETRY": "false", "PATH": os.environ["PATH"], "HOME": str(folder)},
        check=False,
    )
    if done.returncode:
        return f"it failed: {done.stderr.strip().splitlines()[-1][:200]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


async def many(folder: Path, each: int) -> tuple[list[float], list[float]]:
    """Return the seconds of three runs of 50 sources, and the memory after each in MB."""
    app = ps.App("many", database=folder / "many.db")
    app.collector(budget=1_000)
    for place in range(SOURCES):
        records = [{**record, "id": f"{place}-{record['id']}"} for record in make_records(each)]
        app.connector(Known(f"source-{place}", records))
    seconds, memory = [], []
    async with app:
        for _ in range(3):
            seconds.append(await collect(app))
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return seconds, memory


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows a second that connectors load.")
    parser.add_argument("--brief", action="store_true", help="a tenth of the records")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where rentals.json goes")
    given = parser.parse_args()
    count = 5_000 if given.brief else 50_000
    records = make_records(count)
    report = Report("rentals", seed=1, rows=[], size=size_of(given))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report.fdatasync_p50_ms = 1000 * fdatasync_seconds(folder)
        bare = count / plain(folder, records)
        first, again = asyncio.run(load(folder, records))
        other = dlt(folder, records)
        seconds, memory = asyncio.run(many(folder, 200 if given.brief else 2_000))
    report.rows.append(Row("penstock", "new records", count / first, "rows/s", bare, count / first / bare))
    report.rows.append(Row("penstock", "the same records again", count / again, "rows/s"))
    if isinstance(other, dict):
        loaded = count / other["first"]
        report.rows.append(Row(f"dlt {other['version']}", "new records", loaded, "rows/s", bare, loaded / bare))
        report.rows.append(Row(f"dlt {other['version']}", "the same records again", count / other["again"], "rows/s"))
    else:
        report.skip("dlt", other)
    for run, (took, used) in enumerate(zip(seconds, memory, strict=True), 1):
        report.rows.append(Row(f"{SOURCES} sources, run {run}", "seconds", took, "s"))
        report.rows.append(Row(f"{SOURCES} sources, run {run}", "peak memory", used, "MB"))
    print(f"{count:,} records into SQLite; plain inserts of {PAGE:,} rows a commit: {number(bare)} rows/s\n")
    lines = [(row.subject, row.measure, f"{number(row.value)} {row.unit}") for row in report.rows]
    print(table(("subject", "measure", "value"), lines))
    for skipped in report.skipped:
        print(f"left out: {skipped}")
    print(f"Written to {report.write(given.out)}")


if __name__ == "__main__":
    main()
