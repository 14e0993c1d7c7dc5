"""Wake-ups between processes on one file: what one rings the others hear, and what is broken is stepped over."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.storage.sqlite.bell import HEARD_AT_ONCE, NAMES_BYTES_MAX, SocketBell, folder_for
from tests.real_time import in_real_time


class Heard:
    """What one bell heard, in the order in which it came."""

    def __init__(self) -> None:
        self.all: list[set[str]] = []
        self._news = asyncio.Event()

    def __call__(self, queues: set[str]) -> None:
        self.all.append(queues)
        self._news.set()

    async def next(self) -> set[str]:
        async with asyncio.timeout(30):
            await self._news.wait()
        self._news.clear()
        return self.all[-1]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "a.db").touch()
    with tempfile.TemporaryDirectory(prefix="bell") as short:  # a socket's path may have about 100 characters
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        yield tmp_path / "a.db"
        assert [*Path(short).glob("penstock-*/*/*")] == [], "a socket is left over"


async def rung(bell: SocketBell, ears: list[Heard], *queues: str) -> list[set[str]]:
    bell.ring(queues)
    return [await heard.next() for heard in ears]


@in_real_time
async def test_all_others_hear_which_queues_have_news_and_no_process_hears_itself(database: Path) -> None:
    bells, ears = [SocketBell(database, worker) for worker in (1, 2, 3)], [Heard() for _ in range(3)]
    for bell, heard in zip(bells, ears, strict=True):
        bell.listen(heard)

    assert await rung(bells[0], ears[1:], "orders", "bills") == [{"orders", "bills"}] * 2
    assert await rung(bells[1], [ears[0], ears[2]], "orders") == [{"orders"}] * 2
    assert len(ears[0].all) == 1
    for bell in bells:
        bell.close()


@in_real_time
async def test_a_list_of_queues_that_is_too_long_means_any(database: Path) -> None:
    ringing, listening, heard = SocketBell(database, 1), SocketBell(database, 2), Heard()
    listening.listen(heard)

    assert await rung(ringing, [heard], "q" * NAMES_BYTES_MAX) == [{"q" * NAMES_BYTES_MAX}]
    assert await rung(ringing, [heard], "q" * (NAMES_BYTES_MAX + 1)) == [set()]
    ringing.close()
    listening.close()


@in_real_time
async def test_many_rings_are_heard_a_portion_at_a_time(database: Path) -> None:
    ringing, listening, heard = SocketBell(database, 1), SocketBell(database, 2), Heard()
    listening.listen(heard)
    for number in range(HEARD_AT_ONCE // 8):
        ringing.ring([str(number)])

    assert await heard.next() == {str(number) for number in range(HEARD_AT_ONCE // 8)}
    ringing.close()
    listening.close()


@in_real_time
async def test_one_that_died_is_forgotten_and_the_rest_still_hear(database: Path) -> None:
    ringing, dying, listening, heard = *(SocketBell(database, worker) for worker in (1, 2, 3)), Heard()
    dying.listen(Heard())
    listening.listen(heard)
    asyncio.get_running_loop().remove_reader(dying._socket.fileno())
    dying._socket.close()  # as the kernel does for a process that is killed

    assert await rung(ringing, [heard], "orders") == [{"orders"}]
    assert not dying._own.exists()
    ringing.close()
    listening.close()


@in_real_time
async def test_one_that_comes_later_is_heard_of_and_one_without_neighbours_rings_in_vain(database: Path) -> None:
    ringing, later, heard = SocketBell(database, 1), SocketBell(database, 2), Heard()
    ringing.ring(["orders"])
    later.listen(heard)

    assert await rung(ringing, [heard], "orders") == [{"orders"}]
    later.close()
    ringing.ring(["orders"])
    ringing.close()


@in_real_time
async def test_the_folder_goes_with_the_last_listener_and_is_made_again(database: Path) -> None:
    first, second = SocketBell(database, 1), SocketBell(database, 2)
    first.listen(Heard())
    first.close()
    assert second._folder.name not in os.listdir(second._folder.parent)

    heard, third = Heard(), SocketBell(database, 3)
    os.rmdir(second._folder)
    second.ring(["orders"])  # there is no folder
    second.listen(heard)

    assert await rung(third, [heard], "orders") == [{"orders"}]
    assert second._folder == folder_for(database)
    second.close()
    third.close()
