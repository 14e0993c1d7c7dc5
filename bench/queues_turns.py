"""One turn of one queue: its figures, and what the disk and raw SQLite reached right before it."""

from __future__ import annotations

import importlib
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench import raw_postgres, raw_sqlite
from bench.disk import Appender, fdatasync_seconds
from bench.engine_loop import PAUSE_SECONDS
from bench.load import Load
from bench.peers.contract import Settings
from bench.place import database_of, in_file
from bench.queues_penstock import Turn
from bench.queues_processes import ANSWER_SECONDS_MAX, PeerFailed, Process
from bench.queues_servers import SERVERS, last_line
from bench.report import ROOT, percentile

PAUSED_SYNCS_PART = 4  # before a turn, a quarter as many as there will be latencies


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. Where a queue takes batches, `one_by_one` messages go singly and the rest by the hundred."""

    messages: int
    one_by_one: int
    latencies: int
    rounds: int
    again_max: int  # how often a turn on a slow or changing disk is taken again; then it is kept as it is
    raw_messages: int = 10_000
    raw_times: int = 3  # a drain of ten thousand lasts a twelfth of a second: the median of a few

    def split(self, settings: Settings) -> tuple[int, int]:
        """How many of a peer's messages go one by one, and how many by the hundred. A slow peer gets fewer of them."""
        if settings.batches:
            return self.one_by_one, self.messages - self.one_by_one
        return self.messages // settings.divided_by, 0


@dataclass(frozen=True, slots=True)
class Reference:
    """Messages a second of the raw loop, and milliseconds of a synced append: in a row, and each after a pause."""

    send: float
    drain: float
    fdatasync_ms: float
    sync_p50_ms: float
    sync_p99_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Messages a second, and milliseconds. Only Penstock's turn has latencies of sends by its own process, with
    synced appends between them, beside those `between` processes; a peer's are all between processes. On PostgreSQL the
    raw loop has its turn there too, on the same server, right before."""

    one_by_one: float
    batched: float | None
    drain: float
    p50_ms: float
    p99_ms: float
    drain_batch_handler: float | None = None
    between_p50_ms: float | None = None
    between_p99_ms: float | None = None
    sync_p50_ms: float | None = None
    sync_p99_ms: float | None = None
    raw_batched: float | None = None
    raw_drain: float | None = None


class Turns:
    """Makes turns in a folder on the disk to be measured."""

    def __init__(self, plan: Plan, folder: Path, python: Path, random: Random) -> None:
        self._plan = plan
        self._folder = folder
        self._python = python
        self._random = random
        self._load = Load(plan.raw_messages)
        self.best_ms = math.inf

    def pace(self) -> float:
        """Milliseconds that a synced append takes now."""
        pace = 1000 * fdatasync_seconds(self._folder)
        self.best_ms = min(self.best_ms, pace)
        return pace

    def reference(self) -> Reference:
        pace = self.pace()
        sends, drains = [], []
        for _ in range(self._plan.raw_times):
            with self._fresh() as folder:
                send, drain = raw_sqlite.send_then_drain(in_file(folder / "raw.db"), self._load)
            sends.append(self._load.count / send)
            drains.append(self._load.count / drain)
        return Reference(statistics.median(sends), statistics.median(drains), pace, *self._syncs_after_pauses())

    def penstock(self, store: str) -> Figures:
        plan = self._plan
        batched = plan.messages - plan.one_by_one
        raw_batched = raw_drain = None
        with self._fresh() as folder, SERVERS[store](folder) as address:
            server = ""
            if store == "postgres":
                server = address
                send, drain = raw_postgres.send_then_drain(database_of(server, "raw", folder), self._load)
                raw_batched, raw_drain = self._load.count / send, self._load.count / drain
            arguments = (plan.one_by_one, batched, plan.latencies, self._random.getrandbits(32))
            command = [sys.executable, "-m", "bench.queues_penstock", str(folder), server, *map(str, arguments)]
            try:
                ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX)
            except subprocess.TimeoutExpired as late:
                raise PeerFailed(str(late)) from late
        if ended.returncode:
            raise PeerFailed(last_line(ended.stderr))
        turn = Turn(**json.loads(ended.stdout))
        return Figures(
            one_by_one=plan.one_by_one / turn.one_by_one,
            batched=batched / turn.batched,
            drain=plan.messages / turn.drain,
            p50_ms=1000 * percentile(turn.latencies, 0.5),
            p99_ms=1000 * percentile(turn.latencies, 0.99),
            drain_batch_handler=plan.messages / turn.drain_batch_handler,
            between_p50_ms=1000 * percentile(turn.latencies_between, 0.5),
            between_p99_ms=1000 * percentile(turn.latencies_between, 0.99),
            sync_p50_ms=1000 * percentile(turn.syncs, 0.5),
            sync_p99_ms=1000 * percentile(turn.syncs, 0.99),
            raw_batched=raw_batched,
            raw_drain=raw_drain,
        )

    def peer(self, module: str) -> Figures:
        settings = settings_of(module)
        one_by_one, batched = self._plan.split(settings)
        command = [str(self._python), "-m", "bench.peers.session", module]
        pauses = [self._random.uniform(*PAUSE_SECONDS) for _ in range(self._plan.latencies)]
        with (
            self._fresh() as folder,
            SERVERS[settings.store](folder) as address,
            Process(command, folder / "sender.log") as sender,
        ):
            sender.ask("open", address=address, fresh=True)
            sent = sender.ask("send", one_by_one=one_by_one, batched=batched)
            with Process(command, folder / "worker.log") as worker:
                worker.ask("open", address=address, fresh=False)
                drained = worker.ask("work", count=one_by_one + batched)
                worker.ask("expect", count=len(pauses))
                worker.tell("latencies")
                sender.ask("pace", pauses=pauses)
                latencies: list[float] = worker.answer()["seconds"]
        return Figures(
            one_by_one=one_by_one / sent["one_by_one"],
            batched=batched / sent["batched"] if batched else None,
            drain=(one_by_one + batched) / drained["seconds"],
            p50_ms=1000 * percentile(latencies, 0.5),
            p99_ms=1000 * percentile(latencies, 0.99),
        )

    def _syncs_after_pauses(self) -> tuple[float, float]:
        """Milliseconds, p50 and p99."""
        seconds = []
        with Appender(self._folder / "appended") as appender:
            for _ in range(self._plan.latencies // PAUSED_SYNCS_PART):
                time.sleep(self._random.uniform(*PAUSE_SECONDS))
                seconds.append(appender.append())
        return 1000 * percentile(seconds, 0.5), 1000 * percentile(seconds, 0.99)

    @contextmanager
    def _fresh(self) -> Iterator[Path]:
        # A server that was just ended may still have something to write.
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def settings_of(module: str) -> Settings:
    settings: Settings = importlib.import_module(f"bench.peers.{module}").Peer.settings
    return settings
