"""Which store a database's address means."""

from __future__ import annotations

from typing import Any

from penstock.contracts.store import Store
from penstock.model.errors import BadConfig
from penstock.storage.sqlite.store import SqliteStore

POSTGRES = ("postgresql://", "postgres://")


def is_postgres(address: str) -> bool:
    return address.startswith(POSTGRES)


def store_at(address: str, **options: Any) -> Store:
    """A path is SQLite's, a URL PostgreSQL's, whose driver is loaded only then."""
    if not is_postgres(address):
        return SqliteStore(address, **options)
    try:
        from penstock.storage.postgres.store import PostgresStore
    except ImportError as error:
        raise BadConfig(
            f"The database is on PostgreSQL, and its driver is not installed ({error}): pip install 'penstock[postgres]'.",
            field="database",
        ) from error
    return PostgresStore(address, **options)
