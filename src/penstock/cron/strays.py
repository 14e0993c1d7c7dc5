"""Tasks that a run of a cron task has started and left behind, told apart from those that others start meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

Started = WeakSet[asyncio.Task[Any]]
_started: ContextVar[Started | None] = ContextVar("penstock_started", default=None)


@contextmanager
def noted() -> Iterator[Started]:
    """Notes every task that is started inside, also by tasks that were."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:  # Python 3.11 does not tell in which context a task runs
        loop.set_task_factory(_made)
    started: Started = WeakSet()
    _started.set(started)
    try:
        yield started
    finally:
        _started.set(None)


def _made(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    started = _started.get()
    if started is not None:
        started.add(task)
    return task


def left(started: Started) -> list[asyncio.Task[Any]]:
    """Those that still run, and whose code is the user's rather than the engine's."""
    return [task for task in started if not task.done() and _is_users(task)]


def _is_users(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "/penstock/" not in code.co_filename and "asyncio" not in code.co_filename
