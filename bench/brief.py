"""Every benchmark at its brief size, one after the other, and the page of them all.

    make bench        or        python bench/brief.py [--only NAMES] [--out FOLDER] [--into FOLDER]

Reports of an earlier run are taken away first: what fails is told of as not run, and never shown with old figures. What a
benchmark says goes to a file beside its report.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import page
from bench.page import BENCHES
from bench.report import ROOT

# About how long each takes on two quiet cores.
SECONDS = {
    "store": 110,
    "meter": 4,
    "history": 7,
    "points": 5,
    "web": 5,
    "queues": 180,
    "workflows": 140,
    "sleeping": 8,
    "scale": 60,
    "pace": 60,
    "clusters": 40,
    "appstore": 270,
}
SECONDS_MAX = 600.0  # of one: then it is ended, and the others still have their turn
TOLD_LINES = 5  # of what a benchmark said, if it failed


def main() -> None:
    options = parsed()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        (options.out / f"{name}.json").unlink(missing_ok=True)
    say(f"{len(options.only)} benchmarks, about {sum(SECONDS[name] for name in options.only) / 60:.0f} minutes")
    began = time.monotonic()
    failed = [name for place, name in enumerate(options.only, 1) if not ran(name, place, options)]
    say("")
    subprocess.run(
        [sys.executable, page.__file__, "--reports", str(options.out), "--into", str(options.into)], check=True
    )
    elapsed = time.monotonic() - began
    say(f"{elapsed / 60:.0f} min {elapsed % 60:.0f} s in all")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def ran(name: str, place: int, options: argparse.Namespace) -> bool:
    say(f"{place:>2} of {len(options.only)}  {name:<10} about {SECONDS[name]:>3} s ... ", end="")
    began, log = time.monotonic(), options.out / f"{name}.log"
    command = [sys.executable, str(ROOT / "bench" / f"{name}.py"), "--brief", "--out", str(options.out)]
    with log.open("wb") as output:
        # In a session of its own, so that its servers end with it.
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, start_new_session=True)
        try:
            code: int | None = process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    taken = f"{time.monotonic() - began:.0f} s"
    if code == 0:
        say(f"done in {taken}")
        return True
    say(f"ended after {taken}" if code is None else f"failed after {taken}")
    for line in log.read_text("utf-8", "replace").splitlines()[-TOLD_LINES:]:
        say(f"          {line}")
    return False


def parsed() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := sorted(set(chosen) - set(BENCHES)):
            raise argparse.ArgumentTypeError(f"no benchmark named {', '.join(unknown)}; there is {', '.join(BENCHES)}")
        return [name for name in BENCHES if name in chosen]

    parser = argparse.ArgumentParser(description="Every benchmark at its brief size, and the page of them all.")
    parser.add_argument("--only", type=names, default=list(BENCHES), metavar="NAMES", help="store,queues,... alone")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    parser.add_argument("--into", type=Path, default=ROOT, help="where README.md and docs are")
    options = parser.parse_args()
    options.out = options.out.resolve()
    return options


def say(line: str, end: str = "\n") -> None:
    print(line, end=end, flush=True)


if __name__ == "__main__":
    main()
