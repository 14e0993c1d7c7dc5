"""How near the pilot comes to a client that knows everything, over services whose every number is drawn from a seed.

    make bench-pace SEEDS=20        or        python bench/pace.py [--brief | --seeds N] [--kind NAME ...] [--first SEED]

Time is simulated. For each seed and each kind of limit one service is drawn; the pilot meets it without a word about it.
"""

from __future__ import annotations

import argparse
import heapq
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.pace_plot import draw_pace, draw_shares
from bench.pace_services import KINDS, Answer, Service
from bench.pace_strangers import STRANGERS
from bench.report import ROOT, Bar, Report, Row, size_of, table
from penstock.control.limiter import Limiter
from penstock.control.outcome import Outcome

ATTEMPTS_MOST = 5  # an item that failed so often is given up, as a controller does
RETRY_SECONDS, RETRY_DOUBLED = 60.0, 7  # the distance between two tries of an item doubles, up to two hours
SEEDS, BRIEF_SEEDS = 20, 4
SOON = 300.0  # seconds in which 80 % of the limit have to be reached
ENOUGH = 0.8
PUBLISHED_MEAN = 99.3  # per cent, what the pilot gets in the published suite; the mean here may be two points lower
MEAN_LEAST, WORST_LEAST = PUBLISHED_MEAN - 2.0, 85.0


@dataclass(slots=True)
class Trial:
    """What became of one service."""

    kind: str
    seed: int
    seconds: float
    requests: int = 0
    done: int = 0
    refused: int = 0
    given_up_good: int = 0
    bans: int = 0
    best: float = 0.0
    rise_seconds: float = 0.0
    return_seconds: float = 0.0
    paces: list[tuple[float, float, float]] = field(default_factory=list)  # when, what was done a second, the limit

    @property
    def share(self) -> float:
        return self.done / self.best

    @property
    def refused_share(self) -> float:
        return self.refused / max(1, self.requests)


@dataclass(order=True, slots=True)
class Sent:
    ends: float
    ticket: int
    item: int = field(compare=False)
    attempt: int = field(compare=False)  # that was charged
    tries: int = field(compare=False)
    at: float = field(compare=False)
    answer: Answer = field(compare=False)


def tried(draw: Callable[[Random], Service], seed: int) -> Trial:
    """One service from its start to its end."""
    service = draw(Random(f"{draw.__name__} {seed}"))
    trial = Trial(service.kind, seed, service.seconds)
    limiter = Limiter()
    fresh = 0
    again: list[tuple[float, int, int, int]] = []
    under_way: list[Sent] = []
    bins = [0] * (int(service.seconds / 60) + 1)
    now = 0.0
    while now < service.seconds:
        decision = limiter.next(now)
        if decision.start:
            if again and again[0][0] <= now:
                _, item, attempt, tries = heapq.heappop(again)
            else:
                fresh += 1
                item, attempt, tries = fresh, 0, 0
            ticket = limiter.started(now)
            answer = service.ask(now, item)
            heapq.heappush(under_way, Sent(now + answer.latency, ticket, item, attempt, tries, now, answer))
            trial.requests += 1
            continue
        if under_way and (decision.again_at is None or under_way[0].ends <= decision.again_at):
            sent = heapq.heappop(under_way)
            now = sent.ends
            answer = sent.answer
            charged = limiter.finished(
                now,
                sent.ticket,
                answer.outcome,
                latency=answer.latency,
                retry_after=answer.retry_after,
                item=str(sent.item),
            )
            trial.refused += answer.about_the_pace
            if answer.outcome is Outcome.OK:
                trial.done += 1
                bins[min(len(bins) - 1, int(sent.at / 60))] += 1
            elif answer.outcome is not Outcome.GONE:
                attempts = sent.attempt + charged
                if attempts < ATTEMPTS_MOST:
                    later = now + RETRY_SECONDS * 2 ** min(sent.tries, RETRY_DOUBLED)
                    heapq.heappush(again, (later, sent.item, attempts, sent.tries + 1))
                elif service.is_good(sent.item):
                    trial.given_up_good += 1
        else:
            assert decision.again_at is not None, "nothing is under way, and the pilot waits for an answer"
            now = decision.again_at
    trial.best, trial.bans = service.best(), service.bans
    yielded = service.best() / sum(service.limit(minute * 60.0 + 30) * 60 for minute in range(len(bins) - 1))
    limits = [service.limit(minute * 60.0 + 30) * 60 * yielded for minute in range(len(bins))]
    trial.paces = [(minute * 60.0, bins[minute] / 60, limits[minute] / 60) for minute in range(len(bins) - 1)]
    trial.rise_seconds = reached(bins, limits, 0.0)
    # What is lifted so late that the run ends before the time is up says nothing.
    judged_until = service.seconds - 2 * SOON
    trial.return_seconds = max((reached(bins, limits, at) for at in service.lifted if at <= judged_until), default=0.0)
    return trial


