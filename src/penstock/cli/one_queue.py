"""One queue by its name: how deep it is, how it is set, and who serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.cli import target as targets
from penstock.cli.output import NotFound, age_shown, bytes_shown, fill, plain, table
from penstock.data import overview
from penstock.data.overview import QueueState
from penstock.data.serving import LiveWorkers, QueueRow, queue_row, serving
from penstock.queues.desk import no_such_queue

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class QueueFound(NamedTuple):
    state: QueueState
    row: QueueRow
    workers: LiveWorkers


async def look(found: targets.Target, name: str) -> QueueFound:
    with targets.reading(found) as reading:
        states = {state.name: state for state in await overview.queues(reading, now=reading.now())}
        row = await queue_row(reading, name)
        if name not in states or row is None:
            raise NotFound(no_such_queue(name, list(states)), code="no_such_queue")
        workers = await serving(reading, name, reading.is_alive)
        return QueueFound(states[name], row, workers)


def told_state(state: QueueState) -> dict[str, Any]:
    """The agreed shape. Only where the numbers are not exact one more field says so."""
    facts: dict[str, Any] = msgspec.to_builtins(state)
    if facts.pop("exact"):
        return facts
    return facts | {"exact": False}


def told(found: QueueFound) -> dict[str, Any]:
    state, row, workers = found
    return told_state(state) | {
        "settings": row.settings(),
        "tuned": {"parallel": row.parallel_tuned, "rate": row.rate_tuned},
        "accepts": row.accepted(),
        "served_by": [
            {"id": each.id, "host": each.host, "pid": each.pid} for each in (*workers.alive, *workers.elsewhere)
        ],
    }


def draw(console: Console, found: QueueFound) -> None:
    state, row, workers = found
    name = plain(state.name)
    console.print(f"[bold]{name}[/]" + ("  [yellow]paused[/]" if state.paused else "") + "\n")
    console.print(fill(facts(), [*_depth(state), ("", ""), *_settings(row, workers)]))
    if state.dead:
        console.print(f"\n`penstock dead groups --queue {name}` tells what the dead ones died of.")
    if state.paused:
        console.print(f"\n`penstock queues resume {name}` lets it go on.")
    elif state.ready and not workers.total:
        console.print("\n[yellow]No process serves this queue.[/] `penstock run` starts one.")


def facts() -> Table:
    """A table of two columns without a head: what, and how much of it."""
    drawn = table(("", "left"), ("", "left"))
    drawn.show_header = False
    drawn.columns[0].no_wrap = True
    return drawn


def _depth(state: QueueState) -> list[tuple[str, str]]:
    oldest = f", the first of them for {age_shown(state.oldest_age_seconds)}" if state.oldest_age_seconds else ""
    return [
        ("ready", ("" if state.exact else "at least ") + f"{state.ready:,}{oldest}"),
        ("in flight", f"{state.leased:,}"),
        ("delayed", ("" if state.exact else "at most ") + f"{state.delayed:,}"),
        ("dead", f"{state.dead:,}"),
        ("ever", f"{state.sent:,} sent, {state.acked:,} done, {state.purged:,} purged, {state.expired:,} expired"),
    ]


def _settings(row: QueueRow, workers: LiveWorkers) -> list[tuple[str, str]]:
    tuned_rate = None if row.rate_tuned is None else rate_shown(row.rate_tuned)
    shown = [
        ("served by", workers.shown()),
        ("accepts", ", ".join(row.accepted() or ["anything"])),
        ("parallel", _tuned(row.parallel_tuned, f"{row.parallel:,}" if row.parallel else "automatic")),
        ("rate", _tuned(tuned_rate, rate_shown(row.rate))),
        ("retries", f"{row.retries:,}, after {row.retry_first_seconds:g} s up to {row.retry_longest_seconds:g} s"),
        ("wall limit", f"{row.wall_seconds:g} s"),
    ]
    if row.batch > 1:
        shown.append(("batch", f"{row.batch:,}, or what there is after {row.wait_seconds:g} s"))
    if row.messages_max is not None:
        shown.append(("room", f"{row.messages_max:,} messages"))
    if row.bytes_max is not None:
        shown.append(("room", bytes_shown(row.bytes_max)))
    if row.retention_seconds is not None:
        shown.append(("expires", f"after {age_shown(row.retention_seconds)}"))
    return shown


def rate_shown(rate: float | None) -> str:
    return f"{rate:g} a second" if rate else "no limit"


def _tuned(tuned: object | None, declared: str) -> str:
    return declared if tuned is None else f"{tuned} (tuned; the app says {declared})"
