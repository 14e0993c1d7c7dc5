"""Starts the stand-ins of an app as processes of their own, and ends them."""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from penstock.model.errors import BadApp

PR_SET_PDEATHSIG = 1
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def running(modules: Sequence[str], arguments: Sequence[str] = ()) -> Iterator[list[str]]:
    """Where each listens. They end with the block."""
    processes: list[subprocess.Popen[str]] = []
    try:
        urls = []
        for module in modules:
            command = [sys.executable, "-u", "-m", module, "--port", "0", *arguments]
            # A group of its own: Ctrl-C is for the workers, which want to finish what they are doing.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=_die_with_parent
            )
            processes.append(process)
            assert process.stdout is not None
            line = process.stdout.readline()
            found = ADDRESS.search(line)
            if found is None:
                raise BadApp(f"The stand-in {module} did not say where it listens: {line!r}.", module=module)
            urls.append(found[0])
        yield urls
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _die_with_parent() -> None:
    """In the child: who is killed cannot end it. Elsewhere than on Linux it stays, and listens on its port."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
