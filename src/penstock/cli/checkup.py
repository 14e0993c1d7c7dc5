"""What `penstock doctor` looks at: each check says what it found, whether that is well, and what to do if not."""

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

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.output import age_shown, bytes_shown
from penstock.config import FILE, Config
from penstock.data import overview
from penstock.model.errors import PenstockError
from penstock.model.forecast import Level
from penstock.runtime.clock import BELIEVED_MICROS
from penstock.runtime.worker import LOG_BYTES_WARNED
from penstock.storage.presence import is_locked
from penstock.storage.sqlite.bell import folder_for

PYTHON_LEAST = (3, 11)
FREE_LEAST, FREE_ENOUGH = 100_000_000, 1_000_000_000
BUILT = 1_767_225_600  # 2026-01-01: a clock before that is wrong
AHEAD_SECONDS_MOST = 60.0
CONNECTIONS_WARNED = 0.8  # of those that a server gives out
SNAPSHOT_SECONDS_WARNED = 600.0
SOCKET_PATH_MAX = 100
DECLARE = "Declare the queue again until it is empty, or remove what is in it: `penstock queues purge NAME`."
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "fuse.s3fs", "afs", "ceph", "glusterfs"}

QUICK = "select quick_check as answer from pragma_quick_check limit 5"
DEEP = "select integrity_check as answer from pragma_integrity_check limit 5"
NEWEST = """
select max(at) as at
from (
  select max(started_at) as at from penstock_workers
  union all
  select max(at) from penstock_sizes
  union all
  select cast(value as bigint) from penstock_facts where name = 'seen_at'
  union all
  select sent_at from (select sent_at from penstock_messages order by seq desc limit 1) as newest
) as times
"""
SERVER = """
select
  current_setting('server_version') as version,
  current_setting('fsync') as fsync,
  cast(current_setting('max_connections') as bigint) as most,
  (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
  (
    select cast(max(extract(epoch from clock_timestamp() - xact_start)) as double precision)
    from pg_stat_activity
    where pid <> pg_backend_pid()
    and backend_type = 'client backend'
  ) as oldest
"""
# The promise that nothing vanishes: what the counters say is waiting or dead is what there is.
UNBALANCED = """
select queue
from (
  select queue, sent - acked - dead - purged - expired as waiting, dead from penstock_counters
  union all
  select queue, -1, 0 from penstock_messages
  union all
  select queue, 0, -1 from penstock_dead where resolution is null
) as entries
group by queue
having sum(waiting) <> 0 or sum(dead) <> 0
limit 100
"""


class Check(NamedTuple):
    name: str
    status: Literal["ok", "warn", "fail"]
    message: str
    fix: str = ""


def machine() -> Iterator[Check]:
    """What can be said without a database."""
    python = f"Python {platform.python_version()}"
    if sys.version_info[:2] >= PYTHON_LEAST:
        yield Check("python", "ok", python)
    else:
        yield Check("python", "fail", f"{python} is too old.", "Install Python 3.11 or newer.")
    yield sqlite(apsw.sqlite_lib_version())
    now = time.time()
    if now < BUILT:
        yield Check("clock", "fail", f"The clock shows {time.ctime(now)}.", "Set it: due times depend on it.")
    try:
        Config.load()
        named = os.environ.get("PENSTOCK_CONFIG") or (FILE if Path(FILE).exists() else None)
        yield Check("config", "ok", f"{named} is valid." if named else f"No {FILE}: everything at its default.")
    except (PenstockError, OSError) as error:
        yield Check("config", "fail", str(error), "Correct the file, or take it away: every setting has a default.")


def sqlite(version: str) -> Check:
    """Several connections on one log, our very shape, could corrupt it before 3.51.3; 3.52.0 was withdrawn."""
    parts = tuple(int(part) for part in version.split("."))
    if (3, 51, 3) <= parts < (3, 52) or parts >= (3, 53):
        return Check("sqlite", "ok", f"SQLite {version}, with the fix for the WAL-reset bug.")
    return Check("sqlite", "fail", f"SQLite {version} may corrupt a file.", "pip install --upgrade apsw")


