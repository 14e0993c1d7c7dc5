"""Compiles the package before its tests begin: they start hundreds of processes, and each would do it anew.

Processes under test write no bytecode. Tests change a file twice within a second, and Python does not see that by its time.
"""

from __future__ import annotations

import compileall
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "bench", "examples")


def compile_all() -> None:
    """What is compiled already is left as it is."""
    for folder in FOLDERS:
        compileall.compile_dir(ROOT / folder, quiet=2)
