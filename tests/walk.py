"""The walk of one message: the files that handle it, from `send` to its committed effect, traced in a real run.

    python -m tests.walk        prints it for ARCHITECTURE.md

A file is on the way if one of its functions gets the payload, the message, its unit, its delivery, or the group or the
answer of a commit that carries one of them. Clock, faults, meter, history and logging are left aside.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import penstock as ps
from penstock.contracts.effects import SealedUnit
from penstock.contracts.ledger import Committed
from penstock.model.message import Delivery, NewMessage
from penstock.runtime.groups import CommitGroup, GroupResult

SOURCE = Path(ps.__file__).parent
ASIDE = (
    "contracts/faults.py",
    "logs.py",
    "metrics/",
    "model/usage.py",
    "runtime/clock.py",
    "runtime/events.py",
    "runtime/history.py",
    "runtime/meterbook.py",
)
IDLE_SECONDS = 1.2  # what a worker does at its start is over


class Order(ps.Event, type="order.placed"):
    number: int


CARRIERS = (Order, NewMessage, Delivery, SealedUnit, CommitGroup, GroupResult, Committed)
Walk = dict[str, list[str]]  # the functions of each file, both in the order of their first call


class Tracer:
    def __init__(self) -> None:
        self.walk: Walk = {}
        self._known: set[CodeType] = set()  # that carried a message, or belong to no file of the engine

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._known:
            return
        path = Path(code.co_filename)
        if (
            SOURCE not in path.parents
            or (file := path.relative_to(SOURCE).as_posix()).startswith(ASIDE)
            or code.co_name.startswith("<")
        ):
            self._known.add(code)
        elif any(carries(frame.f_locals.get(name)) for name in code.co_varnames[: code.co_argcount]):
            self._known.add(code)
            self.walk.setdefault(file, []).append(code.co_name)


def carries(value: object) -> bool:
    if isinstance(value, list | tuple) and not isinstance(value, CARRIERS):
        return any(carries(each) for each in value[:3])
    return isinstance(value, CARRIERS)


async def traced(folder: Path) -> Walk:
    """Return the walk of a message whose handler sends another one."""
    tracer, on = Tracer(), [False]

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if on[0]:
            tracer(frame, event, argument)

    threading.setprofile(profile)  # before the writer's thread begins
    sys.setprofile(profile)
    try:
        app = ps.App("market", database=folder / "market.db")
        orders, shipped = app.queue("orders", Order), app.queue("shipped", Order)
        handled = asyncio.Event()

        @orders.handler
        async def ship(order: Order) -> None:
            shipped.send(order)
            handled.set()

        async with app, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(app.run())
            await asyncio.sleep(IDLE_SECONDS)
            on[0] = True
            async with app.unit():
                orders.send(Order(number=1))
            await handled.wait()
            desk = await app.desk()
            on[0] = False
            while (await desk.backlog("shipped")).count < 1:
                on[0] = True
                await asyncio.sleep(0.01)
                on[0] = False
            app.stop()
            await running
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return tracer.walk


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        walk = asyncio.run(traced(Path(folder)))
    for file, functions in walk.items():
        print(f" {file:<28} {', '.join(functions)}")
    print(len(walk), "files")


if __name__ == "__main__":
    main()
