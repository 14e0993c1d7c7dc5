"""`penstock doctor`: checks the machine, the settings and a database, and says what to do about each problem."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import apsw
import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.command import CliCommand
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Marked
from penstock.config import FILE, Config
from penstock.data.usage import size as size_now
from penstock.model.errors import PenstockError, StoreUnavailable
from penstock.model.forecast import Level
from penstock.model.sql_files import load
from penstock.runtime.clock import BELIEVED_MICROS
from penstock.runtime.worker import LOG_BYTES_WARNED
from penstock.storage.presence import is_locked
from penstock.storage.sqlite.bell import folder_for
from penstock.views import queues
from penstock.views.observer import Observer, Target
from penstock.views.view import bytes_text, counted, span_text

PYTHON_LEAST = (3, 11)
FREE_LEAST, FREE_ENOUGH = 100_000_000, 1_000_000_000
BUILT = 1_767_225_600  # 2026-01-01: a clock before that is wrong
AHEAD_SECONDS_MOST = 60.0
CONNECTIONS_WARNED = 0.8  # of those that a server gives out
SNAPSHOT_SECONDS_WARNED = 600.0
SOCKET_PATH_MAX = 100
DECLARE = "Declare the queue again until it is empty, or delete its messages: penstock queues purge NAME"
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "fuse.s3fs", "afs", "ceph", "glusterfs"}

SQL = load("penstock.cli", "doctor.sql")
QUICK = "select quick_check as answer from pragma_quick_check limit 5"
DEEP = "select integrity_check as answer from pragma_integrity_check limit 5"


class DoctorCheck(NamedTuple):
    name: str
    status: Literal["ok", "warn", "fail"]
    message: str
    fix: str = ""


@click.command(cls=CliCommand)
@targets.target_argument
@targets.database_option
@click.option("--deep", is_flag=True, help="Read everything: indexes too, and whether each message is accounted for.")
def doctor(target: str | None, database: str | None, deep: bool) -> Answer:
    """Check the machine, the settings and a database, and say what to do.

    It checks versions, settings, the disk, the file and the processes that use it. It changes nothing, and may run beside
    workers. Exit code 1 if a check failed.

    Example:
      penstock doctor
      penstock doctor market.py --deep
    """
    checks = _examine(target, database, deep)
    failed, warned = (sum(check.status == status for check in checks) for status in ("fail", "warn"))
    facts = {"passed": not failed, "checks": [check._asdict() for check in checks]}
    marks = [
        Marked(f"{check.status:<4}", f"{check.name:<9} {check.message}", *([f"→ {check.fix}"] if check.fix else []))
        for check in checks
    ]
    count = counted(len(checks), "check")
    total = f"{count}, {failed} failed, {counted(warned, 'warning')}." if failed or warned else f"{count}, all passed."
    return Answer(facts, *marks, "", total, code=BAD_ANSWER if failed else FINE)


def _examine(target: str | None, database: str | None, deep: bool) -> list[DoctorCheck]:
    checks = list(machine())
    if any(check.name == "config" and check.status == "fail" for check in checks):
        return checks
    try:
        found = targets.find(target, database)
    except StoreUnavailable as error:
        return [*checks, DoctorCheck("database", "warn", str(error), targets.NEXT_STEP)]
    except PenstockError as error:
        return [
            *checks,
            DoctorCheck("app", "fail", str(error), "Correct it, or check the database alone with --database."),
        ]
    if found.file is not None:
        checks += surroundings(found.file)
    if found.app is not None and _is_missing(found):
        fix = f"Create it with: penstock run {target}"
        return [*checks, DoctorCheck("database", "warn", f"There is no database {found.database} yet.", fix)]
    return [*checks, *database_checks(found, deep=deep)]


def _is_missing(found: Target) -> bool:
    try:
        return not targets.is_there(found)
    except PenstockError:
        return False  # it is there, and the checks say what is wrong with it


def machine() -> Iterator[DoctorCheck]:
    """Check what needs no database."""
    python = f"Python {platform.python_version()}"
    if sys.version_info[:2] >= PYTHON_LEAST:
        yield DoctorCheck("python", "ok", python)
    else:
        yield DoctorCheck("python", "fail", f"{python} is too old.", "Install Python 3.11 or newer.")
    yield sqlite(apsw.sqlite_lib_version())
    now = time.time()
    if now < BUILT:
        yield DoctorCheck("clock", "fail", f"The clock shows {time.ctime(now)}.", "Set it: due times depend on it.")
    try:
        Config.load()
        named = os.environ.get("PENSTOCK_CONFIG") or (FILE if Path(FILE).exists() else None)
        yield DoctorCheck(
            "config", "ok", f"{named} is valid." if named else f"No {FILE}: every setting has its default."
        )
    except (PenstockError, OSError) as error:
        yield DoctorCheck("config", "fail", str(error), "Correct the file, or remove it: every setting has a default.")


def sqlite(version: str) -> DoctorCheck:
    """Several connections on one log, as Penstock has them, could corrupt it before 3.51.3; 3.52.0 was withdrawn."""
    parts = tuple(int(part) for part in version.split("."))
    if (3, 51, 3) <= parts < (3, 52) or parts >= (3, 53):
        return DoctorCheck("sqlite", "ok", f"SQLite {version}, with the fix for the WAL-reset bug.")
    return DoctorCheck("sqlite", "fail", f"SQLite {version} may corrupt a file.", "pip install --upgrade apsw")


def surroundings(database: Path) -> Iterator[DoctorCheck]:
    """Check the disk and the folders of a database file."""
    folder = database.absolute().parent
    if not folder.is_dir():
        yield DoctorCheck("folder", "fail", f"{folder} does not exist.", f"mkdir -p {folder}")
        return
    if not os.access(folder, os.W_OK):
        yield DoctorCheck(
            "folder", "fail", f"{folder} cannot be written.", "Change its rights: SQLite keeps its log there."
        )
    kind = file_system(folder)
    if kind in REMOTE:
        yield DoctorCheck("disk", "fail", f"{folder} is on {kind}, a network file system.", "Move it to a local disk.")
    free = shutil.disk_usage(folder).free
    if free < FREE_ENOUGH:
        status: Literal["warn", "fail"] = "fail" if free < FREE_LEAST else "warn"
        yield DoctorCheck("disk", status, f"{bytes_text(free)} free beside {database.name}.", "Free some space.")
    else:
        yield DoctorCheck("disk", "ok", f"{bytes_text(free)} free beside {database.name}.")
    yield _sockets(database)


def file_system(folder: Path) -> str:
    """Return the kind of file system, where the system says (Linux)."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    inside = [(point, kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(inside, key=lambda mount: len(mount[0]), default=("", ""))[1]


