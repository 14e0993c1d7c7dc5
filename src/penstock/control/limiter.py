"""The adaptive limiter finds how fast a service may be asked, from its answers alone, and avoids refusals and bans."""

from __future__ import annotations

from penstock.control.closure import FAILURES_MOST
from penstock.control.inflight import Flight
from penstock.control.limiter_state import LimiterState
from penstock.control.limiter_words import explain, put_into_words
from penstock.control.outcome import Decision, Outcome

CATCH_UP = 0.25  # of the distance between two starts: a late one may be made up for, but nothing comes in bursts
HELD = 0.5  # share of starts that waited for an answer, from which on the rate is not what limits
PAUSE_REQUESTS, PAUSE_LEAST, PAUSE_MOST = 2.0, 0.5, 60.0  # after a refusal: in requests, and in seconds
FIRST_FEW, FEW_PAUSE = 20, 5.0  # as long as fewer were sent: so many seconds
BAN_SECONDS = 100.0  # a closure by refusals from which on the budget learns
CLOSURE_SECONDS = 20.0  # a closure from which on the average over it is taken
QUEUED = 1.5  # times the latency without a queue, from which on failures are about the rate
PASSED = 5  # requests accepted between two refusals of the same item: it is refused for itself
OPENING = 3  # requests after a closure whose refusal is still part of it
LATE = 3.0  # times the usual latency that it waits for the responses in flight
ANSWERED = frozenset({Outcome.OK, Outcome.GONE, Outcome.UNPARSABLE})


