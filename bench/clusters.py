"""Markets: how near to the truth they are found, which openings are found, and how long that takes for a week of crawling.

    make bench-clusters        or        python bench/clusters.py [--brief | --quick] [--scale 1.0] [--keywords 1500]

The truth: a stand-in store whose markets are known is crawled from its charts, for five seeds by which the constants of the
clustering were chosen, and for five by which nothing was. Markets are of very different sizes, share words with their
neighbours and are spread over genres, and a fifth of what a search brings was not asked for. The V-measure (1 is the truth)
is taken over all planted apps that were crawled, one that is in no market being a market of its own; and over those that
are in a market. Beside it stand two simpler ways: genre alone, and keywords that share three in ten of their first ten apps.

The openings: half of the planted markets are niches, and an eighth each is a giant's, a brand's, dying, and a fad. Counted
are the niches and the traps among the first twenty markets.

The size: 180,000 keywords, 1.1 million apps and 2.8 million rankings in one SQLite file. The task runs twice, each time in a
process of its own: once into empty tables, once over the same rankings, which is what every later run is like.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import clusters_scale
from bench.clusters_niches import Found, niches
from bench.clusters_truth import Judged, crawl, judged
from bench.report import ROOT, Bar, Report, Row, size_of, table

SEEDS, OTHER_SEEDS = (1, 2, 3, 4, 5), (201, 202, 203, 204, 205)
APPS, MARKETS, KEYWORDS = 6_000, 40, 4_000
V_MIN, SIMPLER_MAX, NICHES_MIN, TRAPS_MAX, SECONDS_MAX, MB_MAX = 0.85, 0.80, 0.85, 0.05, 60.0, 2_048.0
QUICK_SCALE = 0.05
BRIEF_SEEDS = 2  # of each five
HEAD = ("seed", "markets", "placed", "V, all", "V, placed", "overlap, all", "placed", "genre", "niches", "traps")


class Seen(NamedTuple):
    markets: Judged
    niches: Found

    @property
    def figures(self) -> tuple[float, ...]:
        ours, overlap, genre = self.markets.ours, self.markets.overlap, self.markets.genre
        simpler = (overlap.whole, overlap.inside, genre.whole)
        return (ours.placed, ours.whole, ours.inside, *simpler, self.niches.share, self.niches.trapped)


def main() -> None:
    options = parsed()
    logging.disable(logging.WARNING)  # virtual time begins with a jump
    report = Report("clusters", seed=SEEDS[0], size=size_of(options))
    most = BRIEF_SEEDS if options.brief else len(SEEDS)
    report.settings = {"seeds": f"{most} that the constants were chosen by, {most} other"}
    if options.brief:
        report.skip(f"{len(SEEDS) - most} of each {len(SEEDS)} seeds, and a week's crawl at full size", "--brief")
    say(f"clusters: {APPS:,} apps in {MARKETS} markets, {options.keywords:,} keywords searched\n")
    for name, seeds in (("", SEEDS), ("other seeds, ", OTHER_SEEDS)):
        truthful(report, name, [seen(seed, options.keywords) for seed in seeds[:most]])
    for name, run in sized(QUICK_SCALE if options.quick or options.brief else options.scale).items():
        sizes = f"{run['rankings']:,} rankings, {run['markets']:,} markets"
        say(f"{name}: {sizes}, {run['seconds']:.1f} s, {run['peak_mb']:,.0f} MB")
        if "v" in run:
            say(
                f"  V {run['v']:.3f} against the topics that were drawn, over {run['placed']:.0%} of the apps that rank"
            )
        report.rows.append(Row("penstock", f"{name}, seconds", run["seconds"], "s"))
        report.rows.append(Row("penstock", f"{name}, memory", run["peak_mb"], "MB"))
        if not (options.quick or options.brief) and options.scale == 1.0:
            report.bars.append(Bar(f"{name}, seconds", run["seconds"], SECONDS_MAX, True, "s"))
            report.bars.append(Bar(f"{name}, memory", run["peak_mb"], MB_MAX, True, "MB"))
    say("")
    for bar in report.bars:
        say(str(bar))
    say(f"\n{report.write(options.out)}")


def seen(seed: int, keywords: int) -> Seen:
    known = crawl(seed, apps=APPS, markets=MARKETS, keywords=keywords)
    return Seen(judged(known), niches(known))


def truthful(report: Report, name: str, found: Sequence[Seen]) -> None:
    """One table of seeds with their mean and their worst, and the bars."""
    columns = list(zip(*(each.figures for each in found), strict=True))
    lines = [
        shown(str(each.markets.seed), f"{each.markets.found} of {each.markets.planted}", each.figures) for each in found
    ]
    lines.append(shown("mean", "", [statistics.fmean(column) for column in columns]))
    lines.append(shown("least", "", [min(column) for column in columns]))
    say(table(HEAD, lines) + "\n")
    for each in found:
        markets = each.markets
        report.rows.append(
            Row("penstock", f"V-measure, seed {markets.seed}", markets.ours.whole, "", markets.overlap.whole)
        )
        report.rows.append(Row("penstock", f"niches in the list, seed {markets.seed}", each.niches.share, ""))
    simpler = max(max(each.markets.overlap.whole, each.markets.genre.whole) for each in found)
    report.bars.append(Bar(f"{name}lowest V-measure, all apps", min(columns[1]), V_MIN, False, ""))
    report.bars.append(Bar(f"{name}lowest V-measure, placed apps", min(columns[2]), V_MIN, False, ""))
    report.bars.append(Bar(f"{name}highest V-measure of a simpler way, all apps", simpler, SIMPLER_MAX, True, ""))
    niches, traps = (statistics.fmean(column) for column in columns[6:8])
    report.bars.append(Bar(f"{name}share of niches among the first 20", niches, NICHES_MIN, False, ""))
    report.bars.append(Bar(f"{name}share of traps among the first 20", traps, TRAPS_MAX, True, ""))


def shown(first: str, markets: str, figures: Sequence[float]) -> tuple[str, ...]:
    placed, *agreement, listed, trapped = figures
    return (first, markets, f"{placed:.0%}", *(f"{each:.3f}" for each in agreement), f"{listed:.0%}", f"{trapped:.0%}")


def sized(scale: float) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="penstock-clusters-") as folder:
        ran(folder, scale, "write")
        parts = {"first run": "first", "later run": "later"}
        return {name: json.loads(ran(folder, scale, part)) for name, part in parts.items()}


def ran(folder: str, scale: float, part: str) -> str:
    """The last line that it says."""
    command = [sys.executable, clusters_scale.__file__, folder, str(scale), part]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(done.stderr)
    return (done.stdout.splitlines() or [""])[-1]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Markets: how near to the truth, how long, how much memory.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="a twentieth of a week's crawl")
    parser.add_argument("--scale", type=float, default=1.0, help="of a week's crawl")
    parser.add_argument("--keywords", type=int, default=KEYWORDS, help="searched for; six days find some 6,000")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where the results go")
    return parser.parse_args()


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
