"""Several processes write to one file, and one of them holds it for seconds: everybody waits, nobody is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.storage.sqlite.store import SqliteStore
from tests.contract.inspection import Counted, SqliteInspect, check_conservation
from tests.contract.material import ORDERS, Desk
from tests.extent import patient
from tests.luck.contender import HOLD_SECONDS

pytestmark = pytest.mark.fault("F18")

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, WRITES = 4, 150
PATIENCE_SECONDS = 60


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.luck.contender", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def heard(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{word}\n"


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def fight(path: Path) -> list[list[float]]:
    """How long each write of each process took. The file is held when they begin."""
    Desk(SqliteStore(path, reserve_bytes=4_000_000)).close()
    holder = start("hold", str(path))
    writers = [start("write", str(path), str(WRITES)) for _ in range(PROCESSES)]
    for process in (holder, *writers):
        heard(process, "ready")
    go(holder)
    heard(holder, "holding")
    for process in writers:
        go(process)
    waits = []
    for process in (*writers, holder):
        answer, errors = process.communicate(timeout=patient(PATIENCE_SECONDS))
        assert process.returncode == 0, errors
        waits.append(json.loads(answer))
    return waits[:PROCESSES]


def p99(waits: list[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.99)]


def test_no_process_gets_the_error_that_the_database_is_locked(
    path: Path, inspect: SqliteInspect, note: Callable[[str], None]
) -> None:
    waits = fight(path)

    assert [len(each) for each in waits] == [WRITES] * PROCESSES
    assert inspect.counted() == {ORDERS: Counted(sent=PROCESSES * WRITES)}
    check_conservation(inspect)
    everybody = [wait for each in waits for wait in each]
    longest = max(everybody)
    note(
        f"F18: {PROCESSES} processes of {WRITES} writes, one more held the file for {HOLD_SECONDS:g} s: "
        f"p99 {p99(everybody) * 1000:.0f} ms, longest {longest * 1000:.0f} ms"
    )
    assert p99(everybody) < patient(2.0)
    assert HOLD_SECONDS / 2 < longest < HOLD_SECONDS + patient(5.0), (
        "everybody waited for the one, and nobody much longer"
    )
