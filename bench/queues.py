"""Penstock beside other queues for Python: enqueue, drain and idle latency, in one run on one machine.

    make bench-queues      or      python bench/queues.py [--brief | --quick | --smoke] [--n N] [--rounds N] [--only NAMES]

Each queue has a file under bench/peers with its settings and where they come from. Every round takes all of them in a new
order; each gets an empty store on this disk and, where it needs one, a server of its own. Right before it the raw SQLite
loop runs, and what counts is the ratio to it: absolute figures belong to one disk and one minute. A queue without its
server is listed as skipped; one far below what it is known to reach is marked as suspect.

A peer's drain is timed from its first handler's start to its last one's, and its sender and its worker are two processes.
Penstock's is timed from before its worker starts until the last message is settled on the disk. Its idle latency is taken
as it is meant to be used, sent by the process that handles, and beside it between two processes like the peers'.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random, SystemRandom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import queues_environment, queues_servers
from bench.neighbours import Neighbours
from bench.plot import draw
from bench.queues_processes import PeerFailed
from bench.queues_report import OURS, Taken, build
from bench.queues_servers import NoServer
from bench.queues_shown import HEAD, Shown, verdict
from bench.queues_turns import Figures, Plan, Turns, settings_of
from bench.report import PACE_CHANGE_MAX, ROOT, Report, number, size_of, table

PEERS = {
    settings_of(module).name: module
    for module in (
        "huey_sqlite",
        "dbos_sqlite",
        "pgqueuer_postgres",
        "procrastinate_postgres",
        "dbos_postgres",
        "celery_redis",
        "dramatiq_redis",
        "taskiq_redis",
        "streaq_redis",
        "nats_jetstream",
    )
}

FULL = Plan(messages=10_000, one_by_one=2_000, latencies=120, rounds=3, again_max=2)
BRIEF = Plan(messages=10_000, one_by_one=1_000, latencies=60, rounds=1, again_max=0)
QUICK = Plan(messages=1_000, one_by_one=200, latencies=30, rounds=1, again_max=0)
SMOKE = Plan(messages=200, one_by_one=40, latencies=4, rounds=1, again_max=0, raw_messages=200, raw_times=1)
PLANS = {"full": FULL, "brief": BRIEF, "quick": QUICK, "smoke": SMOKE}


@dataclass(slots=True)
class Bench:
    """Takes turns, round after round, and keeps what each of them found."""

    plan: Plan
    turns: Turns
    random: Random
    report: Report
    subjects: list[str]

    def run(self) -> list[Taken]:
        taken = []
        for round_number in range(1, self.plan.rounds + 1):
            order = self.random.sample(self.subjects, len(self.subjects))
            for place, subject in enumerate(order, start=1):
                say(f"round {round_number} of {self.plan.rounds}, {place} of {len(order)}: {subject} ... ", end="")
                if found := self._turn(round_number, subject):
                    taken.append(found)
        return taken

    def _turn(self, round_number: int, subject: str) -> Taken | None:
        for again in reversed(range(self.plan.again_max + 1)):
            reference = self.turns.reference()
            try:
                figures = self.turns.penstock(OURS[subject]) if subject in OURS else self.turns.peer(PEERS[subject])
            except NoServer as missing:
                say(f"skipped: {missing}")
                self.report.skip(subject, str(missing))
                self.subjects.remove(subject)
                return None
            except PeerFailed as failed:
                say(f"failed: {failed}")
                self.report.skip(subject, f"round {round_number} failed: {failed}")
                return None
            pace = max(reference.fdatasync_ms, self.turns.pace())
            if pace < PACE_CHANGE_MAX * self.turns.best_ms or not again:
                break
            say(f"the disk is slow or changing ({pace:.2f} ms); once more ... ", end="")
        say(told(figures, pace))
        return Taken(round_number, subject, figures, reference, pace)


def told(figures: Figures, pace: float) -> str:
    batched = "" if figures.batched is None else f", {number(figures.batched)}/s by 100"
    return (
        f"enqueue {number(figures.one_by_one)}/s{batched}; drain {number(figures.drain)}/s; "
        f"idle p50 {figures.p50_ms:.2f} ms; fdatasync {pace:.2f} ms"
    )


def say(line: str, end: str = "\n") -> None:
    print(line, end=end, flush=True)


def parsed() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := sorted(set(chosen) - {*OURS, *PEERS}):
            raise argparse.ArgumentTypeError(
                f"no queue named {', '.join(unknown)}; there is {', '.join([*OURS, *PEERS])}"
            )
        return chosen

    parser = argparse.ArgumentParser(description="Penstock beside other queues, in one run on one machine.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="a thousand messages and one round")
    size.add_argument("--smoke", action="store_true", help="just enough to see that all of it runs")
    parser.add_argument("--n", type=int, metavar="N", help="messages to drain, in hundreds")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each queue has its turn")
    parser.add_argument("--only", type=names, metavar="NAMES", help="penstock,huey,... and nobody else")
    parser.add_argument("--seed", type=int, default=os.environ.get("PENSTOCK_SEED") or SystemRandom().getrandbits(32))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    return parser.parse_args()


def planned(options: argparse.Namespace) -> Plan:
    plan = PLANS[size_of(options)]
    if options.n:
        plan = replace(plan, messages=options.n, one_by_one=options.n // 5)
    return replace(plan, rounds=options.rounds) if options.rounds else plan


def peers_installed() -> Path:
    try:
        return queues_environment.python()
    except queues_environment.NoPeers as failed:
        sys.exit(f"the peers could not be installed:\n{failed}")


def versions(python: Path, subjects: list[str]) -> dict[str, str]:
    installed = queues_environment.versions(python) if any(subject not in OURS for subject in subjects) else {}
    peers = [settings_of(PEERS[subject]) for subject in subjects if subject not in OURS]
    stores = {each.store for each in peers} | {OURS[subject] for subject in subjects if subject in OURS}
    servers = {f"{store}-server": found for store in sorted(stores) if (found := queues_servers.version(store))}
    return {each.name: installed[each.package] for each in peers} | servers


def main() -> None:
    options = parsed()
    plan = planned(options)
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report("queues", options.seed, size=size_of(options))
    report.settings = {
        "messages drained": f"{plan.messages:,}",
        "rounds": str(plan.rounds),
        "latencies": str(plan.latencies),
    }
    subjects = [name for name in (*OURS, *PEERS) if options.only is None or name in options.only]
    for name in (*OURS, *PEERS):
        if name not in subjects:
            report.skip(name, "--only")
    say(f"queues: drain of {plan.messages:,} messages, {plan.rounds} round(s), seed {options.seed}")
    python = Path(sys.executable)
    if not set(subjects) <= OURS.keys():
        python = peers_installed()
    report.peer_versions = versions(python, subjects)
    neighbours = Neighbours()
    random = Random(options.seed)
    with tempfile.TemporaryDirectory(dir=options.out, ignore_cleanup_errors=True) as folder:
        # A server that does not run as root must be able to reach its own folder in here.
        Path(folder).chmod(0o755)
        turns = Turns(plan, Path(folder), python, random)
        taken = Bench(plan, turns, random, report, list(subjects)).run()
    report.neighbours_cores = neighbours.cores()
    if not taken:
        sys.exit("no queue ran")
    peers = {name: settings_of(module) for name, module in PEERS.items()}
    build(report, taken, peers, messages=plan.messages, best_ms=turns.best_ms)

    shown = Shown(report, peers)
    say("\n" + table(HEAD, shown.lines()) + "\n")
    for line in shown.notes(messages=plan.messages):
        say(line)
    if report.neighbours_cores is not None:
        say(f"others, servers among them, kept {report.neighbours_cores:.1f} of {os.cpu_count()} cores busy meanwhile")
    say("")
    for bar in report.bars:
        say(verdict(bar))
    subtitle = (
        f"drain of {plan.messages:,} messages, {plan.rounds} round(s); fdatasync p50 {report.fdatasync_p50_ms:.2f} ms"
    )
    plot = draw("Penstock beside other queues", subtitle, shown.panels(), options.out / "queues.svg")
    say(f"\n{report.write(options.out)}\n{plot}")

    ran = {each.subject for each in taken}
    missing = [name for name in subjects if name not in ran and (name in OURS or peers[name].must_run)]
    if missing:
        sys.exit(f"{' and '.join(missing)} must run here, and did not: see above")


if __name__ == "__main__":
    main()
