"""The pilot finds how fast an outside service can be asked, from nothing but its answers, and holds that pace."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.control.ceiling import Ceiling
from penstock.control.inflight import Flight, Flights
from penstock.control.quotas import Quota
from penstock.control.refusals import refused
from penstock.control.suspicion import Suspicion, Throttling

__all__ = ["Decision", "Outcome", "Pilot", "PilotState"]

NOISY = 0.003  # a share of refusals that are not about the pace, from which on one alone is not believed
GUILTY = 0.6  # share of items that stay refused, from which on one of them says nothing about a closed door
CATCH_UP = 0.25  # of the distance between two starts: a late one may be made up for, but nothing comes in bursts
HELD = 0.5  # share of starts that waited for an answer, from which on the pace is not what keeps us back
DOWN_ROW = 3  # failures in a row: the service is down, which says nothing about its limit
AVERAGE_SECONDS = 15.0  # closed for so long: what was taken from one such time to the next is worth knowing
DEAR_SECONDS_MOST = 600.0  # a door that refusals close for longer is a ban or a quota; for less, probes are dear
CHANGE_TOLD = 0.2  # a change of pace by less than this is not put into words
CLOSED_TOLD_SECONDS = 5.0
CLOSED_AFTER = 3  # refusals in a row
KNOCK_LEAST = 1.0  # seconds until the second knock
KNOCK_MOST = 108.0  # between two knocks, so that an opened door is found within minutes
KNOCK_SHARE = 0.04  # of the time it has been closed, where that is more: a quota of a day is not asked 700 times
LONG_CLOSED = 60.0  # seconds, from which on the way back begins further below
LONG_SECONDS, LONG_REQUESTS = 5.0, 20
MINUTE = 60.0
JUST_AFTER = 0.05  # seconds behind a boundary of the clock, for clocks that do not agree


def is_long(retry_after: float | None, rate: float) -> bool:
    """Whether a service that says when to come back means a closed door, and not the next place in a queue."""
    return retry_after is not None and retry_after > max(LONG_SECONDS, LONG_REQUESTS / rate)


class Door(msgspec.Struct):
    row: int = 0  # refusals in a row, none of them to a request sent before the one before was known
    row_since: float = 0.0
    pause: float = 0.0
    hold_until: float = 0.0  # nothing starts before
    closed: bool = False
    down: bool = False  # closed by failures, not by refusals
    cut_at: float = -1.0  # answers to requests sent before say nothing new
    last_knock: float = 0.0

    def refused(self, now: float, rate: float, retry_after: float | None) -> None:
        self.row += 1
        if self.row == 1:
            self.row_since, self.pause = now, 1 / rate
        else:
            most = max(KNOCK_MOST, KNOCK_SHARE * (now - self.row_since))
            self.pause = min(most, max(KNOCK_LEAST, 2 * self.pause))
        self.closed = self.closed or self.row >= CLOSED_AFTER or is_long(retry_after, rate)
        self.cut_at = now
        self.obey(now, self._wait(now) if retry_after is None else retry_after)

    def _wait(self, now: float) -> float:
        """The pause, or the next full minute if that is near: windows and quotas begin on it."""
        boundary = MINUTE - now % MINUTE + JUST_AFTER
        return boundary if self.row >= 2 and 0.5 * self.pause <= boundary <= 2 * self.pause else self.pause

    def obey(self, now: float, seconds: float) -> None:
        self.hold_until = max(self.hold_until, now + seconds)

    def ask_another(self, now: float) -> None:
        """What knocked would have been refused at an open door as well: as long again, with something else."""
        self.obey(now, self.pause)

    def shut(self, now: float, until: float) -> None:
        """Closed until a time that is known: no knocking."""
        self.row, self.row_since, self.cut_at = 1, now, now
        self.hold_until = max(self.hold_until, until)

    def opened(self, now: float) -> float | None:
        """An answer came through: for how long the door was closed, if it was."""
        length = now - self.row_since if self.closed else None
        self.row, self.closed = 0, False
        return length


class Outcome(StrEnum):
    """What became of a request, as far as the pace is concerned."""

    OK = "ok"
    THROTTLED = "throttled"  # the service refused: 429, 403
    UNAVAILABLE = "unavailable"  # it failed or did not answer: 5xx, a timeout
    GONE = "gone"  # it answered that the item is not there
    UNPARSABLE = "unparsable"  # it answered something we cannot read
    FAILED = "failed"  # something else went wrong, perhaps on our side


ANSWERED = frozenset({Outcome.OK, Outcome.GONE, Outcome.UNPARSABLE})
REASONS = {
    Outcome.THROTTLED: "refused by the service",
    Outcome.UNAVAILABLE: "the service is unavailable",
    Outcome.FAILED: "it fails",
}


class Decision(msgspec.Struct, frozen=True):
    """Whether one may start now. If not, when to ask again: at a time, or (None) when the next answer is in.

    `next_slot`: nothing but the number under way keeps the next one back. It may start with the next answer, if that is
    no refusal."""

    start: bool
    again_at: float | None
    parallel: int
    next_slot: bool = False


class PilotState(msgspec.Struct):
    """Everything a pilot knows, as plain values: saved as JSON and loaded elsewhere it decides the same."""

    rate_min: float = 0.001
    rate_max: float = 1_000.0
    parallel: int = 32
    due: float = 0.0  # when the next one may start
    waited: bool = False  # the next one waits for an answer
    refusals: int = 0
    refuses: bool = False  # it says so when we are too fast: what fails is not about the pace
    ceiling: Ceiling = msgspec.field(default_factory=Ceiling)
    door: Door = msgspec.field(default_factory=Door)
    flights: Flights = msgspec.field(default_factory=Flights)
    quota: Quota = msgspec.field(default_factory=Quota)
    throttling: Throttling = msgspec.field(default_factory=Throttling)
    unavailable: Suspicion = msgspec.field(default_factory=lambda: Suspicion(0.02, 0.25, 6.5, 0.002, 0.001))
    words: str = "no answer from the service yet"
    spoken: float = 0.0  # the pace that the words told of last


class Pilot:
    """Ask `next` whether one may start; tell `started` when it does, and `finished` what came of it.

    It goes faster until the service refuses, remembers what it took, stays a hair below that, and tries a little more
    now and then. Time comes in as seconds; the pilot has no clock, does no I/O and rolls no dice.

        decision = pilot.next(now)
        if decision.start:
            ticket = pilot.started(now)
            ...
            pilot.finished(later, ticket, Outcome.OK, latency=0.2, item="42")
    """

    def __init__(self, state: PilotState | None = None) -> None:
        self.state = state or PilotState()

    def next(self, now: float) -> Decision:
        state = self.state
        flights, door = state.flights, state.door
        parallel = flights.allowed(now, self._rate(now), state.parallel)
        if now < door.hold_until:
            return Decision(False, door.hold_until, parallel)
        if door.row >= 2 and any(flight.at >= door.cut_at for flight in flights.under_way.values()):
            return Decision(False, None, parallel)  # one knock at a time
        if now < state.due - 1e-9:
            return Decision(False, state.due, parallel)
        if len(flights.under_way) >= parallel:
            state.waited = True
            return Decision(False, None, parallel, True)
        return Decision(True, now, parallel)

    def started(self, now: float) -> int:
        """One has started. Says its ticket."""
        state = self.state
        state.quota.tick(now, state.flights.number)
        gap = 1 / self._rate(now)
        state.due = max(state.due, now - CATCH_UP * gap) + gap
        ticket = state.flights.start(now, waited=state.waited)
        state.waited = False
        state.ceiling.trail.sent(ticket, now)
        return ticket

    def finished(
        self,
        now: float,
        ticket: int,
        outcome: Outcome,
        *,
        latency: float,
        retry_after: float | None = None,
        item: str | None = None,
    ) -> bool:
        """Says whether the failure is the item's own: an attempt to charge it with. A refusal for the pace is none."""
        state = self.state
        flight = state.flights.under_way.pop(ticket, None)
        if flight is None:  # started by somebody whose state was lost
            return False
        state.flights.answered(now, latency, good=outcome in ANSWERED)
        if outcome in ANSWERED:
            own = self._passed(now, flight, item)
        elif outcome is Outcome.THROTTLED:
            own = self._throttled(now, flight, item, retry_after)
        else:
            own = self._failed(now, flight, retry_after)
        self._clamp()
        self._speak(now, outcome, retry_after)
        return own

    @property
    def rate_per_second(self) -> float:
        quota = self.state.quota
        return self._within(quota.even if quota.period else self.state.ceiling.rate)

    def explain(self) -> str:
        """The last change of pace, in words."""
        return self.state.words

    # -- what came of a request -------------------------------------------------------------------------------------

    def _passed(self, now: float, flight: Flight, item: str | None) -> bool:
        state = self.state
        ceiling, quota, flights = state.ceiling, state.quota, state.flights
        state.unavailable.passed(learn=not state.door.row)
        state.throttling.passed(item)
        quota.answers += 1
        flights.accepted(flight.beside)
        if flight.at >= state.door.cut_at and state.door.row and self._opened(now, flight):
            return False
        if quota.period:
            if quota.is_exceeded(flight.number, flight.at):
                ceiling.known = ceiling.rate = quota.even
                quota.forget()
                ceiling.enter("probe", flights.number, now)
            return False
        held = flights.held > HELD
        ceiling.accepted(flights.number, flight.number, now, flights.latency, held=held)
        if ceiling.refused_anyway:
            state.throttling.refused_anyway(ceiling.refused_anyway)
            ceiling.refused_anyway = 0.0
        if held:
            ceiling.rate = min(ceiling.rate, max((1.25 if flights.limit is None else 2.0) * flights.throughput, 1.0))
        return False

    def _opened(self, now: float, flight: Flight) -> bool:
        """The first answer after refusals. Says whether the door had been closed."""
        state = self.state
        ceiling, door = state.ceiling, state.door
        state.quota.opened(door.row_since, door.last_knock, flight.at, door.row)
        length = door.opened(now)
        if length is None:
            ceiling.dear.times = max(0, ceiling.dear.times - (not door.down))
            return False
        state.unavailable.score = 0.0
        state.due = now + 1 / (ceiling.known or ceiling.rate)
        if ceiling.known is None:
            return True
        if not door.down and AVERAGE_SECONDS <= length < DEAR_SECONDS_MOST:
            ceiling.door_closed(flight.number, flight.at)
        ceiling.back(state.flights.number, now, long=length >= LONG_CLOSED)
        if not door.down and max(LONG_SECONDS, LONG_REQUESTS / ceiling.known) < length < DEAR_SECONDS_MOST:
            ceiling.dear.closed(ceiling.known, now, length)
        return True

    def _throttled(self, now: float, flight: Flight, item: str | None, retry_after: float | None) -> bool:
        state = self.state
        door, throttling, ceiling = state.door, state.throttling, state.ceiling
        state.refusals += 1
        alone = not throttling.test.score
        known_item = item is not None and item in throttling.suspects.refused
        if door.row and known_item and throttling.suspects.guilty > GUILTY:
            door.ask_another(now)
            return True
        if ceiling.phase == "test" and not door.row:
            return self._tested(now, flight, item, retry_after)
        believed = throttling.believed(item, closed=door.row > 0)
        expected = not known_item and ceiling.phase in {"search", "probe"}
        if believed or expected or door.row:
            self._refused(now, flight, retry_after, down=False)
            return False
        if not known_item:
            ceiling.noticed(flight.number, flight.at, alone=alone)
        if retry_after is not None:
            door.obey(now, retry_after)
        return alone or throttling.suspects.hopeless(item)

    def _tested(self, now: float, flight: Flight, item: str | None, retry_after: float | None) -> bool:
        state = self.state
        state.throttling.suspects.note(item)
        if state.ceiling.tested():
            self._refused(now, flight, retry_after, down=False)
            return False
        state.ceiling.trail.full(flight.number, flight.at)
        if retry_after is not None:
            state.door.obey(now, retry_after)
        return True

    def _failed(self, now: float, flight: Flight, retry_after: float | None) -> bool:
        state = self.state
        if flight.at < state.door.cut_at:
            return False
        if state.unavailable.failed(learn=not state.door.row) or state.door.row:
            self._refused(now, flight, retry_after, down=True)
            return False
        return True

    def _refused(self, now: float, flight: Flight, retry_after: float | None, *, down: bool) -> None:
        state = self.state
        door, ceiling, flights = state.door, state.ceiling, state.flights
        if flight.at < door.cut_at:  # one cut per round trip
            ceiling.trail.full(flight.number, flight.at)
            if retry_after is not None:
                door.obey(now, retry_after)
            return
        door.last_knock = flight.at
        if not down and not door.row and self._too_many_at_once(now, flight):
            return
        if not down and not door.row and self._used_up(now, flight, retry_after):
            return
        if is_long(retry_after, ceiling.rate):
            ceiling.doubt = max(1, ceiling.doubt)  # a door that is closed needs no second witness
        noisy = state.throttling.test.usual > NOISY
        state.refuses = state.refuses or not down
        told = not down or not (state.refuses or ceiling.known is None or flights.bad_row >= DOWN_ROW)
        if (not door.row and told) or (door.row and ceiling.doubt and not down):
            refused(ceiling, flight.number, flight.at, flights.number, now, noisy=noisy)
        elif door.row:
            ceiling.spend(flight.at)
            ceiling.trail.full(flight.number, flight.at)
        self._clamp()
        door.down = down
        door.refused(now, ceiling.rate, retry_after)
        ceiling.paused = door.hold_until - now
        state.due = max(state.due, door.hold_until)

    def _too_many_at_once(self, now: float, flight: Flight) -> bool:
        ceiling, flights = self.state.ceiling, self.state.flights
        fresh = flights.limit is None
        if not flights.is_about_them(flight.number, flight.beside):
            return False
        if fresh:  # what was taken for a ceiling was none
            ceiling.known, ceiling.rate, ceiling.trail.full_at = None, max(ceiling.rate, flights.throughput), None
            ceiling.enter("search", flights.number, now)
        self.state.door.cut_at = now
        return True

    def _used_up(self, now: float, flight: Flight, retry_after: float | None) -> bool:
        """Whether a window that is known has been filled: then wait for the next one."""
        state = self.state
        quota = state.quota
        quota.closed(flight.at, flight.number)
        if not quota.period or not quota.is_filled(flight.number, flight.at):
            return False
        state.door.shut(now, quota.until_boundary(now) if retry_after is None else now + retry_after)
        state.due = state.door.hold_until
        return True

    # -- rails and words --------------------------------------------------------------------------------------------

    def _rate(self, now: float) -> float:
        quota = self.state.quota
        return self._within(quota.pace(now, self.state.flights.number) if quota.period else self.state.ceiling.rate)

    def _within(self, rate: float) -> float:
        return max(self.state.rate_min, min(self.state.rate_max, rate))

    def _clamp(self) -> None:
        self.state.ceiling.rate = self._within(self.state.ceiling.rate)

    def _speak(self, now: float, outcome: Outcome, retry_after: float | None) -> None:
        """Puts a change of pace into words; small ones go without."""
        state = self.state
        rate, closed = self.rate_per_second, state.door.hold_until - now
        reason = REASONS.get(outcome, "no resistance" if rate > state.spoken else "latency rises")
        if outcome in REASONS and closed > CLOSED_TOLD_SECONDS:
            asked = "" if retry_after is None else f", with Retry-After {retry_after:.0f} s"
            state.words, state.spoken = f"{reason}{asked}: paused for {closed:.0f} s", 0.0
        elif not state.spoken:
            state.words, state.spoken = f"begins at {_told(rate)}", rate
        elif abs(rate - state.spoken) >= CHANGE_TOLD * state.spoken:
            state.words, state.spoken = f"{reason}: {_told(state.spoken)} to {_told(rate)}", rate


def _told(rate: float) -> str:
    return f"{rate:.1f} a second" if rate >= 1 else f"{rate * 60:.1f} a minute"
