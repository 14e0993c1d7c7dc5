"""`penstock run --reload`: runs an app again whenever its code changes. The workers before finish what they run."""

from __future__ import annotations

import ast
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from penstock.cli.output import Output
from penstock.cli.reference import APPS
from penstock.views.view import printable

POLL_SECONDS = 0.3
PR_SET_PDEATHSIG = 1
SUFFIXES = {".py", ".sql", ".toml"}
SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages"}
FILES_MAX = 5_000  # that are watched; more are another program's

Snapshot = dict[Path, tuple[int, int]]  # when each file was changed, and its size


def reloading(output: Output, reference: str, arguments: Sequence[str]) -> int:
    """Run `penstock` with these arguments in a process of its own until a signal, and again after each change."""
    folder = folder_of(reference)
    _say(output, f"Watching {folder}: a change of a .py, .sql or .toml file restarts the workers.")
    seen, signals = snapshot(folder), list[int]()
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: object) -> None:
        signals.append(number)
        if children and children[-1].poll() is None:
            children[-1].send_signal(number)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, forward)
    while True:
        # A group of its own: Ctrl-C reaches it once, through this process.
        command = [sys.executable, "-m", "penstock", *arguments]
        child = subprocess.Popen(command, start_new_session=True, preexec_fn=die_with_parent)
        children[:] = [child]
        for number in signals:  # that came before there was a child
            child.send_signal(number)
        changed: list[Path] = []
        has_ended = False
        while not changed and not signals:
            if child.poll() is not None and not has_ended:
                has_ended = True
                _say(output, f"The app ended with exit code {child.returncode}. A change of its code starts it again.")
            time.sleep(POLL_SECONDS)
            changed, seen = _changes(output, folder, seen)
        if signals:
            return child.wait()
        _say(output, f"Restarting: {', '.join(path.name for path in changed)} changed.")
        if child.poll() is None:
            child.terminate()  # handlers finish what they run
        child.wait()


def folder_of(reference: str) -> Path:
    """Return the folder of the app's file, or of its package."""
    place = APPS.get(reference, reference).partition(":")[0]
    if place.endswith(".py") or os.sep in place:
        return Path(place).resolve().parent
    spec = find_spec(place.partition(".")[0])
    origin = None if spec is None else spec.origin
    return Path.cwd() if origin is None else Path(origin).resolve().parent


def snapshot(folder: Path) -> Snapshot:
    found: Snapshot = {}
    for path in _files(folder):
        try:
            stat = path.stat()
        except OSError:
            continue  # it was deleted meanwhile
        found[path] = (stat.st_mtime_ns, stat.st_size)
        if len(found) >= FILES_MAX:
            break
    return found


def _changes(output: Output, folder: Path, seen: Snapshot) -> tuple[list[Path], Snapshot]:
    """Return the changed files, once they stay as they are and can be compiled."""
    found = snapshot(folder)
    while found != seen:
        time.sleep(POLL_SECONDS)  # an editor writes one file after the other
        later = snapshot(folder)
        if later == found:
            break
        found = later
    changed = [path for path in {**seen, **found} if seen.get(path) != found.get(path)]
    for path in changed:
        if path.suffix == ".py" and path.exists():
            try:
                ast.parse(path.read_bytes())
            except SyntaxError as error:
                _say(
                    output, f"{path}, line {error.lineno}: {error.msg}. The workers continue with the code from before."
                )
                return [], found
    return changed, found


def _say(output: Output, sentence: str) -> None:
    output.err.write(f"{printable(sentence)}\n")
    output.err.flush()


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        if "pyvenv.cfg" in files:  # a virtual environment is not the app's code
            folders.clear()
            continue
        yield from (Path(place, name) for name in files if Path(name).suffix in SUFFIXES)


def die_with_parent() -> None:
    """In the child: end with a parent that is killed. Elsewhere than on Linux the child stays, and listens on its port."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
