"""Generate the page of all benchmarks, and the table and plots of the README, from the existing reports.

    make bench        or        python bench/page.py [--reports FOLDER] [--into FOLDER]

It measures nothing. A benchmark without a report is shown as not run.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import page_plots
from bench.page_reports import (
    BENCHES,
    BUILD_OF_SYSTEM,
    IDLE,
    LATENCY,
    MEMORY,
    PACING,
    PIPELINE,
    SECTIONS,
    THROUGHPUT,
    WORKFLOWS,
    Found,
    Reports,
    behind,
    best,
    cleaned,
    read,
)
from bench.page_tables import EMPTY, bar_line, durable, ratio, ratio_of, table, tables
from bench.queues_report import DRAIN, ONE_BY_ONE, P50, PENSTOCK, TWO_PROCESSES
from bench.report import ROOT, Row, number
from bench.store import NOOP
from bench.workflows_report import JUDGED_AT_ONCE, JUDGED_STEPS
from bench.workflows_shape import Point

PAGE, PLOTS = Path("docs/explain/benchmarks.md"), Path("docs/explain/benchmarks")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
NOT_RUN = "not run"
BETTER, SKIPPED = "Where a peer is better", "What was skipped"
FRONT = (THROUGHPUT, PACING, WORKFLOWS, LATENCY, PIPELINE, MEMORY)  # the README shows the first two that were drawn
FRONT_PLOTS = 2
FRONT_HEAD = ("", "Penstock", "compared with", "ratio")

ABOUT = {
    THROUGHPUT: """\
Messages per second. The raw loop is written by hand for the store and executes only the statements. The handlers do
nothing, so that the figures show the cost of the engine. The time of a peer runs from the start of its first handler to the
start of its last; the time of Penstock from before its worker starts until the last message is settled on the disk.""",
    LATENCY: """\
An idle app gets one message after a pause. The lower bound is one synced append of 4 KB after the same pause. Peers send
from one process and handle in another. Penstock also has a row for one process that does both, which is its usual setup.""",
    WORKFLOWS: """\
Runs of steps that do nothing. Every engine has the result of a step on the disk before the next step begins. The raw bound
is one thread that makes only the commits.""",
    PACING: """\
Services with undocumented rate limits, drawn from seeds. 100 % is the throughput of a client that knows every limit, so the
share is the ratio. Time is simulated.""",
    PIPELINE: """\
