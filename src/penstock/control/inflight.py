"""What is under way: how long answers take, how many requests the service can hold at once, and how many we let out."""

from __future__ import annotations

import math

import msgspec

BLOCK, BLOCK_FIRST = 20, 3  # answers whose mean latency is one measurement
UNKNOWN = 4  # under way at most, until the first measurement
GAIN, SLACK = (
    1.25,
    1,
)  # times what Little's law asks for, and so many more: enough to find out whether more goes through
# An answer that takes a second more than without a queue, and 1.6 times as long, is evidence of one at the service. The
# logarithms of such answers are summed until they show it.
QUEUE_SECONDS, QUEUE_TIMES, QUEUE_SHOWN = 1.0, 1.6, 2.0
LATENCY_LEAST = 1e-3
ALONE_WEIGHT = 0.05  # of an answer to a request that was alone in flight, in the latency without a queue
CALM = 0.6  # share of that, and less: a block of answers without a queue
WIDEN_MOST = 32  # blocks without a queue until one more request may be in flight, at most; doubled when it was too many
WIDEN_BANNED = 500  # the same after a ban
LATE = 3  # times the usual latency: who is later will time out
PEAK_ANSWERS = 100
MANY, EVIDENCE_MANY = 3, 1
EVIDENCE = 2  # refusals above everything that was accepted, until we believe in a limit of requests at once
PROBE_FIRST, PROBE_FOUND, PROBE_MOST = 1_000, 50, 20_000  # answers until one more than the limit is tried


class Flight(msgspec.Struct, array_like=True):
    number: int
    at: float
    beside: int  # under way when it was sent, itself included


