"""Servers for the peers that need one: each peer gets its own, empty, on this disk, and it is gone when the peer is done."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.place import full_server
from tests.postgres_server import binaries

START_SECONDS_MAX = 30.0


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
    try:
        with full_server(folder) as server:
            yield server.url()
    except (FileNotFoundError, RuntimeError) as error:
        raise NoServer(str(error)) from error


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
                command = [str(binaries() / "postgres"), "--version"]
            case _:
                return None
    except (NoServer, FileNotFoundError):
        return None
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


@contextmanager
def started(command: Sequence[str], port: int, folder: Path) -> Iterator[None]:
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=folder)
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
        process.kill()
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


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
