"""Lists of whole numbers on their way to the server: in its own format, a fifth of what it costs as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from struct import Struct, pack
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

INT8, INT8_ARRAY = 20, 1016  # as the server numbers its types
# Dimensions, whether there are nulls, the type; then of the one dimension its length and first index.
_HEAD = Struct("!5i")


class Numbers:
    __slots__ = ("numbers",)

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers


class _NumbersDumper(Dumper):
    format = Format.BINARY
    oid = INT8_ARRAY

    def dump(self, obj: Numbers) -> bytes:
        count = len(obj.numbers)
        each = chain.from_iterable(zip(repeat(8), obj.numbers, strict=False))
        return _HEAD.pack(1, 0, INT8, count, 1) + pack("!" + "iq" * count, *each)


def understand_numbers(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(Numbers, _NumbersDumper)
