"""The pages of the dashboard over a full database: rows that each reads and how long the server takes.

    make bench-dashboard        or        python bench/dashboard.py [--brief] [--postgres]

Five million messages, a million dead letters and 200,000 runs, on SQLite and PostgreSQL; with --brief a 25th of that. The run
fails if a page takes over 300 ms, by the median of five.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import httpx2

import penstock as ps
from bench.dashboard_fill import Size, fill
from bench.report import ROOT
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site

FULL, BRIEF = Size(5_000_000, 1_000_000, 200_000), Size(200_000, 40_000, 8_000)
MILLISECONDS_MAX = 300.0
ROUNDS = 5
WATCHERS = 50
PAGES = (
    *("/", "/queues", "/queues/queue-7", "/dead", "/dead?queue=queue-7", "/dead/1", "/search?q=no+such+page", "/bulk"),
    *(
        "/runs",
        "/runs?state=errored",
        "/runs?workflow=flow-1",
        "/runs/flow-1/run-1",
        "/compare?workflow=flow-1&a=run-1&b=run-5",
    ),
    *("/cron", "/objects", "/pace", "/cost", "/workers", "/activity", "/alerts", "/audit", "/system"),
)


def full_app(database: str) -> ps.App:
    app = ps.App("full", database=database, migrations="none")
    for number in range(4):

        @app.workflow(name=f"flow-{number}")
        async def flow(run: ps.Run) -> None:
            return

    return app


async def measure(database: str, size: Size) -> list[dict[str, Any]]:
    """Fill a database, and return rows and milliseconds of each page."""
    app = full_app(database)
    async with app:
        now = (await app._opened()).clock.now()
    began = time.perf_counter()
    fill(database, size, now)
    print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    async with app:
        site = make_site(app, tokens=[KnownToken("bench", hashed("bench"))])
        dashboard = site.state.dashboard
        headers = {"authorization": "Bearer bench", "accept": "text/html"}
        transport = httpx2.ASGITransport(app=site)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            found = [await _page(client, dashboard, path) for path in PAGES]
            found.append(await _watched(client, dashboard))
    return found


async def _page(client: httpx2.AsyncClient, dashboard: Any, path: str) -> dict[str, Any]:
    took = []
    before = dashboard._source.total.rows
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = await client.get(f"/ui{path}")
        took.append((time.perf_counter() - began) * 1e3)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
    rows = (dashboard._source.total.rows - before) // ROUNDS
    return {"page": path, "rows": rows, "milliseconds": round(statistics.median(took), 1), "bytes": len(answer.content)}


async def _watched(client: httpx2.AsyncClient, dashboard: Any) -> dict[str, Any]:
    """Fifty open pages that fetch what changed, in one tick."""
    before, began = dashboard._source.total.rows, time.perf_counter()
    await asyncio.gather(*(client.get("/ui/queues?part=1") for _ in range(WATCHERS)))
    took = (time.perf_counter() - began) * 1e3
    rows = dashboard._source.total.rows - before
    return {"page": f"/queues, {WATCHERS} open", "rows": rows, "milliseconds": round(took / WATCHERS, 1), "bytes": 0}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--postgres", action="store_true", help="only on PostgreSQL")
    parser.add_argument("--sqlite", action="store_true", help="only on SQLite")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench")
    options = parser.parse_args()
    size = BRIEF if options.brief else FULL
    stores = [store for store in ("sqlite", "postgres") if not (options.sqlite and store == "postgres")]
    stores = [store for store in stores if not (options.postgres and store == "sqlite")]
    report: dict[str, Any] = {"name": "dashboard", "size": size._asdict(), "rows": []}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for store in stores:
            found = asyncio.run(measure(_database(store, folder), size))
            print(f"\n{store}: {size.messages:,} messages, {size.dead:,} dead letters, {size.runs:,} runs")
            for each in found:
                late = "  too slow" if each["milliseconds"] > MILLISECONDS_MAX else ""
                failed = failed or bool(late)
                print(
                    f"  {each['page']:<44}{each['rows']:>7,} rows{each['milliseconds']:>9,.1f} ms{each['bytes']:>9,} B{late}"
                )
                report["rows"].append({"store": store, **each})
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "dashboard.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if failed:
        sys.exit(f"A page took over {MILLISECONDS_MAX:.0f} ms.")


def _database(store: str, folder: str) -> str:
    if store == "sqlite":
        return f"{folder}/full.db"
    from tests.postgres import empty_database

    return empty_database("bench_dashboard")


if __name__ == "__main__":
    main()
