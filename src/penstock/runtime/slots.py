"""Slots: how many handlers run at once, which of them is on the processor, which ran too long, and what may not leave one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Token
from time import thread_time
from typing import Any, NoReturn, TypeVar

from penstock.contracts import running_handlers
from penstock.contracts.running_handlers import CURRENT
from penstock.model.errors import HandlerExit
from penstock.runtime.unit import Unit

T = TypeVar("T")


class SlotNumbers:
    """The numbers of one worker's slots, shared by all its queues. Each names a place in the list of running handlers."""

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._free = list(range(running_handlers.SLOTS_MAX - 1, -1, -1))

    def take(self) -> int | None:
        if not self._free:
            return None
        number = self._free.pop()
        if number >= self._cells[running_handlers.USED]:
            self._cells[running_handlers.USED] = number + 1  # the supervisor reads no further than this
        return number

    def give(self, number: int) -> None:
        self._free.append(number)

    def note(self, row: int, kind: int, beside: int = 0) -> int | None:
        """List a row as under way. Return its number; None if all are taken, and then it is not suspected of a death."""
        if (number := self.take()) is not None:
            at = running_handlers.HEADER_CELLS + number * running_handlers.SLOT_CELLS
            self._cells[at + 1] = row
            self._cells[at + 2] = beside
            self._cells[at] = kind
        return number

    def left(self) -> int:
        return len(self._free)


class Slot:
    """One place where a handler runs. `mark` names it while it is on the processor, `at` is where its cells begin."""

    __slots__ = ("at", "mark", "members", "message", "number", "outside", "overdue", "started", "task", "unit")

    def __init__(self, number: int) -> None:
        self.number = number
        self.mark = number + 1
        self.at = running_handlers.HEADER_CELLS + number * running_handlers.SLOT_CELLS
        self.task: asyncio.Task[Any] | None = None
        self.started = 0.0
        self.overdue = ""  # which limit it passed, "timeout" or "cpu_timeout", and was cancelled for
        self.unit: Unit | None = None
        self.members: list[int] = []  # the numbers that hold the further rows of a batch
        self.message: Any = None  # where a handler may have said something about its message
        self.outside: Token[Unit | None]


class SlotPool:
    """The slots of one queue. One timer watches the wall limit of all of them."""

    def __init__(self, numbers: SlotNumbers, cells: memoryview, parallel: int, timeout_seconds: float) -> None:
        self._numbers = numbers
        self._cells = cells
        self.parallel = parallel  # how many may be taken
        self._wall = timeout_seconds
        self._wall_micros = int(timeout_seconds * 1_000_000)
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, Slot] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.busy = 0  # slots that are taken, whether or not a handler runs in them yet
        self.starting = 0  # taken, but their task has not had its first turn

    def left(self) -> int:
        return self._numbers.left()

    def take(self) -> Slot | None:
        number = self._numbers.take() if self.busy < self.parallel else None
        if number is None:
            return None
        self.busy += 1
        self.starting += 1
        return Slot(number)

    def started(self) -> None:
        self.starting -= 1

    def give(self, slot: Slot) -> None:
        self.busy -= 1
        self._numbers.give(slot.number)

    def begin(self, slot: Slot, row: int) -> None:
        slot.started = started = self._loop.time()
        slot.overdue = ""
        self._running[slot.number] = slot
        cells, at = self._cells, slot.at
        cells[at + 1] = row
        cells[at + 2] = int(started * 1_000_000)
        cells[at + 3] = self._wall_micros
        cells[at] = running_handlers.KIND_MESSAGE  # last: a slot counts only once it is complete
        if self._timer is None:
            self._timer = self._loop.call_later(self._wall, self._watch)

    def begin_batch(self, slot: Slot, rows: list[int]) -> None:
        for row in rows[1:]:
            if (number := self._numbers.note(row, running_handlers.KIND_MEMBER, slot.number)) is not None:
                slot.members.append(number)
        self.begin(slot, rows[0])

    def settled(self, slot: Slot, row: int) -> None:
        """Record that one row of a batch is done before the others, so that it is not blamed for a later death."""
        for number in (slot.number, *slot.members):
            at = running_handlers.HEADER_CELLS + number * running_handlers.SLOT_CELLS
            if self._cells[at + 1] == row:
                self._cells[at + 1] = 0

    def end_batch(self, slot: Slot) -> None:
        self.end(slot)
        for number in slot.members:
            self._cells[running_handlers.HEADER_CELLS + number * running_handlers.SLOT_CELLS] = (
                running_handlers.KIND_FREE
            )
            self._numbers.give(number)
        slot.members.clear()

    def end(self, slot: Slot) -> None:
        self._cells[slot.at] = running_handlers.KIND_FREE
        del self._running[slot.number]

    def cancel_all(self) -> None:
        for slot in list(self._running.values()):
            if slot.task is not None:
                slot.task.cancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Cancels who is over the limit, then sleeps until the next one could be."""
        self._timer = None
        now = self._loop.time()
        earliest: float | None = None
        for slot in self._running.values():
            ends = slot.started + self._wall
            if ends <= now + 0.001:
                if not slot.overdue and slot.task is not None:
                    slot.overdue = "timeout"
                    slot.task.cancel()
            elif earliest is None or ends < earliest:
                earliest = ends
        if earliest is not None:
            self._timer = self._loop.call_at(earliest, self._watch)


NOT_BEGUN = object()
_NO_CELLS = memoryview(bytearray(8 * running_handlers.HEADER_CELLS)).cast("q")
forked: list[int] = []  # not empty in a child process that user code forked

os.register_at_fork(after_in_child=lambda: forked.append(os.getpid()))


def end_process(reason: str) -> NoReturn:
    """End the process as a kill would: nothing is released, so that what ran is suspected and runs alone next time."""
    try:
        os.write(2, f"penstock: {reason}\n".encode())
    finally:
        os._exit(70)  # EX_SOFTWARE


def leave_child() -> NoReturn:
    """End a forked child that returned from user code: the database and the event loop are its parent's."""
    end_process("A handler forked and its child returned; the child exits. Use subprocess, or os._exit in the child.")


