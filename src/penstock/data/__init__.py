"""The user's tables: reads that return lists, writes that join the unit of work, and upkeep for months."""

from __future__ import annotations

from penstock.model.parameters import Json
from penstock.model.times import from_text, parse_span, text_of_micros, to_text
from penstock.model.upsert import chunk_rows, chunks, cut, first_by, insert_ignore, numbered, upsert

__all__ = [
    "Json",
    "chunk_rows",
    "chunks",
    "cut",
    "first_by",
    "from_text",
    "insert_ignore",
    "numbered",
    "parse_span",
    "text_of_micros",
    "to_text",
    "upsert",
]