def _sockets(database: Path) -> DoctorCheck:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    fix = (
        "Set XDG_RUNTIME_DIR to a short path of your own. Without it workers notice each other's sends a second later."
    )
    try:
        folder = folder_for(database) if database.exists() else Path(base)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        return DoctorCheck("sockets", "warn", f"Workers cannot wake each other in {base}: {error}.", fix)
    if not writable or len(str(folder)) + len("/1000000") > SOCKET_PATH_MAX:
        return DoctorCheck(
            "sockets", "warn", f"Workers cannot wake each other in {folder}: no rights or too long.", fix
        )
    return DoctorCheck("sockets", "ok", f"Workers wake each other in {folder}.")


def database_checks(target: Target, *, deep: bool) -> Iterator[DoctorCheck]:
    """Check the content, beside running workers."""
    try:
        with targets.reading(target) as reading:
            version = reading.lookout.schema_version()
            yield DoctorCheck("database", "ok", f"{target.database} opens, schema {version}.")
            if target.file is None:
                yield from _server(reading)
            else:
                yield from _file(target.file, reading, deep)
            yield from _balance(reading) if deep else ()
            yield from _size_and_time(target, reading)
            if target.app is not None:
                yield _queues(undeclared(target.app, reading))
            yield from _processes(reading)
            if target.file is not None:
                yield from _locks(target.file, reading)
    except PenstockError as error:
        yield DoctorCheck(
            "database", "fail", str(error), str(error.facts.get("hint") or "See docs/operate/running.md.")
        )


def _file(path: Path, reading: Observer, deep: bool) -> Iterator[DoctorCheck]:
    began = time.monotonic()
    answers = [row.answer for row in reading.read(DEEP if deep else QUICK)]
    took = f"({time.monotonic() - began:.1f} s)"
    if answers != ["ok"]:
        fix = "Stop all workers, keep the file, and restore the last backup."
        yield DoctorCheck("integrity", "fail", f"The file is damaged: {'; '.join(answers)}.", fix)
        return
    yield DoctorCheck("integrity", "ok", f"{'Every index and table' if deep else 'Every page'} is sound {took}.")
    yield DoctorCheck("journal", "ok", "Write-ahead logging is on.")
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size > LOG_BYTES_WARNED:
        fix = "Another program holds a read transaction open on the file; end it."
        yield DoctorCheck("log", "warn", f"{log.name} has grown to {bytes_text(log.stat().st_size)}.", fix)
    if not Path(f"{path}-reserve").exists():
        fix = "A worker reserves it when it starts, if there is room."
        yield DoctorCheck("reserve", "warn", "No space is reserved for settling messages when the disk is full.", fix)


