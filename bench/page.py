"""Generate the page of all benchmarks, and the table and plots of the README, from the existing reports.

    make bench        or        python bench/page.py [--reports FOLDER] [--into FOLDER]

It measures nothing. A benchmark without a report is shown as not run.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import jinja2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.plot import Line, Panel, draw
from bench.queues_report import DRAIN, ONE_BY_ONE, P50, PENSTOCK, TWO_PROCESSES
from bench.report import ROOT, Bar, Row, number
from bench.store import NOOP
from bench.workflows_report import JUDGED_AT_ONCE, JUDGED_STEPS, RATE
from bench.workflows_shape import Point

PAGE, PLOTS, TEMPLATE = Path("docs/explain/benchmarks.md"), Path("docs/explain/benchmarks"), "page.md.j2"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
NOT_RUN, EMPTY = "not run", "-"
BETTER, SKIPPED = "Where a peer is better", "What was skipped"
FRONT_PLOTS = 2  # of those that were drawn
FRONT_HEAD = ("", "Penstock", "compared with", "ratio")
BENCHES = {
    "queues": "enqueue, drain and idle latency compared with other queues",
    "store": "send, claim and settle on SQLite and PostgreSQL, compared with raw loops",
    "meter": "overhead of metering a statement",
    "history": "overhead of the history of every message",
    "points": "cost of a data point, compared with a plain insert",
    "web": "response of the HTTP server on a kept-alive connection, compared with a raw loop",
    "workflows": "durable workflows compared with DBOS and a raw bound",
    "sleeping": "memory of sleeping runs",
    "scale": "several worker processes on one PostgreSQL",
    "pace": "controllers with services whose limits they do not know",
    "clusters": "accuracy of the markets found, compared with the planted ones",
    "appstore": "the App Store pipeline: rows, plans, price, apps per second, memory",
}
SECTIONS = {
    "Throughput": "Messages per second. The raw loop is written by hand for the store and executes only the statements. The "
    "handlers do nothing, so that the figures show the cost of the engine. The time of a peer runs from the start of its "
    "first handler to the start of its last; the time of Penstock from before its worker starts until the last message is "
    "settled on the disk.",
    "Latency": "An idle app gets one message after a pause. The lower bound is one synced append of 4 KB after the same "
    "pause. Peers send from one process and handle in another. Penstock also has a row for one process that does both, "
    "which is its usual setup.",
    "Workflows": "Runs of steps that do nothing. Every engine has the result of a step on the disk before the next step "
    "begins. The raw bound is one thread that makes only the commits.",
    "Pacing": "Services with undocumented rate limits, drawn from seeds. 100 % is the throughput of a client that knows "
    "every limit, so the share is the ratio. Time is simulated.",
    "Pipeline": "The App Store pipeline against a fake server: fully enriched apps per second compared with a plain loop "
    "over the same addresses, the price of a month on a platform, the accuracy of the markets found, and the loss when the "
    "store blocks requests.",
    "Memory": "Memory of whole processes. It should not grow with the number of apps or sleeping runs.",
    "Idle cost": "The CPU time of an idle app, and the rows that it reads to find out that it is idle.",
}
SECTION_OF = {  # where a benchmark belongs if the name of a figure does not say
    "workflows": "Workflows",
    "sleeping": "Memory",
    "pace": "Pacing",
    "clusters": "Pipeline",
    "appstore": "Pipeline",
}
FRONT = ("Throughput", "Pacing", "Workflows", "Latency", "Pipeline", "Memory")
MEAN, SWEEP, SAME_IN_STEPS = "share of the best, mean", "sweep: ", "steps/s"
# What is drawn: the section, the benchmark, which of its rows, and the title of the panel.
DRAWN: Sequence[tuple[str, str, Callable[[Row], bool], str]] = (
    ("Throughput", "queues", lambda row: row.measure == DRAIN, "Drain of no-op messages by one worker"),
    ("Latency", "queues", lambda row: row.measure == P50, "From send to handler, idle, p50"),
    ("Workflows", "workflows", lambda row: row.unit == RATE and not row.measure.startswith(SWEEP), "Runs a second"),
    ("Pacing", "pace", lambda row: row.measure == MEAN and not is_ours(row), "Share of what was possible"),
    ("Pipeline", "appstore", lambda row: row.unit == "apps/s" and bool(row.ratio), "Apps fully enriched over HTTP"),
    ("Memory", "sleeping", lambda row: row.unit == "MB", "Runs that sleep: peak"),
    ("Memory", "appstore", lambda row: row.unit == "MB", "The pipeline's processes"),
)
DURABLE = {"full": "every commit", "normal": "at checkpoints", "off": "never"}
VERDICT = {True: "met", False: "**missed**", None: "unsure: slow disk"}
FIGURE = re.compile(r"[\d,.]+( (ms|us|s|MB|%)|$)|-$")
ALIKE_MAX = 10  # rows without a reference of one subject that are shown one by one
LOGARITHMIC_FROM, LABEL_MAX = 30.0, 42  # times the shortest bar; characters that fit beside a bar

ABSOLUTE_PATH = re.compile(r"(?<![\w:/.~-])/(?:[^\s/:,;'\"()|]+/)+([^\s/:,;'\"()|]*)")
BUILD_OF_SYSTEM = re.compile(r"(\d+\.\d+\.\d+)-\S+")  # a kernel's own suffix names where it was built
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")


def main() -> None:
    parser = argparse.ArgumentParser(description="One page of all benchmarks, made of the reports that are there.")
    parser.add_argument("--reports", type=Path, default=ROOT / "build" / "bench", help="where the reports are")
    parser.add_argument("--into", type=Path, default=ROOT, help="where README.md and docs are")
    options = parser.parse_args()
    reports = read(options.reports)
    drawn = plot(reports, options.into / PLOTS)
    (options.into / PAGE).write_text(whole(reports, drawn, host=platform.node()), "utf-8")
    readme = options.into / "README.md"
    readme.write_text(replaced(readme.read_text("utf-8"), front(reports, drawn)), "utf-8")
    missing = [name for name in BENCHES if name not in reports]
    print(f"{PAGE}, {len(drawn)} plots and README.md: {len(reports)} of {len(BENCHES)} benchmarks")
    if missing:
        print(f"not run: {', '.join(missing)}")


# -- the reports ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """One benchmark's report. What an older one does not tell is empty."""

    name: str
    commit: str = "unknown"
    date: str = ""
    size: str = ""
    arguments: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    bars: Sequence[Bar] = ()
    skipped: Sequence[Mapping[str, str]] = ()
    suspects: Sequence[Mapping[str, str]] = ()

    def row(self, measure: str, subject: str = PENSTOCK, store: str = "sqlite") -> Row | None:
        """Return the row in the first of its units."""
        found = (row for row in self.rows if (row.measure, row.subject, row.store) == (measure, subject, store))
        return next(found, None)

    def is_peer(self, row: Row) -> bool:
        """A benchmark reports the version of each contestant."""
        return not is_ours(row) and row.subject in self.versions and not row.measure.startswith(SWEEP)


