"""A process whose connection is gone says so before it looks for another one, and again when it has it."""

from __future__ import annotations

import pytest

from penstock.storage.postgres.store import PostgresStore
from tests.postgres import END_OTHERS, empty_database, look


@pytest.mark.fault("F22")
def test_a_lost_way_to_the_server_is_told_and_so_is_the_way_back() -> None:
    url, told = empty_database(), list[bool]()
    store = PostgresStore(url)
    writer = store.open_writer(now=1)
    presence = store.presence(writer.workers.me)
    try:
        presence.when_cut_off(told.append)
        assert presence.departed() == []
        assert told == []

        look(url, END_OTHERS)
        assert presence.departed() == []
        assert told == [True, False]
    finally:
        presence.leave()