class Limiter:
    """Ask `next` whether a request may start; call `started` when it does, and `finished` with its outcome."""

    def __init__(self, state: LimiterState | None = None) -> None:
        self.state = state or LimiterState()

    def next(self, now: float) -> Decision:
        state = self.state
        flights, closure = state.flights, state.closure
        parallel = flights.allowed(now, self.rate_per_second, state.parallel)
        if now < closure.hold_until:
            return Decision(False, closure.hold_until, parallel)
        if closure.row and flights.under_way:
            # Wait for the responses in flight; while everything is refused, one probe at a time.
            oldest = next(iter(flights.under_way.values()))
            newest = next(reversed(flights.under_way.values()))
            if newest.at >= closure.cut_at:
                return Decision(False, None, parallel)
            until = closure.cut_at + LATE * flights.latency + 1
            if oldest.at < closure.cut_at and now < until:
                return Decision(False, until, parallel)
        if now < state.due - 1e-9:
            return Decision(False, state.due, parallel)
        if len(flights.under_way) >= parallel:
            state.waited = True
            return Decision(False, None, parallel, True)
        return Decision(True, now, parallel)

    def started(self, now: float) -> int:
        """One has started. Return its ticket."""
        state = self.state
        gap = 1 / self.rate_per_second
        state.due = max(state.due, now - CATCH_UP * gap) + gap
        ticket = state.flights.start(now, waited=state.waited)
        state.waited = False
        state.limit.sent(now)
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
        """Return whether the failure is the item's own: an attempt to charge it with. A refusal for the rate is none."""
        state = self.state
        flight = state.flights.under_way.pop(ticket, None)
        if flight is None:  # started by a worker whose state was lost
            return False
        state.flights.answered(now, latency, flight, good=outcome in ANSWERED)
        if outcome in ANSWERED:
            own = self._passed(now, flight, item)
        elif outcome is Outcome.THROTTLED:
            own = self._throttled(now, flight, item, retry_after)
        else:
            own = self._failed(now, flight, retry_after)
        self._clamp()
        put_into_words(state, self.rate_per_second, outcome, now, retry_after)
        return own

    @property
    def rate_per_second(self) -> float:
        state = self.state
        return max(state.rate_min, min(state.rate_max, state.limit.rate))

    @property
    def words(self) -> str:
        """The last change of the rate."""
        return self.state.words

    def explain(self, now: float) -> str:
        """Say which limit it believes in, why, how sure it is, what it does next, and what a refusal would cost."""
        return explain(self.state, self.rate_per_second, now)

    # -- what came of a request -------------------------------------------------------------------------------------

    def _passed(self, now: float, flight: Flight, item: str | None) -> bool:
        state = self.state
        limit, flights = state.limit, state.flights
        state.unavailable.passed(learn=not state.closure.row)
        state.throttling.passed(item)
        flights.accepted(flight.beside)
        if state.closure.row and flight.at >= state.closure.cut_at:
            self._reopened(now, flight)
            return False
        if now - state.checked_at >= 10:
            state.budget.survive(now)
            limit.proven = state.budget.survived[-1]
            limit.careful = limit.careful and state.budget.remembers(now)
            state.free_at, state.checked_at = state.budget.free_at(now), now
            state.held_back = state.budget.bans > 1 and limit.careful and state.budget.is_spent(now)
        if limit.phase == "test" and (share := limit.noise(flight.number, now, refused=False)):
            state.throttling.refused_anyway(share)
        if flights.held <= HELD:
            if not (state.held_back and limit.phase == "return"):
                limit.climb(flight.number, now, state.free_at, flights.latency)
            limit.climbed_at = now
        else:
            most = max((1.25 if flights.limit is None and flights.places is None else 3.0) * flights.throughput, 1.0)
            limit.rate = min(limit.rate, most)
            limit.climbed_at = now
        return False

    def _reopened(self, now: float, flight: Flight) -> None:
        state = self.state
        closure, limit = state.closure, state.limit
        seconds, down = closure.opened(now), closure.down
        state.unavailable.score = 0.0
        state.due = now + 1 / self.rate_per_second
        limit.climbed_at = now
        if down:
            if seconds and limit.known:
                limit.go_back(now, 0.5 if seconds < 60 else 0.25)
            return
        long = seconds >= BAN_SECONDS
        if long and limit.window:  # a window again, so it was no ban
            state.budget.allowed = None
        elif long:
            state.budget.learn(closure.counts, now)
            state.throttling.forget()
            state.refuses = False  # during a ban
        if long and state.flights.places is not None:  # it was asked for too much at once
            state.flights.banned()
            limit.forget(limit.rate)
        elif seconds >= CLOSURE_SECONDS and limit.known:
            again = state.closures > 0
            window = (closure.alone or limit.window > 0) and (long or again)
            limit.reopened(
                flight.number, closure.since, flight.at, seconds, window=window, banned=long and not window, again=again
            )
            state.closures += 1
        else:
            state.closures = 0
        state.checked_at = -1e9

    def _throttled(self, now: float, flight: Flight, item: str | None, retry_after: float | None) -> bool:
        state = self.state
        closure, throttling, limit = state.closure, state.throttling, state.limit
        state.refusals += 1
        alone = not throttling.test.score
        known_item = item is not None and item in throttling.suspects.refused
        if closure.row and throttling.suspects.is_guilty(item):
            closure.ask_another(now)
            return True
        told = retry_after is not None  # it is about the rate: neither a bad item nor noise says when to come back
        if limit.phase == "test" and not closure.row and flight.number > limit.test_from:
            throttling.suspects.note(item)
            state.budget.spend(now)
            if share := limit.noise(flight.number, now, refused=True, told=told):
                throttling.refused_anyway(share)
                return True
            self._refused(now, flight, retry_after, down=False, counted=True)
            return False
        if (
            known_item
            and not told
            and not closure.row
            and item == state.blamed
            and limit.count(flight.number) >= PASSED
        ):
            limit.restore(now)
            state.blamed = None
        believed = throttling.believed(item, closed=closure.row > 0) or told
        believed = believed or state.flights.bad_row >= FAILURES_MOST
        if believed or closure.row:
            if not closure.row:
                state.blamed = item
            self._refused(now, flight, retry_after, down=False)
            return False
        state.limit.missed += 1
        if retry_after is not None:
            closure.obey(now, retry_after)
        return alone or throttling.suspects.hopeless(item)

    def _failed(self, now: float, flight: Flight, retry_after: float | None) -> bool:
        state = self.state
        if flight.at < state.closure.cut_at:
            return False
        if state.unavailable.failed(learn=not state.closure.row) or state.closure.row:
            self._refused(now, flight, retry_after, down=True)
            return False
        return True

    def _refused(
        self, now: float, flight: Flight, retry_after: float | None, *, down: bool, counted: bool = False
    ) -> None:
        state = self.state
        closure, limit, flights, budget = state.closure, state.limit, state.flights, state.budget
        spent, alone = budget.is_spent(now), budget.count(now)[-1] == 0
        if not down and not counted:
            budget.spend(now)
        if flight.at < closure.cut_at:  # one cut per round trip
            limit.full(flight.number, flight.at)
            if closure.row == 1:
                closure.counts = budget.count(now)
            if retry_after is not None:
                closure.obey(now, retry_after)
            return
        fresh, queued = flights.limit is None, flights.latency >= QUEUED * flights.base
        may_be_full = not down or (queued and not state.refuses)
        if not closure.row and may_be_full and flights.is_about_them(flight.number, flight.beside):
            closure.cut_at = now
            closure.obey(now, PAUSE_LEAST)
            if fresh:  # what was taken for a limit of the rate was none
                limit.forget(max(limit.rate, flights.throughput))
            return
        state.refuses = state.refuses or not down
        if down and not closure.row and not state.refuses and flight.beside > 1 and flights.base:
            flights.narrow(flight.beside, max(flights.latency, flights.base))
        about_the_rate = not down or (queued and not state.refuses and flights.bad_row < FAILURES_MOST)
        if limit.opened_number and flight.number <= limit.opened_number + OPENING:
            about_the_rate = False  # a window that slides opens bit by bit
        few = limit.known is None and flight.number < FIRST_FEW
        if not closure.row and about_the_rate and not counted:
            if down:
                budget.spend(now)
            limit.refused(flight.number, flight.at, flights.latency, spent=spent)
            if budget.allowed is None and not spent and retry_after is None:
                limit.test(flight.number, now)
        elif not down:
            limit.full(flight.number, flight.at)
        self._clamp()
        closure.refused(now, self._first_pause(few), retry_after, down=down)
        if closure.row == 1:
            closure.counts, closure.alone = budget.count(now), alone
        state.due = max(state.due, closure.hold_until)

    def _first_pause(self, few: bool) -> float:
        return FEW_PAUSE if few else max(PAUSE_LEAST, min(PAUSE_MOST, PAUSE_REQUESTS / self.rate_per_second))

    def _clamp(self) -> None:
        self.state.limit.rate = self.rate_per_second