def _server(reading: Observer) -> Iterator[DoctorCheck]:
    (row,) = reading.read(SQL["server"])
    yield DoctorCheck("server", "ok", f"PostgreSQL {row.version}.")
    if row.fsync == "off":
        fix = "Turn `fsync` on, unless the data may be lost in a power failure."
        yield DoctorCheck("server", "warn", "It acknowledges commits that are not on the disk.", fix)
    if row.used >= row.most * CONNECTIONS_WARNED:
        fix = "A worker uses up to seven. Raise `max_connections`, or run fewer workers."
        yield DoctorCheck("server", "warn", f"{row.used} of {row.most} connections are in use.", fix)
    if (row.oldest or 0) > SNAPSHOT_SECONDS_WARNED:
        fix = "Rows that it can still see cannot be vacuumed. End that session (`pg_stat_activity` shows it)."
        yield DoctorCheck("snapshot", "warn", f"A transaction has been open for {span_text(row.oldest)}.", fix)


def _balance(reading: Observer) -> Iterator[DoctorCheck]:
    unbalanced = [row.queue for row in reading.read(SQL["unbalanced"])]
    if unbalanced:
        fix = "This is a bug. Keep the database, and report it."
        yield DoctorCheck("balance", "fail", f"Counters and rows differ: {', '.join(unbalanced)}.", fix)
    else:
        yield DoctorCheck("balance", "ok", "Every message that was sent is accounted for.")


def _size_and_time(target: Target, reading: Observer) -> Iterator[DoctorCheck]:
    now = reading.now()
    cap = target.config.limits.database_bytes_max
    size = asyncio.run(size_now(reading, reading.lookout.size_bytes(), cap_bytes=cap, now=now))
    if size.level is not Level.OK:
        yield DoctorCheck(
            "size", "warn", str(size), "Prune or archive old rows (`db.prune`, `db.archive`), or raise the cap."
        )
    off = (now - time.time_ns() // 1_000) / 1_000_000
    if abs(off) > AHEAD_SECONDS_MOST:
        fix = "Due times follow the server's clock. Correct this one: its logs have other times."
        yield DoctorCheck("clock", "warn", f"This clock and the server's differ by {span_text(abs(off))}.", fix)
    (newest,) = reading.read(SQL["newest"])
    ahead = ((newest.at or 0) - now) / 1_000_000
    if ahead > AHEAD_SECONDS_MOST:
        fix = "Correct the clock if it is wrong. " + (
            "If not, workers continue from that time, slowly, until the clock has caught up."
            if ahead * 1_000_000 <= BELIEVED_MICROS
            else "If not, a worker that has run for an hour makes waiting messages due that much sooner."
        )
        yield DoctorCheck(
            "clock", "warn", f"The database has recorded a time {span_text(ahead)} ahead of this clock.", fix
        )
    else:
        yield DoctorCheck("clock", "ok", "The clock agrees with the times in the database.")


def undeclared(app: App, reading: Observer) -> list[str]:
    """Return the queues that hold messages and that the app does not declare, with the number of their messages."""
    states = asyncio.run(queues.rows(reading, now=reading.now()))
    held = {row["name"]: row["ready"] + row["leased"] + row["delayed"] for row in states}
    return [f"{name} ({number:,})" for name, number in held.items() if number > 0 and name not in app.queues]


def _queues(found: list[str]) -> DoctorCheck:
    if not found:
        return DoctorCheck("queues", "ok", "Every queue that holds messages is declared by the app.")
    return DoctorCheck(
        "queues", "warn", f"Messages wait in queues that the app does not declare: {', '.join(found)}.", DECLARE
    )


def _processes(reading: Observer) -> Iterator[DoctorCheck]:
    listed = asyncio.run(queues.processes(reading))
    alive = [worker for worker in listed if reading.is_alive(worker) and worker.runs_handlers]
    gone = [worker for worker in listed if reading.is_alive(worker) is False]
    if gone:
        names = ", ".join(f"{worker.id} (pid {worker.pid})" for worker in gone)
        fix = "No message is lost: the next worker that starts releases those that they held."
        yield DoctorCheck("workers", "warn", f"Died: {names}.", fix)
    else:
        yield DoctorCheck("workers", "ok", f"{counted(len(alive), 'worker')}, no process died.")


def _locks(path: Path, reading: Observer) -> Iterator[DoctorCheck]:
    prefix = f"{path.name}-worker-"
    known = {f"{prefix}{worker.id}" for worker in asyncio.run(queues.processes(reading))}
    files = [each for each in path.absolute().parent.glob(f"{prefix}*") if each.name not in known]
    left = " ".join(each.name for each in files if not is_locked(each))
    if left:
        yield DoctorCheck("locks", "warn", f"Lock files of ended processes: {left}.", f"rm {left}")
    else:
        yield DoctorCheck("locks", "ok", "No lock file of an ended process.")
