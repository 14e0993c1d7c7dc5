"""A process whose connection is gone says so before it looks for another one, and again when it has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.contracts.store import Reader
from penstock.model.errors import StatementFailed, StorageFull, StoreUnavailable
from penstock.storage.postgres import reader as reader_module
from penstock.storage.postgres.presence import PostgresPresence
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.postgres.store import PostgresStore
from tests.postgres import END_OTHERS, empty_database, look


@pytest.mark.fault("F22")
def test_a_lost_way_to_the_server_is_reported_and_so_is_the_way_back() -> None:
    with there() as (url, presence, told):
        assert presence.departed() == []
        assert told == []

        look(url, END_OTHERS)
        assert presence.departed() == []
        assert told == [True, False]


@pytest.mark.fault("F22")
def test_a_way_back_that_fails_at_its_end_is_gone_again_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would have a connection, and nobody would ever be told."""

    def full(_session: PostgresSession) -> None:
        raise StorageFull("The disk of the server is full.")

    with there() as (url, presence, told):
        look(url, END_OTHERS)
        with monkeypatch.context() as patched, pytest.raises(StorageFull):
            patched.setattr(PostgresSession, "_enrol_again", full)
            presence.departed()
        assert told == [True]

        assert presence.departed() == []
        assert told == [True, True, False]


@pytest.mark.fault("F22")
def test_a_query_whose_connection_was_lost_is_asked_again_on_another_one() -> None:
    with reading() as (url, reader):
        assert reader.read("select 1", {}, rows_max=1).values == [(1,)]
        look(url, END_OTHERS)

        assert reader.read("select 2", {}, rows_max=1).values == [(2,)]


@pytest.mark.fault("F22")
def test_a_query_that_loses_every_connection_fails_in_the_end_and_the_next_one_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_module, "PATIENCE_SECONDS", 0.2)
    with reading() as (_, reader):
        with pytest.raises(StatementFailed, match=r"The database refused a query: .*terminat"):
            reader.read("select pg_terminate_backend(pg_backend_pid())", {}, rows_max=1)

        assert reader.read("select 2", {}, rows_max=1).values == [(2,)]


@pytest.mark.fault("F22")
def test_a_server_that_stays_away_is_waited_for_and_then_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    def refuse(*_: object, **__: object) -> None:
        tried.append(time.perf_counter())
        raise StoreUnavailable("The server does not answer.")

    with reading() as (url, reader):
        look(url, END_OTHERS)
        monkeypatch.setattr(reader_module, "PATIENCE_SECONDS", 0.3)
        monkeypatch.setattr(reader_module, "AGAIN_SECONDS", 0.01)
        with monkeypatch.context() as patched, pytest.raises(StoreUnavailable):
            patched.setattr(reader_module, "connect", refuse)
            reader.read("select 2", {}, rows_max=1)

        assert len(tried) > 1
        assert tried[-1] - tried[0] >= 0.2
        assert reader.read("select 2", {}, rows_max=1).values == [(2,)]


@contextmanager
def reading() -> Iterator[tuple[str, Reader]]:
    url = empty_database()
    store = PostgresStore(url)
    store.open_writer(now=1).close()
    reader = store.open_reader()
    yield url, reader
    reader.close()


@contextmanager
def there() -> Iterator[tuple[str, PostgresPresence, list[bool]]]:
    url, told = empty_database(), list[bool]()
    store = PostgresStore(url)
    presence = store.presence(store.open_writer(now=1).workers.me)
    presence.when_cut_off(told.append)
    yield url, presence, told
    presence.leave()
