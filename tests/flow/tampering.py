"""A hand in the engine's own tables, for tests about what somebody else broke. Works on either store."""

from __future__ import annotations

from typing import Any

import apsw
import psycopg


def tamper(database: str, statement: str, **bound: Any) -> None:
    """Runs a statement with :names on a connection of its own."""
    if database.startswith("postgresql:"):
        for name in bound:
            statement = statement.replace(f":{name}", f"%({name})s")
        with psycopg.connect(database, options="-c search_path=penstock,public") as connection:
            connection.execute(statement.encode(), bound)
        return
    file = apsw.Connection(database)
    file.set_busy_timeout(10_000)
    try:
        file.execute(statement, bound)
    finally:
        file.close()
