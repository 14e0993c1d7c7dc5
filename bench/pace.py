"""How near the adaptive limiter comes to a client that knows everything, over services drawn from seeds.

    make bench-pace SERVICES=50    or    python bench/pace.py [--brief | --services N] [--kind NAME ...] [--first SEED]

Time is simulated. Half of the services ban clients; the others do not. The limiter knows nothing about any of them. Its
constants were chosen on seeds below 1,000; the seeds here begin at 5,000.
"""

from __future__ import annotations

import argparse
import heapq
import math
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.pace_bans import BANS, Ban
from bench.pace_plot import draw_day, draw_pace, draw_shares
from bench.pace_services import KINDS, Answer, Draw
from bench.pace_strangers import STRANGERS
from bench.report import ROOT, Bar, Report, Row, size_of, table
from penstock.control.limiter import Limiter
from penstock.control.outcome import Outcome

ATTEMPTS_MOST = 5  # an item that failed so often is given up, as a controller does
RETRY_SECONDS, RETRY_DOUBLED = 60.0, 7  # the distance between two tries of an item doubles, up to two hours
SERVICES, BRIEF_SERVICES, FIRST_SEED = 50, 10, 5_000
PROCESSES = 2
SOON = 300.0  # seconds in which 80 % of the limit have to be reached
ENOUGH = 0.8
# What issue 19 asks for: bans, per cent of the best, per cent refused.
BAN_SHARE, BAN_MEAN_LEAST, BAN_P1_LEAST = 2.0, 93.0, 80.0
MEAN_LEAST, P1_LEAST, REFUSED_MOST = 97.0, 85.0, 0.4


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
    banned: list[tuple[float, float]] = field(default_factory=list)  # when each ban began and ended
    refusals: list[float] = field(default_factory=list)  # when, of a service that bans
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


def tried(draw: Draw, seed: int) -> Trial:
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
            if answer.about_the_pace:
                trial.refused += 1
                if isinstance(service, Ban):
                    trial.refusals.append(now)
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
    trial.banned = service.banned if isinstance(service, Ban) else []
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


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * len(values))]


def judged(report: Report, trials: list[Trial]) -> None:
    by_kind: dict[str, list[Trial]] = {}
    for trial in trials:
        by_kind.setdefault(trial.kind, []).append(trial)
    groups = {
        "penstock, services that ban": [trial for trial in trials if trial.kind.startswith("ban")],
        "penstock, other services": [trial for trial in trials if not trial.kind.startswith("ban")],
    }
    for name, those in {**by_kind, **{name: found for name, found in groups.items() if found}}.items():
        shares, refused = [100 * each.share for each in those], [100 * each.refused_share for each in those]
        report.rows += [
            Row(name, "share of the best, mean", statistics.mean(shares), "%", 100.0),
            Row(name, "share of the best, 1st percentile", percentile(shares, 0.01), "%", 100.0),
            Row(name, "share of the best, worst", min(shares), "%", 100.0),
            Row(name, "refused, mean", statistics.mean(refused), "%"),
        ]
    banning, others = groups.values()
    if banning:
        shares = [100 * each.share for each in banning]
        report.bars += [
            Bar("banned more than once", sum(each.bans > 1 for each in banning), 0.0, True, ""),
            Bar("banned once", 100 * sum(each.bans == 1 for each in banning) / len(banning), BAN_SHARE, True, "%"),
            Bar("services that ban: share of the best, mean", statistics.mean(shares), BAN_MEAN_LEAST, False, "%"),
            Bar("the same, 1st percentile", percentile(shares, 0.01), BAN_P1_LEAST, False, "%"),
        ]
    if others:
        shares, refused = [100 * each.share for each in others], [100 * each.refused_share for each in others]
        report.bars += [
            Bar("other services: share of the best, mean", statistics.mean(shares), MEAN_LEAST, False, "%"),
            Bar("the same, 1st percentile", percentile(shares, 0.01), P1_LEAST, False, "%"),
            Bar("the same, refused, mean", statistics.mean(refused), REFUSED_MOST, True, "%"),
        ]
    lines = [
        (
            kind,
            str(len(those)),
            f"{100 * statistics.mean(each.share for each in those):.1f}",
            f"{100 * min(each.share for each in those):.1f}",
            f"{100 * statistics.mean(each.refused_share for each in those):.2f}",
            str(sum(each.bans > 0 for each in those)),
            str(sum(each.bans > 1 for each in those)),
            f"{statistics.median(each.rise_seconds for each in those):.0f}",
            str(min(those, key=lambda each: each.share).seed),
        )
        for kind, those in by_kind.items()
    ]
    head = ("kind", "services", "mean %", "worst %", "refused %", "banned", "again", "rise s", "worst seed")
    say("\n" + table(head, lines))
    for trial in trials:
        for began, ended in trial.banned:
            say(f"  {trial.kind} {trial.seed}: banned at {began / 3600:.2f} h for {(ended - began) / 60:.0f} min")


