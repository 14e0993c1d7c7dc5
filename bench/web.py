"""What the server adds to an HTTP answer: the median of `GET /health` on a kept-alive connection, beside a raw loop.

    python bench/web.py            also in build/bench/web.json

The raw loop is an asyncio server in a process of its own that parses nothing and answers with the same bytes. Both answer in
turn over one connection each, so that other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.report import ROOT, Bar, Report, Row, number, size_of, table

REQUESTS, REQUESTS_BRIEF = 5_000, 1_000
WARM_UP = 50
MEDIAN_MS_MAX = 2.0
MEASURE = "kept-alive GET /health"
ASK = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
BODY = b'{"status":"ok"}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
SHOP = 'import penstock\n\napp = penstock.App("shop")\n'


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER)


async def echo() -> None:
    """Serve the raw loop until the process ends; the port is the one line of output."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(Echo, sock=listening)
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    await server.serve_forever()


@contextmanager
def connected(command: list[str], folder: Path) -> Iterator[socket.socket]:
    """Start a server that prints its address, and connect to it."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = urlsplit(json.loads(process.stdout.readline())["url"])
            with socket.create_connection((found.hostname or "", found.port or 0), timeout=30) as client:
                yield client
        finally:
            process.terminate()


def milliseconds(client: socket.socket) -> float:
    began = time.perf_counter()
    client.sendall(ASK)
    answer = client.recv(65_536)
    while not answer.endswith(b"}"):  # the head may come before the body
        answer += client.recv(65_536)
    took = (time.perf_counter() - began) * 1e3
    assert answer.startswith(b"HTTP/1.1 200"), answer
    return took


def measured(requests: int) -> tuple[float, float]:
    """Return the median milliseconds of the server and of the raw loop."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shop.py").write_text(SHOP, encoding="utf-8")
        serve = [sys.executable, "-m", "penstock", "serve", "shop.py", "--port", "0", "--json"]
        raw = [sys.executable, os.path.abspath(__file__), "--echo"]
        with connected(serve, folder) as ours, connected(raw, folder) as theirs:
            for _ in range(WARM_UP):
                milliseconds(ours), milliseconds(theirs)
            pairs = [(milliseconds(ours), milliseconds(theirs)) for _ in range(requests)]
    return statistics.median(each for each, _ in pairs), statistics.median(each for _, each in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true", help="fewer requests")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where web.json goes")
    options = parser.parse_args()
    if options.echo:
        asyncio.run(echo())
        return
    requests = REQUESTS_BRIEF if options.brief else REQUESTS
    ours, raw = measured(requests)
    report = Report("web", seed=0, size=size_of(options), settings={"requests": f"{requests:,} on each connection"})
    report.rows = [Row("penstock", MEASURE, ours, "ms", raw, ours / raw), Row("raw asyncio", MEASURE, raw, "ms")]
    report.bars = [Bar(MEASURE, ours, MEDIAN_MS_MAX, at_most=True, unit="ms")]
    report.write(options.out)
    print(
        table(("", "median", "raw asyncio", "ratio", "unit"), [(MEASURE, *map(number, (ours, raw, ours / raw)), "ms")])
    )
    print(*report.bars, sep="\n")
    if not report.bars[0].passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
