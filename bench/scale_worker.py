"""One worker process of `make bench-scale`: runs handlers that wait, or do nothing, and tells how late each message was.

    python -m bench.scale_worker DATABASE PARALLEL WAIT_SECONDS

Commands come as lines of JSON on stdin: `ready` is answered when it runs, `latencies` with the seconds from each send to its
handler's start, and then it ends. `time.perf_counter` is the same clock in every process of the machine.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import penstock as ps
from bench.load import QUEUE
from bench.place import Place
from bench.watch import WatchedApp
from penstock.cli.worker import GARBAGE_THRESHOLD
from penstock.queues.queue import Queue


class Job(ps.Event, type="job.timed"):
    number: int
    sent_at: float


def scale_app(place: Place, *, parallel: int | None) -> tuple[WatchedApp, Queue[Job]]:
    app = WatchedApp(place)
    return app, app.queue(QUEUE, Job, parallel=parallel)


async def serve(place: Place, *, parallel: int, wait_seconds: float) -> None:
    app, queue = scale_app(place, parallel=parallel)
    latencies: list[float] = []

    async def wait(job: Job) -> None:
        latencies.append(time.perf_counter() - job.sent_at)
        await asyncio.sleep(wait_seconds)

    async def nothing(job: Job) -> None:
        latencies.append(time.perf_counter() - job.sent_at)

    queue.handler(Job, name="job")(wait if wait_seconds else nothing)
    await app._opened()
    running = asyncio.ensure_future(app.run())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        match json.loads(line)["do"]:
            case "ready":
                _answer({})
            case "forget":
                latencies.clear()
                _answer({})
            case "latencies":
                _answer({"seconds": latencies})
                break
    app.stop()
    await running


def _answer(values: dict[str, Any]) -> None:
    print(json.dumps(values), flush=True)


def main() -> None:
    database, parallel, wait_seconds = sys.argv[1:]
    gc.set_threshold(GARBAGE_THRESHOLD)  # as a worker process of `penstock run` sets itself up
    place = Place(database, Path("no-migrations"))
    asyncio.run(serve(place, parallel=int(parallel), wait_seconds=float(wait_seconds)))


if __name__ == "__main__":
    main()
