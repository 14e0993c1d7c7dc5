"""What the workflows' turns come to: medians, ratios within a round, the bar, a table and panels to be drawn."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.peers.dbos_workflows import Setting
from bench.plot import Line, Panel
from bench.report import Bar, Pair, Report, Row, number
from bench.workflows_shape import DBOS, PENSTOCK, RAW, STORES, Point

RATE = "workflows/s"
BESIDE = ", beside dbos"  # behind the name of a measure
JUDGED_STEPS, JUDGED_AT_ONCE = 5, 100
TIMES_DBOS_MIN = 50.0
DURABILITY = {"sqlite": "full", "postgres": "fsync=on, synchronous_commit=on"}
HEAD = ("", "store", "raw bound", "dbos", "penstock", "steps/s", "of raw", "x dbos", "by round", "")


@dataclass(frozen=True, slots=True)
class Taken:
    """One round of one point: the runs a second of each contestant, and the slowest pace of the disk around them."""

    point: Point
    rates: Mapping[str, float]
    fdatasync_ms: float


@dataclass(frozen=True, slots=True)
class Swept:
    """What DBOS reached with a setting, before the rounds."""

    store: str
    at_once: int
    setting: Setting
    rate: float


def best(swept: Sequence[Swept], store: str, at_once: int) -> list[Setting]:
    """The settings that were tried there, the fastest first. Of several tries with one the best counts."""
    rates: dict[Setting, float] = {}
    for each in swept:
        if (each.store, each.at_once) == (store, at_once):
            rates[each.setting] = max(each.rate, rates.get(each.setting, 0.0))
    return sorted(rates, key=lambda setting: -rates[setting])


def build(report: Report, taken: Sequence[Taken], swept: Sequence[Swept], *, best_ms: float) -> None:
    """Fill the report from all rounds."""
    for point in dict.fromkeys(each.point for each in taken):
        rounds = [each for each in taken if each.point == point]
        for subject in (PENSTOCK, DBOS):
            report.pairs += _pair(rounds, point, subject, RAW, str(point), best_ms)
        report.pairs += _pair(rounds, point, PENSTOCK, DBOS, f"{point}{BESIDE}", best_ms)
        raw = statistics.median(each.rates[RAW] for each in rounds)
        report.rows += _rows(Row(RAW, str(point), raw, RATE, store=point.store), point)
    for pair in report.pairs:
        if not pair.measure.endswith(BESIDE):
            point = next(
                each.point for each in taken if (str(each.point), each.point.store) == (pair.measure, pair.store)
            )
            report.rows += _rows(pair.row(), point)
        elif pair.measure.startswith(str(Point(pair.store, JUDGED_STEPS, JUDGED_AT_ONCE))):
            name = f"{pair.measure}, {pair.store}"
            report.bars.append(Bar(name, pair.ratio, TIMES_DBOS_MIN, at_most=False, unit="x dbos", sure=pair.sure))
    for each in swept:
        measure = f"sweep: {Point(each.store, JUDGED_STEPS, each.at_once)}, {each.setting}"
        report.rows.append(Row(DBOS, measure, each.rate, RATE, store=each.store, durability=DURABILITY[each.store]))
    report.fdatasync_p50_ms = statistics.median(each.fdatasync_ms for each in taken)


def _pair(
    rounds: Sequence[Taken], point: Point, subject: str, reference: str, measure: str, best_ms: float
) -> Iterator[Pair]:
    pair = Pair(measure, RATE, best_ms=best_ms, subject=subject, store=point.store, durability=DURABILITY[point.store])
    for each in rounds:
        if subject in each.rates and reference in each.rates:
            ours, beside = each.rates[subject], each.rates[reference]
            pair.add(ours=ours, reference=beside, fdatasync_ms=each.fdatasync_ms)
    if pair.ours:
        yield pair


def _rows(row: Row, point: Point) -> list[Row]:
    """The same in workflows and in steps a second."""
    steps = Row(
        row.subject,
        row.measure,
        row.value * point.steps,
        "steps/s",
        None if row.reference is None else row.reference * point.steps,
        row.ratio,
        row.store,
        row.durability,
    )
    return [row, steps]


class Shown:
    def __init__(self, report: Report, points: Sequence[Point]) -> None:
        self._points = points
        self._rows = {(row.store, row.measure, row.subject, row.unit): row for row in report.rows}
        self._pairs = {(pair.store, pair.measure, pair.subject): pair for pair in report.pairs}
        self._bars = {bar.measure: bar for bar in report.bars}

    def lines(self) -> list[Sequence[str]]:
        return [self._line(point) for point in self._points]

    def _line(self, point: Point) -> Sequence[str]:
        beside = self._pairs.get((point.store, f"{point}{BESIDE}", PENSTOCK))
        ours = self._row(point, PENSTOCK)
        pairs = [self._pairs.get((point.store, str(point), PENSTOCK)), beside]
        slow = any(pair is not None and not pair.sure for pair in pairs)
        return (
            str(point),
            point.store,
            *(self._value(self._row(point, subject)) for subject in (RAW, DBOS, PENSTOCK)),
            self._value(self._row(point, PENSTOCK, "steps/s")),
            "-" if ours is None or ours.ratio is None else f"{ours.ratio:.3f}",
            "-" if beside is None else f"{beside.ratio:.1f}",
            "-"
            if beside is None
            else " ".join(_ratio(*each) for each in zip(beside.ratios, beside.counted, strict=True)),
            "slow disk" if slow else "",
        )

    def _row(self, point: Point, subject: str, unit: str = RATE) -> Row | None:
        return self._rows.get((point.store, str(point), subject, unit))

    def _value(self, row: Row | None) -> str:
        return "-" if row is None else number(row.value)

    def panels(self) -> list[Panel]:
        drawn = []
        for store in STORES:
            for steps in dict.fromkeys(point.steps for point in self._points):
                points = [point for point in self._points if (point.store, point.steps) == (store, steps)]
                lines = [line for point in points for line in self._drawn(point)]
                if lines:
                    title = f"Runs of {steps} no-op step{'s' if steps > 1 else ''} a second, {store}"
                    note = "logarithmic; longer is better; dots: the rounds; line: the bar"
                    drawn.append(Panel(title, note, lines, logarithmic=True))
        return drawn

    def _drawn(self, point: Point) -> Iterator[Line]:
        for subject in (PENSTOCK, DBOS, RAW):
            row = self._row(point, subject)
            if row is None:
                continue
            pair = self._pairs.get((point.store, str(point), subject))
            dots = pair.ours if pair is not None and len(pair.ours) > 1 else ()
            limit = self._limit(point) if subject == PENSTOCK else None
            label = f"{subject}, {point.at_once:,} at once"
            yield Line(label, row.value, number(row.value), dots, limit, pale=subject != PENSTOCK)

    def _limit(self, point: Point) -> float | None:
        theirs = self._row(point, DBOS)
        if theirs is None or (point.steps, point.at_once) != (JUDGED_STEPS, JUDGED_AT_ONCE):
            return None
        return TIMES_DBOS_MIN * theirs.value


def _ratio(ratio: float, counts: bool) -> str:
    return f"{ratio:.1f}" if counts else f"({ratio:.1f})"