Reports = Mapping[str, Found]


def read(folder: Path) -> dict[str, Found]:
    """Read the existing reports, in the order of the benchmarks."""
    paths = {name: folder / f"{name}.json" for name in BENCHES}
    return {name: found(json.loads(path.read_text("utf-8"))) for name, path in paths.items() if path.is_file()}


def found(told: Mapping[str, Any]) -> Found:
    known = {each.name: told[each.name] for each in fields(Found) if each.name in told}
    known["rows"] = [Row(**row) for row in told.get("rows", ())]
    known["bars"] = [Bar(**{k: v for k, v in bar.items() if k != "passed"}) for bar in told.get("bars", ())]
    return Found(**known)


def section_of(name: str, measure: str, unit: str) -> str:
    """Return the one section that a row or a bar of a benchmark belongs to."""
    if "memory" in measure or (unit == "MB" and not measure.endswith(": database")):
        return "Memory"
    if "send to handler" in measure or measure.startswith(("claim of", "kept-alive")) or "old snapshot" in measure:
        return "Latency"
    if re.search(r"\bidle\b", measure):
        return "Idle cost"
    return SECTION_OF.get(name, "Throughput")


def is_ours(row: Row) -> bool:
    return row.subject.startswith("penstock")


def more_is_better(unit: str) -> bool:
    return unit.endswith("/s") or unit == "%"


def times_better(ours: Row, theirs: Row) -> float:
    """Return how many times as good ours is: below 1 the other one is better."""
    more, less = (ours, theirs) if more_is_better(ours.unit) else (theirs, ours)
    return more.value / less.value if less.value else float("inf")


