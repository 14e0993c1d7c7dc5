"""A warm parent of short-lived processes: it imports everything once, then forks a real process for each request.

It never opens a database or starts a thread, so a child begins as clean as a fresh interpreter, half a second sooner.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
from typing import Any

import msgspec

from penstock.storage.postgres.connection import statements

# All that does not look at the environment, which each child has of its own.
WARM = (
    "penstock",
    "penstock.cli.run",
    "penstock.cli.worker",
    "penstock.runtime.crashpoints",
    "penstock.storage.postgres.store",
    "tests.crash.oracle",
)


class Request(msgspec.Struct):
    """Start `module:function` with these arguments, or tell whether process `poll` has ended."""

    start: str = ""
    arguments: dict[str, Any] = {}
    environment: dict[str, str] = {}
    output: str = os.devnull
    poll: int = 0


class Answer(msgspec.Struct):
    """`code` once it has ended; `stopped` is said once for each time that a signal stopped it."""

    pid: int
    code: int | None = None
    stopped: bool = False


def main() -> None:
    for module in WARM:
        importlib.import_module(module)
    statements()  # read and put into PostgreSQL's words once, for all of them
    gc.freeze()
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    for line in requests:
        request = msgspec.json.decode(line, type=Request)
        answer = started(request) if request.start else polled(request.poll)
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()
    os.killpg(0, signal.SIGKILL)  # the test run is gone: nobody else would end our children


def polled(pid: int) -> Answer:
    found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
    if found and os.WIFSTOPPED(status):
        return Answer(pid, stopped=True)
    return Answer(pid, os.waitstatus_to_exitcode(status) if found else None)


def started(request: Request) -> Answer:
    pid = os.fork()
    if pid == 0:
        child(request)
    return Answer(pid)


def child(request: Request) -> None:
    code = 70
    try:
        output = os.open(request.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 64)  # the pipes to the test belong to the parent alone
        os.environ.update(request.environment)
        module, _, function = request.start.partition(":")
        code = getattr(importlib.import_module(module), function)(**request.arguments) or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
