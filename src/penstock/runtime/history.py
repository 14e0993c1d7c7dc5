"""Keeps the history of what was settled: noted in memory, saved once a second in a lane of its own, never in the way."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from operator import itemgetter
from typing import TypeVar
from zlib import crc32

from penstock.contracts.clock import Clock
from penstock.contracts.history import Entry, HistoryFile
from penstock.model.errors import StoreError
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, HANDED_BACK, Again, Dead, Settlement, Split
from penstock.model.redaction import redacted
from penstock.model.stack import located
from penstock.runtime import lanes
from penstock.runtime.events import EngineEvent, Events

T = TypeVar("T")

FLUSH_SECONDS = 1.0  # what a crash may lose
FAILED_SECONDS = 30.0  # until a history that could not be saved is tried again
PENDING_MAX = 100_000  # entries in memory, some 50 MB; more are dropped and counted
TOLD_SECONDS = 3_600.0  # what goes on is told of once in so long
PRUNE_SECONDS = 600.0  # a look that finds nothing old costs microseconds
PRUNED_LEAST = 5_000  # entries of one portion; more where more come in, so that it never falls behind
BYTES_MAX = 4_000_000_000  # some thirty million entries; beyond that the oldest go before their time
ERROR_TEXT_MAX = 300  # characters; a dead letter's own row holds more

_FACTS = itemgetter(
    *map(Delivery._fields.index, "correlation_id id causation_id queue type source attempts".split()),
)


class HistoryFailed(EngineEvent, name="history.failed", level="warning"):
    """The history could not be saved. It is tried again; the work goes on."""

    error: str


class HistoryDropped(EngineEvent, name="history.dropped", level="warning"):
    """So many entries found no room in memory while the history could not be saved."""

    dropped: int


class HistoryRenewed(EngineEvent, name="history.renewed", level="warning"):
    """The history was damaged and was begun anew."""

    reason: str


class History:
    """Lives on the event loop. The file is opened with the first entry, or the first question."""

    def __init__(
        self,
        open_file: Callable[[], HistoryFile],
        lane: Callable[[str], lanes.Lane],
        clock: Clock,
        events: Events,
        service: str,
        share: float,
        *,
        keep_seconds: float,
    ) -> None:
        self._open_file = open_file
        self._make_lane = lane
        self._clock = clock
        self._events = events
        self._service = service
        self._share = share if keep_seconds else 0.0
        self._keep_micros = int(keep_seconds * 1_000_000)
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._context = contextvars.copy_context()  # a timer set while a handler runs belongs to us, not to its unit
        self._pending: list[Entry] = []
        self._resting = True  # no timer is set and nothing is being saved
        self._timer: asyncio.TimerHandle | None = None
        self._wall = 0  # what the clock shows when the loop shows 0
        self._dropped = 0
        self._told: dict[type[EngineEvent], float] = {}
        self._prune_at = self._time() + PRUNE_SECONDS
        self._lane: lanes.Lane | None = None
        self._file: HistoryFile | None = None
        self._closed = False

    @property
    def is_kept(self) -> bool:
        return bool(self._share)

    # -- noting: this runs for every delivery ------------------------------------------------------------

    def note(self, entry: Entry) -> None:
        if self._resting and not self._woken():
            return
        pending = self._pending
        if len(pending) < PENDING_MAX:
            pending.append(entry)
        else:
            self._dropped += 1

    def settled(self, delivery: Delivery, settlement: Settlement, started: float, ended: float) -> None:
        """A delivery whose settlement is committed. The times are the loop's, both 0 if no handler ever ran."""
        if self._resting and not self._woken():
            return
        if not ended:
            started = ended = self._time()
        # The loop's time is read in a sixth of what the clock takes; the two are compared anew with every flush.
        wall = self._wall
        ended_at = wall + int(ended * 1_000_000)
        started_at = wall + int(started * 1_000_000)
        correlation, id, cause, queue, name, source, attempts = _FACTS(delivery)
        status, error = ("acked", None) if settlement is DONE else _told(settlement)
        values = (
            ended_at,
            correlation,
            id,
            cause,
            "message",
            self._service,
            queue,
            name,
            source,
            attempts + 1,
            status,
            started_at,
            error,
        )
        pending = self._pending
        if len(pending) < PENDING_MAX:
            # Made through the tuple itself: twice as quick as calling the class.
            pending.append(tuple.__new__(Entry, values))
        else:
            self._dropped += 1

    def _woken(self) -> bool:
        """The first entry after a rest sets the timer: a process with nothing to do has none. False if none are kept."""
        if self._closed or not self._share:
            return False
        self._compare_clocks()
        self._resting = False
        self._set_timer(FLUSH_SECONDS)
        return True

    def _compare_clocks(self) -> None:
        self._wall = self._clock.now() - int(self._time() * 1_000_000)

    # -- saving -----------------------------------------------------------------------------------------

    def _set_timer(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._due, context=self._context)

    def _due(self) -> None:
        self._timer = None
        self._save(lambda: None)

    def _save(self, then: Callable[[], None]) -> None:
        self._compare_clocks()
        batch, self._pending = self._pending, []
        if self._share < 1:  # chosen by chain, so that what is recorded of one is complete
            batch = [each for each in batch if crc32(each.correlation_id) / 2**32 < self._share]

        def saved(said: str | None, error: BaseException | None) -> None:
            self._saved(batch, said, error)
            then()

        self._lane_made().submit(lambda: self._opened().append(batch), saved)

    def _saved(self, batch: list[Entry], said: str | None, error: BaseException | None) -> None:
        if isinstance(error, StoreError):
            self._tell(HistoryFailed(str(error)))
            self._pending[:0] = batch
            self._dropped += max(0, len(self._pending) - PENDING_MAX)
            del self._pending[PENDING_MAX:]
        elif error is not None:
            # Not the store's doing: an entry that cannot be saved would be in the way of all that follow.
            self._tell(HistoryFailed(f"{type(error).__name__}: {error}"))
            self._dropped += len(batch)
        else:
            if said is not None:
                self._events.emit(HistoryRenewed(said))
            self._prune(max(PRUNED_LEAST, 2 * len(batch)))
        self._tell_dropped()
        if self._closed or not self._pending:
            self._resting = self._timer is None
        elif self._timer is None:
            self._set_timer(FLUSH_SECONDS if error is None else FAILED_SECONDS)

    def _prune(self, portion: int) -> None:
        """Asked for by what is saved, so that an idle process does nothing; until nothing old is left."""
        if self._closed or self._time() < self._prune_at:
            return
        self._prune_at = self._time() + PRUNE_SECONDS
        now = self._clock.now()

        def pruned(count: int | None, error: BaseException | None) -> None:
            if count == portion:
                self._prune_at = self._time()  # there is more: with the next flush

        def prune() -> int:
            file = self._opened()
            return file.prune(now if file.bytes() > BYTES_MAX else now - self._keep_micros, portion)

        self._lane_made().submit(prune, pruned)

    def _tell_dropped(self) -> None:
        if self._dropped and self._tell(HistoryDropped(self._dropped)):
            self._dropped = 0

    def _tell(self, event: EngineEvent) -> bool:
        now = self._time()
        if now - self._told.get(type(event), -TOLD_SECONDS) < TOLD_SECONDS:
            return False
        self._told[type(event)] = now
        self._events.emit(event)
        return True

    # -- asking -----------------------------------------------------------------------------------------

    async def ask(self, question: Callable[[HistoryFile], T]) -> T:
        """Puts a question to the history. What was noted before is saved first, so that the answer knows of it."""
        await self.flush()
        return await lanes.run(self._lane_made(), lambda: question(self._opened()))

    def submit(self, work: Callable[[HistoryFile], T], answer: lanes.Answer) -> None:
        """Does something with the file in its lane, behind whatever was asked for before."""
        self._lane_made().submit(lambda: work(self._opened()), answer)

    async def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            done = asyncio.Event()
            self._save(done.set)
            await done.wait()

    async def close(self) -> None:
        """Saves what is noted. A history that cannot be saved keeps nobody from closing."""
        if self._closed:
            return
        self._closed = True
        await self.flush()
        if self._lane is not None:
            await lanes.run(self._lane, self._close_file)
            self._lane.close()

    def vanish(self) -> None:
        """As when the process is killed: nothing more is saved, and the file is let go. For lanes that work in place."""
        self._closed = True
        self._pending.clear()
        self._close_file()

    # -- the lane and the file --------------------------------------------------------------------------

    def _lane_made(self) -> lanes.Lane:
        if self._lane is None:
            self._lane = self._make_lane("history")
        return self._lane

    def _opened(self) -> HistoryFile:
        if self._file is None:
            self._file = self._open_file()
        return self._file

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()


def _told(settlement: Settlement) -> tuple[str, str | None]:
    """How the history calls it, and the error that led to it."""
    match settlement:
        case Again() if settlement is HANDED_BACK:
            return "released", None
        case Again(charged=charged, failure=failure):
            status = "retried" if charged else "later"
        case Dead(failure=failure):
            status = "dead"
        case Split():
            return "split", None
        case _:
            return "acked", None
    if failure is None:
        return status, None
    told = redacted(f"{failure.error_class}: {failure.message}"[: 4 * ERROR_TEXT_MAX])[:ERROR_TEXT_MAX]
    told = located(told, failure.traceback)
    return status, told.encode(errors="replace").decode()  # half a character cannot be stored
