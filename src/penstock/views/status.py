"""The state of a database at a glance: its queues, processes, size, cost and ceilings."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict

import msgspec

from penstock.data.usage import Reading, month_usage, size
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views import queues
from penstock.views.cost import ceilings
from penstock.views.observer import Observer
from penstock.views.view import Row, bytes_text, counted, shaped

SQL = load("penstock.views", "nouns.sql")
CONDITIONS_MAX = 1_000


async def status(observer: Observer) -> Row:
    target, now = observer.target, observer.now()
    cap = target.config.limits.database_bytes_max
    forecast = await size(observer, observer.lookout.size_bytes(), cap_bytes=cap, now=now)
    processes = await live(observer)
    usage = await month_usage(observer, None, now=now)
    return {
        "database": {
            "path": target.database,
            "bytes": forecast.size_bytes,
            "cap_bytes": forecast.cap_bytes,
            "level": forecast.level,
            "growth_bytes_per_day": forecast.growth_bytes_per_day,
            "days_left": forecast.days_left,
            "disk_free_bytes": None if target.file is None else shutil.disk_usage(target.file.absolute().parent).free,
        },
        "queues": await queues.rows(observer, now=now),
        "workers": [each for each in processes if each["runs_handlers"]],
        "other_processes": [each for each in processes if not each["runs_handlers"]],
        "usage": {
            "month": usage.month,
            "rows_read": usage.total.rows_read,
            "rows_written": usage.total.rows_written,
            "usd": round(usage.usd, 9),
        },
        "ceilings": list(ceilings(target, usage)),
        "alerts": [each for each in await conditions(observer) if each["is_open"]],
    }


async def conditions(reading: Reading) -> list[Row]:
    """Return what is known of each condition that the app has reported: those that hold first."""
    found = []
    for row in await reading.rows(SQL["conditions"], most=CONDITIONS_MAX):
        state = msgspec.json.decode(bytes(row.state))
        reported = state.get("told_at", [])
        found.append(
            {
                "name": row.name,
                "title": state.get("title", ""),
                "is_open": bool(state.get("is_open")),
                "repeats": state.get("repeats", 0),
                "sent_at": iso_z(reported[-1]) if reported else None,
                "changed_at": iso_z(row.saved_at),
            }
        )
    return sorted(found, key=lambda each: (not each["is_open"], each["name"]))


async def live(observer: Observer) -> list[Row]:
    """Return the processes that have enrolled and not left, and whether each is alive: None where that is not known."""
    return [
        shaped("id host pid started_at alive runs_handlers", asdict(worker) | {"alive": observer.is_alive(worker)})
        for worker in await queues.processes(observer)
    ]


def size_text(database: Row) -> str:
    text = bytes_text(database["bytes"])
    if database["cap_bytes"] is not None:
        text += f" of {bytes_text(database['cap_bytes'])} ({database['bytes'] / database['cap_bytes']:.0%})"
    if database["growth_bytes_per_day"] > 0:
        text += f", growing {bytes_text(database['growth_bytes_per_day'])} a day"
    if database["days_left"] is not None:
        text += f", full in about {database['days_left']:.0f} days"
    if database["disk_free_bytes"] is not None:
        text += f", {bytes_text(database['disk_free_bytes'])} free on its disk"
    return text


def processes_text(workers: Sequence[Row], others: Sequence[Row]) -> str:
    """`2 workers, 1 other process`. Other processes are supervisors, servers and producers."""
    alive = sum(each["alive"] is True for each in workers)
    parts = [counted(alive, "worker") if alive else "no workers"]
    if beside := sum(each["alive"] is True for each in others):
        parts.append(f"{counted(beside, 'other process', 'other processes')} (supervisor, server or producer)")
    if elsewhere := sum(each["alive"] is None for each in (*workers, *others)):
        parts.append(f"{elsewhere} on other hosts")
    return ", ".join(parts)


def died_text(processes: Sequence[Row]) -> str | None:
    died = [str(each["id"]) for each in processes if each["alive"] is False]
    if not died:
        return None
    count = counted(len(died), "process", "processes")
    return f"{count} died ({', '.join(died)}): the next worker that starts releases their messages."
