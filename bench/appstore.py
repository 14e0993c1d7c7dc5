"""The App Store pipeline at the size of the whole store: what it reads, what it costs, how fast it is, and what it loses.

    make bench-appstore        or        python bench/appstore.py [--brief | --quick | --smoke] [--apps N] [--part NAME ...]

    scale     1.1 million apps in the database: an idle cycle, the plans of all queries, the clustering
    postgres  the same on a PostgreSQL server, without the plans
    month     what thirty days cost at a platform's prices, measured on a part of the store and extrapolated to all of it
    enrich    fully enriched apps a second over HTTP, beside a bare loop over the same addresses
    memory    of the process, with 20,000 and with 200,000 apps in the registry
    pushback  six days against a store that blocks

Every measurement is a process of its own. Where time is virtual nothing waits for the disk: such rows say so.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import appstore_enrich, appstore_memory, appstore_month, appstore_pushback, appstore_scale
from bench.appstore_process import ChildFailed
from bench.disk import fdatasync_seconds
from bench.neighbours import Neighbours
from bench.plot import Line, Panel, draw
from bench.queues_processes import PeerFailed
from bench.report import ROOT, Report, number, size_of
from penstock_systems.standins.appstore.scale import APPS

ENRICH_APPS_MAX = 1_000  # the stand-in keeps half a megabyte of each


@dataclass(frozen=True, slots=True)
class Plan:
    """How large each part is."""

    scale_apps: int
    month_apps: int
    month_days: int
    enrich_apps: int
    enrich_rounds: int
    warm: bool
    memory_apps: tuple[int, int]
    memory_enriched: int
    memory_cycles: int
    pushback_apps: int
    pushback_days: int

    def of(self, apps: int) -> Plan:
        """The same with another number of apps, as far as a part can have as many."""
        return replace(
            self,
            scale_apps=apps,
            month_apps=apps,
            enrich_apps=min(apps, ENRICH_APPS_MAX),
            memory_apps=(apps, min(10 * apps, APPS)),
            pushback_apps=apps,
        )


FULL = Plan(APPS, 20_000, 30, 300, 5, True, (20_000, 200_000), 500, 1, 3_000, 6)
QUICK = Plan(APPS // 50, 3_000, 30, 150, 3, True, (10_000, 50_000), 100, 1, 1_000, 6)
BRIEF = Plan(APPS // 50, 600, 10, 300, 3, True, (5_000, 20_000), 30, 0, 300, 2)
SMOKE = Plan(300, 200, 1, 8, 1, False, (100, 200), 2, 0, 100, 1)
PLANS = {"full": FULL, "brief": BRIEF, "quick": QUICK, "smoke": SMOKE}

Part = Callable[[Report, Path, Plan], None]


def say(line: str) -> None:
    print(line, flush=True)


def scale(report: Report, folder: Path, plan: Plan) -> None:
    appstore_scale.measure(report, folder, apps=plan.scale_apps, seed=report.seed, say=say)


def postgres(report: Report, folder: Path, plan: Plan) -> None:
    appstore_scale.measure_on_server(report, folder, apps=plan.scale_apps, seed=report.seed, say=say)


def month(report: Report, folder: Path, plan: Plan) -> None:
    appstore_month.measure(report, folder, apps=plan.month_apps, seed=report.seed, say=say, days=plan.month_days)


def enrich(report: Report, folder: Path, plan: Plan) -> None:
    appstore_enrich.measure(
        report,
        folder,
        apps=plan.enrich_apps,
        seed=report.seed,
        say=say,
        rounds=plan.enrich_rounds,
        warm=plan.warm,
    )


def memory(report: Report, folder: Path, plan: Plan) -> None:
    appstore_memory.measure(
        report,
        folder,
        sizes=plan.memory_apps,
        enriched=plan.memory_enriched,
        cycles=plan.memory_cycles,
        seed=report.seed,
        say=say,
    )


def pushback(report: Report, folder: Path, plan: Plan) -> None:
    appstore_pushback.measure(
        report, folder, apps=plan.pushback_apps, seed=report.seed, say=say, days=plan.pushback_days
    )


PARTS: dict[str, Part] = {
    "scale": scale,
    "postgres": postgres,
    "month": month,
    "enrich": enrich,
    "memory": memory,
    "pushback": pushback,
}


def panels(report: Report) -> list[Panel]:
    """What can be drawn of what was measured."""
    rates = [Line(row.subject, row.value, number(row.value)) for row in report.rows if row.unit == "apps/s"]
    prices = [
        Line(f"{row.subject}: {row.measure.removeprefix('month, ')}", row.value, f"{row.value:.2f}")
        for row in report.rows
        if row.unit == "USD" and "price" in row.measure
    ]
    drawn = []
    if rates:
        drawn.append(Panel("Apps/s fully enriched over HTTP", "longer is better", rates))
    if prices:
        drawn.append(Panel("Dollars a month, nothing free", "shorter is better", prices))
    return drawn


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The App Store pipeline at the size of the whole store.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="a fiftieth of the store")
    size.add_argument("--smoke", action="store_true", help="just enough to see that all of it runs")
    parser.add_argument("--apps", type=int, metavar="N", help="another number of apps; ten times as many for memory")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=os.environ.get("PENSTOCK_SEED") or SystemRandom().getrandbits(16))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    plan = PLANS[size_of(options)]
    if options.apps:
        plan = plan.of(options.apps)
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report("appstore", options.seed, size=size_of(options))
    report.settings = {
        "scale": f"{plan.scale_apps:,} of {APPS:,} apps",
        "month": f"{plan.month_days} days with {plan.month_apps:,} apps",
        "enrich": f"{plan.enrich_apps} apps, {plan.enrich_rounds} rounds",
        "pushback": f"{plan.pushback_days} days with {plan.pushback_apps:,} apps",
    }
    say(f"appstore: {', '.join(options.part)}; seed {options.seed}")
    neighbours = Neighbours()
    failed = False
    for name, part in PARTS.items():
        if name not in options.part:
            report.skip(name, "--part")
            continue
        say(f"\n{name}")
        with tempfile.TemporaryDirectory(dir=options.out.resolve()) as folder:
            report.fdatasync_p50_ms = report.fdatasync_p50_ms or 1000 * fdatasync_seconds(Path(folder))
            try:
                part(report, Path(folder), plan)
            except (ChildFailed, PeerFailed) as error:
                # The others take long and are worth having.
                failed = True
                report.skip(name, str(error))
                say(f"  failed: {error}")
    report.neighbours_cores = neighbours.cores()
    say("")
    if report.neighbours_cores is not None:
        say(f"others kept {report.neighbours_cores:.1f} of {os.cpu_count()} cores busy meanwhile")
    for bar in report.bars:
        say(str(bar))
    for suspect in report.suspects:
        say(f"SUSPECT  {suspect['subject']}: {suspect['reason']}")
    drawn = panels(report)
    if drawn:
        subtitle = f"{os.cpu_count()} cores; fdatasync p50 {report.fdatasync_p50_ms:.2f} ms"
        say(f"{draw('The App Store pipeline', subtitle, drawn, options.out / 'appstore.svg')}")
    say(f"{report.write(options.out)}")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
