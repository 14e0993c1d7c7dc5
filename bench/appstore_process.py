"""A measurement in a process of its own: how it is started, what it tells, and how much memory it has."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.report import ROOT

STATUS = Path("/proc/self/status")


class ChildFailed(Exception):
    """A process ended without its figures."""


def told(module: str, folder: Path, **given: object) -> dict[str, Any]:
    """Runs `python -m bench.MODULE` on what is given, in a folder, and returns what it tells at its end."""
    command = [sys.executable, "-m", f"bench.{module}", str(folder), json.dumps(given)]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        raise ChildFailed(f"bench.{module} ended with {ended.returncode}: see above")
    answer: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return answer


def given() -> dict[str, Any]:
    """In the process: goes to its folder, where the pipeline keeps its pages, and reads what it was given."""
    logging.basicConfig(level=logging.ERROR)  # a pipeline tells of much that is no news here
    folder, values = sys.argv[1:]
    os.chdir(folder)
    read: dict[str, Any] = json.loads(values)
    return read


def tell(values: dict[str, Any]) -> None:
    print(json.dumps(values), flush=True)


def peak_mb() -> float:
    """The most that this process ever had. Its parent's memory counts in what `getrusage` says, and does not here."""
    return _status_mb("VmHWM")


def resident_mb() -> float:
    return _status_mb("VmRSS")


def _status_mb(name: str) -> float:
    for line in STATUS.read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1_024 / 1e6
    raise ChildFailed(f"{STATUS} does not tell {name}")
