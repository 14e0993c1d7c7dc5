"""What is under way: how long answers take, how many requests the service can hold at once, and how many we let out."""

from __future__ import annotations

import math

import msgspec

BLOCK = 20  # answers whose mean latency is one measurement


class Flight(msgspec.Struct, array_like=True):
    number: int
    at: float
    beside: int  # under way when it was sent, itself included


class Flights(msgspec.Struct):
    under_way: dict[int, Flight] = {}
    number: int = 0
    latency: float = 0.0
    base: float = 0.0
    sum: float = 0.0
    count: int = 0
    block_since: float = 0.0
    throughput: float = 0.0
    failing: float = 0.0  # seconds a request spends failing, on average
    held: float = 0.0  # share of starts that had to wait for an answer
    limit: int | None = None
    fresh: bool = False
    refused_beside: list[int] = []
    peak: int = 0
    peak_before: int = 0
    peak_count: int = 0
    doubts: int = 0
    bad_row: int = 0
    probe_in: int = 500
    probe_every: int = 500

    def note_accepted(self, beside: int) -> None:
        self.peak = max(self.peak, beside)
        self.peak_count += 1
        if self.peak_count >= 100:
            self.peak_before, self.peak, self.peak_count = self.peak, 0, 0
        if self.limit is not None:
            if beside > self.limit:
                self.limit += 1
                self.probe_in, self.probe_every = 50, 50
            elif self.held > 0.3:
                self.probe_in -= 1

    def note_refused(self, number: int, beside: int) -> bool:
        """Whether this refusal is about how many were under way, and not about the pace."""
        for flight in self.under_way.values():  # the refused one took no place beside them
            if flight.number > number:
                flight.beside -= 1
        if self.limit is not None:
            if beside > self.limit:
                self.probe_every = min(2000, self.probe_every * 2)
                self.probe_in = self.probe_every
                return True
            self.doubts += 1
            if self.doubts % 2 == 0:
                self.limit = None
            return False
        if beside > max(self.peak, self.peak_before) and beside > 1:
            self.refused_beside.append(beside)
        else:
            self.refused_beside.clear()
        if len(self.refused_beside) >= 4 + self.doubts:
            self.limit = min(self.refused_beside) - 1
            self.refused_beside.clear()
            self.fresh = True
            return True
        return False

    def start(self, now: float) -> int:
        self.number += 1
        self.under_way[self.number] = Flight(self.number, now, len(self.under_way) + 1)
        return self.number

    def answered(self, now: float, latency: float, good: bool) -> None:
        self.bad_row = 0 if good else self.bad_row + 1
        self.failing += 0.01 * ((0.0 if good else latency) - self.failing)
        if not good:
            return
        self.latency += (latency - self.latency) * (0.1 if self.latency else 1.0)
        self.sum += latency
        self.count += 1
        if self.count >= BLOCK or (self.base == 0.0 and self.count >= 3):
            mean = self.sum / self.count
            took = now - self.block_since
            if self.block_since and took > 0:
                self.throughput = max(self.count / took, self.throughput * 0.9)
            self.base = mean if not self.base else min(self.base, mean)
            self.sum, self.count, self.block_since = 0.0, 0, now

    def allowed(self, now: float, rate: float, most: int) -> int:
        """How many may be under way: what Little's law asks for at this pace, and a little more to find out."""
        if not self.base:
            return min(most, 4)
        flow = min(rate, max(self.throughput * 1.5, 1.0))
        little = math.ceil(1.5 * flow * self.base) + 2
        if self.failing and len(self.under_way) >= little:
            # Those that will time out hold no place in the service's queue, as far as we can tell.
            late = now - 3 * self.latency
            stuck = sum(flight.at < late for flight in self.under_way.values())
            little += min(stuck, math.ceil(3 * flow * self.failing) + 1)
        if self.limit is not None:
            little = min(little, self.limit + (self.probe_in <= 0))
        return max(1, min(most, little))
