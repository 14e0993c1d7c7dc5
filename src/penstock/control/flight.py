"""One stretch of a controller's work: picks items, starts them at the pace, each in a unit of its own, and hands the finished
ones to `after`."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.contracts.items import DONE, GONE, PARKED, WAITING, DropItems, NoteItem
from penstock.contracts.objects import SaveObject
from penstock.control.outcome import Outcome
from penstock.control.pace import Pace, outcome_of
from penstock.model.errors import BudgetSpent, LeaseLost, PenstockError
from penstock.model.outcome import describe
from penstock.model.stack import error_line
from penstock.model.times import to_micros
from penstock.runtime.events import ItemFailed
from penstock.runtime.slots import contain, contained
from penstock.runtime.unit import AwaitedUnit, current_unit

if TYPE_CHECKING:
    from penstock.control.controller import Controller
    from penstock.runtime.engine import Engine

PICKED_MAX = 10_000
ATTEMPTS_MAX = 5  # failures of one item that were not about the pace; then it is parked
AGAIN_SECONDS = 60.0  # a failed item waits so long, and twice as long each time
THROTTLED_SECONDS = 5.0  # a refused one lets others go first
AFTER_ITEMS = 200


class Tally(msgspec.Struct):
    """What a controller has done in its life. dispatched = completed + failed + skipped + throttled + in flight."""

    dispatched: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    throttled: int = 0


class Flight:
    def __init__(
        self,
        engine: Engine,
        controller: Controller[Any],
        pace: Pace,
        tally: Callable[[], Tally],
        fence: Callable[[], SaveObject],
        *,
        timeout_seconds: float,
        gather_seconds: float,
        noted: Callable[[Outcome], None],
        refused: dict[str, None],
    ) -> None:
        self._engine = engine
        self._controller = controller
        self._name = controller.name
        self.pace = self._pace = pace
        self._tally = tally
        self._fence = fence
        self._timeout_seconds = timeout_seconds
        self._gather_seconds = gather_seconds
        self._noted = noted
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Any] = deque()
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._cut_off = False  # the controller itself was cancelled, and cancels its items
        self._held: dict[str, NoteItem] = {}  # by key: what may not be picked now, and until when
        # In the order in which the service refused them, also in earlier ticks: the others go first.
        self._refused: dict[str, None] = refused
        self._done: dict[str, Any] = {}  # finished and noted, not yet handed to `after`
        self._after_at = 0.0
        self._changed = asyncio.Event()
        self._lost: Exception | None = None
        self.has_all = False  # it ended because nothing was left to pick

    async def load(self) -> None:
        """What was noted before: items to hand to `after`, items not to pick."""
        items = self._engine.writer.items
        for note in await self._engine.in_writer(lambda: items.held(self._name, limit=PICKED_MAX)):
            if note.state == DONE:
                self._done[note.item] = self._controller.item_of(note.item)
            else:
                self._held[note.item] = note

    def _now(self) -> float:
        """Seconds on the database's clock: the pace is saved and goes on elsewhere."""
        return self._engine.clock.now() / 1_000_000

    def interrupt(self) -> None:
        """Something about the controller has changed."""
        self._changed.set()

    def held_seconds(self) -> float:
        """Until the first of those that wait may be picked. Whose time has come and who was not picked is not waited for."""
        now = self._engine.clock.now()
        dues = (note.due for note in self._held.values() if note.state == WAITING and note.due > now)
        return (min(dues, default=math.inf) - now) / 1_000_000

    async def run(self, until: float, is_running: Callable[[], bool]) -> bool:
        """Works until then, or until there is nothing to do; whether it found anything to do."""
        worked = False
        exhausted = False
        try:
            if self._done:
                await self._hand_over()  # of a flight before this one: nothing new while the old cannot be delivered
            while self._hears() and is_running() and self._now() < until and self._lost is None:
                if not self._ready and not exhausted:
                    exhausted = not await self._pick()
                if not self._ready:
                    self._pace.none_left(self._now())
                    if not self._flying:
                        self.has_all = True
                        break
                worked = True
                started, again_at = self._start_next()
                if started:
                    exhausted = False if self._ready else exhausted
                    continue
                await self._wait(again_at, until)
                if self._done and self._now() >= self._after_at:
                    await self._hand_over()
                exhausted = exhausted and bool(self._flying)
        except asyncio.CancelledError:
            self._cut_off = True
            for flying in self._flying.values():
                flying.cancel()
            raise
        finally:
            await self._land()
        await self._hand_over()
        if self._lost is not None:
            raise self._lost
        return worked

    # -- starting -----------------------------------------------------------------------------------------

    async def _pick(self) -> bool:
        """Asks for more than it wants by what it holds, so that held items never block the head."""
        now = self._engine.clock.now()
        # One whose time has come may be picked, and its note is kept: it tells how often it has failed.
        held = {key for key, note in self._held.items() if note.state != WAITING or note.due > now}
        seen = held | set(self._flying) | set(self._done)
        wanted = min(PICKED_MAX, self._pace.next(self._now()).parallel * 4 + len(seen | self._refused.keys()))
        picked = {self._controller.key_of(item): item for item in await self._controller.pick(wanted)}
        order = {key: place for place, key in enumerate(self._refused)}
        self._ready.extend(
            picked[key]
            for key in sorted((key for key in picked if key not in seen), key=lambda key: order.get(key, -1))
        )
        return bool(self._ready)

    def _start_next(self) -> tuple[bool, float | None]:
        now = self._now()
        decision = self._pace.next(now)
        if not decision.start or not self._ready:
            return False, decision.again_at if self._ready else None
        item = self._ready.popleft()
        key = self._controller.key_of(item)
        ticket = self._pace.started(now)
        self._tally().dispatched += 1
        self._flying[key] = self._loop.create_task(self._fly(item, key, ticket, now))
        return True, None

    def _hears(self) -> bool:
        """Before it looks at anything: what changes from here on ends the next wait."""
        self._changed.clear()
        return True

    async def _wait(self, again_at: float | None, until: float) -> None:
        """For an answer, for the pace, or for somebody who has changed something."""
        wake = min(until, again_at if again_at is not None else until)
        if self._done:
            wake = min(wake, self._after_at)
        try:
            async with asyncio.timeout(max(0.0, wake - self._now())):
                await self._changed.wait()
        except TimeoutError:
            pass

    # -- one item -----------------------------------------------------------------------------------------

    async def _fly(self, item: Any, key: str, ticket: int, started: float) -> None:
        unit = AwaitedUnit(self._engine, None, f"controller.{self._name}", None)
        unit.fences.append(self._fence())
        current_unit.set(unit)
        error: BaseException | None = None
        try:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    await contained(self._controller.work(item))
            except (Exception, asyncio.CancelledError) as raised:
                if isinstance(raised, asyncio.CancelledError) and self._cut_off:
                    raise
                error = contain(raised)
                unit.discard()
            finally:
                unit.closed = True
            ended, retry_after = self._now(), getattr(error, "retry_after", None)
            is_its_own = self._pace.finished(
                ended, ticket, outcome_of(error), latency=ended - started, retry_after=retry_after, item=key
            )
            error = await self._settle(unit, item, key, error, charged=bool(is_its_own))
            self._noted(outcome_of(error))
        except Exception as fatal:
            self._lost = fatal  # told by `run`, which ends with it
        finally:
            self._flying.pop(key, None)
            self._changed.set()

    async def _settle(
        self, unit: AwaitedUnit, item: Any, key: str, error: BaseException | None, *, charged: bool
    ) -> BaseException | None:
        """Commits what was done with the item together with the note about it; a refused commit is the item's failure."""
        note = self._note(key, error, charged)
        if note is not None:
            unit.effects.append(note)
        if unit.effects:
            self._engine.scheduler.put(unit)
            try:
                await unit.settled()
            except LeaseLost:
                raise
            except PenstockError as refused:
                if error is not None:
                    raise
                return await self._settle(self._fresh(), item, key, refused, charged=False)
        self._count(outcome_of(error))
        self._refused.pop(key, None)
        if error is None:
            if not self._done:
                self._after_at = self._now() + self._gather_seconds
            self._done[key] = item
            self._held.pop(key, None)
        elif isinstance(note, NoteItem):
            self._held[key] = note._replace(error=None)
            if note.state != GONE:
                self._report(note, error)
        else:
            due = self._engine.clock.now() + int(THROTTLED_SECONDS * 1_000_000)
            before = self._held.get(key)
            attempts = 0 if before is None else before.attempts
            self._held[key] = NoteItem(self._name, key, WAITING, attempts, due, None)
            if len(self._refused) < PICKED_MAX:
                self._refused[key] = None
        return error

    def _report(self, note: NoteItem, error: BaseException) -> None:
        told, wait = describe(error), (note.due - self._engine.clock.now()) / 1_000_000
        said = f"{told.error_class}: {told.message}"
        again = max(0.0, round(wait, 1)) if note.state == WAITING else None
        self._engine.events.emit(ItemFailed(self._name, note.item, note.attempts, said, told.traceback, again))

    def _fresh(self) -> AwaitedUnit:
        unit = AwaitedUnit(self._engine, None, f"controller.{self._name}", None)
        unit.fences.append(self._fence())
        return unit

    def _note(self, key: str, error: BaseException | None, charged: bool) -> NoteItem | DropItems | None:
        """What is to be remembered about an item. One that was refused for the pace is not to blame, and leaves no note."""
        outcome = outcome_of(error)
        if error is None:
            return NoteItem(self._name, key, DONE, 0, 0, None)
        if outcome is Outcome.THROTTLED and not charged:
            return None
        told = describe(error)
        text = f"{error_line(told.error_class, told.message, told.traceback)[:500]}\n{told.traceback or ''}".strip()
        before = self._held.get(key)
        attempts = (0 if before is None else before.attempts) + 1
        if isinstance(error, BudgetSpent) and error.until is not None:
            return NoteItem(self._name, key, WAITING, attempts - 1, to_micros(error.until), text)
        sets_aside = self._controller.sets_aside
        if outcome in (Outcome.GONE, Outcome.UNPARSABLE):
            return NoteItem(self._name, key, GONE, 1, 0, text) if sets_aside else DropItems(self._name, (key,))
        if attempts >= ATTEMPTS_MAX and sets_aside:
            return NoteItem(self._name, key, PARKED, attempts, 0, text)
        attempts = min(attempts, ATTEMPTS_MAX)
        due = self._engine.clock.now() + int(AGAIN_SECONDS * 2 ** (attempts - 1) * 1_000_000)
        return NoteItem(self._name, key, WAITING, attempts, due, text)

    def _count(self, outcome: Outcome) -> None:
        tally = self._tally()
        match outcome:
            case Outcome.OK:
                tally.completed += 1
            case Outcome.GONE | Outcome.UNPARSABLE:
                tally.skipped += 1
            case Outcome.THROTTLED:
                tally.throttled += 1
            case _:
                tally.failed += 1

    # -- ending -------------------------------------------------------------------------------------------

    async def _land(self) -> None:
        """What is under way ends by itself; its time-out bounds the wait."""
        while self._flying:
            await asyncio.wait(list(self._flying.values()))

    async def _hand_over(self) -> None:
        """Every finished item reaches one committed `after`: the commit that saves it removes the notes."""
        while self._done:
            items = dict(list(self._done.items())[:AFTER_ITEMS])
            unit = self._fresh()
            before = current_unit.set(unit)
            try:
                await self._controller.after(list(items.values()))
            finally:
                current_unit.reset(before)
                unit.closed = True
            unit.effects.append(DropItems(self._name, tuple(items)))
            self._engine.scheduler.put(unit)
            await unit.settled()
            for key in items:
                del self._done[key]
