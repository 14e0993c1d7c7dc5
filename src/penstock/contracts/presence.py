"""Being alive: a lock that the operating system or the server lets go when its holder dies."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple, Protocol


class Departed(NamedTuple):
    """A worker that is gone. `started` lists the rows whose handlers may have begun, None if that is unknown; `blamed`
    the row for which it was killed."""

    worker: int
    started: list[int] | None
    blamed: list[int]


class Presence(Protocol):
    """This process's lock, and a look at its neighbours'."""

    @property
    def path(self) -> Path:
        """The file that holds the list of running handlers and outlives the process."""

    @property
    def cells(self) -> memoryview:
        """The list of running handlers, in memory shared with the supervisor of this process."""

    def departed(self) -> list[Departed]:
        """Neighbours that have died and whose rows are not released yet."""

    def when_cut_off(self, callback: Callable[[bool], object]) -> None:
        """Call `callback` in the writer's thread when this process has lost its lock and connection, or regained them."""

    def forget(self, worker: int) -> None:
        """The rows of this departed worker were returned: remove what is left of it."""

    def leave(self) -> None:
        """This process has released everything: nothing of it is left."""

    def vanish(self) -> None:
        """Lets go as a death would: what it held is found and returned by others."""


class Bell(Protocol):
    """Wakes other processes on the same database. A hint: losing one costs a second, never a message."""

    def ring(self, queues: Collection[str]) -> None: ...

    def listen(self, heard: Callable[[set[str]], None]) -> None:
        """Calls `heard` on the running event loop with the queues that were rung for; empty means any."""

    def close(self) -> None: ...
