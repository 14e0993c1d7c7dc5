"""The supervisor: starts workers, releases at once the claims of dead ones, and kills a worker that cannot stop itself.

It runs no user code. What it knows of a worker it reads from the worker's memory-mapped list of running handlers.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from penstock.contracts import running_handlers
from penstock.contracts.clock import Clock
from penstock.model.errors import StoreError
from penstock.runtime.engine import Engine
from penstock.runtime.events import Events, StoreFailed, WorkerDied, WorkerWasKilled

WATCH_SECONDS = 1.0
OVERRUN_SECONDS = 5.0  # a handler that was cancelled at its wall limit gets this long to stop
STALL_SECONDS = 3.0  # an event loop that missed three signs of life does not turn
SILENCE_SECONDS = 10.0  # an event loop that gives no sign for so long is stuck in a handler
QUICK_DEATH_SECONDS = 5.0
RESTART_SECONDS_FIRST, RESTART_SECONDS_LONGEST = 0.05, 10.0
STILLBORN_MAX = 3  # workers that die before they say hello: starting more cannot help
KILL_AFTER_GRACE_SECONDS = 10.0
# Of a worker: it was called wrongly, its database failed, or its database was replaced, where a restart would make a new one.
EXIT_USAGE, EXIT_STORE, EXIT_REPLACED = 2, 3, 5
EXIT_INTERRUPTED = 130  # what shells expect of a program that Ctrl-C ended


class Hello(msgspec.Struct, frozen=True):
    """What a worker says once it is up."""

    worker: int
    database: str
    presence: str


@dataclass(slots=True, eq=False)  # each is itself: they are kept in a set
class Child:
    process: asyncio.subprocess.Process
    lifeline: int  # our end of a pipe: when we die it closes, and the worker stops by itself
    started: float
    heard: asyncio.Event = field(default_factory=asyncio.Event)  # it has said hello, or never will
    hello: Hello | None = None
    cells: memoryview | None = None
    watched: asyncio.Task[None] | None = field(default=None)


class Supervisor:
    def __init__(
        self,
        command: Sequence[str],
        *,
        workers: int,
        grace_seconds: float,
        clock: Clock,
        events: Events,
        open_engine: Callable[[str], Engine],
        shared: Sequence[int] = (),
    ) -> None:
        """`shared` are descriptors that every worker gets, such as a listening socket."""
        self._shared = tuple(shared)
        self._command = list(command)
        self._workers = workers
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._events = events
        self._open_engine = open_engine
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()
        self._children: set[Child] = set()
        self._stopping = 0
        self._signalled = asyncio.Event()
        self._stillborn = 0
        self._exit_code: int = 0

    async def run(self) -> int:
        """Returns the exit code: that of the first worker that failed for good, else 0."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_signal_handler(signal.SIGINT, self.interrupt)
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch())
                places = [group.create_task(self._keep_one_running()) for _ in range(self._workers)]
                await asyncio.gather(*places)
                watch.cancel()
        finally:
            if self._engine is not None:
                await self._return_departed(self._engine)
                with suppress(StoreError):  # then the next process finds its row
                    await self._engine.close()
        return self._exit_code

    async def _return_departed(self, engine: Engine) -> None:
        """What cannot be released now waits for another worker, or for the next death."""
        try:
            await engine.return_departed()
        except StoreError as error:
            self._events.emit(StoreFailed(engine.store.location, str(error)))

    def stop(self) -> None:
        """Asks all workers to stop; again, to hurry."""
        self._stopping += 1
        self._signalled.set()
        for child in self._children:
            self._signal(child, signal.SIGTERM)
        if self._stopping == 1:
            loop = asyncio.get_running_loop()
            loop.call_later(self._grace_seconds + KILL_AFTER_GRACE_SECONDS, self._kill_all)

    def interrupt(self) -> None:
        """Stop as Ctrl-C does: with its exit code."""
        self._exit_code = self._exit_code or EXIT_INTERRUPTED
        self.stop()

    def _kill_all(self) -> None:
        for child in self._children:
            self._signal(child, signal.SIGKILL)

    # -- one place, always filled -------------------------------------------------------------------------

    async def _keep_one_running(self) -> None:
        quick_deaths = 0
        while not self._stopping:
            child = await self._start()
            code = await self._until_it_ends(child)
            if code == 0:
                return
            if code in (EXIT_USAGE, EXIT_REPLACED) or (child.hello is None and self._stillborn >= STILLBORN_MAX):
                if self._exit_code == 0:
                    self._exit_code = EXIT_STORE if code == EXIT_REPLACED else code
                self.stop()
                return
            lived = self._clock.monotonic() - child.started
            quick_deaths = quick_deaths + 1 if lived < QUICK_DEATH_SECONDS else 0
            await self._rest(min(RESTART_SECONDS_FIRST * 2**quick_deaths, RESTART_SECONDS_LONGEST))

    async def _rest(self, seconds: float) -> None:
        """Waits before the next start, unless there is to be none."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._signalled.wait(), seconds)

    async def _start(self) -> Child:
        hello_out, hello_in = os.pipe()
        lifeline_out, lifeline_in = os.pipe()
        with uninterrupted():
            process = await asyncio.create_subprocess_exec(
                *self._command,
                "--hello",
                str(hello_in),
                "--lifeline",
                str(lifeline_out),
                pass_fds=(hello_in, lifeline_out, *self._shared),
            )
        os.close(hello_in)
        os.close(lifeline_out)
        child = Child(process, lifeline_in, self._clock.monotonic())
        self._children.add(child)
        if self._stopping:  # the signal came while this one was starting
            self._signal(child, signal.SIGTERM)
        child.watched = asyncio.ensure_future(self._listen(child, hello_out))
        return child

    async def _listen(self, child: Child, pipe: int) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb"))
        line = await reader.readline()
        transport.close()
        if line:
            self._stillborn = 0
            child.hello = msgspec.json.decode(line, type=Hello)
            child.cells = _mapped(Path(child.hello.presence))
        child.heard.set()
        if child.hello is None:
            return
        async with self._opening:
            if self._engine is None:
                engine = self._open_engine(child.hello.database)
                try:
                    await engine.open()
                except StoreError as error:  # its worker was in there a moment ago: the next one asks again
                    self._events.emit(StoreFailed(engine.store.location, str(error)))
                else:
                    self._engine = engine

    async def _until_it_ends(self, child: Child) -> int:
        code = await child.process.wait()
        await child.heard.wait()
        self._children.discard(child)
        os.close(child.lifeline)
        # Where one has been up before, a server that is away comes back: that is waited for.
        if child.hello is None and code != 0 and not (code == EXIT_STORE and self._engine is not None):
            self._stillborn += 1
        if code != 0 and not (self._stopping and code == -signal.SIGTERM):
            worker = child.hello.worker if child.hello else 0
            self._events.emit(WorkerDied(worker, child.process.pid, code))
        if child.watched is not None:
            await child.watched
        if self._engine is not None:
            await self._return_departed(self._engine)
        return code

    # -- looking after the living ---------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = int(self._clock.monotonic() * 1_000_000)
            for child in list(self._children):
                if child.cells is not None and child.process.returncode is None:
                    self._judge(child, child.cells, now)

    def _judge(self, child: Child, cells: memoryview, now_micros: int) -> None:
        culprit = overdue(cells, now_micros)
        stuck = culprit is None and silent(cells, now_micros)
        if culprit is None and not stuck:
            return
        if culprit is None:
            culprit = running_handlers.on_processor(cells)
        if culprit is not None:
            cells[running_handlers.BLAMED] = culprit.row  # before the kill: the release of its rows reads it there
        reason = "its event loop is blocked" if stuck else "a handler did not stop at its timeout"
        worker = child.hello.worker if child.hello else 0
        self._events.emit(WorkerWasKilled(worker, child.process.pid, reason))
        self._signal(child, signal.SIGKILL)

    def _signal(self, child: Child, number: int) -> None:
        if child.process.returncode is None:
            with suppress(ProcessLookupError):
                child.process.send_signal(number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, not even while they load; here it is held back until the end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def overdue(cells: memoryview, now_micros: int) -> running_handlers.RunningHandler | None:
    """The handler to blame if one is past its wall limit and its time to clean up: the one that holds the processor, since
    beside it no other handler can stop in time, or else the one that should have stopped longest ago."""
    slack = int(OVERRUN_SECONDS * 1_000_000)
    late = [
        each for each in running_handlers.running(cells) if each.started_micros + each.wall_micros + slack < now_micros
    ]
    holder = running_handlers.on_processor(cells)
    stalled = cells[running_handlers.BEAT] + int(STALL_SECONDS * 1_000_000) < now_micros
    if late and holder is not None and (stalled or holder in late):
        return holder
    return min(late, key=lambda each: each.started_micros + each.wall_micros, default=None)


def silent(cells: memoryview, now_micros: int) -> bool:
    """Whether handlers are under way and the event loop has given no sign for too long."""
    return cells[running_handlers.BEAT] + int(SILENCE_SECONDS * 1_000_000) < now_micros and bool(
        running_handlers.running(cells)
    )


def _mapped(path: Path) -> memoryview | None:
    try:
        with path.open("r+b") as file:
            return memoryview(mmap.mmap(file.fileno(), running_handlers.BYTES)).cast("q")
    except (OSError, ValueError):
        return None  # it has already ended
