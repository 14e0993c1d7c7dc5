"""Opens connections that all behave alike, and says in words what PostgreSQL says in codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct, pack
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import NumericBinaryLoader, NumericLoader
from psycopg.types.string import TextBinaryLoader, TextLoader

from penstock.model.errors import BadConfig, StorageFull, StoreError, StoreUnavailable
from penstock.model.redaction import address_shown
from penstock.model.sql_files import load_all
from penstock.model.statement import to_psycopg

SYNCHRONOUS = {"full": "on", "normal": "off", "off": "off"}
CONNECT_SECONDS = 5
# A client or a server that is gone without a word is noticed within so long.
KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
OLDEST = 150_000  # `pg_stat_xact_*` is exact from 15 on

# The engine's own statements go by index, always: a plan that was made while a table was empty must not live on.
ENGINE_PLANS = "-c enable_seqscan=off -c enable_bitmapscan=off"
# The other side of `KEEPALIVE`, and an end to what a process that is stopped or cut off in a transaction keeps from others.
USUAL = (
    "-c jit=off -c timezone=UTC -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 "
    "-c tcp_user_timeout=15000 -c idle_in_transaction_session_timeout=10000"
)
READING = "-c default_transaction_read_only=on"

# Run the same again and it may go well: another transaction was faster.
CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)

_TABLES = re.compile(r"(?<!update of )\b(penstock_[a-z]+)\b(?!\()")
_LIST = re.compile(r"\b(not )?in carray\((:\w+)\)")
_MADE = re.compile(r"create (?:table|sequence) if not exists (penstock_\w+)")
# What the shared schema says in SQLite's words. `integer primary key` numbers its rows, with `not null` it does not.
_WORDS = {
    "integer primary key": "bigint generated always as identity primary key",
    "integer": "bigint",
    "blob": "bytea",
    "real": "double precision",
    "any": "text",
    "collate binary": 'collate "C"',
}
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b| autoincrement\b|(?<=\)) strict\b(?:, without rowid)?")
_SCHEMA = ("schema.", "history.create_", "history.index_", "points.create_", "points.index_")
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


@lru_cache(1)
def _loaded() -> dict[str, str]:
    return {
        name: _WORD.sub(lambda found: _WORDS.get(found[0], ""), sql) if _MADE.search(sql) else sql
        for name, sql in load_all("penstock.storage.postgres", "postgres").items()
    }


@lru_cache(1)
def tables() -> frozenset[str]:
    return frozenset(name for sql in _loaded().values() for name in _MADE.findall(sql))


def _qualified(sql: str) -> str:
    """An engine's statement with its schema, which is not on users' search path."""
    text = _TABLES.sub(lambda found: f"penstock.{found[1]}" if found[1] in tables() else found[1], sql)
    return text.replace("penstock.penstock.", "penstock.")


@lru_cache(1)
def statements() -> dict[str, str]:
    """The engine's statements as psycopg takes them, by file and name."""
    return {name: to_psycopg(_qualified(_LIST.sub(_array, sql))) for name, sql in _loaded().items()}


def _array(found: re.Match[str]) -> str:
    return f"<> all({found[2]})" if found[1] else f"= any({found[2]})"


def schema_statements() -> list[str]:
    return [_qualified(sql) for name, sql in _loaded().items() if name.startswith(_SCHEMA)]


class _NumberLoader(NumericLoader):
    def load(self, data: Any) -> Any:
        return _plain(super().load(data))


class _NumberBinaryLoader(NumericBinaryLoader):
    def load(self, data: Any) -> Any:
        return _plain(super().load(data))


def _plain(number: Decimal) -> int | float:
    """Sums of whole numbers are whole, averages are not: as SQLite has it."""
    return int(number) if number.is_finite() and number.as_tuple().exponent == 0 else float(number)


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """How a PostgreSQL database is reached."""

    url: str
    synchronous: str = "full"
    metered: bool = True

    @property
    def shown(self) -> str:
        """The address without its password."""
        return address_shown(self.url)


def connect(
    settings: PostgresSettings, *, options: str = "", name: str = "penstock"
) -> psycopg.Connection[tuple[Any, ...]]:
    """Nothing begins by itself: every transaction is begun and ended by a statement."""
    with translated(settings):
        connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            settings.url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name=name,
            options=f"-c synchronous_commit={SYNCHRONOUS[settings.synchronous]} {USUAL} {options}",
            prepare_threshold=2,
            **KEEPALIVE,
        )
    if connection.info.server_version < OLDEST:
        version = connection.info.server_version // 10_000
        connection.close()
        raise StoreUnavailable(f"{settings.shown} runs PostgreSQL {version}; Penstock needs 15 or newer.")
    adapters = connection.adapters
    adapters.register_loader("numeric", _NumberLoader)
    adapters.register_loader("numeric", _NumberBinaryLoader)
    for type_name in ("json", "jsonb"):
        adapters.register_loader(type_name, TextLoader)
    adapters.register_loader("json", TextBinaryLoader)
    return connection


def is_lost(connection: psycopg.Connection[Any], error: BaseException) -> bool:
    """Whether the connection is gone, rather than a statement wrong."""
    fatal = isinstance(error, psycopg.Error) and error.diag.severity_nonlocalized in {"FATAL", "PANIC"}
    return connection.closed or fatal


@contextmanager
def translated(settings: PostgresSettings) -> Iterator[None]:
    """Turns what the server did into an error a person can act on. Errors of a statement pass through."""
    try:
        yield
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StorageFull(f"The disk of {settings.shown} is full; nothing was saved. Free some space.") from error
    except (errors.InvalidPassword, errors.InvalidAuthorizationSpecification, errors.InvalidCatalogName) as error:
        raise StoreUnavailable(f"{settings.shown} refuses the login: {first_line(error)}.") from error
    except psycopg.OperationalError as error:
        if isinstance(error, CONFLICTS):
            raise
        raise StoreUnavailable(f"{settings.shown} cannot be reached: {first_line(error)}.") from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:  # psycopg's own: the address makes no sense
            raise BadConfig(
                f"{settings.shown!r} is not the address of a PostgreSQL database: {first_line(error)}. It looks like "
                "postgresql://user@host:5432/name.",
                field="database",
                value=settings.shown,
            ) from error
        raise


def failed(settings: PostgresSettings, error: psycopg.Error) -> StoreError:
    """One of the engine's own statements was refused: its tables are not as they were made."""
    return StoreError(
        f"{settings.shown}: PostgreSQL refused one of Penstock's own statements: {first_line(error)}. Its tables or rights "
        "have been changed; restore them (`penstock doctor` names what is missing).",
        cause=first_line(error),
    )


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
