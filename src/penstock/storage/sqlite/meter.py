"""Placeholder until the real meter is written: counts executions and rows written only."""

from __future__ import annotations

import apsw

from penstock.model.usage import Measure


class Meter:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._before = 0

    def begin(self, sql: str) -> None:
        self._before = self._connection.total_changes()

    def end(self, sql: str) -> Measure:
        return Measure(sql, 1, 0, self._connection.total_changes() - self._before, 0, 0, 0.0)