class Flights(msgspec.Struct):
    under_way: dict[int, Flight] = {}
    number: int = 0
    held: float = 0.0  # share of starts that had to wait for an answer

    latency: float = 0.0
    base: float = 0.0  # latency without a queue: the lowest mean so far
    block_latency: float = 0.0
    block_count: int = 0
    block_since: float = 0.0
    throughput: float = 0.0
    queue: float = 0.0  # evidence of a queue at the service
    places: int | None = None  # requests in flight at most, where the service queues the others
    narrowed: int = 0  # the last request before that was lowered
    unqueued: int = 0  # blocks in a row without a queue
    widen_after: int = 1
    widened: bool = False
    failing: float = 0.0  # seconds a request spends failing, on average
    bad_row: int = 0

    limit: int | None = None  # requests at once, where that is what the service limits
    doubts: int = 0
    refused_beside: list[int] = []
    peak: int = 0
    peak_before: int = 0
    peak_count: int = 0
    probe_in: int = PROBE_FIRST
    probe_every: int = PROBE_FIRST

    def start(self, now: float, *, waited: bool) -> int:
        self.held += 0.1 * (waited - self.held)
        self.number += 1
        self.under_way[self.number] = Flight(self.number, now, len(self.under_way) + 1)
        return self.number

    def answered(self, now: float, latency: float, flight: Flight, *, good: bool) -> None:
        self.bad_row = 0 if good else self.bad_row + 1
        self.failing += 0.01 * ((0.0 if good else latency) - self.failing)
        if not good:
            return
        self.latency += (latency - self.latency) * (0.1 if self.latency else 1.0)
        if self.base and flight.beside == 1:  # a request that was alone in flight met no queue
            self.base += ALONE_WEIGHT * (latency - self.base)
        self._note_queue(latency, flight)
        self.block_latency += latency
        self.block_count += 1
        if self.block_count >= (BLOCK if self.base else BLOCK_FIRST):
            self._measure(now)

    def _note_queue(self, latency: float, flight: Flight) -> None:
        if not self.base or flight.number <= self.narrowed:
            return
        self.queue = max(0.0, self.queue + math.log(max(latency, LATENCY_LEAST) / self.tolerated))
        if self.queue >= QUEUE_SHOWN:
            self.narrow(flight.beside, latency)

    @property
    def tolerated(self) -> float:
        """The latency above which an answer is evidence of a queue at the service."""
        return max(QUEUE_TIMES * self.base, self.base + QUEUE_SECONDS)

    def narrow(self, beside: int, latency: float) -> None:
        """There is a queue at the service: it works on fewer at once than are in flight."""
        working = beside * self.base / latency
        self.places = max(1, round(working) if self.places is None else min(self.places, beside) - 1)
        self.queue, self.unqueued, self.narrowed, self.widened = 0.0, 0, self.number, False
        self.widen_after = max(self.widen_after, min(WIDEN_MOST, 2 * self.widen_after))

    def banned(self) -> None:
        """Too many of those that were in flight failed."""
        self.limit, self.places, self.widen_after = None, max(1, (self.places or 2) - 1), WIDEN_BANNED

    def _measure(self, now: float) -> None:
        mean, took = self.block_latency / self.block_count, now - self.block_since
        if self.block_since and took > 0:
            self.throughput = max(self.block_count / took, self.throughput * 0.9)
        self.base = min(self.base, mean) if self.base else mean
        calm = mean < self.base + CALM * (self.tolerated - self.base)
        if self.held > 0.3:
            self.unqueued = max(0, self.unqueued + (1 if calm else -1))
        if self.places is not None and self.unqueued >= self.widen_after:
            self.places, self.unqueued = self.places + 1, 0
            self.widen_after = max(1, self.widen_after // 2) if self.widened else self.widen_after
            self.widened = True
        self.block_latency, self.block_count, self.block_since = 0.0, 0, now

    def allowed(self, now: float, rate: float, most: int) -> int:
        """How many may be under way. A service that slows down before it refuses is asked no faster than it answers."""
        if not self.base:
            return min(most, UNKNOWN)
        flow = min(rate, max(1.5 * self.throughput, 1.0))
        little = math.ceil(GAIN * flow * self.base) + SLACK
        if self.places is not None:
            little = min(little, self.places)
        if self.failing and len(self.under_way) >= little:
            # Those that will time out hold no place in the queue of the service, as far as we can tell.
            late = now - LATE * self.latency
            stuck = sum(flight.at < late for flight in self.under_way.values())
            little += min(stuck, math.ceil(3 * flow * self.failing) + 1)
        if self.limit is not None:
            little = min(little, self.limit + (self.probe_in <= 0))
        return max(1, min(most, little))

    def accepted(self, beside: int) -> None:
        self.peak = max(self.peak, beside)
        self.peak_count += 1
        if self.peak_count >= PEAK_ANSWERS:
            self.peak_before, self.peak, self.peak_count = self.peak, 0, 0
        if self.limit is None:
            return
        if beside > self.limit:
            self.limit += 1
            self.probe_in = self.probe_every = PROBE_FOUND
        elif self.held > 0.3:
            self.probe_in -= 1

    def is_about_them(self, number: int, beside: int) -> bool:
        """Whether a refusal is about how many were under way, and not about the pace."""
        for flight in self.under_way.values():  # the refused one took no place beside them
            if flight.number > number:
                flight.beside -= 1
        if self.limit is None:
            return self._limit_found(beside)
        if beside > self.limit:
            self.probe_every = min(PROBE_MOST, 2 * self.probe_every)
            self.probe_in = self.probe_every
            return True
        self.doubts += 1
        if self.doubts % 2 == 0:
            self.limit = None
        return False

    def _limit_found(self, beside: int) -> bool:
        """Refusals come exactly when more are under way than were ever accepted."""
        if beside <= max(1, self.peak, self.peak_before):
            self.refused_beside.clear()
            return False
        self.refused_beside.append(beside)
        if len(self.refused_beside) < (EVIDENCE_MANY if beside >= MANY else EVIDENCE) + self.doubts:
            return False
        self.limit = min(self.refused_beside) - 1
        self.refused_beside.clear()
        return True
