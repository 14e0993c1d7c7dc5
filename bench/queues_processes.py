"""The comparing side of a peer's process: starts it, gives it commands and waits for its answers, but not for ever."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.report import ROOT

ANSWER_SECONDS_MAX = 300.0
TOLD_LINES = 3  # of what a process said before it failed


class PeerFailed(Exception):
    """A process ended, answered with an error or did not answer."""


class Process:
    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def tell(self, do: str, **values: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(self._last_words("ended")) from None

    def answer(self, *, seconds: float = ANSWER_SECONDS_MAX) -> dict[str, Any]:
        assert self._process.stdout is not None
        # A process that is killed ends its stdout, which ends the wait for a line.
        guard = threading.Timer(seconds, self._process.kill)
        guard.start()
        line = self._process.stdout.readline()
        in_time = guard.is_alive()
        guard.cancel()
        if not line:
            raise PeerFailed(
                self._last_words("ended without an answer" if in_time else f"no answer in {seconds:.0f} s")
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(answer["error"])
        return answer

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        self.tell(do, **values)
        return self.answer()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass  # it went while something was still to be told

    def _last_words(self, what: str) -> str:
        said = self._log.read_text("utf-8", "replace").strip().splitlines()[-TOLD_LINES:]
        return "; ".join([what, *said])
