"""The plots of the page of all benchmarks: one a section, drawn from the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bench.page_reports import (
    LATENCY,
    MEMORY,
    PACING,
    PIPELINE,
    SWEEP,
    THROUGHPUT,
    WORKFLOWS,
    Found,
    Reports,
    is_ours,
    more_is_better,
    rows_of,
)
from bench.plot import Line, Panel, draw
from bench.queues_report import DRAIN, P50
from bench.report import Row, number
from bench.workflows_report import RATE

LOGARITHMIC_FROM = 30.0  # times the shortest bar
MEAN, WORST = "share of the best, mean", "share of the best, worst"
LABEL_MAX = 42  # characters that fit beside a bar


def plots(reports: Reports) -> dict[str, list[Panel]]:
    """What can be drawn in each section of what was measured."""
    made: dict[str, Callable[[], Iterable[Panel]]] = {
        THROUGHPUT: lambda: _throughput(reports),
        LATENCY: lambda: _queues(reports, P50, "From send to handler, idle, p50"),
        WORKFLOWS: lambda: _workflows(reports),
        PACING: lambda: _pacing(reports),
        PIPELINE: lambda: _alone(reports.get("appstore"), PIPELINE, "apps/s", "Apps fully enriched over HTTP"),
        MEMORY: lambda: _memory(reports),
    }
    drawn = {section: [panel for panel in panels() if panel.lines] for section, panels in made.items()}
    return {section: panels for section, panels in drawn.items() if panels}


def file_of(section: str) -> str:
    return f"{section.lower().replace(' ', '-')}.svg"


def write(reports: Reports, folder: Path, subtitle: str) -> list[str]:
    """Draws what there is to draw, takes away what an earlier page had, and tells the sections that have a plot."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    drawn = plots(reports)
    for section, panels in drawn.items():
        draw(section, subtitle, panels, folder / file_of(section))
    return list(drawn)


def _throughput(reports: Reports) -> Iterator[Panel]:
    yield from _queues(reports, DRAIN, "Drain of no-op messages by one worker")
    if store := reports.get("store"):
        limits = {bar.measure: bar.limit for bar in store.bars}
        lines = [
            Line(_short(row.measure), row.ratio, f"{row.ratio:.2f}", limit=limits.get(row.measure))
            for row in store.rows
            if row.unit == "messages/s" and row.ratio is not None and is_ours(row)
        ]
        yield _panel("Share of a hand-written loop on the same store", "longer is better; line: the bar", lines)


def _queues(reports: Reports, measure: str, title: str) -> Iterator[Panel]:
    rows = [row for row in reports["queues"].rows if row.measure == measure] if "queues" in reports else []
    if rows:
        more = more_is_better(rows[0].unit)
        rows.sort(key=lambda row: -row.value if more else row.value)
        note = "longer is better" if more else "shorter is better"
        yield _panel(f"{title}, {rows[0].unit}", note, [_line(row, _named(row)) for row in rows])


def _workflows(reports: Reports) -> Iterator[Panel]:
    report = reports.get("workflows")
    rows = [row for row in report.rows if row.unit == RATE and not row.measure.startswith(SWEEP)] if report else []
    for store, measure in dict.fromkeys((row.store, row.measure) for row in rows):
        those = sorted(
            (row for row in rows if (row.store, row.measure) == (store, measure)), key=lambda row: -row.value
        )
        yield _panel(
            f"Runs a second: {measure}, {store}", "longer is better", [_line(row, row.subject) for row in those]
        )


def _pacing(reports: Reports) -> Iterator[Panel]:
    report = reports.get("pace")
    if report is None:
        return
    worst = {row.subject: row.value for row in report.rows if row.measure == WORST}
    lines = [
        Line(row.subject, row.value, f"{row.value:.1f}", [worst[row.subject]] if row.subject in worst else ())
        for row in report.rows
        if row.measure == MEAN and not is_ours(row)
    ]
    note = "longer is better; 100: a client that knows everything; dot: the worst service"
    yield Panel("Share of what was possible, %", note, lines)


def _memory(reports: Reports) -> Iterator[Panel]:
    for name, title in (("sleeping", "Runs that sleep: peak, MB"), ("appstore", "The pipeline's processes, MB")):
        yield from _alone(reports.get(name), MEMORY, "MB", title)


def _alone(report: Found | None, section: str, unit: str, title: str) -> Iterator[Panel]:
    rows = [row for row in rows_of(report, section) if row.unit == unit] if report else []
    rows = [
        row for row in rows if row.ratio is not None or not is_ours(row)
    ]  # what stands beside nothing is in the table
    note = "longer is better" if more_is_better(unit) else "shorter is better"
    yield _panel(title, note, [_line(row, row.measure if is_ours(row) else row.subject) for row in rows])


def _named(row: Row) -> str:
    return row.subject if row.store in row.subject else f"{row.subject} ({row.store})"


def _line(row: Row, label: str) -> Line:
    return Line(_short(label), row.value, number(row.value), pale=not is_ours(row))


def _short(label: str) -> str:
    return label if len(label) <= LABEL_MAX else f"{label[: LABEL_MAX - 1]}…"


def _panel(title: str, note: str, lines: Sequence[Line]) -> Panel:
    values = [line.value for line in lines]
    wide = bool(values) and min(values) > 0 and max(values) > LOGARITHMIC_FROM * min(values)
    return Panel(title, f"logarithmic; {note}" if wide else note, lines, logarithmic=wide)
