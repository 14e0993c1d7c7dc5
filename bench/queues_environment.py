"""The peers' own virtual environment: pinned, made when it is first needed, and never part of the project's."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from bench.report import ROOT

REQUIREMENTS = ROOT / "bench" / "peers" / "requirements.txt"
ENVIRONMENT = ROOT / "build" / "bench" / "venv"
LISTING = (
    "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
)


class NoPeers(Exception):
    """The peers could not be installed."""


def python() -> Path:
    """The interpreter that has the peers; they are installed if they are not, or if other versions are asked for."""
    command = ENVIRONMENT / "bin" / "python"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    stamp = ENVIRONMENT / "ready"
    if stamp.exists() and stamp.read_text("ascii") == wanted:
        return command
    print(f"installing the peers into {ENVIRONMENT} (once)", flush=True)
    _run(sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT))
    _install(REQUIREMENTS)
    # Last: an install that was interrupted is done again.
    stamp.write_text(wanted, "ascii")
    return command


def _install(requirements: Path) -> None:
    pip = (str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-qq", "install")
    _run(*pip, "-r", str(requirements))


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise NoPeers(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")


def versions(command: Path) -> dict[str, str]:
    listed = subprocess.run([str(command), "-c", LISTING], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(listed.stdout)
    return found
