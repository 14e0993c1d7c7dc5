"""Keeps the history of deliveries: noted in memory, saved once a second in a lane of its own, so that no work waits."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TypeVar
from zlib import crc32

from penstock.contracts.clock import Clock
from penstock.contracts.history import Entry, HistoryFile
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, RELEASED, Again, Dead, Settlement, Split
from penstock.model.redaction import redacted
from penstock.model.stack import located
from penstock.runtime import lanes
from penstock.runtime.buffered_log import BufferedLog, put_back, reason_of
from penstock.runtime.events import EngineEvent, Events

T = TypeVar("T")

PENDING_MAX = 100_000  # entries in memory, some 50 MB; more are dropped and counted
PRUNE_SECONDS = 600.0  # a look that finds nothing old costs microseconds
PRUNED_LEAST = 5_000  # entries of one portion; more where more come in, so that it never falls behind
BYTES_MAX = 4_000_000_000  # some thirty million entries; beyond that the oldest go before their time
ERROR_TEXT_MAX = 300  # characters; a dead letter's own row holds more

_FACTS = itemgetter(*map(Delivery._fields.index, "correlation_id id causation_id queue type source attempts".split()))


class HistoryFailed(EngineEvent, name="history.failed", level="warning"):
    """The history could not be saved. The save is retried; the work continues."""

    error: str


class HistoryDropped(EngineEvent, name="history.dropped", level="warning"):
    """Entries were dropped: no room in memory while the history could not be saved."""

    dropped: int


class HistoryRenewed(EngineEvent, name="history.renewed", level="warning"):
    """The history was damaged and replaced by a new one."""

    reason: str


class HistoryLog(BufferedLog[list[Entry]]):
    """The file is opened with the first entry, or the first question."""

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
        super().__init__(clock, list)
        self._open_file = open_file
        self._make_lane = lane
        self._service = service
        self._share = share if keep_seconds else 0.0
        self._keep_micros = int(keep_seconds * 1_000_000)
        self._dropped = 0
        self._lane: lanes.Lane | None = None
        self._file: HistoryFile | None = None
        self._begin(events.emit)
        self._prune_at = self._time() + PRUNE_SECONDS

    @property
    def is_kept(self) -> bool:
        return bool(self._share)

    # -- noting: this runs for every delivery ------------------------------------------------------------

    def note(self, entry: Entry) -> None:
        if self._resting and not self._wake():
            return
        pending = self._pending
        if len(pending) < PENDING_MAX:
            pending.append(entry)
        else:
            self._dropped += 1

    def settled(self, delivery: Delivery, settlement: Settlement, started: float, ended: float) -> None:
        """A delivery whose settlement is committed. The times are the loop's, both 0 if no handler ever ran."""
        if self._resting and not self._wake():
            return
        if not ended:
            started = ended = self._time()
        start, end = self._wall + int(started * 1_000_000), self._wall + int(ended * 1_000_000)
        chain, id, cause, queue, name, source, attempts = _FACTS(delivery)
        status, error = ("acked", None) if settlement is DONE else _status_and_error(settlement)
        values = (
            end,
            chain,
            id,
            cause,
            "message",
            self._service,
            queue,
            name,
            source,
            attempts + 1,
            status,
            start,
            error,
        )
        pending = self._pending
        if len(pending) < PENDING_MAX:
            # Made through the tuple itself: twice as quick as calling the class.
            pending.append(tuple.__new__(Entry, values))
        else:
            self._dropped += 1

    def _wake(self) -> bool:
        return self.is_kept and super()._wake()

    # -- saving -----------------------------------------------------------------------------------------

    def _submit(self, batch: list[Entry], answer: lanes.Answer) -> None:
        if self._share < 1:  # chosen by chain, so that what is recorded of one is complete
            batch[:] = (each for each in batch if crc32(each.correlation_id) / 2**32 < self._share)
        self.submit(lambda file: file.append(batch), answer)

    def _saved(self, batch: list[Entry], result: str | None, error: BaseException | None) -> None:
        if error is not None:
            self._warn(HistoryFailed(reason_of(error)))
            self._dropped += len(put_back(self._pending, batch, error, PENDING_MAX))
        else:
            if result is not None:
                self._emit(HistoryRenewed(result))
            self._prune(max(PRUNED_LEAST, 2 * len(batch)))
        if self._dropped and self._warn(HistoryDropped(self._dropped)):
            self._dropped = 0

    def _prune(self, portion: int) -> None:
        """Asked for by what is saved, so that an idle process does nothing; until nothing old is left."""
        if not self._is_open or self._time() < self._prune_at:
            return
        self._prune_at = self._time() + PRUNE_SECONDS
        now = self._clock.now()

        def pruned(count: int | None, error: BaseException | None) -> None:
            if count == portion:
                self._prune_at = self._time()  # there is more: with the next flush

        def prune(file: HistoryFile) -> int:
            return file.prune(now if file.bytes() > BYTES_MAX else now - self._keep_micros, portion)

        self.submit(prune, pruned)

    # -- asking -----------------------------------------------------------------------------------------

    async def ask(self, question: Callable[[HistoryFile], T]) -> T:
        """Ask the history. Entries noted before are saved first, so that the answer includes them."""
        await self.flush()
        return await lanes.run(self._lane_made(), lambda: question(self._opened()))

    def submit(self, work: Callable[[HistoryFile], T], answer: lanes.Answer) -> None:
        """Work with the file in its lane, after all work submitted before."""
        self._lane_made().submit(lambda: work(self._opened()), answer)

    async def close(self) -> None:
        """Save what is in the buffer. A history that cannot be saved does not prevent closing."""
        if not self._is_open:
            return
        self._is_open = False
        await self.flush()
        if self._lane is not None:
            await lanes.run(self._lane, self._close_file)
            self._lane.close()

    def vanish(self) -> None:
        """Save nothing more and close the file, as if the process were killed. For lanes that work in place."""
        self._is_open = False
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


def _status_and_error(settlement: Settlement) -> tuple[str, str | None]:
    """How the history calls it, and the error that led to it."""
    match settlement:
        case Again() if settlement is RELEASED:
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
    text = redacted(f"{failure.error_class}: {failure.message}"[: 4 * ERROR_TEXT_MAX])[:ERROR_TEXT_MAX]
    text = located(text, failure.traceback)
    return status, text.encode(errors="replace").decode()  # half a character cannot be stored
