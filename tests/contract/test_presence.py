"""A process is alive while it holds the lock of its list; what a dead one was running is read from what it left."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from penstock.contracts import running_handlers
from penstock.contracts.presence import Departed
from penstock.storage.presence import is_locked
from penstock.stores import lookout_at
from tests.contract.conftest import Made, at_a_desk, make_sqlite
from tests.contract.material import Desk
from tests.extent import patient


def wait_until(is_true: Callable[[], bool]) -> None:
    """A server notices in its own time that a client is gone."""
    ends = time.monotonic() + patient(10.0)
    while not is_true() and time.monotonic() < ends:
        time.sleep(0.001)


def test_a_process_that_died_is_found_with_what_it_was_running_until_it_is_forgotten(
    made: Made, desk: Desk, neighbour: Desk
) -> None:
    here, there = made.store.presence(desk.me), made.another.presence(neighbour.me)
    slot = running_handlers.HEADER_CELLS
    there.cells[running_handlers.USED] = 1
    there.cells[slot], there.cells[slot + 1] = running_handlers.KIND_MESSAGE, 77
    assert here.departed() == []

    there.vanish()
    wait_until(lambda: bool(here.departed()))
    assert here.departed() == here.departed() == [Departed(neighbour.me, [77], [])]

    desk.workers.retire(neighbour.me, now=desk.now)
    here.forget(neighbour.me)
    assert here.departed() == []
    assert not there.path.exists()
    here.leave()


def test_a_look_from_outside_sees_which_processes_live_and_what_they_run(
    made: Made, desk: Desk, neighbour: Desk
) -> None:
    here, there = made.store.presence(desk.me), made.another.presence(neighbour.me)
    lookout, host = lookout_at(made.store.location), socket.gethostname()
    with closing(lookout):
        assert [lookout.is_alive(each.me, host) for each in (desk, neighbour)] == [True, True]
        assert lookout.is_alive(neighbour.me + 1, host) is False
        cells = lookout.cells(desk.me)
        assert cells is not None
        assert cells[running_handlers.PID] == os.getpid()
        assert lookout.cells(neighbour.me + 1) is None

        there.vanish()
        wait_until(lambda: not lookout.is_alive(neighbour.me, host))
        assert lookout.is_alive(neighbour.me, host) is False
        here.leave()


def test_a_process_that_has_released_everything_leaves_nothing(made: Made, desk: Desk, neighbour: Desk) -> None:
    here, there = made.store.presence(desk.me), made.another.presence(neighbour.me)

    there.leave()

    assert not there.path.exists()
    assert here.departed() == []
    here.leave()


def test_a_file_beside_the_database_that_is_no_list_is_no_dead_process(tmp_path: Path) -> None:
    with at_a_desk(make_sqlite(tmp_path).store) as desk:
        here = desk.store.presence(desk.me)
        beside = here.path.name.removesuffix(str(desk.me))
        (tmp_path / f"{beside}notes").write_bytes(b"x")
        (tmp_path / f"{beside}77").touch()  # of a process that has not written its list yet
        (tmp_path / f"{beside}78").symlink_to(here.path)

        assert here.departed() == []
        here.leave()


def test_a_list_that_is_not_there_is_held_by_no_process(tmp_path: Path) -> None:
    with at_a_desk(make_sqlite(tmp_path).store) as desk:
        here = desk.store.presence(desk.me)
        (tmp_path / "link").symlink_to(here.path)

        assert is_locked(here.path)
        assert not is_locked(tmp_path / "link")
        here.leave()
        assert not is_locked(here.path)
