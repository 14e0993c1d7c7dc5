"""What the benchmarks wrote, read back: which reports there are, what belongs into which section, and who is a peer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from bench.report import Bar, Row

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
THROUGHPUT, LATENCY, WORKFLOWS = "Throughput", "Latency", "Workflows"
PACING, PIPELINE, MEMORY, IDLE = "Pacing", "Pipeline", "Memory", "Idle cost"
SECTIONS = (THROUGHPUT, LATENCY, WORKFLOWS, PACING, PIPELINE, MEMORY, IDLE)
OTHERWISE = {  # where what a benchmark found belongs if its name does not say
    "workflows": WORKFLOWS,
    "sleeping": MEMORY,
    "pace": PACING,
    "clusters": PIPELINE,
    "appstore": PIPELINE,
}
SWEEP = "sweep: "  # before the measure of a setting that was only tried
SAME_IN_STEPS = "steps/s"  # a rate that stands beside it in workflows a second

ABSOLUTE_PATH = re.compile(r"(?<![\w:/.~-])/(?:[^\s/:,;'\"()|]+/)+([^\s/:,;'\"()|]*)")
BUILD_OF_SYSTEM = re.compile(r"(\d+\.\d+\.\d+)-\S+")  # a kernel's own suffix names where it was built
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")


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

    def row(self, measure: str, subject: str = "penstock", store: str = "sqlite") -> Row | None:
        """In the first of its units."""
        found = (row for row in self.rows if (row.measure, row.subject, row.store) == (measure, subject, store))
        return next(found, None)

    def is_peer(self, row: Row) -> bool:
        """A benchmark tells the version of everybody who took part."""
        return not is_ours(row) and row.subject in self.versions and not row.measure.startswith(SWEEP)


Reports = Mapping[str, Found]


def read(folder: Path) -> dict[str, Found]:
    """The reports that are there, in the order of the benchmarks."""
    paths = {name: folder / f"{name}.json" for name in BENCHES}
    return {name: found(json.loads(path.read_text("utf-8"))) for name, path in paths.items() if path.is_file()}


def found(told: Mapping[str, Any]) -> Found:
    known = {each.name: told[each.name] for each in fields(Found) if each.name in told}
    known["rows"] = [Row(**row) for row in told.get("rows", ())]
    known["bars"] = [
        Bar(**{name: value for name, value in bar.items() if name != "passed"}) for bar in told.get("bars", ())
    ]
    return Found(**known)


def is_ours(row: Row) -> bool:
    return row.subject.startswith("penstock")


def section_of(name: str, measure: str, unit: str) -> str:
    """Every row and every bar of a benchmark belongs into exactly one section."""
    if "memory" in measure or (unit == "MB" and not measure.endswith(": database")):
        return MEMORY
    if "send to handler" in measure or measure.startswith(("claim of", "kept-alive")) or "old snapshot" in measure:
        return LATENCY
    if re.search(r"\bidle\b", measure):
        return IDLE
    return OTHERWISE.get(name, THROUGHPUT)


def rows_of(report: Found, section: str) -> list[Row]:
    return [row for row in report.rows if section_of(report.name, row.measure, row.unit) == section]


def bars_of(report: Found, section: str) -> list[Bar]:
    return [bar for bar in report.bars if section_of(report.name, bar.measure, bar.unit) == section]


def more_is_better(unit: str) -> bool:
    return unit.endswith("/s") or unit == "%"


def times_better(ours: Row, theirs: Row) -> float:
    """How many times as good ours is: below 1 the other one is better."""
    more, less = (ours, theirs) if more_is_better(ours.unit) else (theirs, ours)
    return more.value / less.value if less.value else float("inf")


def best(rows: Iterable[Row]) -> Row | None:
    """Of rows that can be compared."""
    listed = list(rows)
    if not listed:
        return None
    return (max if more_is_better(listed[0].unit) else min)(listed, key=lambda row: row.value)


@dataclass(frozen=True, slots=True)
class Behind:
    """A peer's figure, and those of ours that are worse, with how good they are beside it."""

    theirs: Row
    ours: Sequence[tuple[Row, float]]


def behind(report: Found) -> list[Behind]:
    """Where a peer is better than Penstock on the same kind of store, or than Penstock on SQLite: the widest gap first."""
    listed = []
    for theirs in report.rows:
        if theirs.unit == SAME_IN_STEPS or not report.is_peer(theirs):
            continue
        beside = [
            (row, times_better(row, theirs))
            for row in report.rows
            if is_ours(row)
            and (row.measure, row.unit) == (theirs.measure, theirs.unit)
            and (row.store == theirs.store or (row.store == "sqlite" and report.name != "workflows"))
        ]
        if worse := sorted((pair for pair in beside if pair[1] < 1), key=lambda pair: pair[1]):
            listed.append(Behind(theirs, worse))
    return sorted(listed, key=lambda each: each.ours[0][1])


def cleaned(text: str, host: str = "") -> str:
    """What a process said, on one line, without where it ran."""
    text = ABSOLUTE_PATH.sub(r"\1", UNSEEN.sub(" ", text)).strip()
    return re.sub(rf"\b{re.escape(host)}\b", "this machine", text) if host else text