def reached(bins: list[int], limits: list[float], since: float) -> float:
    """Seconds until a minute that did 80 % of its limit, or the five minutes from there did."""
    first = math.ceil(since / 60)
    for minute in range(first, len(bins) - 5):
        few = limits[minute] < 10  # too few in a minute to tell
        span = 5 if few else 1
        if sum(bins[minute : minute + span]) >= ENOUGH * sum(limits[minute : minute + span]):
            return minute * 60.0 - since
    return math.inf


def judged(report: Report, trials: list[Trial]) -> None:
    shares = [100 * trial.share for trial in trials]
    refused = [100 * trial.refused_share for trial in trials]
    by_kind: dict[str, list[Trial]] = {}
    for trial in trials:
        by_kind.setdefault(trial.kind, []).append(trial)
    for kind, those in by_kind.items():
        report.rows += [
            Row(kind, "share of the best, mean", 100 * statistics.mean(each.share for each in those), "%", 100.0),
            Row(kind, "share of the best, worst", 100 * min(each.share for each in those), "%", 100.0),
            Row(kind, "refused, mean", 100 * statistics.mean(each.refused_share for each in those), "%"),
            Row(kind, "refused, worst", 100 * max(each.refused_share for each in those), "%"),
        ]
    report.rows += [
        Row("penstock", "share of the best, mean", statistics.mean(shares), "%", 100.0),
        Row("penstock", "share of the best, worst", min(shares), "%", 100.0),
        Row("penstock", "refused, mean", statistics.mean(refused), "%"),
        Row("penstock", "refused, worst", max(refused), "%"),
    ]
    report.bars += [
        Bar("share of the best, mean", statistics.mean(shares), MEAN_LEAST, False, "%"),
        Bar("share of the best, worst", min(shares), WORST_LEAST, False, "%"),
        Bar("until 80 % after a limit of zero, worst", max(trial.return_seconds for trial in trials), SOON, True, "s"),
        Bar("bans", sum(trial.bans for trial in trials), 0.0, True, ""),
        Bar("good items given up", sum(trial.given_up_good for trial in trials), 0.0, True, ""),
    ]
    lines = [
        (
            kind,
            f"{100 * statistics.mean(each.share for each in those):.1f}",
            f"{100 * min(each.share for each in those):.1f}",
            f"{100 * statistics.mean(each.refused_share for each in those):.2f}",
            f"{100 * max(each.refused_share for each in those):.2f}",
            str(sum(each.bans for each in those)),
            f"{statistics.median(each.rise_seconds for each in those):.0f}",
            f"{max(each.return_seconds for each in those):.0f}",
            str(min(those, key=lambda each: each.share).seed),
        )
        for kind, those in by_kind.items()
    ]
    head = ("kind", "mean %", "worst %", "refused %", "worst %", "bans", "rise s", "return s", "worst seed")
    say("\n" + table(head, lines))


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="How near the pilot comes to a client that knows everything.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--seeds", type=int, help="services of each kind")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the first seed")
    parser.add_argument("--kind", nargs="+", metavar="NAME", help="only kinds whose names hold one of these words")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where the results go")
    options = parser.parse_args()
    options.seeds = options.seeds or (BRIEF_SEEDS if options.brief else SEEDS)
    draws = [*KINDS, *STRANGERS]
    if options.kind:
        draws = [draw for draw in draws if any(word in getattr(draw, "kind", "") for word in options.kind)]
    say(f"pace: {len(draws)} kinds of limit, {options.seeds} services of each, seeds from {options.first}")
    trials = []
    for draw in draws:
        those = [tried(draw, seed) for seed in range(options.first, options.first + options.seeds)]
        trials += those
        say(f"  {those[0].kind}: {' '.join(f'{100 * each.share:.1f}' for each in those)}")
    report = Report("pace", options.first, size=size_of(options))
    report.settings = {"kinds of limit": str(len(draws)), "services of each": str(options.seeds)}
    if options.brief:
        report.skip(f"{SEEDS - options.seeds} of {SEEDS} services of each kind", "--brief")
    judged(report, trials)
    for bar in report.bars:
        say(str(bar))
    options.out.mkdir(parents=True, exist_ok=True)
    draw_shares(trials, options.out / "pace.svg", WORST_LEAST)
    draw_pace(trials, options.out / "pace-curves.svg")
    say(f"written: {report.write(options.out)}, pace.svg, pace-curves.svg")


if __name__ == "__main__":
    main()
