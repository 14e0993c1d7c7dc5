"""Gives every test of the contract each store in turn, and checks after each that nothing was lost or counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.contracts.store import Store
from penstock.storage.postgres.store import PostgresStore
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.inspection import Inspect, PostgresInspect, SqliteInspect, check_conservation
from tests.contract.material import Desk, rules
from tests.postgres import empty_database

Maker = Callable[[Path], "Made"]


@dataclass(frozen=True, slots=True)
class Made:
    """A store with nothing in it, as one process opens it; `another` is the same database opened by another."""

    store: Store
    another: Store
    inspect: Inspect


def make_sqlite(folder: Path) -> Made:
    path = folder / "contract.db"

    def opened() -> SqliteStore:
        # Power is never cut here, so nothing waits for the disk; `tests/luck` is about that.
        return SqliteStore(path, synchronous="off", reserve_bytes=100_000)

    return Made(opened(), opened(), SqliteInspect(path))


def make_postgres(folder: Path) -> Made:
    url = empty_database()

    def opened() -> PostgresStore:
        return PostgresStore(url)

    return Made(opened(), opened(), PostgresInspect(url))


MAKERS: dict[str, Maker] = {"sqlite": make_sqlite, "postgres": make_postgres}


@pytest.fixture(params=MAKERS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    return MAKERS[request.param](tmp_path)


@pytest.fixture
def store(made: Made) -> Store:
    return made.store


@pytest.fixture
def inspect(made: Made) -> Inspect:
    return made.inspect


@pytest.fixture
def desk(made: Made) -> Iterator[Desk]:
    """One writer on a fresh store. Afterwards the counters must agree with the rows."""
    with at_a_desk(made.store) as desk:
        yield desk
    check_conservation(made.inspect)
    assert made.inspect.is_sound()


@pytest.fixture
def neighbour(made: Made, desk: Desk) -> Iterator[Desk]:
    """A second writer on the same database, as another process would have it."""
    with at_a_desk(made.another) as neighbour:
        yield neighbour


@contextmanager
def at_a_desk(store: Store) -> Iterator[Desk]:
    desk = Desk(store)
    try:
        desk.workers.register_queues([rules()])
        yield desk
    finally:
        desk.close()
