"""Rows a second that connectors load into SQLite, beside plain inserts and dlt; then the whole system, and its memory.

    make bench-rentals        or        python bench/rentals.py [--brief] [--out FOLDER]

dlt is compared where PENSTOCK_DLT names the Python of an environment with `dlt[sqlalchemy]`. It stores one row a record; so
does a connector alone. The whole system also stores the normalised listing, its version and its home, and looks for the
searches that it matches: its rows are shown on their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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
from bench.report import ROOT, Bar, Report, Row, number, size_of, table
from penstock.connect import Http, Page, Record

PAGE = 500  # records: what a commit takes
AGAIN = 5_000  # records that are loaded a second time: dlt needs minutes for more
GREW_MOST = 1.15  # memory after the last tenth of the listings by that after the second, which is still called flat
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
    """Return the seconds for new records, and for the same ones again."""
    app = ps.App("bench", database=folder / f"{len(records)}.db")
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
        [python, script, lines, folder, str(AGAIN)],
        capture_output=True,
        text=True,
        env={"RUNTIME__DLTHUB_TELEMETRY": "false", "PATH": os.environ["PATH"], "HOME": str(folder)},
        check=False,
    )
    if done.returncode:
        return f"it failed: {done.stderr.strip().splitlines()[-1][:200]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def whole(folder: Path, listings: int) -> dict[str, Any]:
    """Run the whole system over 50 sources in a process of its own, whose memory is its own."""
    script = Path(__file__).parent / "rentals_whole.py"
    done = subprocess.run(
        [sys.executable, script, folder, str(listings)], stdout=subprocess.PIPE, check=True, cwd=folder
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows a second that connectors load.")
    parser.add_argument("--brief", action="store_true", help="a tenth of the records")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where rentals.json goes")
    given = parser.parse_args()
    count, listings = (5_000, 200) if given.brief else (50_000, 2_000)
    records = make_records(count)
    report = Report("rentals", seed=1, rows=[], size=size_of(given))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report.fdatasync_p50_ms = 1000 * fdatasync_seconds(folder)
        say(f"{count:,} records as plain inserts, then by a connector ...")
        bare = count / plain(folder, records)
        first, again = asyncio.run(load(folder, records))
        if count > AGAIN:
            _, again = asyncio.run(load(folder, records[:AGAIN]))
        say("the same by dlt ...")
        other = dlt(folder, records)
        say(f"the whole system, {50 * listings:,} listings of 50 sources ...")
        system = whole(folder, listings)
    same = f"the same {AGAIN:,} again"
    rows = report.rows
    rows.append(Row("plain inserts", "new records", bare, "rows/s"))
    rows.append(Row("connector alone", "new records", count / first, "rows/s", bare, count / first / bare))
    rows.append(Row("connector alone", same, AGAIN / again, "rows/s"))
    if isinstance(other, dict):
        loaded = count / other["first"]
        report.peer_versions["dlt"] = other["version"]
        rows.append(Row(f"dlt {other['version']}", "new records", loaded, "rows/s", bare, loaded / bare))
        rows.append(Row(f"dlt {other['version']}", same, AGAIN / other["again"], "rows/s"))
    else:
        report.skip("dlt", other)
    total, tenths = system["listings"], system["tenths"]
    rows += [
        Row("whole system", "new listings", total / system["new"], "listings/s"),
        Row("whole system", "unchanged listings", total / system["unchanged"], "listings/s"),
        Row("whole system", "one in 20 cheaper", total / system["changed"], "listings/s"),
        *(
            Row("whole system", f"memory after {n * total // len(tenths):,} listings", used, "MB")
            for n, used in enumerate(tenths, 1)
        ),
        Row("whole system", "memory after all unchanged", system["after"][0], "MB"),
        Row("whole system", "memory after one in 20 cheaper", system["after"][1], "MB"),
        Row("whole system", "peak memory", system["peak"], "MB"),
    ]
    grew = max(tenths[1:] + system["after"]) / tenths[1]
    report.bars.append(
        Bar("memory at its largest by that after two tenths", grew, GREW_MOST, at_most=True, unit="times")
    )
    print(
        f"{count:,} records into SQLite, {PAGE} a commit; the whole system: {total:,} listings, {system['homes']:,} homes\n"
    )
    lines = [(row.subject, row.measure, f"{number(row.value)} {row.unit}") for row in rows]
    print(table(("subject", "measure", "value"), lines))
    for skipped in report.skipped:
        print(f"left out: {skipped}")
    print(*report.bars, sep="\n")
    print(f"Written to {report.write(given.out)}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
