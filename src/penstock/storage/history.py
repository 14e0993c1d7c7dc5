"""The half of the history that every store does alike: its questions, and the labels of a day."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from penstock.contracts.history import Entry, MinuteCount, Processed, SettledCount

DELIVERIES_MAX = 1_000  # of one message; retries end long before
GROUPS_MAX = 1_000  # types times sources in a report
SETTLED_MAX = 5_000  # minutes times queues times statuses
MINUTES_MAX = 44_640  # a month of them is kept, and can be asked for
MINUTE = 60_000_000
DAY = 1_440 * MINUTE
LABELS_MAX = 10_000  # in memory; there are as many as types, sources and outcomes of an app

entry = partial(tuple.__new__, Entry)  # what `Entry._make` does, without its checks


class StoredHistory(ABC):
    def __init__(self) -> None:
        self._labels: dict[tuple[Any, ...], Any] = {}
        self._day = 0

    @abstractmethod
    def _rows(self, name: str, bound: dict[str, Any]) -> list[Any]:
        """Return the rows of a question by its name; none where there is no history."""

    def _labels_of_day(self, day: int) -> dict[tuple[Any, ...], Any]:
        """Return the known labels. Each is written once a day, which notes that it is in use."""
        if day != self._day or len(self._labels) > LABELS_MAX:
            self._labels.clear()
            self._day = day
        return self._labels

    def chain(self, correlation_id: bytes, limit: int) -> list[Entry]:
        return [entry(row) for row in self._rows("chain", {"correlation_id": correlation_id, "limit": limit})]

    def latest(self, until: int, limit: int) -> list[Entry]:
        return [entry(row) for row in self._rows("latest", {"until": until, "limit": limit})]

    def processed(self, since: int, until: int) -> list[Processed]:
        return [Processed(*row) for row in self._between("processed", since, until, GROUPS_MAX)]

    def per_minute(self, since: int, until: int) -> list[MinuteCount]:
        return [MinuteCount(*row) for row in self._between("per_minute", since, until, MINUTES_MAX)]

    def settled(self, since: int, until: int) -> list[SettledCount]:
        return [SettledCount(*row) for row in self._between("settled", since, until, SETTLED_MAX)]

    def _between(self, name: str, since: int, until: int, limit: int) -> list[Any]:
        return self._rows(name, {"since": since // MINUTE * MINUTE, "until": until, "limit": limit})
