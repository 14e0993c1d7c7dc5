"""`penstock status`: what waits, who works, how large the database is and what the month has cost."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.cli import target as targets
from penstock.cli.cost import ceiling_shown, ceilings_of
from penstock.cli.output import Output, age_shown, bytes_shown, fill, money_shown, plain, table
from penstock.data import overview
from penstock.data.overview import QueueState
from penstock.data.usage import MonthUsage, month_usage
from penstock.model.forecast import Forecast, Level
from penstock.model.queue import is_internal
from penstock.model.times import iso_z

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# What a table shows at which width of the terminal.
COLUMNS = {
    76: ("queue", "ready", "leased", "delayed", "dead", "oldest", "sent", "acked"),
    60: ("queue", "ready", "leased", "delayed", "dead", "oldest"),
    0: ("queue", "ready", "delayed", "dead"),
}

all_option = click.option("--all", "everything", is_flag=True, help="Draw internal queues too; --json has all.")


@click.command()
@targets.target_argument
@targets.database_option
@all_option
@click.pass_obj
def status(output: Output, target: str | None, database: str | None, everything: bool) -> None:
    """Queues, workers, size and cost at a glance.

    Reads only, and little: counts come from counters. APP is like market.py or package.module:app.

    \b
    Example:
      penstock status market.py
      penstock status --database market.db --json
    """
    found = targets.find(target, database)
    state = asyncio.run(_look(found, everything))
    output.show(state.told(), state.draw)


class _State(msgspec.Struct):
    target: targets.Target
    queues: list[QueueState]
    processes: list[dict[str, Any]]
    size: Forecast
    free_bytes: int | None
    usage: MonthUsage
    everything: bool  # internal queues too

    def told(self) -> dict[str, Any]:
        return {
            "database": {
                "path": self.target.database,
                "bytes": self.size.size_bytes,
                "cap_bytes": self.size.cap_bytes,
                "level": self.size.level,
                "growth_bytes_per_day": self.size.growth_bytes_per_day,
                "days_left": self.size.days_left,
                "disk_free_bytes": self.free_bytes,
            },
            "queues": [msgspec.to_builtins(queue) for queue in self.queues],
            "workers": [each for each in self.processes if each["runs_handlers"]],
            "other_processes": [each for each in self.processes if not each["runs_handlers"]],
            "usage": {
                "month": self.usage.month,
                "rows_read": self.usage.total.rows_read,
                "rows_written": self.usage.total.rows_written,
                "usd": round(self.usage.usd, 9),
            },
            "ceilings": list(ceilings_of(self.target, self.usage)),
        }

    def draw(self, console: Console) -> None:
        console.print(f"[bold]{plain(self.target.database)}[/]  {size_shown(self.size, self.free_bytes)}")
        console.print(processes_shown(self.processes))
        total = self.usage.total
        console.print(
            f"{self.usage.month}: {total.rows_read:,} rows read (estimated), {total.rows_written:,} written, "
            f"{money_shown(self.usage.usd)} at a platform's prices"
        )
        for task, used, reached in map(ceiling_shown, ceilings_of(self.target, self.usage)):
            if reached:
                console.print(
                    f"[red]ceiling reached[/] by {plain(task)}: {used}. Its cron tasks rest until next month."
                )
        console.print()
        draw_queues(console, self.queues, everything=self.everything)


async def _look(found: targets.Target, everything: bool) -> _State:
    cap = found.config.limits.database_bytes_max
    with targets.reading(found) as reading:
        now = reading.now()
        processes = [
            {
                "id": worker.id,
                "host": worker.host,
                "pid": worker.pid,
                "started_at": iso_z(worker.started_at),
                "alive": reading.is_alive(worker),
                "runs_handlers": worker.runs_handlers,
            }
            for worker in await overview.processes(reading)
        ]
        return _State(
            found,
            await overview.queues(reading, now=now),
            processes,
            await overview.size(reading, reading.lookout.size_bytes(), cap_bytes=cap, now=now),
            None if found.file is None else shutil.disk_usage(found.file.absolute().parent).free,
            await month_usage(reading, None, now=now),
            everything,
        )


def draw_queues(console: Console, queues: Sequence[QueueState], *, everything: bool) -> None:
    """Draw queues as a table, internal ones only where `everything` asks for them or they hold dead letters."""
    shown = [queue for queue in queues if everything or queue.dead or not is_internal(queue.name)]
    console.print(
        _table(shown, console.width) if shown else "No queue has been used yet. `penstock run` registers them."
    )
    if hidden := len(queues) - len(shown):
        console.print(f"\n{hidden} internal queue{'' if hidden == 1 else 's'} without dead letters: --all shows them.")


def _table(queues: Sequence[QueueState], width: int) -> Table:
    titles = next(titles for least, titles in COLUMNS.items() if width >= least)
    drawn = table(*((title, "left" if title == "queue" else "right") for title in titles))
    cells = (_cells(queue) for queue in queues)
    return fill(drawn, ([row[title] for title in titles] for row in cells))


def _cells(queue: QueueState) -> dict[str, str]:
    return {
        "queue": queue.name + (" (paused)" if queue.paused else ""),
        "ready": ("" if queue.exact else "≥ ") + f"{queue.ready:,}",
        "leased": f"{queue.leased:,}",
        "delayed": ("" if queue.exact else "≤ ") + f"{queue.delayed:,}",
        "dead": f"{queue.dead:,}",
        "oldest": age_shown(queue.oldest_age_seconds),
        "sent": f"{queue.sent:,}",
        "acked": f"{queue.acked:,}",
    }


def size_shown(size: Forecast, free_bytes: int | None) -> str:
    shown = bytes_shown(size.size_bytes)
    if size.cap_bytes is not None:
        shown += f" of {bytes_shown(size.cap_bytes)} ({size.size_bytes / size.cap_bytes:.0%})"
    if size.growth_bytes_per_day > 0:
        shown += f", growing {bytes_shown(size.growth_bytes_per_day)} a day"
    if size.days_left is not None:
        shown += f", full in about {size.days_left:.0f} days"
    if free_bytes is not None:
        shown += f", {bytes_shown(free_bytes)} free on its disk"
    return shown if size.level is Level.OK else f"[yellow]{shown}[/]"


def processes_shown(processes: Sequence[dict[str, Any]]) -> str:
    alive = Counter(each["runs_handlers"] for each in processes if each["alive"])
    dead = [str(each["id"]) for each in processes if each["alive"] is False]
    elsewhere = sum(each["alive"] is None for each in processes)
    parts = [f"{alive[True] or 'no'} worker{'' if alive[True] == 1 else 's'}"]
    if alive[False]:
        parts.append(
            f"{alive[False]} other process{'' if alive[False] == 1 else 'es'} (supervisor, server or producer)"
        )
    if elsewhere:
        parts.append(f"{elsewhere} on other hosts")
    if dead:
        parts.append(f"[yellow]{len(dead)} died ({', '.join(dead)}): the next worker returns their work[/]")
    return ", ".join(parts)