def say(line: str) -> None:
    print(line, flush=True)


def drawn(draws: list[Draw], services: int, first: int, most: float) -> list[tuple[Draw, int]]:
    """Return which services to try: the kinds in turn, each with the next seed. What bans a client at half its limit is
    left out, and listed."""
    chosen: list[tuple[Draw, int]] = []
    seed = first
    while draws and len(chosen) < services:
        draw = draws[seed % len(draws)]
        service = draw(Random(f"{draw.__name__} {seed}"))
        if service.best() > most:
            pass
        elif isinstance(service, Ban) and service.is_changing and service.bans_half():
            say(f"  left out: {service.kind} {seed} bans a client at half its limit")
        else:
            chosen.append((draw, seed))
        seed += 1
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        description="How near the adaptive limiter comes to a client that knows everything."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--services", type=int, help="services that ban, and as many others")
    parser.add_argument("--first", type=int, default=FIRST_SEED, metavar="SEED", help="the first seed")
    parser.add_argument("--kind", nargs="+", metavar="NAME", help="only kinds whose names hold one of these words")
    parser.add_argument("--most", type=float, default=math.inf, help="leave out services that accept more requests")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where the results go")
    options = parser.parse_args()
    options.services = options.services or (BRIEF_SERVICES if options.brief else SERVICES)

    def wanted(draws: list[Draw]) -> list[Draw]:
        return [draw for draw in draws if not options.kind or any(word in draw.kind for word in options.kind)]

    say(f"pace: {options.services} services that ban and as many others, seeds from {options.first}")
    chosen = drawn(wanted(BANS), options.services, options.first, options.most)
    chosen += drawn(wanted([*KINDS, *STRANGERS]), options.services, options.first, options.most)
    with ProcessPoolExecutor(PROCESSES) as pool:
        trials = list(pool.map(tried, *zip(*chosen, strict=True)))
    report = Report("pace", options.first, size=size_of(options))
    report.settings = {"services that ban": str(options.services), "other services": str(options.services)}
    if options.brief:
        report.skip(f"{SERVICES - options.services} of {SERVICES} services of each sort", "--brief")
    judged(report, trials)
    for bar in report.bars:
        say(str(bar))
    options.out.mkdir(parents=True, exist_ok=True)
    draw_shares(trials, options.out / "pace.svg", P1_LEAST)
    draw_pace(trials, options.out / "pace-curves.svg")
    banning = [trial for trial in trials if trial.kind == "ban: bucket"]
    if banning:
        typical = sorted(banning, key=lambda trial: len(trial.refusals))[len(banning) // 2]
        draw_day(typical, options.out / "pace-day.svg")
    say(f"written: {report.write(options.out)}, pace.svg, pace-curves.svg, pace-day.svg")


if __name__ == "__main__":
    main()
