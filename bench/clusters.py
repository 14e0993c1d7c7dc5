"""Markets: how near to the truth they are found, and how long that takes for a week of crawling.

    make bench-clusters        or        python bench/clusters.py [--quick] [--scale 1.0]

The truth: a stand-in store whose markets are known is crawled from its charts, for five seeds. Markets are of very different
sizes, share words with their neighbours and are spread over genres, and nearly a fifth of what a search brings was not asked
for. The V-measure (1 is the truth) is taken over the apps that are in a market, beside two simpler ways: genre alone, and
keywords that share three in ten of their first ten apps.

The size: 180,000 keywords, 1.1 million apps and 2.8 million rankings in one SQLite file. The task runs twice, each time in a
process of its own: once into empty tables, once over the same rankings, which is what every later run is like.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import clusters_scale
from bench.clusters_truth import Judged, judged
from bench.report import ROOT, Bar, Report, Row, table

SEEDS = (1, 2, 3, 4, 5)
APPS, MARKETS, KEYWORDS = 3_000, 20, 1_500
V_MIN, SECONDS_MAX, MB_MAX = 0.85, 60.0, 2_048.0
QUICK_SCALE = 0.05


def main() -> None:
    options = parsed()
    if options.child is not None:
        return clusters_scale.child(options.child, options.scale, options.second)
    report = Report("clusters", seed=SEEDS[0])
    found = [judged(seed, apps=APPS, markets=MARKETS, keywords=KEYWORDS) for seed in SEEDS]
    say(f"clusters: {APPS:,} apps in {MARKETS} markets, {KEYWORDS:,} keywords searched\n")
    say(table(("seed", "markets found", "apps placed", "V", "V by overlap", "V by genre"), map(line, found)) + "\n")
    for each in found:
        report.rows.append(Row("penstock", f"V-measure, seed {each.seed}", each.ours, "", each.overlap))
    report.bars.append(Bar("lowest V-measure of five seeds", min(each.ours for each in found), V_MIN, False, ""))
    for name, run in sized(QUICK_SCALE if options.quick else options.scale).items():
        sizes = f"{run['rankings']:,} rankings, {run['markets']:,} markets"
        say(f"{name}: {sizes}, {run['seconds']:.1f} s, {run['peak_mb']:,.0f} MB")
        if "v" in run:
            say(
                f"  V {run['v']:.3f} against the topics that were drawn, over {run['placed']:.0%} of the apps that rank"
            )
        report.rows.append(Row("penstock", f"{name}, seconds", run["seconds"], "s"))
        report.rows.append(Row("penstock", f"{name}, memory", run["peak_mb"], "MB"))
        if not options.quick and options.scale == 1.0:
            report.bars.append(Bar(f"{name}, seconds", run["seconds"], SECONDS_MAX, True, "s"))
            report.bars.append(Bar(f"{name}, memory", run["peak_mb"], MB_MAX, True, "MB"))
    say("")
    for bar in report.bars:
        say(str(bar))
    say(f"\n{report.write(options.out)}")
    return None


def line(each: Judged) -> tuple[str, ...]:
    shown = (f"{each.ours:.3f}", f"{each.overlap:.3f}", f"{each.genre:.3f}")
    return (str(each.seed), f"{each.found} of {each.planted}", f"{each.placed:.0%}", *shown)


def sized(scale: float) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="penstock-clusters-") as folder:
        drawn = clusters_scale.Drawn(scale)
        asyncio.run(clusters_scale.write(Path(folder, clusters_scale.FILE), drawn))
        return {"first run": ran(folder, scale), "later run": ran(folder, scale, "--second")}


def ran(folder: str, scale: float, *more: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", folder, "--scale", str(scale), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Markets: how near to the truth, how long, how much memory.")
    parser.add_argument("--quick", action="store_true", help="a twentieth of a week's crawl")
    parser.add_argument("--scale", type=float, default=1.0, help="of a week's crawl")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where the results go")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--second", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