def behind(report: Found) -> list[tuple[Row, list[tuple[Row, float]]]]:
    """Return where a peer is better than Penstock on its store or on SQLite, with our rows and their ratios, the widest gap
    first."""
    listed = []
    for theirs in report.rows:
        if theirs.unit == SAME_IN_STEPS or not report.is_peer(theirs):
            continue
        stores = {theirs.store} if report.name == "workflows" else {theirs.store, "sqlite"}
        beside = [row for row in report.rows if is_ours(row) and row.store in stores and _is_same(row, theirs)]
        if worse := sorted(((row, ratio) for row in beside if (ratio := times_better(row, theirs)) < 1), key=_second):
            listed.append((theirs, worse))
    return sorted(listed, key=lambda each: each[1][0][1])


def _second(pair: tuple[Row, float]) -> float:
    return pair[1]


def _is_same(row: Row, other: Row) -> bool:
    return (row.measure, row.unit) == (other.measure, other.unit)


# -- the page -------------------------------------------------------------------------------------------------------


def whole(reports: Reports, drawn: Sequence[str] = (), *, host: str = "") -> str:
    """Return the text of the page. `drawn` are the sections with a plot."""
    versions = {name: version for report in reports.values() for name, version in report.versions.items()}
    text = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, autoescape=False
    ).get_template(TEMPLATE)
    return (
        text.render(
            provenance=provenance(reports),
            runs=table(*_runs(reports)),
            versions=versions and table(("", "version"), [(name, _version(told)) for name, told in versions.items()]),
            too_small=[name for name, report in reports.items() if report.size in ("smoke", "quick")],
            sections=[_section(reports, name, drawn) for name in SECTIONS],
            better=BETTER,
            behind=_behind(reports),
            compared=any(report.is_peer(row) for report in reports.values() for row in report.rows),
            missed=_missed(reports),
            skipped_heading=SKIPPED,
            skipped=_skipped(reports, host),
        ).rstrip()
        + "\n"
    )


def provenance(reports: Reports) -> str:
    """Return when, of which commit and on what was measured. The README says the same."""
    if not reports:
        return f"Nothing is measured here yet: {NOT_RUN}."
    dates = sorted({report.date[:10] for report in reports.values() if report.date}) or ["an unknown day"]
    commits = dict.fromkeys(_short(report.commit) for report in reports.values())
    sizes = dict.fromkeys(report.size or "unknown" for report in reports.values())
    cores = sorted({str(report.machine.get("cores", "?")) for report in reports.values()})
    days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return f"Measured on {days}, commit {', '.join(commits)}, size {', '.join(sizes)}, {' or '.join(cores)} processors."


def _short(commit: str) -> str:
    return commit[:10] + ("+" if commit.endswith("+") else "")


def _version(told: str) -> str:
    return BUILD_OF_SYSTEM.sub(r"\1", told) if told.startswith(platform.system()) else told


def _runs(reports: Reports) -> tuple[Sequence[str], list[Sequence[str]]]:
    def known(value: float | None, form: str) -> str:
        return EMPTY if value is None else form.format(value)

    def line(name: str, report: Found | None) -> Sequence[str]:
        if report is None:
            return name, f"**{NOT_RUN}**", *[EMPTY] * 6
        settings = "; ".join(f"{what}: {much}" for what, much in report.settings.items())
        words = (report.date, _short(report.commit), report.size, " ".join(report.arguments), settings)
        sync, others = report.machine.get("fdatasync_p50_ms") or None, report.machine.get("neighbours_cores")
        return name, *(word or EMPTY for word in words), known(sync, "{:.2f} ms"), known(others, "{:.2f}")

    head = ("benchmark", "date, UTC", "commit", "size", "options", "settings", "fdatasync p50", "cores used by others")
    return head, [line(name, reports.get(name)) for name in BENCHES]


def _section(reports: Reports, section: str, drawn: Sequence[str]) -> dict[str, Any]:
    told = {name: made for name, report in reports.items() if (made := tables(report, section))}
    return {
        "name": section,
        "about": SECTIONS[section],
        "plot": f"{PLOTS.name}/{file_of(section)}" if section in drawn else None,
        "reports": [{"name": name, "about": BENCHES[name], "tables": made} for name, made in told.items()],
    }


