"""A history that only one command reads, and nobody writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.contracts.history import HistoryReader

T = TypeVar("T")


class OnlyRead:
    def __init__(self, file: HistoryReader) -> None:
        self._file = file

    async def ask(self, question: Callable[[HistoryReader], T]) -> T:
        return question(self._file)
