"""The reports as Markdown tables, section by section: each figure with what it is compared with, and the bars."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bench.page_reports import (
    LATENCY,
    PACING,
    SAME_IN_STEPS,
    SWEEP,
    THROUGHPUT,
    WORKFLOWS,
    Found,
    bars_of,
    cleaned,
    is_ours,
    rows_of,
    times_better,
)
from bench.queues_report import BATCHED, DRAIN, ONE_BY_ONE, P50, P99
from bench.report import Bar, Row, number
from bench.workflows_report import RATE
from bench.workflows_shape import DBOS, PENSTOCK, RAW

EMPTY = "-"
DURABLE = {"full": "every commit", "normal": "at checkpoints", "off": "never"}
FIGURE = re.compile(r"[\d,.]+( (ms|us|s|MB|%)|$)|-$")
ALIKE_MAX = 10  # rows without a reference of one subject that are shown one by one
VERDICT = {True: "met", False: "**missed**", None: "unsure: slow disk"}


def tables(report: Found, section: str) -> list[str]:
    """What one report has to say in one section; nothing where it has nothing."""
    rows = rows_of(report, section)
    if (report.name, section) == ("queues", THROUGHPUT):
        made = beside_peers(report, rows, (ONE_BY_ONE, BATCHED, DRAIN), DRAIN, "of the raw loop")
    elif (report.name, section) == ("queues", LATENCY):
        made = beside_peers(report, rows, (P50, P99), P50, "times fdatasync")
    elif (report.name, section) == ("workflows", WORKFLOWS):
        made = workflows(rows)
    elif (report.name, section) == ("pace", PACING):
        made = pacing(rows)
    else:
        made = compared(rows)
    return [*made, *bars(bars_of(report, section))]


def beside_peers(report: Found, rows: Sequence[Row], measures: Sequence[str], key: str, limit: str) -> Iterator[str]:
    """Ours first, then the peers from the best to the worst, then the raw limits."""
    if not rows:
        return
    by_subject: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_subject.setdefault(row.subject, {})[row.measure] = row
    ours = by_subject.get("penstock", {}).get(key)

    def order(subject: str) -> tuple[int, float]:
        some = next(iter(by_subject[subject].values()))
        at = by_subject[subject].get(key)
        kind = 0 if is_ours(some) else 1 if report.is_peer(some) else 2
        return kind, 0.0 if kind != 1 or at is None or ours is None else times_better(ours, at)

    lines = []
    for subject in sorted(by_subject, key=order):
        found = by_subject[subject]
        some, at = next(iter(found.values())), found.get(key)
        against = EMPTY if at is None or ours is None or is_ours(some) else ratio(times_better(ours, at))
        figures = [number(found[measure].value) if measure in found else EMPTY for measure in measures]
        share = EMPTY if at is None or at.ratio is None else ratio(at.ratio)
        lines.append((subject, some.store, durable(some), *figures, share, against))
    named = [f"{measure}, {rows[0].unit}" for measure in measures]
    yield table(("", "store", "durability", *named, limit, "Penstock: times as good"), lines)


def workflows(rows: Sequence[Row]) -> Iterator[str]:
    rated = {(row.store, row.measure, row.subject): row for row in rows if row.unit == RATE}
    lines = []
    for store, measure in dict.fromkeys((store, measure) for store, measure, _ in rated):
        if measure.startswith(SWEEP):
            continue
        raw, dbos, ours = (rated.get((store, measure, subject)) for subject in (RAW, DBOS, PENSTOCK))
        figures = (EMPTY if row is None else number(row.value) for row in (ours, dbos, raw))
        of_raw = EMPTY if ours is None or ours.ratio is None else ratio(ours.ratio)
        times = EMPTY if ours is None or dbos is None else ratio(times_better(ours, dbos))
        lines.append((measure, store, *figures, of_raw, times))
    if lines:
        head = ("", "store", "Penstock, runs/s", "DBOS, runs/s", "raw bound, runs/s", "of the raw bound", "times DBOS")
        yield table(head, lines)
    tried = [row for row in rows if row.measure.startswith(SWEEP) and row.unit != SAME_IN_STEPS]
    if tried:
        yield f"DBOS ran with its best setting for each store, found in {len(tried)} earlier rounds."


def pacing(rows: Sequence[Row]) -> Iterator[str]:
    measures = list(dict.fromkeys(row.measure for row in rows))
    by_kind: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_kind.setdefault(row.subject, {})[row.measure] = row
    lines = [
        (
            "**all kinds**" if kind == "penstock" else kind,
            *(f"{found[measure].value:.2f}" if measure in found else EMPTY for measure in measures),
        )
        for kind, found in by_kind.items()
    ]
    if lines:
        yield table(("kind of limit", *(f"{measure}, {_unit(rows, measure)}" for measure in measures)), lines)


def compared(rows: Sequence[Row]) -> Iterator[str]:
    """Each figure with its reference. A row that is only there as a reference stands beside what it is one of."""
    beside = {
        (row.measure, row.store, row.value): row.subject for row in rows if row.reference is None and not is_ours(row)
    }
    shown = {(row.measure, row.store, row.reference) for row in rows if row.reference is not None}
    lines = []
    for row in folded(rows):
        if row.reference is None and (row.measure, row.store, row.value) in shown and not is_ours(row):
            continue
        measure = row.measure if is_ours(row) else f"{row.subject}: {row.measure}"
        name = "" if row.reference is None else beside.get((row.measure, row.store, row.reference), "")
        reference = EMPTY if row.reference is None else f"{number(row.reference)} {name}".strip()
        lines.append(
            (
                measure,
                row.store,
                durable(row),
                f"{number(row.value)} {row.unit}".strip(),
                reference,
                EMPTY if (against := ratio_of(row)) is None else ratio(against),
            )
        )
    if lines:
        yield table(("", "store", "durability", "Penstock", "compared with", "ratio"), lines)


def folded(rows: Sequence[Row]) -> Iterator[Row]:
    """Of many alike only the median and the most."""
    alone: dict[str, list[Row]] = {}
    for row in rows:
        if row.reference is None and not is_ours(row):
            alone.setdefault(row.subject, []).append(row)
    many = {subject: those for subject, those in alone.items() if len(those) > ALIKE_MAX}
    for row in rows:
        if row.reference is not None or row.subject not in many:
            yield row
    for those in many.values():
        values = [row.value for row in those]
        yield replace(those[0], measure=f"median of {len(those)}", value=statistics.median(values))
        yield replace(those[0], measure=f"most of {len(those)}", value=max(values))


def bars(those: Sequence[Bar]) -> Iterator[str]:
    if those:
        yield table(("target", "measured", "required", ""), [bar_line(bar) for bar in those])


def bar_line(bar: Bar) -> Sequence[str]:
    side = "at most" if bar.at_most else "at least"
    return bar.measure, f"{number(bar.value)} {bar.unit}".strip(), f"{side} {number(bar.limit)}", VERDICT[bar.passed]


def durable(row: Row) -> str:
    return DURABLE.get(row.durability, row.durability)


def ratio(value: float) -> str:
    return number(value) if value >= 10 else f"{value:.3g}"


def ratio_of(row: Row) -> float | None:
    """The one that was measured round by round, or that of the two figures."""
    return row.ratio if row.ratio is not None or not row.reference else row.value / row.reference


def _unit(rows: Iterable[Row], measure: str) -> str:
    return next(row.unit for row in rows if row.measure == measure)


# -- Markdown -------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell(each) for each in cells)} |"

    listed = list(lines)
    figures = [bool(listed) and all(FIGURE.match(each[column]) for each in listed) for column in range(len(head))]
    below = "|".join("---:" if to_the_right else "---" for to_the_right in figures)
    return "\n".join([line(head), f"|{below}|", *map(line, listed)])


def cell(text: str) -> str:
    """On one line, and nothing in it ends the cell or is taken for markup."""
    shown = cleaned(text).replace("\\", "\\\\").replace("|", "\\|")
    return shown.replace("<", "&lt;").replace("[", "\\[").replace("`", "\\`")