def _behind(reports: Reports) -> str | None:
    lines = [
        (
            f"{theirs.measure}, {theirs.unit}",
            f"{theirs.subject} ({theirs.store}, {durable(theirs)})",
            number(theirs.value),
            ", ".join(f"{row.subject} {number(row.value)}: {shown_ratio(times)}" for row, times in ours),
        )
        for report in reports.values()
        for theirs, ours in behind(report)
    ]
    return table(("", "peer", "its figure", "Penstock's figure: ratio"), lines) if lines else None


def _missed(reports: Reports) -> str | None:
    bars = [(name, bar) for name, report in reports.items() for bar in report.bars if bar.passed is False]
    lines = [(name, *bar_line(bar)[:3]) for name, bar in bars]
    return table(("benchmark", "target", "measured", "required"), lines) if lines else None


def _skipped(reports: Reports, host: str) -> str | None:
    lines = [(name, "all of it", f"{NOT_RUN}: no report") for name in BENCHES if name not in reports]
    for name, report in reports.items():
        lines += [(name, each["subject"], cleaned(each["reason"], host)) for each in report.skipped]
        lines += [(name, each["subject"], f"suspect: {cleaned(each['reason'], host)}") for each in report.suspects]
    return table(("benchmark", "what", "why"), lines) if lines else None


# -- tables ---------------------------------------------------------------------------------------------------------


def tables(report: Found, section: str) -> list[str]:
    """Return what one report has to say in one section."""
    rows = [row for row in report.rows if section_of(report.name, row.measure, row.unit) == section]
    bars = [bar for bar in report.bars if section_of(report.name, bar.measure, bar.unit) == section]
    has_many = (report.name, section) in (("queues", "Throughput"), ("queues", "Latency"), ("pace", "Pacing"))
    made = by_subject(report, rows) if has_many else compared(report, rows)
    targets = [table(("target", "measured", "required", ""), [bar_line(bar) for bar in bars])] if bars else []
    return [*made, *targets]


def by_subject(report: Found, rows: Sequence[Row]) -> Iterator[str]:
    """One line a subject, one column a measure: ours first, then the peers from the best to the worst, then the bounds."""
    measures = list(dict.fromkeys(row.measure for row in rows))
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.subject, {})[row.measure] = row
    key = next((measure for measure in (DRAIN, P50) if measure in measures), measures[-1] if measures else "")
    ours = found.get(PENSTOCK, {}).get(key)

    def against(subject: str) -> float | None:
        at = found[subject].get(key)
        return None if at is None or ours is None or is_ours(at) else times_better(ours, at)

    def order(subject: str) -> tuple[int, float]:
        some = next(iter(found[subject].values()))
        kind = 0 if is_ours(some) else 1 if report.is_peer(some) else 2
        return kind, (against(subject) or 0.0) if kind == 1 else 0.0

    lines = []
    for subject in sorted(found, key=order):
        some, at = next(iter(found[subject].values())), found[subject].get(key)
        figures = [number(found[subject][each].value) if each in found[subject] else EMPTY for each in measures]
        share = EMPTY if at is None or at.ratio is None else shown_ratio(at.ratio)
        lines.append((subject, some.store, durable(some), *figures, share, _ratio_or_empty(against(subject))))
    units = {row.measure: row.unit for row in rows}
    named = [f"{measure}, {units[measure]}" for measure in measures]
    if report.name == "pace":  # its subjects are kinds of services
        kinds = [("**all kinds**" if line[0] == PENSTOCK else line[0], *line[3:-2]) for line in lines]
        yield table(("kind of limit", *named), kinds)
    elif lines:
        yield table(("", "store", "durability", *named, f"{key}, of its bound", "Penstock: times as good"), lines)


def compared(report: Found, rows: Sequence[Row]) -> Iterator[str]:
    """Each figure with its reference. A row that is only there as a reference stands beside what it is one of."""
    shown = {(row.measure, row.store, row.reference) for row in rows if row.reference is not None}
    plain = [row for row in rows if row.reference is None and not is_ours(row)]
    named = {(row.measure, row.store, row.value): row.subject for row in plain}
    lines = []
    for row in folded(rows):
        is_reference = row in plain and (row.measure, row.store, row.value) in shown
        if is_reference or (report.name == "workflows" and (row.unit != RATE or row.measure.startswith(SWEEP))):
            continue
        measure = row.measure if is_ours(row) else f"{row.subject}: {row.measure}"
        beside = "" if row.reference is None else named.get((row.measure, row.store, row.reference), "")
        reference = EMPTY if row.reference is None else f"{number(row.reference)} {beside}".strip()
        figure = f"{number(row.value)} {row.unit}".strip()
        lines.append((measure, row.store, durable(row), figure, reference, _ratio_or_empty(ratio_of(row))))
    if lines:
        yield table(("", "store", "durability", "measured", "compared with", "ratio"), lines)


