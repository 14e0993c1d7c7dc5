"""A worker is killed repeatedly while it processes payments. Every effect in the database happens exactly once.

The example needs no service and stores everything in a temporary folder.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import penstock as ps

MESSAGES = int(os.environ.get("MESSAGES", "3000"))
KILLS = int(os.environ.get("KILLS", "8"))

app = ps.App("killed", migrations=Path(__file__).parent / "killed_migrations")
db = app.db


class Order(ps.Command, type="order.placed"):
    number: int


class Paid(ps.Event, type="order.paid"):
    number: int


orders = app.queue("orders", Order, crashes_max=1_000)  # the messages do not cause the kills
receipts = app.queue("receipts", Paid, crashes_max=1_000)


@orders.handler
async def pay(order: Order) -> None:
    await asyncio.sleep(0.005)  # a call of the bank; the kill can happen at any moment
    db.write("insert into payments (number) values (:number)", order)
    receipts.send(Paid(number=order.number))


@receipts.handler
async def print_receipt(paid: Paid) -> None:
    db.write("insert into receipts (number) values (:number)", paid)


async def demo(console: Console) -> None:
    async with app.unit():
        for number in range(MESSAGES):
            orders.send(Order(number=number))
    kills = 0
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        paid = progress.add_task("payments", total=MESSAGES)
        printed = progress.add_task("receipts", total=MESSAGES)
        worker = start_worker()
        try:
            while True:
                await asyncio.sleep(0.05)
                done = await db.first("select (select count(*) from payments), (select count(*) from receipts)")
                assert done is not None
                progress.update(paid, completed=done[0])
                progress.update(printed, completed=done[1])
                if done[1] >= MESSAGES:
                    break
                if kills < KILLS and done[0] >= (kills + 1) * MESSAGES // (KILLS + 2):
                    os.kill(worker.pid, signal.SIGKILL)
                    worker.wait()
                    kills += 1
                    progress.console.print(f"  killed worker {worker.pid} with SIGKILL and started another")
                    worker = start_worker()
        finally:
            worker.terminate()
            worker.wait()
    await report(console, kills)


async def report(console: Console, kills: int) -> None:
    for table in ("payments", "receipts"):
        rows = await db.rows(COUNTED[table])
        times = [row[1] for row in rows]
        console.print(
            f"{table:>9}: {len(rows)} of {MESSAGES} orders, {sum(times) - len(times)} doubled, "
            f"{MESSAGES - len(rows)} lost, after {kills} kills"
        )


COUNTED = {
    "payments": "select number, count(*) from payments group by number",
    "receipts": "select number, count(*) from receipts group by number",
}


def start_worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "worker"])


async def work() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
    await app.run()


def main() -> None:
    if sys.argv[1:] == ["worker"]:
        asyncio.run(work())
        return
    console = Console()
    console.print("One worker is killed repeatedly while it processes payments.")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PENSTOCK_DATABASE"] = app.database = str(Path(folder, "killed.db"))
        asyncio.run(demonstrated(console))


async def demonstrated(console: Console) -> None:
    try:
        await demo(console)
    finally:
        await app.close()


if __name__ == "__main__":
    main()
