"""The store's report for a reader: its rounds, its backlogs and its rest in words, and panels to be drawn."""

from __future__ import annotations

from collections.abc import Iterable

from bench.backlog import CLAIMED, Backlog
from bench.idle import Idle
from bench.old_snapshot import Aged
from bench.plot import Line, Panel
from bench.report import Pair, Report, Row, number, table


def claim_at(rows: int) -> str:
    return f"claim of {CLAIMED} at {rows:,} rows"


def panels(report: Report) -> list[Panel]:
    limits = {bar.measure: bar.limit for bar in report.bars}
    shares = [
        Line(pair.measure, pair.ratio, f"{pair.ratio:.2f}", pair.ratios, limits.get(pair.measure))
        for pair in report.pairs
        if pair.unit == "messages/s"
    ]
    waits = [_line(row, limits) for row in report.rows if row.measure.startswith("idle send to handler")]
    claims = [_line(row, limits) for row in report.rows if row.measure.startswith("claim of")]
    drawn = [
        Panel("Throughput as a share of the raw loop", "longer is better; dots: the rounds; line: the bar", shares),
        Panel("Idle latency, ms", "shorter is better; in grey: one synced append of 4 KB after the same pause", waits),
        Panel(
            "One claim over a backlog, half of it delayed, ms",
            "shorter is better; in grey: p99 and processor time; line: the bar",
            claims,
        ),
    ]
    return [panel for panel in drawn if panel.lines]


def _line(row: Row, limits: dict[str, float]) -> Line:
    """A bar in milliseconds. Its limit is a multiple of its reference."""
    limit = limits[row.measure] * row.reference if row.measure in limits and row.reference else None
    shown = f"{row.value:.2f}"
    if row.reference is None:
        return Line(row.measure.replace("idle send to handler", "fdatasync"), row.value, shown, pale=True)
    return Line(
        row.measure, row.value, shown, limit=limit, pale=row.measure.startswith("claim") and row.measure.endswith("p99")
    )


def show_rounds(pairs: Iterable[Pair]) -> None:
    def each(values: Iterable[float]) -> str:
        return " ".join(f"{number(value):>7}" for value in values)

    def ratios(pair: Pair) -> str:
        shown = zip(pair.ratios, pair.counted, strict=True)
        return " ".join(f"{ratio:>7.2f}" if counts else f"({ratio:.2f})".rjust(7) for ratio, counts in shown)

    head = ("", "unit", "reference, by round", "penstock, by round", "fdatasync ms", "ratio, by round", "median")
    lines = [
        (
            pair.measure,
            pair.unit,
            each(pair.reference),
            each(pair.ours),
            each(pair.fdatasync_ms),
            ratios(pair),
            f"{pair.ratio:.2f}",
        )
        for pair in pairs
    ]
    say("\n" + table(head, lines))
    if not all(all(pair.counted) for pair in pairs):
        say(
            "(in brackets: the disk was slow, which flatters whoever commits less often; not counted if others were not)"
        )


def show_backlogs(backlogs: Iterable[Backlog]) -> None:
    lines = [(f"{each.rows:,}", f"{each.p50_ms:.3f}", f"{each.p99_ms:.3f}", f"{each.cpu_ms:.3f}") for each in backlogs]
    say("\n" + table((f"claim of {CLAIMED}, rows of backlog", "p50 ms", "p99 ms", "processor p50 ms"), lines))


def show_idle(idle: Idle) -> None:
    say(f"\nidle for {idle.seconds:.0f} s: {1000 * idle.cpu_seconds:.1f} ms of processor, {idle.cpu_percent:.3f} %")
    say(f"  the writer's connection looked at {idle.pages} pages and ran")
    for sql, count in idle.statements.most_common():
        say(f"  {count:>5} x {sql}")


def show_aged(aged: Aged, seconds: float) -> None:
    say(f"\n{aged.per_second:.0f} messages/s for {seconds:.0f} s under an old snapshot:")
    say(f"  a claim, p50: {aged.normal_ms:.2f} ms before, {aged.aged_ms:.2f} ms at its end")
    say(f"  ... and with its commit: {aged.normal_commit_ms:.2f} ms before, {aged.aged_commit_ms:.2f} ms at its end")


def say(line: str) -> None:
    print(line, flush=True)