def folded(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield only the median and the most of many alike."""
    alone: dict[str, list[Row]] = {}
    for row in rows:
        if row.reference is None and not is_ours(row):
            alone.setdefault(row.subject, []).append(row)
    many = {subject: those for subject, those in alone.items() if len(those) > ALIKE_MAX}
    yield from (row for row in rows if row.reference is not None or row.subject not in many)
    for those in many.values():
        values = [row.value for row in those]
        yield replace(those[0], measure=f"median of {len(those)}", value=statistics.median(values))
        yield replace(those[0], measure=f"most of {len(those)}", value=max(values))


def bar_line(bar: Bar) -> Sequence[str]:
    side = "at most" if bar.at_most else "at least"
    return bar.measure, f"{number(bar.value)} {bar.unit}".strip(), f"{side} {number(bar.limit)}", VERDICT[bar.passed]


def durable(row: Row) -> str:
    return DURABLE.get(row.durability, row.durability)


def shown_ratio(value: float) -> str:
    return number(value) if value >= 10 else f"{value:.3g}"


def _ratio_or_empty(value: float | None) -> str:
    return EMPTY if value is None else shown_ratio(value)


def ratio_of(row: Row) -> float | None:
    """Return the ratio that was measured round by round, or that of the two figures."""
    return row.ratio if row.ratio is not None or not row.reference else row.value / row.reference


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell(each) for each in cells)} |"

    listed = list(lines)
    figures = [bool(listed) and all(FIGURE.match(each[column]) for each in listed) for column in range(len(head))]
    below = "|".join("---:" if to_the_right else "---" for to_the_right in figures)
    return "\n".join([line(head), f"|{below}|", *map(line, listed)])


def cell(text: str) -> str:
    """Return text on one line; nothing in it ends the cell or is taken for markup."""
    shown = cleaned(text).replace("\\", "\\\\").replace("|", "\\|")
    return shown.replace("<", "&lt;").replace("[", "\\[").replace("`", "\\`")


def cleaned(text: str, host: str = "") -> str:
    """Return what a process said, on one line, without where it ran."""
    text = ABSOLUTE_PATH.sub(r"\1", UNSEEN.sub(" ", text)).strip()
    return re.sub(rf"\b{re.escape(host)}\b", "this machine", text) if host else text


# -- plots ----------------------------------------------------------------------------------------------------------


def plot(reports: Reports, folder: Path) -> list[str]:
    """Draw what there is to draw, remove the plots of an earlier page, and return the sections that have a plot."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    panels: dict[str, list[Panel]] = {}
    for section, name, wanted, title in DRAWN:
        rows = [row for row in reports[name].rows if wanted(row)] if name in reports else []
        for panel in _panels(name, title, rows):
            panels.setdefault(section, []).append(panel)
    for section, those in panels.items():
        draw(section, provenance(reports), those, folder / file_of(section))
    return [section for section in SECTIONS if section in panels]


def file_of(section: str) -> str:
    return f"{section.lower().replace(' ', '-')}.svg"


def _panels(name: str, title: str, rows: Sequence[Row]) -> Iterator[Panel]:
    """One panel for all rows; of workflows one for each point."""
    points = [(row.store, row.measure) if name == "workflows" else ("", "") for row in rows]
    for store, measure in dict.fromkeys(points):
        those = [row for row, point in zip(rows, points, strict=True) if point == (store, measure)]
        more = more_is_better(those[0].unit)
        if len({row.measure for row in those}) == 1 and len(those) > 1:
            those.sort(key=lambda row: -row.value if more else row.value)
        values = [row.value for row in those]
        is_wide = min(values) > 0 and max(values) > LOGARITHMIC_FROM * min(values)
        note = ("logarithmic; " if is_wide else "") + ("longer is better" if more else "shorter is better")
        heading = f"{title}: {measure}, {store}" if measure else f"{title}, {those[0].unit}"
        lines = [Line(_label(row, those), row.value, number(row.value), pale=not is_ours(row)) for row in those]
        yield Panel(heading, note, lines, logarithmic=is_wide)


def _label(row: Row, beside: Sequence[Row]) -> str:
    is_one_measure = len({each.measure for each in beside}) == 1
    label = row.subject if is_one_measure or not is_ours(row) else row.measure
    if is_one_measure and row.store not in label and len({each.store for each in beside}) > 1:
        label += f" ({row.store})"
    return label if len(label) <= LABEL_MAX else f"{label[: LABEL_MAX - 1]}…"


# -- the README -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Headline:
    """A line of the README's table: which row it is, and what it is compared with."""

    words: str
    report: str
    row: Callable[[Found], Row | None]
    beside: str = ""  # a word for its reference, or for its bar where it has none; without one it is the best peer


def _of(measure: str, subject: str = PENSTOCK) -> Callable[[Found], Row | None]:
    return lambda report: report.row(measure, subject)


def _largest(start: str) -> Callable[[Found], Row | None]:
    return lambda report: next(
        (row for row in reversed(report.rows) if row.measure.startswith(start) and row.ratio), None
    )


JUDGED = str(Point("sqlite", JUDGED_STEPS, JUDGED_AT_ONCE))
KNOWING = "a client that knows the limits"
LOSING = "a power cut loses messages"  # what its durability says of a peer that syncs less
IDLE_SEND = "latency from send to a handler in another idle process, p50"
HEADLINES = (
    Headline("messages processed, one worker, no-op handler", "queues", _of(DRAIN)),
    Headline("messages sent one by one, with a wait for each", "queues", _of(ONE_BY_ONE)),
    Headline(IDLE_SEND, "queues", _of(P50, PENSTOCK + TWO_PROCESSES)),
    Headline("messages claimed, executed and settled", "store", _of(NOOP), "a raw loop on SQLite"),
    Headline("durable workflows of five steps, a hundred at a time", "workflows", _of(JUDGED)),
    *(
        Headline(
            f"throughput under undocumented limits, mean of {sort}", "pace", _of(MEAN, f"penstock, {sort}"), KNOWING
        )
        for sort in ("services that ban", "other services")
    ),
    Headline("apps fully enriched over HTTP", "appstore", _of("enrich: apps fully enriched"), "a plain loop"),
    Headline("memory of the largest number of sleeping runs", "sleeping", _largest("peak memory, "), "a tenth of them"),
    Headline("CPU time of an idle app", "store", _of("idle processor time"), "at most"),
)


def front(reports: Reports, drawn: Sequence[str] = ()) -> str:
    """Return the README's block, without its markers."""
    link = f"All results, including skipped benchmarks and figures in which a peer is better: [benchmarks]({PAGE})."
    pictures = [section for section in FRONT if section in drawn][:FRONT_PLOTS]
    shown = [f"![{section}]({PLOTS}/{file_of(section)})" for section in pictures]
    lines = [headline(each, reports) for each in HEADLINES]
    return "\n\n".join([f"{provenance(reports)} {link}", table(FRONT_HEAD, lines), *shown])


def headline(line: Headline, reports: Reports) -> Sequence[str]:
    report = reports.get(line.report)
    ours = line.row(report) if report else None
    if report is None or ours is None:
        return line.words, NOT_RUN, EMPTY, EMPTY
    reference, against = EMPTY, None
    if line.beside and ours.reference is not None:
        reference, against = f"{number(ours.reference)}, {line.beside}", ratio_of(ours)
    elif line.beside:
        if (bar := next((bar for bar in report.bars if bar.measure == ours.measure), None)) is not None:
            reference, against = f"{line.beside} {number(bar.limit)}", ours.value / bar.limit if bar.limit else None
    else:
        stores = {ours.store} if report.name == "workflows" else {row.store for row in report.rows}
        peers = [row for row in report.rows if report.is_peer(row) and _is_same(row, ours) and row.store in stores]
        best = max if more_is_better(ours.unit) else min
        if peers and (theirs := best(peers, key=lambda row: row.value)).value:
            marked = f", where {LOSING}" if LOSING in theirs.durability else ""
            reference, against = f"{number(theirs.value)}, {theirs.subject}{marked}", ours.value / theirs.value
    return line.words, f"{number(ours.value)} {ours.unit}", reference, _ratio_or_empty(against)


def replaced(readme: str, block: str) -> str:
    """Return the README with another block between its markers."""
    assert readme.count(BEGIN) == readme.count(END) == 1, f"the README has to hold {BEGIN} and {END} once each"
    before, _, rest = readme.partition(BEGIN)
    return f"{before}{BEGIN}\n{block}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    main()
