"""What the queues' turns come to: medians, ratios within a round, suspects and the bars."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.peers.contract import Settings
from bench.queues_turns import Figures, Reference
from bench.report import Bar, Pair, Report, Row

PENSTOCK, PENSTOCK_POSTGRES = "penstock", "penstock-postgres"
OURS = {PENSTOCK: "sqlite", PENSTOCK_POSTGRES: "postgres"}
BATCH_HANDLER, TWO_PROCESSES = ", batch handler", ", two processes"  # behind the name of ours
RAW_POSTGRES = "raw psycopg loop"
RAW, APPENDS, SYNC = "raw loop", "synced appends", "fdatasync of 4 KB after the same pause"

ONE_BY_ONE, BATCHED, DRAIN = "enqueue one by one", "enqueue, batches of 100", "drain"
P50, P99 = "idle send to handler, p50", "idle send to handler, p99"

# Whose drain ours has to be how many times as fast as.
BESIDE = {PENSTOCK: ("huey", 10.0), PENSTOCK_POSTGRES: ("pgqueuer", 2.5)}
ON_POSTGRES = "fsync=on, synchronous_commit=on"
TIMES_FDATASYNC_MAX = 5.0
SUSPECT_BELOW = 0.5  # of the share of the raw loop's pace that a peer is known to reach
JUDGED_MESSAGES_MIN = 5_000  # in a shorter drain, the first hundred messages weigh too much


@dataclass(frozen=True, slots=True)
class Taken:
    """One turn: what was found, beside what was found right before it. `fdatasync_ms` is the slower pace of the disk
    before and after."""

    round_number: int
    subject: str
    figures: Figures
    reference: Reference
    fdatasync_ms: float

    @property
    def sync_p50_ms(self) -> float:
        return self.figures.sync_p50_ms or self.reference.sync_p50_ms

    @property
    def sync_p99_ms(self) -> float:
        return self.figures.sync_p99_ms or self.reference.sync_p99_ms


def build(
    report: Report, taken: Sequence[Taken], peers: Mapping[str, Settings], *, messages: int, best_ms: float
) -> None:
    """Fill the report from all turns, in which so many messages were drained."""
    for subject in dict.fromkeys(each.subject for each in taken):
        report.pairs += _pairs([each for each in taken if each.subject == subject], peers.get(subject))
    for pair in report.pairs:
        pair.best_ms = best_ms
    report.rows += [pair.row() for pair in report.pairs]
    report.rows += _references(taken)
    ours = [each for each in taken if each.subject == PENSTOCK] or taken
    report.fdatasync_p50_ms = statistics.median(each.sync_p50_ms for each in ours)
    if messages >= JUDGED_MESSAGES_MIN:
        _suspects(report, peers)
    _bars(report, taken, best_ms)


def _pairs(turns: Sequence[Taken], settings: Settings | None) -> Iterator[Pair]:
    name = turns[0].subject

    def pair(measure: str, unit: str, values: Iterable[tuple[float | None, float]], subject: str) -> Iterator[Pair]:
        made = Pair(measure, unit, subject=subject)
        if settings is not None:
            made.store, made.durability = settings.store, settings.durability
        elif OURS[name] == "postgres":
            made.store, made.durability = "postgres", ON_POSTGRES
        for turn, (ours, reference) in zip(turns, values, strict=True):
            if ours is not None:
                made.add(ours=ours, reference=reference, fdatasync_ms=turn.fdatasync_ms)
        if made.ours:
            yield made

    rate = "messages/s"
    # One commit a message at best, so the yardstick is as many synced appends.
    yield from pair(ONE_BY_ONE, rate, [(t.figures.one_by_one, 1000 / t.reference.fdatasync_ms) for t in turns], name)
    yield from pair(BATCHED, rate, [(t.figures.batched, t.reference.send) for t in turns], name)
    yield from pair(DRAIN, rate, [(t.figures.drain, t.reference.drain) for t in turns], name)
    yield from pair(P50, "ms", [(t.figures.p50_ms, t.sync_p50_ms) for t in turns], name)
    yield from pair(P99, "ms", [(t.figures.p99_ms, t.sync_p99_ms) for t in turns], name)
    yield from pair(
        DRAIN, rate, [(t.figures.drain_batch_handler, t.reference.drain) for t in turns], name + BATCH_HANDLER
    )
    yield from pair(P50, "ms", [(t.figures.between_p50_ms, t.sync_p50_ms) for t in turns], name + TWO_PROCESSES)
    yield from pair(P99, "ms", [(t.figures.between_p99_ms, t.sync_p99_ms) for t in turns], name + TWO_PROCESSES)
    yield from pair(BATCHED, rate, [(t.figures.raw_batched, t.reference.send) for t in turns], RAW_POSTGRES)
    yield from pair(DRAIN, rate, [(t.figures.raw_drain, t.reference.drain) for t in turns], RAW_POSTGRES)


def _references(taken: Sequence[Taken]) -> list[Row]:
    median = statistics.median
    return [
        Row(APPENDS, ONE_BY_ONE, median(1000 / each.reference.fdatasync_ms for each in taken), "messages/s"),
        Row(RAW, BATCHED, median(each.reference.send for each in taken), "messages/s"),
        Row(RAW, DRAIN, median(each.reference.drain for each in taken), "messages/s"),
        Row(SYNC, P50, median(each.sync_p50_ms for each in taken), "ms"),
        Row(SYNC, P99, median(each.sync_p99_ms for each in taken), "ms"),
    ]


def _suspects(report: Report, peers: Mapping[str, Settings]) -> None:
    for pair in report.pairs:
        settings = peers.get(pair.subject)
        if not settings or pair.measure != DRAIN or not pair.sure:
            continue
        if 100 * pair.ratio < SUSPECT_BELOW * settings.share_percent:
            seen = "" if settings.share_seen is None else " ({:g} to {:g} % were seen)".format(*settings.share_seen)
            expected = f"{settings.share_percent:g} % was expected{seen}"
            reason = f"drained {100 * pair.ratio:.2g} % of the raw loop's pace; {expected}"
            report.suspect(pair.subject, reason)


def _bars(report: Report, taken: Sequence[Taken], best_ms: float) -> None:
    by_round = {(each.round_number, each.subject): each for each in taken}
    for name, (peer, least) in BESIDE.items():
        beside = Pair(f"drain beside {peer}", "messages/s", best_ms=best_ms, subject=name, store=OURS[name])
        for (round_number, subject), ours in by_round.items():
            theirs = by_round.get((round_number, peer))
            if subject == name and theirs:
                pace = max(ours.fdatasync_ms, theirs.fdatasync_ms)
                beside.add(ours=ours.figures.drain, reference=theirs.figures.drain, fdatasync_ms=pace)
        if beside.ours:
            report.pairs.append(beside)
            unit = f"x {peer}'s drain"
            report.bars.append(Bar(beside.measure, beside.ratio, least, at_most=False, unit=unit, sure=beside.sure))
    for pair in report.pairs:
        if (pair.subject, pair.measure) == (PENSTOCK, P50):
            unit = "x fdatasync p50 after the same pause"
            report.bars.append(Bar(P50, pair.ratio, TIMES_FDATASYNC_MAX, at_most=True, unit=unit))
