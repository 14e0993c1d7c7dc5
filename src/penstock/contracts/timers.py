"""Timers: rows with a due time that become messages when it comes. Cron schedules and objects' alarms are timers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

CRON, ALARM = "cron", "alarm"
TIMERS = "*timers"  # what a bell is rung for when a timer was set; no queue can have this name


class SetTimer(NamedTuple):
    """From now on this timer, and no other of its kind and name, is due then."""

    kind: str
    name: str
    due: int
    queue: str
    type: str


class ClearTimer(NamedTuple):
    kind: str
    name: str


class TickNote(NamedTuple):
    """What became of one run of a cron task, written with its effects."""

    schedule: str
    due: int
    status: str  # done, idle, failed, ceiling
    started_at: int
    finished_at: int
    rows_read: int
    error: str | None = None
    phase: str | None = None


TimerChange = SetTimer | ClearTimer | TickNote


class TimerRow(NamedTuple):
    """A timer as it stands. `number` is how often it has fired, by hand or by itself."""

    kind: str
    name: str
    due: int
    number: int
    queue: str
    rule: str | None
    paused: bool


class Declared(NamedTuple):
    """A schedule as the app declares it. If it is new or its rule has changed, fires up to `since` are dealt with and the
    next one is `due`."""

    name: str
    rule: str
    since: int
    due: int
    queue: str


class Timers(Protocol):
    """Lives in the writer's thread. Each method is one transaction."""

    def declare(self, schedules: Sequence[Declared]) -> None:
        """These are the app's schedules now. One whose rule is as it was keeps its due time; others are left alone."""

    def keep_only(self, schedules: Sequence[str]) -> None:
        """Schedules of other names are gone from the app, and go."""

    def pause(self, name: str, *, paused: bool, since: int | None = None, due: int | None = None) -> bool:
        """Pause a schedule, or resume it with the fire that is then `due`. False if there is none."""

    def trigger(self, name: str, *, now: int) -> bool:
        """Fires a schedule once, now, beside its rule. False if there is none."""

    def listed(self, kind: str) -> list[TimerRow]: ...
