"""Everything that a database holds, read by nobody who moved it: in plain Python values that can be compared."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import psycopg

from penstock.stores import is_postgres

# Left out: what belongs to processes, what each store has in its own way, and when the history was noted.
ENGINES = "messages dead queues seen timers ticks objects items classes workers counters once usage sizes".split()
USERS = ("shops", "goods", "arrivals", "words")
HISTORY = {
    "sqlite": "select correlation_id, message_id, causation_id, kind, service, queue, name, source, attempt, status, "
    "ended_at, started_at, error from told order by 11, 2",
    "postgres": "select correlation_id, id, causation_id, kind, service, queue, name, source, attempt, status, ended_at, "
    "started_at, error from penstock_history join penstock_labels using (label) order by 11, 2",
}
MINUTES = {
    "sqlite": "select minute, name, status, count from minutes join labels using (label)",
    "postgres": "select minute, name, status, count from penstock_minutes join penstock_labels using (label)",
}


def content(database: str) -> dict[str, list[Any]]:
    found = {name: rows(database, f"select * from penstock_{name}") for name in ENGINES}
    found |= {name: rows(database, f"select * from {name}") for name in USERS}
    dialect = "postgres" if is_postgres(database) else "sqlite"
    past = database if is_postgres(database) else f"{database}-history"
    found["history"] = rows(past, HISTORY[dialect])
    found["minutes"] = rows(past, MINUTES[dialect])
    return found


def rows(database: str, sql: str) -> list[Any]:
    if is_postgres(database):
        with psycopg.connect(database, options="-c search_path=public,penstock -c timezone=UTC") as connection:
            got: Any = connection.execute(sql.encode()).fetchall()
    else:
        assert Path(database).exists()
        opened = apsw.Connection(database)
        got = opened.execute(sql).fetchall()
        opened.close()
    return sorted((tuple(plain(value) for value in row) for row in got), key=repr)


def plain(value: Any) -> Any:
    """One form for what the two write differently."""
    match value:
        case bool():
            return int(value)
        case Decimal():
            return plain(float(value))
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case dict() | list():
            return json.dumps(value, sort_keys=True)
        case str() if value.startswith("{") and value.endswith("}"):
            return json.dumps(json.loads(value), sort_keys=True)
        case float() if value.is_integer():
            return int(value)
        case memoryview() | bytes():
            return bytes(value)
    return value