The App Store pipeline against a fake server: fully enriched apps per second compared with a plain loop over the same
addresses, the price of a month on a platform, the accuracy of the markets found, and the loss when the store blocks
requests.""",
    MEMORY: "Memory of whole processes. It should not grow with the number of apps or sleeping runs.",
    IDLE: "The CPU time of an idle app, and the rows that it reads to find out that it is idle.",
}


def main() -> None:
    options = parsed()
    reports = read(options.reports)
    sections = page_plots.write(reports, options.into / PLOTS, provenance(reports))
    host = platform.node()
    (options.into / PAGE).write_text(whole(reports, sections, host=host), "utf-8")
    readme = options.into / "README.md"
    readme.write_text(replaced(readme.read_text("utf-8"), front(reports, sections)), "utf-8")
    missing = [name for name in BENCHES if name not in reports]
    print(f"{PAGE}, {len(sections)} plots and README.md: {len(reports)} of {len(BENCHES)} benchmarks")
    if missing:
        print(f"not run: {', '.join(missing)}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One page of all benchmarks, made of the reports that are there.")
    parser.add_argument("--reports", type=Path, default=ROOT / "build" / "bench", help="where the reports are")
    parser.add_argument("--into", type=Path, default=ROOT, help="where README.md and docs are")
    return parser.parse_args()


# -- the page -------------------------------------------------------------------------------------------------------


def whole(reports: Reports, drawn: Sequence[str] = (), *, host: str = "") -> str:
    """The text of the page. `drawn` are the sections with a plot."""
    parts = [
        "# Benchmarks",
        "Penstock compared with other queues and workflow engines, and with the upper bound of this machine. `make bench` "
        "runs every benchmark at a brief size, one after the other, and generates this page. `make bench-queues` and the "
        "other targets run one benchmark at full size. The absolute figures hold for one machine at one time. The ratios are "
        "more stable, because both sides of a ratio are measured directly after each other.",
        provenance(reports),
        *_runs(reports),
    ]
    for section in SECTIONS:
        parts += [f"## {section}", ABOUT[section], *_section(reports, section, drawn)]
    parts += [f"## {BETTER}", *_better(reports), f"## {SKIPPED}", *_skipped(reports, host)]
    return "\n\n".join(parts) + "\n"


def provenance(reports: Reports) -> str:
    """When, of which commit and on what. The README says the same."""
    if not reports:
        return f"Nothing is measured here yet: {NOT_RUN}."
    dates = sorted({report.date for report in reports.values() if report.date})
    commits = list(dict.fromkeys(_short(report.commit) for report in reports.values()))
    sizes = list(dict.fromkeys(report.size or "unknown" for report in reports.values()))
    cores = {str(report.machine.get("cores", "?")) for report in reports.values()}
    days = list(dict.fromkeys(date[:10] for date in (dates[0], dates[-1]))) if dates else ["an unknown day"]
    return (
        f"Measured on {' to '.join(days)}, commit {', '.join(commits)}, size {', '.join(sizes)}, "
        f"{' or '.join(sorted(cores))} processors."
    )


def _short(commit: str) -> str:
    return commit[:10] + ("+" if commit.endswith("+") else "")


def _runs(reports: Reports) -> Iterator[str]:
    lines = [
        (
            name,
            report.date or EMPTY,
            _short(report.commit),
            report.size or EMPTY,
            " ".join(report.arguments) or EMPTY,
            "; ".join(f"{what}: {much}" for what, much in report.settings.items()) or EMPTY,
            _known(report.machine.get("fdatasync_p50_ms") or None, "{:.2f} ms"),
            _known(report.machine.get("neighbours_cores"), "{:.2f}"),
        )
        if report
        else (name, f"**{NOT_RUN}**", *[EMPTY] * 6)
        for name, report in ((name, reports.get(name)) for name in BENCHES)
    ]
    head = (
        "benchmark",
        "date, UTC",
        "commit",
        "size",
        "options",
        "settings",
        "fdatasync p50",
        "cores used by others",
    )
    yield table(head, lines)
    versions: dict[str, str] = {}
    for report in reports.values():
        versions |= report.versions
    if versions:
        yield table(("", "version"), [(name, _version(told)) for name, told in versions.items()])
    yield (
        "A plus after a commit means that files differed from it. *Cores used by others* includes the servers of a "
        "benchmark. Full durability is SQLite with a write-ahead log and `synchronous=FULL`, and PostgreSQL with `fsync` and "
        "`synchronous_commit` on. The tables show other settings. Each peer has the settings of its own documentation."
    )
    if odd := [name for name, report in reports.items() if report.size in ("smoke", "quick")]:
        yield f"**Too small to be relied on**: {', '.join(odd)}."


def _known(value: float | None, form: str) -> str:
    return EMPTY if value is None else form.format(value)


def _version(told: str) -> str:
    return BUILD_OF_SYSTEM.sub(r"\1", told) if told.startswith(platform.system()) else told


def _section(reports: Reports, section: str, drawn: Sequence[str]) -> Iterator[str]:
    told = {name: made for name, report in reports.items() if (made := tables(report, section))}
    if not told:
        yield f"{NOT_RUN.capitalize()}."
    if section in drawn:
        yield f"![{section}]({PLOTS.name}/{page_plots.file_of(section)})"
    for name, made in told.items():
        yield f"`make bench-{name}`: {BENCHES[name]}."
        yield from made


def _better(reports: Reports) -> Iterator[str]:
    compared = [report for report in reports.values() if any(map(report.is_peer, report.rows))]
    shown = [
        (
            f"{each.theirs.measure}, {each.theirs.unit}",
            f"{each.theirs.subject} ({each.theirs.store}, {durable(each.theirs)})",
            number(each.theirs.value),
            ", ".join(f"{row.subject} {number(row.value)}: {ratio(times)}" for row, times in each.ours),
        )
        for report in compared
        for each in behind(report)
    ]
    if shown:
        yield (
            "The figures above in which a peer is better than Penstock, on the same store and on SQLite. The ratio compares "
            "Penstock with the peer: for rates, Penstock's figure divided by the peer's; for times, the inverse."
        )
        yield table(("", "peer", "its figure", "Penstock's figure: ratio"), shown)
    elif compared:
        yield "No peer that ran was better in any of the figures above."
    else:
        yield f"No peer was run: {NOT_RUN}."
    missed = [(name, bar) for name, report in reports.items() for bar in report.bars if bar.passed is False]
    if missed:
        yield "Targets that were missed:"
        lines = [(name, *bar_line(bar)[:3]) for name, bar in missed]
        yield table(("benchmark", "target", "measured", "required"), lines)
    yield (
        "These figures do not cover years of production use, many machines or other languages, in which the peers are ahead. "
        "See the [comparison](comparison.md) and [when not to use Penstock](when-not.md)."
    )


def _skipped(reports: Reports, host: str) -> Iterator[str]:
    lines = [(name, "all of it", f"{NOT_RUN}: no report") for name in BENCHES if name not in reports]
    for name, report in reports.items():
        lines += [(name, each["subject"], cleaned(each["reason"], host)) for each in report.skipped]
        lines += [(name, each["subject"], f"suspect: {cleaned(each['reason'], host)}") for each in report.suspects]
    yield table(("benchmark", "what", "why"), lines) if lines else "Nothing was skipped."


# -- the README -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Headline:
    """A line of the README's table: which row it is, and beside what it stands."""

    words: str
    report: str
    row: Callable[[Found], Row | None]
    beside: str = ""  # a word for its reference, or for its bar where it has none; without one it is the best peer


