"""How fast an outbox carries messages to another database, beside local sends, for one, two and four pairs of databases.

    python bench/outbox.py         also in build/bench/outbox.json

A pair is a process that sends, with the carrier, and a process that receives, each with a SQLite file, joined by HTTP on
loopback. A local send puts the same messages, a hundred in a unit, into a queue of the sender's own database. The time of the
outbox runs from the first send until the receiver has acknowledged the last message. Both alternate for several rounds, and
the result is the median of the rounds, so that a busy moment of the machine does not decide. The processor time of both
processes is shown too: it hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.report import ROOT, Bar, Report, Row, number, size_of, table

MESSAGES, MESSAGES_BRIEF = 20_000, 10_000  # in each round
ROUNDS = 7
UNIT = 100
PAIRS = (1, 2, 4)
SHARE_LEAST = 1 / 3
MEASURE = "messages a second, 100 a request"
LOOK_SECONDS = 0.01
READY_SECONDS = 60.0
APP = """
import penstock as ps

app = ps.App("pair", apart=True)
one, two = app.service("one"), app.service("two")


class Sent(ps.Event, type="sent"):
    number: int
    text: str


local = one.queue("local", Sent)
remote = two.queue("remote", Sent)
"""


class Round(NamedTuple):
    """Messages a second, and microseconds of processor time for a message."""

    local: float
    outbox: float
    local_micros: float
    sender_micros: float
    receiver_micros: float


async def send(messages: int, receiver: int) -> list[Round]:
    """Send all messages to the local queue, then to the remote one, in each round; return what each round took."""
    import pair  # type: ignore[import-not-found]

    from penstock.cli.worker import GARBAGE_THRESHOLD
    from penstock.services.service import member

    member(pair.app, "one")
    gc.freeze()  # both as a worker of `penstock run` does
    gc.set_threshold(GARBAGE_THRESHOLD)
    rounds = []
    async with pair.one:
        running = asyncio.create_task(pair.one.run())
        for _ in range(1 + ROUNDS):
            local = await _timed(pair, pair.local, messages, receiver)
            outbox = await _timed(pair, pair.remote, messages, receiver)
            rounds.append(
                Round(
                    messages / local[0],
                    messages / outbox[0],
                    *(1e6 * each / messages for each in (local[1], *outbox[1:])),
                )
            )
        pair.one.stop()
        await running
    return rounds[1:]  # the first opens connections and loads code


async def _timed(pair: Any, queue: Any, messages: int, receiver: int) -> tuple[float, float, float]:
    """Return the seconds that all messages take, and the seconds of processor time of the sender and of the receiver."""
    began, spent, there = time.perf_counter(), time.process_time(), processor_seconds(receiver)
    for start in range(0, messages, UNIT):
        async with pair.one.unit():
            for each in range(start, start + UNIT):
                queue.send(pair.Sent(number=each, text="a text of some length " * 5))
    left = queue is pair.remote
    while left:
        left = (await (await pair.one.desk()).backlog("outbox.two")).count > 0
        await asyncio.sleep(LOOK_SECONDS if left else 0)
    return time.perf_counter() - began, time.process_time() - spent, processor_seconds(receiver) - there


def one_pair(messages: int) -> list[Round]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (folder / "pair.py").write_text(APP, encoding="utf-8")
        (folder / "penstock.toml").write_text(f"history = 0\n\n[services.two]\nport = {port}\n", encoding="utf-8")
        environ = os.environ | {"SERVICE_KEY": "of this benchmark", "PYTHONPATH": f"{folder}:{ROOT / 'src'}"}
        receive = [sys.executable, "-m", "penstock", "run", "pair.py", "--only", "two"]
        with subprocess.Popen(receive, cwd=folder, env=environ, stderr=subprocess.DEVNULL) as receiver:
            try:
                _wait_for(port)
                given = ["--send", str(messages), "--receiver", str(receiver.pid)]
                command = [sys.executable, os.path.abspath(__file__), *given]
                said = subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.PIPE, check=True)
                return [Round(*each) for each in json.loads(said.stdout)]
            finally:
                receiver.terminate()


def processor_seconds(supervisor: int) -> float:
    """Return the processor time of the workers of a supervisor, on Linux."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == supervisor:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _wait_for(port: int) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as found:
                found.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
                if found.recv(12) == b"HTTP/1.1 200":
                    return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the receiver did not start")


def _together(pairs: Sequence[Round]) -> Round:
    """Return one round of several pairs: their rates summed, their costs averaged."""
    return Round(*(sum(each) / (1 if place < 2 else len(pairs)) for place, each in enumerate(zip(*pairs, strict=True))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true", help="fewer messages")
    parser.add_argument("--send", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--receiver", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where outbox.json goes")
    options = parser.parse_args()
    if options.send:
        print(json.dumps(asyncio.run(send(options.send, options.receiver))))
        return
    messages = MESSAGES_BRIEF if options.brief else MESSAGES
    settings = {"messages": f"{messages:,} for each pair and round", "rounds": str(ROUNDS)}
    report = Report("outbox", seed=0, size=size_of(options), settings=settings)
    shown = []
    for pairs in PAIRS:
        with ThreadPoolExecutor(pairs) as pool:
            rounds = [_together(each) for each in zip(*pool.map(one_pair, [messages] * pairs), strict=True)]
        outbox, local, share = (
            median(found)
            for found in zip(*((each.outbox, each.local, each.outbox / each.local) for each in rounds), strict=True)
        )
        subject = "1 pair" if pairs == 1 else f"{pairs} pairs"
        report.rows.append(Row(subject, MEASURE, outbox, "messages/s", local, share))
        spent = [number(median(found)) for found in zip(*(each[2:] for each in rounds), strict=True)]
        least, most = min(each.outbox / each.local for each in rounds), max(each.outbox / each.local for each in rounds)
        shown.append((subject, number(outbox), number(local), number(share), f"{least:.2f} to {most:.2f}", *spent))
    first = report.rows[0]
    report.bars = [Bar("outbox, share of local sends", first.ratio or 0.0, SHARE_LEAST, at_most=False, unit="")]
    report.write(options.out)
    costs = ("us a local send", "us a message: sender", "receiver")
    print(table(("", "outbox/s", "local sends/s", "share", "rounds", *costs), shown))
    print(*report.bars, sep="\n")
    if not report.bars[0].passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
