"""A look at a PostgreSQL database from outside: its size, and the locks and lists of its processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from penstock.storage.postgres.connection import READING, PostgresSettings, connect, failed, statements, translated
from penstock.storage.postgres.presence import path_in
from penstock.storage.postgres.schema import found_in
from penstock.storage.presence import cells_at, is_locked
from penstock.storage.private import runtime_path
from penstock.storage.schema import check


class PostgresLookout:
    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._sql = statements()
        self._connection = connect(settings, options=READING, name="penstock lookout")

    def schema_version(self) -> int:
        with translated(self._settings):
            found = found_in(self._connection)
        check(found, self._settings.shown)
        return found

    def is_alive(self, worker: int, host: str) -> bool | None:
        """The server knows, wherever the worker runs; one on this host may have just lost its connection."""
        if self._value("workers.is_locked", {"worker": worker}):
            return True
        folder = self._folder()
        return folder is not None and is_locked(path_in(folder, worker))

    def cells(self, worker: int) -> memoryview | None:
        folder = self._folder()
        return None if folder is None else cells_at(path_in(folder, worker))

    def _folder(self) -> Path | None:
        identity = self._value("workers.known_identity")
        return None if identity is None else runtime_path(identity)

    def size_bytes(self) -> int:
        return int(self._value("upkeep.size"))

    def server_time(self) -> int | None:
        return int(self._value("upkeep.server_time"))

    def close(self) -> None:
        self._connection.close()

    def _value(self, statement: str, bound: dict[str, Any] | None = None) -> Any:
        try:
            with translated(self._settings):
                row = self._connection.execute(self._sql[statement], bound or {}).fetchone()
        except psycopg.Error as error:
            raise failed(self._settings, error) from error
        return None if row is None else row[0]
