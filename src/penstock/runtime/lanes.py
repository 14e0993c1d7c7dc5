"""Lanes: work on a database done one piece at a time, in a thread of its own or, under virtual time, in place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
Answer = Callable[[Any, BaseException | None], None]
P = ParamSpec("P")


class Lane(Protocol):
    """Does work in the order it was submitted and answers on the event loop."""

    @property
    def is_idle(self) -> bool:
        """Whether its thread waits for work, so that the event loop may use what belongs to it."""

    def submit(self, work: Callable[[], Any], answer: Answer) -> None: ...
    def close(self) -> None: ...


async def run(lane: Lane, work: Callable[[], T]) -> T:
    """Run `work` in the lane and wait for its result. It runs even if its caller was cancelled."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    lane.submit(work, partial(_resolve, future))
    return await future


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class ThreadLane:
    """A daemon thread: a program that forgets to close its app can still end."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._submitted = self._done = 0  # the one is counted on the event loop, the other in the thread
        self._work: SimpleQueue[tuple[Callable[[], Any], Answer] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"penstock-{name}", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        return self._submitted == self._done

    def submit(self, work: Callable[[], Any], answer: Answer) -> None:
        self._submitted += 1
        self._work.put((work, answer))

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            work, answer = item
            try:
                result, error = work(), None
            except BaseException as raised:
                result, error = None, raised
            self._done += 1
            try:
                self._loop.call_soon_threadsafe(answer, result, error)
            except RuntimeError:
                return  # the loop is closed: no caller is left to answer

    def close(self) -> None:
        self._work.put(None)
        self._thread.join()


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a blocking function in a thread and waits for it. The function must not write or send: those join the unit
    of the handler that waits here."""
    return await asyncio.to_thread(function, *args, **kwargs)
