"""The pilot finds how fast an outside service can be asked, from nothing but its answers, and holds that pace."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.control.ceiling import Ceiling
from penstock.control.doors import SHORT, Door
from penstock.control.inflight import Flight, Flights
from penstock.control.quotas import Quota
from penstock.control.suspicion import Suspects, Suspicion


NOISY = 0.003  # a share of refusals that are not about the pace, from which on one alone is not believed


class Outcome(StrEnum):
    OK = "ok"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    GONE = "gone"
    UNPARSABLE = "unparsable"
    FAILED = "failed"


class Decision(msgspec.Struct, frozen=True):
    start: bool
    again_at: float | None
    parallel: int


class PilotState(msgspec.Struct):
    rate_min: float = 0.001
    rate_max: float = 1000.0
    parallel: int = 32
    ceiling: Ceiling = msgspec.field(default_factory=Ceiling)
    door: Door = msgspec.field(default_factory=Door)
    flights: Flights = msgspec.field(default_factory=Flights)
    quota: Quota = msgspec.field(default_factory=Quota)
    due: float = 0.0
    last_knock: float = 0.0
    waited: bool = False
    unavailable: Suspicion = msgspec.field(default_factory=lambda: Suspicion(0.02, 0.25, 6.5, 0.002, 0.001))
    throttled: Suspicion = msgspec.field(default_factory=lambda: Suspicion(0.0005, 0.05, 4.0, 0.01, 0.0005))
    refused_share: float = 0.0
    suspects: Suspects = msgspec.field(default_factory=Suspects)
    text: str = ""


class Pilot:
    def __init__(self, state: PilotState | None = None) -> None:
        self.state = state or PilotState()

    def next(self, now: float) -> Decision:
        state = self.state
        flights, door = state.flights, state.door
        parallel = flights.allowed(now, self.rate(now), state.parallel)
        if now < door.hold_until:
            return Decision(False, door.hold_until, parallel)
        if door.row >= 2 and any(flight.at >= door.cut_at for flight in flights.under_way.values()):
            return Decision(False, None, parallel)
        if now < state.due - 1e-9:
            return Decision(False, state.due, parallel)
        if len(flights.under_way) >= parallel:
            state.waited = True
            return Decision(False, None, parallel)
        return Decision(True, now, parallel)

    def started(self, now: float) -> int:
        state = self.state
        state.flights.held += 0.1 * (state.waited - state.flights.held)
        state.waited = False
        state.quota.tick(now, state.flights.number)
        gap = 1 / self.rate(now)
        state.due = max(state.due, now - 0.25 * gap) + gap
        if state.ceiling.mark_at is None:
            state.ceiling.mark_at = now
        ticket = state.flights.start(now)
        state.ceiling.note(ticket, now)
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
        state = self.state
        flight = state.flights.under_way.pop(ticket)
        good = outcome in (Outcome.OK, Outcome.GONE, Outcome.UNPARSABLE)
        state.flights.answered(now, latency, good)
        if good:
            state.unavailable.passed(not state.door.row)
            state.throttled.passed(state.ceiling.innocent)
            state.refused_share *= 0.998
            state.throttled.usual = max(0.0005, min(state.throttled.usual * 0.9998, 1.2 * state.refused_share))
            if item is not None and state.suspects.refused:
                state.suspects.passed(item)
            self._accepted(now, flight)
            return False
        if outcome is Outcome.THROTTLED:
            alone = not state.throttled.score
            if self._believed(item) or state.door.row:
                self._refused(now, flight, retry_after)
                return False
            state.ceiling.noticed(state.flights.number, now)
            if retry_after is not None:
                state.door.obey(now, retry_after)
            return alone or state.suspects.hopeless(item)
        if flight.at < state.door.cut_at:
            return False
        if state.unavailable.failed(not state.door.row) or state.door.row:
            self._refused(now, flight, retry_after, True)
            return False
        return True

    def _believed(self, item: str | None) -> bool:
        state = self.state
        throttled = state.throttled
        times = state.suspects.again(item) if item is not None else 0
        if times:
            if times == 1 and not throttled.score and state.suspects.guilty > 0.5:  # alone among answers that passed
                throttled.usual = min(0.03, throttled.usual + 0.002)
            believed = throttled.failed(False, state.suspects.guilty)
            state.suspects.guilty += 0.05 * (1 - state.suspects.guilty)
            return believed
        state.refused_share += 0.002 * (1 - state.refused_share)
        believed = throttled.failed(state.ceiling.innocent and not state.door.row)
        return believed or state.ceiling.phase in ("search", "probe")

    def rate(self, now: float) -> float:
        state = self.state
        rate = state.ceiling.rate
        if state.quota.period:
            rate = state.quota.pace(now, state.flights.number)
        return rate

    def _accepted(self, now: float, flight: Flight) -> None:
        state = self.state
        ceiling, door, quota, flights = state.ceiling, state.door, state.quota, state.flights
        quota.answers += 1
        flights.note_accepted(flight.beside)
        if flight.at >= door.cut_at and door.row:
            quota.opened(state.last_knock, flight.at, door.row)
            length = door.opened(now)
            if length is None and ceiling.dear:
                ceiling.dear -= 1
            if length is not None:
                state.unavailable.score = 0.0
                if ceiling.known is not None:
                    ceiling.long_closed = length >= SHORT
                    ceiling.rate = ceiling.known / (4 if ceiling.long_closed else 2)
                    ceiling.enter("return", flights.number, now)
                    state.due = now + 1 / ceiling.known
                    if not door.down and length >= 15:
                        ceiling.closed(flight.number, flight.at)
                    if not door.down and max(5.0, 20 / ceiling.known) < length < 600:
                        ceiling.dear += 1
                        ceiling.probe_after = now + min(20, 2**ceiling.dear) * length
                else:
                    state.due = now + 1 / ceiling.rate
                return
        held = flights.held > 0.5
        if quota.period:
            if quota.exceeded(flight.number) and flight.at // quota.period == quota.window_index:
                quota.forget()
                ceiling.known = ceiling.rate = quota.size / quota.seconds
                ceiling.enter("probe", flights.number, now)
            return
        ceiling.accepted(flights.number, flight.number, now, flights.latency, held)
        if held:
            ceiling.rate = min(ceiling.rate, max((1.25 if flights.limit is None else 2.0) * flights.throughput, 1.0))
        self._clamp()

    def _clamp(self) -> None:
        state = self.state
        state.ceiling.rate = max(state.rate_min, min(state.rate_max, state.ceiling.rate))

    def _refused(self, now: float, flight: Flight, retry_after: float | None, down: bool = False) -> None:
        state = self.state
        door, ceiling, quota, flights = state.door, state.ceiling, state.quota, state.flights
        if flight.at < door.cut_at:
            ceiling.mark(flight.number, flight.at)
            if retry_after is not None:
                door.obey(now, retry_after)
            return
        state.last_knock = flight.at
        if not down and not door.row and flights.note_refused(flight.number, flight.beside):
            if flights.fresh:
                ceiling.known, ceiling.phase = None, "search"
                ceiling.rate = max(ceiling.rate, flights.throughput)
                ceiling.mark_at = None
                ceiling.enter("search", flights.number, now)
                flights.fresh = False
            door.cut_at = now
            return
        if door.row == 0:
            if not down:
                quota.closed(flight.at, flight.number)
            if quota.period and not down:
                used = flight.number - quota.used_from - 1
                if used >= 0.97 * quota.size or flight.at // quota.period != quota.window_index:
                    if flight.at // quota.period == quota.window_index:
                        quota.size = used
                    door.row, door.row_since, door.cut_at = 1, now, now
                    door.hold_until = quota.until_boundary(now) if retry_after is None else now + retry_after
                    state.due = door.hold_until
                    return
                quota.broken += 1
                if quota.broken > 2:
                    quota.forget()
            if not (down and (ceiling.known is None or flights.bad_row >= 3)):
                ceiling.refused(flight.number, flight.at, flights.number, now, state.throttled.usual > NOISY)
        elif ceiling.doubt and not down:
            ceiling.refused(flight.number, flight.at, flights.number, now, state.throttled.usual > NOISY)
        else:
            ceiling.spend()
            ceiling.mark(flight.number, flight.at)
        self._clamp()
        door.down = down
        door.refused(now, ceiling.rate, retry_after)
        ceiling.paused = door.hold_until - now
        if door.hold_until > state.due:
            state.due = door.hold_until
