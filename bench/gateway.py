"""What the gateway adds to a call: the median of a chat through it, beside a bare Starlette proxy with the same two commits.

    python bench/gateway.py        also in build/bench/gateway.json

Both pass the same chat on to one provider that answers at once. The proxy commits a row before the call and updates it after
it, each durably, in a SQLite file with a write-ahead log; it has no keys, budgets, rates or shared answers. The rate of the
gateway's provider begins so high that no call waits for its turn. Both answer in
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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.report import ROOT, Bar, Report, Row, number, size_of, table
from bench.web import connected

CALLS, CALLS_BRIEF = 2_000, 400
WARM_UP = 50
MORE_MS_MAX = 2.0
MEASURE = "chat through a proxy, kept-alive"
CHAT = {"model": "small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100}
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "small",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}
SETTINGS = """
[systems.gateway]
allow = ["127.0.0.1:{port}"]
providers.bench = {{ base_url = "http://127.0.0.1:{port}", rate = [900.0, 1000.0], parallel = 100 }}

[systems.gateway.models.small]
provider = "bench"
usd_per_million_prompt_tokens = 0.15
usd_per_million_completion_tokens = 0.60
as_of = 2026-01-01
"""


def serve(app: Any) -> None:
    """Serve an ASGI app until the process ends; its address is the one line of output."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or a delayed acknowledgement adds 40 ms
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])


def provider() -> Any:
    """Return a provider that answers every chat at once."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    reply = json.dumps(REPLY).encode()

    async def complete(request: Request) -> Response:
        await request.body()
        return Response(reply, media_type="application/json")

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])


def bare_proxy(url: str) -> Any:
    """Return a proxy that reserves and settles in two durable commits, and does nothing else."""
    import apsw
    import httpx2
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    store = apsw.Connection("proxy.db")
    store.execute("pragma journal_mode = wal")
    store.execute("pragma synchronous = full")
    store.execute("create table calls (id integer primary key, reserved integer, cost integer)")
    client = httpx2.AsyncClient()

    def reserve() -> int:
        store.execute("insert into calls (reserved) values (1000)")
        return store.last_insert_rowid()

    def settle(id: int) -> None:
        store.execute("update calls set cost = 10 where id = ?", (id,))

    async def complete(request: Request) -> Response:
        body = await request.body()
        id = await asyncio.to_thread(reserve)
        answer = await client.post(f"{url}/v1/chat/completions", content=body)
        await asyncio.to_thread(settle, id)
        return Response(answer.content, answer.status_code, media_type="application/json")

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])


def milliseconds(client: socket.socket, key: str) -> float:
    body = json.dumps(CHAT).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
    asked = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    began = time.perf_counter()
    client.sendall(asked)
    answer = client.recv(65_536)
    while not answer.endswith(b"}}"):  # the usage ends it
        answer += client.recv(65_536)
    took = (time.perf_counter() - began) * 1e3
    assert answer.startswith(b"HTTP/1.1 200"), answer
    return took


def measured(calls: int) -> tuple[float, float]:
    """Return the median milliseconds of the gateway and of the bare proxy."""
    here = os.path.abspath(__file__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with connected([sys.executable, here, "--provider"], folder) as there:
            port = there.getpeername()[1]
            (folder / "penstock.toml").write_text(SETTINGS.format(port=port), encoding="utf-8")
            gateway = [sys.executable, "-m", "penstock", "serve", "gateway", "--port", "0", "--json"]
            bare = [sys.executable, here, "--proxy", f"http://127.0.0.1:{port}"]
            with connected(gateway, folder) as ours, connected(bare, folder) as theirs:
                add = [sys.executable, "-m", "penstock", "gateway", "keys", "add", "bench", "--day", "1000", "--json"]
                made = subprocess.run(add, cwd=folder, stdout=subprocess.PIPE, check=True)
                key = json.loads(made.stdout)["key"]
                for _ in range(WARM_UP):
                    milliseconds(ours, key), milliseconds(theirs, key)
                pairs = [(milliseconds(ours, key), milliseconds(theirs, key)) for _ in range(calls)]
    return statistics.median(each for each, _ in pairs), statistics.median(each for _, each in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true", help="fewer calls")
    parser.add_argument("--provider", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--proxy", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where gateway.json goes")
    options = parser.parse_args()
    if options.provider or options.proxy:
        serve(provider() if options.provider else bare_proxy(options.proxy))
        return
    calls = CALLS_BRIEF if options.brief else CALLS
    ours, bare = measured(calls)
    report = Report("gateway", seed=0, size=size_of(options), settings={"calls": f"{calls:,} on each connection"})
    report.rows = [Row("gateway", MEASURE, ours, "ms", bare, ours / bare), Row("bare proxy", MEASURE, bare, "ms")]
    report.bars = [Bar("more than the bare proxy", ours - bare, MORE_MS_MAX, at_most=True, unit="ms")]
    report.write(options.out)
    print(
        table(("", "median", "bare proxy", "more", "unit"), [(MEASURE, *map(number, (ours, bare, ours - bare)), "ms")])
    )
    print(*report.bars, sep="\n")
    if not report.bars[0].passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
