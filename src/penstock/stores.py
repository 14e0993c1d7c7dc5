"""Which store a database's address means, and which addresses mean none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from penstock.contracts.store import Lookout, Store
from penstock.model.errors import BadApp, BadConfig
from penstock.model.redaction import address_shown
from penstock.storage.sqlite.lookout import FileLookout
from penstock.storage.sqlite.store import SqliteStore

POSTGRES = ("postgresql://", "postgres://")


NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f\x7f]{1,100}")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# What libpq also takes: "host=db.example user=ada password=...".
LIBPQ = re.compile(r"(?:^|\s)(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=", re.IGNORECASE)
PORT = re.compile(r"(?:\[[^\]]*\]|[^\[\]:]*)(?::\d*)?")  # of one host: a name or [IPv6 address], and its port


def checked_name(name: object) -> str:
    """Return the name of an app, which names its database file. Raise BadApp where it cannot."""
    if isinstance(name, str) and NAME.fullmatch(name) and name.strip():
        return name
    raise BadApp(
        f"name is {str(name)[:200]!r}; an app is named by 1 to 100 characters without / and \\, not beginning with a dot.",
        name=name,
    )


def is_postgres(address: str) -> bool:
    return address.startswith(POSTGRES)


def is_address(word: str) -> bool:
    """Return whether a word is written as a database on a server is, supported or not."""
    return SCHEME.match(word) is not None or LIBPQ.search(word) is not None


def checked_address(given: object) -> str:
    """Return the address of a database, a path or a URL. Raise BadConfig, without the password, for anything else."""
    if not isinstance(given, str | Path) or not str(given).strip():
        shown = repr(given) if isinstance(given, str | int | float | None) else f"a {type(given).__name__}"
        raise BadConfig(
            f"database is {shown}. Give the path of a file, or postgresql://user@host/name.", field="database"
        )
    address = str(given)
    if LIBPQ.search(address) and not SCHEME.match(address):
        raise BadConfig(
            "database is a list of connection settings (host=... password=...). Write it as a URL: "
            "postgresql://user:password@host:5432/name.",
            field="database",
        )
    if is_postgres(address):
        authority = re.split(r"[/?#]", address.partition("://")[2], maxsplit=1)[0]
        if authority.count("@") > 1 or not all(
            PORT.fullmatch(host) for host in authority.rpartition("@")[2].split(",")
        ):
            raise BadConfig(
                f"database is {address_shown(address)}, which cannot be split into user, password, host and port. In a "
                "password write @ as %40, / as %2F, : as %3A, ? as %3F and # as %23.",
                field="database",
            )
    elif SCHEME.match(address) or address == ":memory:" or address.startswith("file:"):
        raise BadConfig(
            f"database is {address_shown(address)}. Penstock uses a SQLite file, named by its path, or a PostgreSQL server "
            f"({' or '.join(POSTGRES)}).",
            field="database",
        )
    return address


def store_at(address: str, **options: Any) -> Store:
    """A path is SQLite's, a URL PostgreSQL's, whose driver is loaded only then."""
    if not is_postgres(checked_address(address)):
        return SqliteStore(address, **options)
    try:
        from penstock.storage.postgres.store import PostgresStore
    except ImportError as error:
        raise BadConfig(
            f"The database is on PostgreSQL, and its driver is not installed ({error}): pip install 'penstock[postgres]'.",
            field="database",
        ) from error
    return PostgresStore(address, **options)


def lookout_at(address: str) -> Lookout:
    if not is_postgres(address):
        return FileLookout(Path(address).absolute())
    store_at(address)  # which says what to install where the driver is missing
    from penstock.storage.postgres.connection import PostgresSettings
    from penstock.storage.postgres.lookout import PostgresLookout

    return PostgresLookout(PostgresSettings(address))
