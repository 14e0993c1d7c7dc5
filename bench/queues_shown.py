"""The queues' report for a reader: a table, what each queue was set to, the bars, and panels to be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.peers.contract import Settings
from bench.plot import Line, Panel
from bench.queues_report import (
    APPENDS,
    BATCH_HANDLER,
    BATCHED,
    BESIDE,
    DRAIN,
    JUDGED_MESSAGES_MIN,
    ON_POSTGRES,
    ONE_BY_ONE,
    OURS,
    P50,
    P99,
    PENSTOCK,
    PENSTOCK_POSTGRES,
    RAW,
    RAW_POSTGRES,
    SYNC,
    TIMES_FDATASYNC_MAX,
    TWO_PROCESSES,
)
from bench.report import Bar, Report, Row, number

HEAD = ("", "store", "one by one/s", "by 100/s", "drain/s", "% of raw", "p50 ms", "p99 ms", "x fdatasync", "")
ALL_OURS = [name + how for name in OURS for how in ("", BATCH_HANDLER, TWO_PROCESSES)]
PANELS = (
    ("Drain, messages/s", DRAIN, "longer is better; line: the bar"),
    ("Enqueue one by one, messages/s", ONE_BY_ONE, "longer is better"),
    ("Enqueue in batches of 100, messages/s", BATCHED, "longer is better"),
    ("Idle latency from send to handler, p50, ms", P50, "shorter is better; line: five times fdatasync"),
)

Peers = Mapping[str, Settings]


class Shown:
    """The same figures in two forms. Penstock's first, then the peers from the fastest to the slowest."""

    def __init__(self, report: Report, peers: Peers) -> None:
        self._report = report
        self._peers = peers
        self._rows = {(row.subject, row.measure): row for row in report.rows}
        self._pairs = {(pair.subject, pair.measure): pair for pair in report.pairs}
        self._unsure = {pair.subject for pair in report.pairs if not pair.sure}
        self._suspects = {each["subject"] for each in report.suspects}

    def lines(self) -> list[Sequence[str]]:
        drained = sorted((row for row in self._report.rows if row.measure == DRAIN), key=lambda row: -row.value)
        measured = {subject for subject, _ in self._rows}
        subjects = [name for name in ALL_OURS if name in measured] + [
            row.subject for row in drained if row.subject in self._peers or row.subject == RAW_POSTGRES
        ]
        return [*(self._line(subject) for subject in subjects), self._references()]

    def _line(self, subject: str) -> Sequence[str]:
        return (
            subject,
            self._store(subject),
            *(self._value(subject, measure) for measure in (ONE_BY_ONE, BATCHED, DRAIN)),
            self._ratio(subject, DRAIN, percent=True),
            *(self._value(subject, measure) for measure in (P50, P99)),
            self._ratio(subject, P50),
            ", ".join(self._remarks(subject)),
        )

    def _references(self) -> Sequence[str]:
        sends = (self._value(APPENDS, ONE_BY_ONE), self._value(RAW, BATCHED))
        waits = (self._value(SYNC, P50), self._value(SYNC, P99))
        return ("raw loop, fdatasync", "sqlite", *sends, self._value(RAW, DRAIN), "100", *waits, "1", "")

    def _value(self, subject: str, measure: str) -> str:
        row = self._rows.get((subject, measure))
        return number(row.value) if row else "-"

    def _ratio(self, subject: str, measure: str, *, percent: bool = False) -> str:
        row = self._rows.get((subject, measure))
        if row is None or row.ratio is None:
            return "-"
        return f"{row.ratio * (100 if percent else 1):.3g}"

    def _store(self, subject: str) -> str:
        if subject in self._peers:
            return self._peers[subject].store
        return "postgres" if subject.startswith((PENSTOCK_POSTGRES, RAW_POSTGRES)) else "sqlite"

    def _remarks(self, subject: str) -> list[str]:
        remarks = {
            "SUSPECT": subject in self._suspects,
            "not synced": subject in self._peers and not self._peers[subject].synced,
            "slow disk": subject in self._unsure,
        }
        return [remark for remark, holds in remarks.items() if holds]

    # -- below the table --------------------------------------------------------------------------------

    def notes(self, *, messages: int) -> Iterator[str]:
        report = self._report
        if (PENSTOCK, DRAIN) in self._rows:
            yield "penstock: full: WAL, synchronous=FULL; at least once; its defaults; batches of 100 without waiting"
        if (PENSTOCK_POSTGRES, DRAIN) in self._rows:
            yield f"penstock-postgres: {ON_POSTGRES}; otherwise the same, and so is the server of all that are on one"
        for name, settings in self._peers.items():
            if (name, DRAIN) in self._rows:
                yield f"{name} {report.peer_versions.get(name, '')}: {settings.durability}; {settings.setup}"
        for each in report.suspects:
            yield f"SUSPECT  {each['subject']}: {each['reason']}"
        if messages < JUDGED_MESSAGES_MIN:
            yield f"a drain of {messages:,} is too short to call a peer suspect"
        for reason in dict.fromkeys(each["reason"] for each in report.skipped):
            names = ", ".join(each["subject"] for each in report.skipped if each["reason"] == reason)
            yield f"skipped  {names}: {reason}"

    # -- the plot ---------------------------------------------------------------------------------------

    def panels(self) -> list[Panel]:
        drawn = [self._panel(title, measure, note) for title, measure, note in PANELS]
        return [panel for panel in drawn if panel.lines]

    def _panel(self, title: str, measure: str, note: str) -> Panel:
        rows = sorted(
            (row for row in self._report.rows if row.measure == measure),
            key=lambda row: row.value if measure == P50 else -row.value,
        )
        lines = [self._drawn(row) for row in rows]
        dots = "; dots: the rounds" if any(line.dots for line in lines) else ""
        return Panel(title, f"logarithmic; {note}{dots}", lines, logarithmic=True)

    def _drawn(self, row: Row) -> Line:
        pair = self._pairs.get((row.subject, row.measure))
        dots = pair.ours if pair and len(pair.ours) > 1 else ()
        label = row.subject
        if row.subject in self._peers:
            label += f" ({', '.join([row.store, *self._remarks(row.subject)])})"
        limit = self._limit(row) if row.subject in OURS else None
        return Line(label, row.value, number(row.value), dots, limit, pale=row.subject not in ALL_OURS)

    def _limit(self, ours: Row) -> float | None:
        peer, least = BESIDE[ours.subject]
        beside = self._rows.get((peer, DRAIN))
        if ours.measure == DRAIN and beside:
            return least * beside.value
        if (ours.subject, ours.measure) == (PENSTOCK, P50) and ours.reference:
            return TIMES_FDATASYNC_MAX * ours.reference
        return None


def verdict(bar: Bar) -> str:
    word = {True: "met   ", False: "missed", None: "unsure"}[bar.passed]
    side = "at most" if bar.at_most else "at least"
    return f"{word}  {bar.measure}: {bar.value:.3g} {bar.unit} ({side} {bar.limit:g})"