def contain(error: BaseException) -> Exception:
    """Return an ordinary failure for an exit that user code raised; an ordinary failure is returned as it is."""
    if isinstance(error, Exception):
        return error
    shown = f"{type(error).__qualname__}({', '.join(map(repr, error.args))})"[:200]
    contained = HandlerExit(
        f"The handler raised {shown}. A handler cannot stop its worker: return, or raise an ordinary exception."
    )
    contained.__cause__ = error
    return contained


def contained(work: Awaitable[T]) -> Awaitable[T]:
    """Await user code inside a handler. Where it raises an exit, `HandlerExit` is raised: asyncio would end the process."""
    coroutine: Any = work if hasattr(work, "send") else _awaited(work)  # a future has no steps of its own
    return BlameTracked(coroutine, NOT_BEGUN, _NO_CELLS, 0)  # type: ignore[return-value]


async def _awaited(work: Awaitable[T]) -> T:
    return await work


class BlameTracked:
    """Awaits the rest of a coroutine and notes, in memory that outlives the process, whenever it is the one on the processor.

    So a process that died or stopped answering names the handler that was to blame, even if it held the interpreter.
    """

    __slots__ = ("_awaited", "_cells", "_coroutine", "_mark")

    def __init__(self, coroutine: Coroutine[Any, Any, object], awaited: Any, cells: memoryview, mark: int) -> None:
        self._coroutine = coroutine
        self._awaited = awaited  # what it waits for first; NOT_BEGUN if it has not run at all
        self._cells = cells
        self._mark = mark

    def __await__(self) -> Generator[Any, Any, object]:
        coroutine, cells, mark, awaited = self._coroutine, self._cells, self._mark, self._awaited
        step: Callable[[Any], Any]
        value: Any
        while True:
            try:
                value = None if awaited is NOT_BEGUN else (yield awaited)
                step = coroutine.send
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:
                step, value = coroutine.throw, error
            cells[CURRENT] = mark
            try:
                awaited = step(value)
            except StopIteration as stop:
                return stop.value
            except (Exception, asyncio.CancelledError):
                raise
            except BaseException as error:
                raise contain(error) from error
            finally:
                if forked:
                    leave_child()
                cells[CURRENT] = 0


class CpuLimited:
    """A coroutine whose steps are timed on the processor. It is cancelled at its next wait once its seconds are used up."""

    __slots__ = ("_coroutine", "_left", "_slot", "close")

    def __init__(self, coroutine: Any, slot: Slot, seconds: float) -> None:
        self._coroutine = coroutine
        self._slot = slot
        self._left = seconds
        self.close = coroutine.close

    def send(self, value: Any) -> Any:
        return self._timed(self._coroutine.send, value)

    def throw(self, error: BaseException) -> Any:
        return self._timed(self._coroutine.throw, error)

    def _timed(self, step: Callable[[Any], Any], value: Any) -> Any:
        began = thread_time()
        awaited = step(value)  # if it ends here it has ended: nothing is left to cancel
        self._left -= thread_time() - began
        slot = self._slot
        if self._left < 0 and not slot.overdue and slot.task is not None:
            slot.overdue = "cpu_timeout"
            slot.task.cancel()
        return awaited