def _of(measure: str, subject: str = PENSTOCK) -> Callable[[Found], Row | None]:
    return lambda report: report.row(measure, subject)


def _last(start: str) -> Callable[[Found], Row | None]:
    """The largest that was measured."""
    return lambda report: next(
        (row for row in reversed(report.rows) if row.measure.startswith(start) and row.ratio), None
    )


HEADLINES = (
    Headline("messages processed, one worker, no-op handler", "queues", _of(DRAIN)),
    Headline("messages sent one by one, with a wait for each", "queues", _of(ONE_BY_ONE)),
    Headline(
        "latency from send to a handler in another idle process, p50", "queues", _of(P50, PENSTOCK + TWO_PROCESSES)
    ),
    Headline("messages claimed, executed and settled", "store", _of(NOOP), "a raw loop on SQLite"),
    Headline(
        "durable workflows of five steps, a hundred at a time",
        "workflows",
        _of(str(Point("sqlite", JUDGED_STEPS, JUDGED_AT_ONCE))),
    ),
    Headline(
        "throughput under undocumented rate limits, mean",
        "pace",
        _of(page_plots.MEAN),
        "a client that knows the limits",
    ),
    Headline("apps fully enriched over HTTP", "appstore", _of("enrich: apps fully enriched"), "a plain loop"),
    Headline("memory of the largest number of sleeping runs", "sleeping", _last("peak memory, "), "a tenth of them"),
    Headline("CPU time of an idle app", "store", _of("idle processor time"), "at most"),
)


def front(reports: Reports, drawn: Sequence[str] = ()) -> str:
    """The README's block, without its markers."""
    everything = (
        f"All results, including skipped benchmarks and figures in which a peer is better: [benchmarks]({PAGE})."
    )
    named = f"{provenance(reports)} {everything}"
    pictures = [section for section in FRONT if section in drawn][:FRONT_PLOTS]
    shown = [f"![{section}]({PLOTS}/{page_plots.file_of(section)})" for section in pictures]
    return "\n\n".join([named, table(FRONT_HEAD, [headline(each, reports) for each in HEADLINES]), *shown])


def headline(line: Headline, reports: Reports) -> Sequence[str]:
    report = reports.get(line.report)
    ours = line.row(report) if report else None
    if report is None or ours is None:
        return line.words, NOT_RUN, EMPTY, EMPTY
    figure = f"{number(ours.value)} {ours.unit}"
    bar = next((bar for bar in report.bars if bar.measure == ours.measure), None)
    if line.beside and ours.reference is not None:
        reference = f"{number(ours.reference)}, {line.beside}"
        against = ratio_of(ours)
    elif line.beside:
        reference = EMPTY if bar is None else f"{line.beside} {number(bar.limit)}"
        against = None if bar is None or not bar.limit else ours.value / bar.limit
    else:
        theirs = best(
            row
            for row in report.rows
            if report.is_peer(row)
            and (row.measure, row.unit) == (ours.measure, ours.unit)
            and (report.name != "workflows" or row.store == ours.store)
        )
        reference = EMPTY if theirs is None else f"{number(theirs.value)}, {theirs.subject}"
        against = None if theirs is None or not theirs.value else ours.value / theirs.value
    return line.words, figure, reference, EMPTY if against is None else ratio(against)


def replaced(readme: str, block: str) -> str:
    """The README with another block between its markers."""
    assert readme.count(BEGIN) == readme.count(END) == 1, f"the README has to hold {BEGIN} and {END} once each"
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def block_of(readme: str) -> str:
    found = re.search(f"{re.escape(BEGIN)}\n(.*)\n{re.escape(END)}", readme, re.DOTALL)
    assert found is not None, f"the README has no {BEGIN}"
    return found.group(1)


def cells_of(markdown: str) -> Iterable[list[str]]:
    """The lines of the first table in a text, without the one below its head."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:1] + lines[2:]]


if __name__ == "__main__":
    main()
