"""A process whose connection is gone says so before it looks for another one, and again when it has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.model.errors import StorageFull
from penstock.storage.postgres.presence import PostgresPresence
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.postgres.store import PostgresStore
from tests.postgres import END_OTHERS, empty_database, look


@pytest.mark.fault("F22")
def test_a_lost_way_to_the_server_is_told_and_so_is_the_way_back() -> None:
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


@contextmanager
def there() -> Iterator[tuple[str, PostgresPresence, list[bool]]]:
    url, told = empty_database(), list[bool]()
    store = PostgresStore(url)
    presence = store.presence(store.open_writer(now=1).workers.me)
    presence.when_cut_off(told.append)
    yield url, presence, told
    presence.leave()
