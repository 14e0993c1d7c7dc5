"""How many apps a second are fully enriched over HTTP, beside a bare loop that asks the same and keeps nothing.

The store is a process of its own on this machine: whole pages, no limit, no latency. Both sides ask for as many apps at once,
and take turns.
"""

from __future__ import annotations

import json
import statistics
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.appstore_rows import Size
from bench.disk import fdatasync_seconds
from bench.queues_processes import Process
from bench.report import Bar, Pair, Report, Row, number

BARE = "a bare loop of httpx2 and selectolax"
SHARE_MIN = 0.6
REQUESTS_ALIKE = 0.95
MEASURE = "apps fully enriched"


def started(module: str, folder: Path, **given: object) -> Process:
    command = [sys.executable, "-m", f"bench.{module}", str(folder), json.dumps(given)]
    return Process(command, folder / f"{module}.log")


def seen(url: str) -> dict[str, int]:
    """The requests of each kind since the last time."""
    with urllib.request.urlopen(f"{url}/bench/seen", timeout=60) as answer:
        told: dict[str, int] = json.load(answer)
    return told


def measure(
    report: Report, folder: Path, *, apps: int, seed: int, say: Callable[[str], None], rounds: int, warm: bool = True
) -> None:
    catalogue = Size(apps).catalogue(seed)
    sold = [index for index in range(apps) if catalogue.sold(index, 0, "us")]
    ids = [catalogue.track_id(index) for index in sold]
    developers = sorted({catalogue.artist_id(catalogue.developer(index)) for index in sold})
    with started("appstore_standin", folder, apps=apps, seed=seed, keeps=True) as store:
        url = store.answer()["url"]
        with (
            started("appstore_engine", folder, url=url, ids=ids, developers=developers) as engine,
            started("appstore_bare", folder, url=url, ids=ids, parallel=engine.answer()["parallel"]) as bare,
        ):
            bare.answer()
            bare.ask("round")  # the store makes its answers
            if warm:
                say("  the pace rises until the work holds it back: a minute or two")
                warmed = engine.ask("warm")
                say(
                    f"  warm after {warmed['rounds']} rounds: the pace allows {number(warmed['allowed'])} apps/s and "
                    f"{number(warmed['feed'])} feeds of reviews/s"
                )
            _turns(report, folder, engine, bare, url, len(ids), rounds, say)


def _turns(
    report: Report,
    folder: Path,
    engine: Process,
    bare: Process,
    url: str,
    apps: int,
    rounds: int,
    say: Callable[[str], None],
) -> None:
    pair = Pair(f"enrich: {MEASURE}", "apps/s")
    cpu_ms: dict[str, list[float]] = {"engine": [], "bare": []}  # of one app
    requests: dict[str, list[float]] = {"engine": [], "bare": []}
    allowed: list[float] = []
    for _ in range(rounds):
        pace = 1000 * fdatasync_seconds(folder)
        seen(url)
        theirs = bare.ask("round")
        requests["bare"].append(sum(seen(url).values()) / apps)
        ours: dict[str, Any] = engine.ask("round")
        requests["engine"].append(sum(seen(url).values()) / apps)
        allowed.append(ours["allowed"])
        cpu_ms["bare"].append(1_000 * theirs["cpu_seconds"] / apps)
        cpu_ms["engine"].append(1_000 * ours["cpu_seconds"] / apps)
        pair.add(ours=apps / ours["seconds"], reference=apps / theirs["seconds"], fdatasync_ms=pace)
        say(f"  {pair.ours[-1]:.1f} apps/s, the bare loop {pair.reference[-1]:.1f}: {pair.ratios[-1]:.2f}")
    ours_each, theirs_each = (statistics.median(requests[side]) for side in ("engine", "bare"))
    say(
        f"  requests an app: {ours_each:.2f}, the bare loop {theirs_each:.2f}; the pace allowed {min(allowed):.0f} apps/s"
    )
    ours_ms, theirs_ms = (statistics.median(cpu_ms[side]) for side in ("engine", "bare"))
    say(f"  processor time an app: {ours_ms:.2f} ms, the bare loop {theirs_ms:.2f} ms: {theirs_ms / ours_ms:.2f}")
    report.rows.append(Row("penstock", "enrich: processor time an app", ours_ms, "ms", theirs_ms, ours_ms / theirs_ms))
    report.pairs.append(pair)
    report.rows += pair.rows(BARE)
    report.rows.append(
        Row("penstock", "enrich: requests an app", ours_each, "requests", theirs_each, ours_each / theirs_each)
    )
    report.bars.append(Bar(pair.measure, pair.ratio, SHARE_MIN, at_most=False, unit="of the bare loop", sure=pair.sure))
    if ours_each < REQUESTS_ALIKE * theirs_each:
        report.suspect(
            "enrich", "it made fewer requests an app than the bare loop: the pace of the reviews held some back"
        )
    if min(allowed) < pair.row().value:
        report.suspect("enrich", "the pace still rose while it was measured")
