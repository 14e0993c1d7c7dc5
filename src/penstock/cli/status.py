"""`penstock status`: queues, workers, size and cost at a glance, once or refreshed in place."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator

import click

from penstock.cli.command import CliCommand, all_option, looking, refuse, this_output
from penstock.cli.output import Answer, Listed, Title, Toned, listed, rendered
from penstock.views import paces, queues
from penstock.views import status as view
from penstock.views.cost import ceiling_text
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, ago_text, micros_of, number_text, usd_text

RATE_SECONDS = 10.0  # a rate is that of so long, or of the time since the start

Sample = tuple[float, dict[str, tuple[int, int]]]  # when, and what each queue had sent and acked
WATCHED = View(
    "queues",
    (
        queues.NAME,
        *queues.DEPTH,
        Column("sent_rate", "sent/s", "number", rank=4),
        Column("acked_rate", "done/s", "number"),
        Column("acked", "acked", "count", rank=5),
    ),
    empty=queues.QUEUES.empty,
    is_internal=queues.QUEUES.is_internal,
)


@click.command(cls=CliCommand)
@looking
@all_option
@click.option("--watch", is_flag=True, help="Refresh in place, with rates and paces, until Ctrl-C.")
@click.option("--every", type=click.FloatRange(0.2, 3_600), default=2.0, show_default=True, help="Seconds between.")
async def status(observer: Observer, internals: bool, watch: bool, every: float) -> Answer:
    """Show queues, workers, size and cost at a glance.

    Changes nothing, and reads little: counts come from counters.

    Example:
      penstock status market.py
      penstock status market.py --watch
      penstock status --database market.db --json
    """
    if watch:
        return await _watch(observer, every, internals)
    row = await view.status(observer)
    return Answer(row, *_head(row), "", *listed(queues.QUEUES, row["queues"], internals=internals).parts)


def _head(row: Row) -> Iterator[object]:
    usage, processes = row["usage"], (row["workers"], row["other_processes"])
    yield Title(row["database"]["path"])
    yield Toned(view.size_text(row["database"]), "" if row["database"]["level"] == "ok" else "warn")
    yield view.processes_text(*processes)
    if died := view.died_text([*processes[0], *processes[1]]):
        yield Toned(died, "warn")
    yield (
        f"{usage['month']}: {usage['rows_read']:,} rows read (estimated), {usage['rows_written']:,} written, "
        f"{usd_text(usage['usd'])} at a platform's prices"
    )
    for each in row["ceilings"]:
        if each["reached"]:
            task = each["task"] or "the whole app"
            text = f"ceiling reached by {task}: {ceiling_text(each)}. Its cron tasks do not run until next month."
            yield Toned(text, "bad")
    for each in row["alerts"]:
        since = ago_text(micros_of(each["sent_at"]), time.time_ns() // 1_000)
        yield Toned(f"open alert, {since}: {each['title'] or each['name']} ({each['name']})", "warn")


# -- watch --------------------------------------------------------------------------------------------------


async def _watch(observer: Observer, every: float, internals: bool) -> Answer:
    """Draw until Ctrl-C cancels it. In a pipe, one drawing follows the other."""
    from rich.console import Group
    from rich.live import Live

    output = this_output()
    if output.json:
        raise refuse("--watch refreshes a terminal. Leave it out with --json, and repeat the command instead.")
    console, samples = output.console(), deque[Sample]()
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            drawn = Group(*[rendered(part, console.width) for part in await _drawing(observer, samples, internals)])
            if console.is_terminal:
                live.update(drawn, refresh=True)
            else:
                console.print(drawn, "")
                output.out.flush()
            await asyncio.sleep(every)


async def _drawing(observer: Observer, samples: deque[Sample], internals: bool) -> list[object]:
    row = await view.status(observer)
    found = row["queues"]
    samples.append((time.monotonic(), {each["name"]: (each["sent"], each["acked"]) for each in found}))
    while len(samples) > 2 and samples[-1][0] - samples[0][0] > RATE_SECONDS:
        samples.popleft()
    seconds, before, now = samples[-1][0] - samples[0][0], samples[0][1], samples[-1][1]
    rates = {name: [_rate(now[name], before.get(name, now[name]), place, seconds) for place in (0, 1)] for name in now}
    totals = [number_text(sum(rate[place] or 0.0 for rate in rates.values())) for place in (0, 1)]
    rows = [{**each, "sent_rate": rates[each["name"]][0], "acked_rate": rates[each["name"]][1]} for each in found]
    shown = WATCHED.visible(rows, internals=internals)
    parts = [*_head(row), f"{totals[0]} sent/s, {totals[1]} done/s" if seconds else "", "", Listed(WATCHED, shown)]
    saved = await paces.PACES.read(observer)
    return [*parts, "", Listed(paces.PACES, saved)] if saved else parts


def _rate(now: tuple[int, int], before: tuple[int, int], place: int, seconds: float) -> float | None:
    return (now[place] - before[place]) / seconds if seconds else None
