"""Statements built from names alone that never overwrite knowledge with nothing, and lists cut to what fits them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from penstock.model.errors import BadParameter, BadStatement
from penstock.model.limits import LOCAL
from penstock.model.statement import ENGINE_PREFIX

Item = TypeVar("Item")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")  # PostgreSQL cuts longer names off without a word
# Words that one of the databases takes for its own unless they are quoted.
_RESERVED_WORDS = """
    add all alter analyse analyze and any array as asc asymmetric authorization autoincrement between binary both by
    case cast check collate collation column commit concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user default deferrable delete
    desc distinct do drop else end escape except exists false fetch for foreign freeze from full grant group having
    if ilike in index indexed initially inner insert intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not nothing notnull null offset on only or order outer overlaps placing primary
    raise references returning right select session_user set similar some symmetric system_user table tablesample
    then to trailing transaction true union unique update user using values variadic verbose when where window with
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def upsert(
    table: str, columns: Sequence[str], key: str | Sequence[str], *, keep: Sequence[str] = (), rows: int = 1
) -> str:
    """Inserts a row, or fills in what is new about it. NULL never replaces a value; `keep` columns are set only once.

    With `rows` above 1 the statement takes that many rows, whose values `numbered` names. They must differ in their
    key (`first_by` sees to that): PostgreSQL refuses to change a row twice in one statement.
    """
    keys = [key] if isinstance(key, str) else list(key)
    _check_subset(table, "key", keys, columns)
    _check_subset(table, "keep", keep, columns)
    if not keys:
        raise BadStatement(f"An upsert into {table} needs a key: the columns that identify a row.", table=table)
    owner = quoted(table).rpartition(".")[2]
    filled = [quoted(column) for column in columns if column not in keys and column not in keep]
    changes = ",\n    ".join(f"{column} = coalesce(excluded.{column}, {owner}.{column})" for column in filled)
    action = f"do update set\n    {changes}" if changes else "do nothing"
    return f"{_insert(table, columns, rows)}\non conflict ({_names(keys)}) {action}"


def insert_ignore(table: str, columns: Sequence[str], *, rows: int = 1) -> str:
    """Inserts a row unless it is there already, whatever makes it unique."""
    return f"{_insert(table, columns, rows)}\non conflict do nothing"


def numbered(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The values of several rows under the names a statement with `rows=len(rows)` asks for."""
    return {_parameter(column, i, len(rows)): row[column] for i, row in enumerate(rows) for column in columns}


def _insert(table: str, columns: Sequence[str], rows: int) -> str:
    if not columns or len(set(columns)) != len(columns):
        raise BadStatement(f"An insert into {table} needs columns, each of them once: {list(columns)}.", table=table)
    if rows < 1:
        raise BadStatement(f"An insert into {table} needs at least one row, not {rows}.", table=table)
    values = ",\n    ".join(
        "(" + ", ".join(f":{_parameter(column, i, rows)}" for column in columns) + ")" for i in range(rows)
    )
    return f"insert into {quoted(table)} ({_names(columns)})\nvalues {values}"


def _parameter(column: str, row: int, rows: int) -> str:
    return column if rows == 1 else f"{column}_{row}"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(quoted(column) for column in columns)


@lru_cache(1_024)  # the names of an app are few, and each is asked for with every write
def quoted(name: str) -> str:
    """A checked identifier, quoted only where it has to be: quoting would make PostgreSQL mind its case."""
    for part in name.split("."):
        if not _IDENTIFIER.fullmatch(part):
            raise BadStatement(
                f"{name!r} is not a table or column name. Use up to 63 letters, digits and underscores.", name=name
            )
        if part.lower().startswith(ENGINE_PREFIX):
            raise BadStatement(
                f"{name!r} cannot be written: {ENGINE_PREFIX} names are reserved for the engine.", name=name
            )
    return ".".join(f'"{part.lower()}"' if part.lower() in _RESERVED else part for part in name.split("."))


def _check_subset(table: str, what: str, names: Sequence[str], columns: Sequence[str]) -> None:
    strange = [name for name in names if name not in columns]
    if strange:
        raise BadStatement(
            f"The {what} of {table} names {', '.join(strange)}, which are not among its columns {', '.join(columns)}.",
            table=table,
            columns=strange,
        )


# -- lists ------------------------------------------------------------------------------------------------


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of `size`, the last one shorter."""
    if size < 1:
        raise BadParameter(f"Items cannot be cut into chunks of {size}. Give a size of 1 or more.", size=size)
    left = iter(items)
    return iter(lambda: list(islice(left, size)), [])


def chunk_rows(columns: int, parameters_max: int, *, rows_max: int = LOCAL.insert_rows_max) -> int:
    """Return how many rows of this many columns fit into one statement: 5 columns under 100 parameters make 20."""
    if columns < 1 or columns > parameters_max:
        raise BadParameter(
            f"A row of {columns} columns does not fit into {parameters_max} parameters. Write fewer columns at a time.",
            columns=columns,
            allowed=parameters_max,
        )
    return min(parameters_max // columns, rows_max)


def first_by(rows: Iterable[Item], key: Callable[[Item], Hashable]) -> list[Item]:
    """The first row of each key, in the order in which the keys were first seen."""
    seen: dict[Hashable, Item] = {}
    for row in rows:
        seen.setdefault(key(row), row)
    return list(seen.values())


# -- text -------------------------------------------------------------------------------------------------

_JOINER = "\u200d"  # glues two emoji into one
TEXT_CHARACTERS_MAX = 2_000  # of a description or a review, unless the caller says otherwise
_MARKS_MAX = 32  # a longer run of marks is noise, and is cut through


def cut(text: str, most: int = TEXT_CHARACTERS_MAX) -> str:
    """Cut text to this many characters, without tearing an accent from its letter or an emoji apart."""
    if len(text) <= most:
        return text
    ends = range(most, max(0, most - _MARKS_MAX), -1)
    return text[: next((end for end in ends if not _belongs_to_previous(text, end)), most)]


def _belongs_to_previous(text: str, at: int) -> bool:
    """Whether the character here is one with what stands before it."""
    character, previous = text[at], text[at - 1]
    return (
        unicodedata.category(character).startswith("M")
        or character == _JOINER
        or previous == _JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or ("\ud800" <= previous <= "\udbff" and "\udc00" <= character <= "\udfff")
        or (_is_flag_half(character) and _flag_halves_before(text, at) % 2 == 1)
    )


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_halves_before(text: str, at: int) -> int:
    start = at
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return at - start
