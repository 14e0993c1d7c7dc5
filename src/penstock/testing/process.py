"""A process as a test sees it: what runs in its context stops for good when it is killed, without any cleaning up."""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import os
import time
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from penstock.contracts.presence import Presence
from penstock.contracts.store import Writer
from penstock.runtime.engine import Engine
from penstock.storage.sqlite.presence import SqlitePresence
from penstock.testing.loop import VirtualLoop

T = TypeVar("T")
H = TypeVar("H", bound=asyncio.Handle)

GONE_SECONDS = 5.0  # in which a server has surely noticed that a client is gone
STILL_THERE = "select 1 from pg_stat_activity where pid = any(%s)"
UNWINDINGS_MAX = 10  # times that a coroutine may wait on its way out; then it is left as it is

_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("penstock_process", default=None)


class Killed(BaseException):
    """Unwinds the code that was running when its process was killed. Nothing may catch it but what simulates processes."""


class Process:
    """Tasks, timers and callbacks belong to the process in whose context they were made."""

    def __init__(self, loop: VirtualLoop, name: str) -> None:
        _tell_the_living_from_the_dead(loop)
        self._loop = loop
        self._tasks: list[asyncio.Task[Any]] = []
        self.name = name
        self.dead = False
        self.paused = False
        self.engine: Engine | None = None
        self.writer: Writer | None = None
        self.presence: Presence | None = None
        self.context = contextvars.Context()
        self.context.run(_process.set, self)
        self.when_resumed: list[Callable[[], None]] = []
        self.when_killed: list[Callable[[], None]] = []

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs something as a part of this process."""
        return self._loop.create_task(work, context=self.context.copy())

    def call_later(self, seconds: float, callback: Callable[..., None], *given: Any) -> None:
        """In its own context, as from a thread: no handler's unit travels with an answer."""
        if seconds > 0:
            self._loop.call_later(seconds, callback, *given, context=self.context)
        else:
            self._loop.call_soon(callback, *given, context=self.context)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) % 256 == 0:
            self._tasks = [task for task in self._tasks if not task.done()]

    def owns(self, engine: Engine) -> None:
        """The engine runs in this process: its files go with it."""
        self.engine, self.writer, self.presence = engine, engine.writer, engine.presence

    # -- what can befall it -------------------------------------------------------------------------------

    def pause(self) -> None:
        """Nothing that this process does reaches the store, and it learns of nothing, until it resumes."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        for callback in self.when_resumed:
            callback()

    def kill(self) -> None:
        """End it as SIGKILL would. A caller inside the process must raise Killed at once."""
        if self.dead:
            return
        if self.presence is not None and _is_there(self.presence):
            _abandon(self.presence)
        self.dead = True
        for handle in [*self._loop._ready, *self._loop._scheduled]:
            if handle._context.get(_process) is self:  # type: ignore[attr-defined]
                handle.cancel()
        for callback in self.when_killed:
            callback()
        # The call that killed it may still be inside a transaction, which is rolled back on the way out.
        self._loop.call_soon(self._close_files, context=contextvars.Context())

    def _close_files(self) -> None:
        if self.engine is not None:
            self.engine.history.vanish()
            for lane in self.engine._readers:
                if lane._reader is not None:
                    lane._reader.close()
        if self.writer is not None:
            try:
                self.writer.upkeep.applied()  # raises if it was closing and had got this far
            except Exception:
                return
            session = getattr(self.writer, "session", None)
            self.writer.close()
            if session is not None:
                _wait_until_gone(session.settings.url, session._backends)

    def dispose(self) -> None:
        """At the end of a test: drops tasks that can never run again, so that nothing waits for them."""
        assert self.dead
        with warnings.catch_warnings():
            # On its way out the dead code may start a task that nothing waits for.
            warnings.simplefilter("ignore", RuntimeWarning)
            for task in self._tasks:
                _let_go(task)
            self._tasks.clear()
        self._close_files()  # the loop may have ended before it came to that
        if self.presence is not None and _is_there(self.presence):
            self.presence.vanish()
        self.engine = self.writer = self.presence = None


def current_process() -> Process | None:
    return _process.get()


def _let_go(task: asyncio.Task[Any]) -> None:
    if task.done():
        with suppress(asyncio.CancelledError):
            task.exception()
    else:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        asyncio.tasks._unregister_task(task)
        _unwind(task.get_coro())


def _unwind(coroutine: Any) -> None:
    """Thrown, not closed: closing a coroutine leaves the asynchronous generators it waits in as they are."""
    for _ in range(UNWINDINGS_MAX):
        try:
            coroutine.throw(Killed())
        except BaseException:
            return


def _is_there(presence: Presence) -> bool:
    try:
        return bool(presence.cells.nbytes)
    except ValueError:  # it was let go
        return False


def _abandon(presence: Presence) -> None:
    """What the system does with the files of a dead process: locks are let go, the list of running handlers stays.

    Code that is still unwinding writes on, so it keeps the old file and the others find a copy of this moment.
    """
    left = presence.path.with_name(presence.path.name + ".left")
    left.write_bytes(presence.path.read_bytes())
    os.replace(left, presence.path)
    if not isinstance(presence, SqlitePresence):
        return  # its lock goes with its writer's connection
    fcntl.flock(presence._file, fcntl.LOCK_UN)
    for file in presence._held.values():
        os.close(file)
    presence._held.clear()


def _tell_the_living_from_the_dead(loop: VirtualLoop) -> None:
    """From here on the loop drops what a dead process would do, and knows whose task is whose."""
    if hasattr(loop, "_penstock_processes"):
        return
    loop._penstock_processes = True  # type: ignore[attr-defined]
    call_soon, call_at, create_task = loop.call_soon, loop.call_at, loop.create_task

    def living_call_soon(callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        if context is None:
            context = contextvars.copy_context()
        process = context.get(_process)
        if process is not None and process.dead:
            return _never(asyncio.Handle(callback, args, loop, context))
        if loop.get_debug():
            return call_soon(callback, *args, context=context)
        # What that comes to without its checks: everything that happens goes through here.
        loop._check_closed()
        loop._ready.append(handle := asyncio.Handle(callback, args, loop, context))
        return handle

    def living_call_at(
        when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = contextvars.copy_context()
        process = context.get(_process)
        timer = call_at(when, callback, *args, context=context)
        return _never(timer) if process is not None and process.dead else timer

    def owned_task(work: Any, **options: Any) -> asyncio.Task[Any]:
        task = create_task(work, **options)
        context = options.get("context")
        process = _process.get() if context is None else context.get(_process)
        if process is not None:
            process.adopt(task)
        return task

    loop.call_soon = living_call_soon  # type: ignore[assignment, method-assign]
    loop.call_at = living_call_at  # type: ignore[method-assign]
    loop.create_task = owned_task  # type: ignore[assignment, method-assign]


def _never(handle: H) -> H:
    handle.cancel()
    return handle


def _wait_until_gone(url: str, backends: list[int]) -> None:
    """A server notices in its own time that a client is gone, and under virtual time days may pass meanwhile."""
    import psycopg  # only there is its driver needed

    with psycopg.connect(url, autocommit=True) as asking:
        until = time.perf_counter() + GONE_SECONDS
        while asking.execute(STILL_THERE, [backends]).fetchone() and time.perf_counter() < until:
            time.sleep(0.001)
