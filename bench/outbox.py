"""How fast an outbox carries messages to another database, beside local sends, for one, two and four pairs of databases.

    python bench/outbox.py         also in build/bench/outbox.json

A pair is a process that sends, with the carrier, and a process that receives, each with a SQLite file, joined by HTTP on
loopback. A local send puts the same messages, a hundred in a unit, into a queue of the sender's own database. The time of the
outbox runs from the first send until the receiver has committed the last message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.report import ROOT, Bar, Report, Row, number, size_of, table

MESSAGES, MESSAGES_BRIEF = 40_000, 20_000
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


async def send(messages: int) -> dict[str, float]:
    """Send all messages to the local queue, then to the remote one; return how many a second each took."""
    import pair  # type: ignore[import-not-found]

    from penstock.services.service import member

    member(pair.app, "one")
    found = {}
    async with pair.one:
        for name, queue in (("local", pair.local), ("outbox", pair.remote)):
            running = asyncio.create_task(pair.one.run()) if name == "outbox" else None
            began = time.perf_counter()
            for start in range(0, messages, UNIT):
                async with pair.one.unit():
                    for each in range(start, start + UNIT):
                        queue.send(pair.Sent(number=each, text="a text of some length " * 5))
            left = 1
            while running is not None and left:
                left = (await (await pair.one.desk()).backlog("outbox.two")).count
                await asyncio.sleep(LOOK_SECONDS if left else 0)
            found[name] = messages / (time.perf_counter() - began)
            if running is not None:
                pair.one.stop()
                await running
    return found


def one_pair(messages: int) -> dict[str, float]:
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
                command = [sys.executable, os.path.abspath(__file__), "--send", str(messages)]
                said = subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.PIPE, check=True)
                measured: dict[str, float] = json.loads(said.stdout)
                return measured
            finally:
                receiver.terminate()


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true", help="fewer messages")
    parser.add_argument("--send", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where outbox.json goes")
    options = parser.parse_args()
    if options.send:
        print(json.dumps(asyncio.run(send(options.send))))
        return
    messages = MESSAGES_BRIEF if options.brief else MESSAGES
    report = Report("outbox", seed=0, size=size_of(options), settings={"messages": f"{messages:,} for each pair"})
    shown = []
    for pairs in PAIRS:
        with ThreadPoolExecutor(pairs) as pool:
            each = list(pool.map(one_pair, [messages] * pairs))
        outbox, local = (sum(found[name] for found in each) for name in ("outbox", "local"))
        subject = "1 pair" if pairs == 1 else f"{pairs} pairs"
        report.rows.append(Row(subject, MEASURE, outbox, "messages/s", local, outbox / local))
        shown.append((subject, number(outbox), number(local), number(outbox / local)))
    first = report.rows[0]
    report.bars = [Bar("outbox, share of local sends", first.ratio or 0.0, SHARE_LEAST, at_most=False, unit="")]
    report.write(options.out)
    print(table(("", "outbox/s", "local sends/s", "share"), shown))
    print(*report.bars, sep="\n")
    if not report.bars[0].passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
