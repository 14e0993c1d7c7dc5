"""A process that writes to a database others write to as well, and prints how long each of its writes took."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import apsw

from penstock.storage.sqlite.store import SqliteStore
from tests.contract.material import Desk, message, sheet

HOLD_SECONDS = 3.0


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def begin() -> None:
    """Waits until all are ready."""
    say("ready")
    sys.stdin.readline()


def write(path: Path, times: int) -> list[float]:
    desk = Desk(SqliteStore(path, reserve_bytes=4_000_000))
    begin()
    waits = []
    for number in range(times):
        unit = sheet(message(b"x", id=os.getpid().to_bytes(8, "big") + number.to_bytes(8, "big")))
        began = time.perf_counter()
        desk.commit(unit)
        waits.append(time.perf_counter() - began)
    desk.workers.retire(desk.me, now=desk.now)
    desk.close()
    return waits


def hold(path: Path) -> list[float]:
    """Somebody else's program, which knows nothing of turns and forgets to commit for a while."""
    connection = apsw.Connection(str(path))
    begin()
    connection.set_busy_timeout(30_000)
    connection.execute("begin immediate")
    say("holding")
    time.sleep(HOLD_SECONDS)
    connection.execute("commit")
    connection.close()
    return []


if __name__ == "__main__":
    database = Path(sys.argv[2])
    sys.stdout.write(json.dumps(hold(database) if sys.argv[1] == "hold" else write(database, int(sys.argv[3]))))