def surroundings(database: Path) -> Iterator[Check]:
    """The disk and the folders around a database file."""
    folder = database.absolute().parent
    if not folder.is_dir():
        yield Check("folder", "fail", f"{folder} does not exist.", f"mkdir -p {folder}")
        return
    if not os.access(folder, os.W_OK):
        yield Check("folder", "fail", f"{folder} cannot be written.", "Change its rights: SQLite keeps its log there.")
    kind = file_system(folder)
    if kind in REMOTE:
        yield Check("disk", "fail", f"{folder} is on {kind}, a network file system.", "Move it to a local disk.")
    free = shutil.disk_usage(folder).free
    if free < FREE_ENOUGH:
        status: Literal["warn", "fail"] = "fail" if free < FREE_LEAST else "warn"
        yield Check("disk", status, f"{bytes_shown(free)} free beside {database.name}.", "Free some space.")
    else:
        yield Check("disk", "ok", f"{bytes_shown(free)} free beside {database.name}.")
    yield _sockets(database)


def file_system(folder: Path) -> str:
    """The kind of file system, where the system tells (Linux)."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    inside = [(point, kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(inside, key=lambda mount: len(mount[0]), default=("", ""))[1]


def _sockets(database: Path) -> Check:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    fix = (
        "Set XDG_RUNTIME_DIR to a short path of your own. Without it workers notice each other's sends a second later."
    )
    try:
        folder = folder_for(database) if database.exists() else Path(base)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        return Check("sockets", "warn", f"Workers cannot wake each other in {base}: {error}.", fix)
    if not writable or len(str(folder)) + len("/1000000") > SOCKET_PATH_MAX:
        return Check("sockets", "warn", f"Workers cannot wake each other in {folder}: no rights or too long.", fix)
    return Check("sockets", "ok", f"Workers wake each other in {folder}.")


def database(target: targets.Target, *, deep: bool) -> Iterator[Check]:
    """What is inside, read without disturbing anybody."""
    try:
        with targets.reading(target) as reading:
            version = reading.lookout.schema_version()
            yield Check("database", "ok", f"{target.database} opens, schema {version}.")
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
        yield Check("database", "fail", str(error), str(error.facts.get("hint") or "See docs/operate/running.md."))


def _file(path: Path, reading: targets.OnlyReading, deep: bool) -> Iterator[Check]:
    began = time.monotonic()
    answers = [row.answer for row in reading.ask(DEEP if deep else QUICK)]
    took = f"({time.monotonic() - began:.1f} s)"
    if answers != ["ok"]:
        fix = "Stop all workers, keep the file, and restore the last backup."
        yield Check("integrity", "fail", f"The file is damaged: {'; '.join(answers)}.", fix)
        return
    yield Check("integrity", "ok", f"{'Every index and table' if deep else 'Every page'} is sound {took}.")
    yield Check("journal", "ok", "Write-ahead logging is on.")
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size > LOG_BYTES_WARNED:
        fix = "Some program holds a read transaction open on the file; end it."
        yield Check("log", "warn", f"{log.name} has grown to {bytes_shown(log.stat().st_size)}.", fix)
    if not Path(f"{path}-reserve").exists():
        fix = "A worker sets it aside when it starts and there is room."
        yield Check("reserve", "warn", "No space is set aside for settling work when the disk is full.", fix)


def _server(reading: targets.OnlyReading) -> Iterator[Check]:
    (row,) = reading.ask(SERVER)
    yield Check("server", "ok", f"PostgreSQL {row.version}.")
    if row.fsync == "off":
        fix = "Turn `fsync` on, unless everything may go with the power."
        yield Check("server", "warn", "It acknowledges commits that are not on the disk.", fix)
    if row.used >= row.most * CONNECTIONS_WARNED:
        fix = "Each worker holds up to seven. Raise `max_connections`, or run fewer workers."
        yield Check("server", "warn", f"{row.used} of {row.most} connections are in use.", fix)
    if (row.oldest or 0) > SNAPSHOT_SECONDS_WARNED:
        fix = "What it can still see cannot be cleared away. End that session (`pg_stat_activity` shows it)."
        yield Check("snapshot", "warn", f"A transaction has been open for {age_shown(row.oldest)}.", fix)


def _balance(reading: targets.OnlyReading) -> Iterator[Check]:
    unbalanced = [row.queue for row in reading.ask(UNBALANCED)]
    if unbalanced:
        fix = "This should never happen. Keep the database, and report it."
        yield Check("balance", "fail", f"Counters and rows differ: {', '.join(unbalanced)}.", fix)
    else:
        yield Check("balance", "ok", "Every message that was sent is accounted for.")


def _size_and_time(target: targets.Target, reading: targets.OnlyReading) -> Iterator[Check]:
    now = reading.now()
    cap = target.config.limits.database_bytes_max
    size = asyncio.run(overview.size(reading, reading.lookout.size_bytes(), cap_bytes=cap, now=now))
    if size.level is not Level.OK:
        yield Check(
            "size", "warn", str(size), "Prune or archive old rows (`db.prune`, `db.archive`), or raise the cap."
        )
    off = (now - time.time_ns() // 1_000) / 1_000_000
    if abs(off) > AHEAD_SECONDS_MOST:
        fix = "Everything goes by the server's clock. Set this one right: its logs tell other times."
        yield Check("clock", "warn", f"This clock and the server's are {age_shown(abs(off))} apart.", fix)
    (newest,) = reading.ask(NEWEST)
    ahead = ((newest.at or 0) - now) / 1_000_000
    if ahead > AHEAD_SECONDS_MOST:
        fix = "Set the clock right if it is wrong. " + (
            "If not, workers go on from that time, slowly, until the clock has caught up."
            if ahead * 1_000_000 <= BELIEVED_MICROS
            else "If not, a worker that has run for an hour makes what waits due that much sooner."
        )
        yield Check("clock", "warn", f"The database has seen a time {age_shown(ahead)} ahead of this clock.", fix)
    else:
        yield Check("clock", "ok", "The clock agrees with what the database has seen.")


def undeclared(app: App, reading: targets.OnlyReading) -> list[str]:
    """Return the queues that hold messages and that the app does not declare, with the number of their messages."""
    states = asyncio.run(overview.queues(reading, now=reading.now()))
    held = {state.name: state.ready + state.leased + state.delayed for state in states}
    return [f"{name} ({number:,})" for name, number in held.items() if number > 0 and name not in app.queues]


def _queues(found: list[str]) -> Check:
    if not found:
        return Check("queues", "ok", "Every queue that holds messages is declared by the app.")
    return Check(
        "queues", "warn", f"Messages wait in queues that the app does not declare: {', '.join(found)}.", DECLARE
    )


def _processes(reading: targets.OnlyReading) -> Iterator[Check]:
    listed = asyncio.run(overview.processes(reading))
    alive = [worker for worker in listed if reading.is_alive(worker) and worker.runs_handlers]
    gone = [worker for worker in listed if reading.is_alive(worker) is False]
    if gone:
        names = ", ".join(f"{worker.id} (pid {worker.pid})" for worker in gone)
        fix = "Nothing is lost: the next worker that starts returns what they held."
        yield Check("workers", "warn", f"Died: {names}.", fix)
    else:
        yield Check("workers", "ok", f"{len(alive)} run handlers, no process died.")


def _locks(path: Path, reading: targets.OnlyReading) -> Iterator[Check]:
    prefix = f"{path.name}-worker-"
    known = {f"{prefix}{worker.id}" for worker in asyncio.run(overview.processes(reading))}
    files = [each for each in path.absolute().parent.glob(f"{prefix}*") if each.name not in known]
    left = " ".join(each.name for each in files if not is_locked(each))
    if left:
        yield Check("locks", "warn", f"Lock files that nobody holds: {left}.", f"rm {left}")
    else:
        yield Check("locks", "ok", "No lock file is left over.")
