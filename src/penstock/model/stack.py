"""Where an error came from: its traceback as text, the frames of user code kept and those of libraries counted."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path

from penstock.model.redaction import redacted

TRACEBACK_MAX = 8_000  # characters that are kept: some forty frames
CHAIN_MAX = 3  # errors of one chain of causes
_QUOTED = re.compile(r"'[^'\n]{0,500}'|\"[^\"\n]{0,500}\"|`[^`\n]{0,500}`")
_NUMBER = re.compile(r"\b(?:0x)?[0-9a-f]*\d[0-9a-f]*(?:-[0-9a-f]+)*\b", re.IGNORECASE)
_ENGINE = str(Path(__file__).parent.parent) + "/"
_LIBRARIES = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def rendered(error: BaseException) -> str | None:
    """Return the traceback of an error and of its causes, the innermost last, without local variables and secrets. None if
    it was never raised."""
    parts: list[str] = []
    seen: BaseException | None = error
    for _ in range(CHAIN_MAX):
        if seen is None or seen.__traceback__ is None:
            break
        parts.insert(0, _of_one(seen))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    text = redacted("\n\nwhich led to:\n\n".join(parts))
    return (text if len(text) <= TRACEBACK_MAX else "..." + text[-TRACEBACK_MAX:]) or None


def place_of(text: str | None) -> str | None:
    """Return `orders.py:12` of a rendered traceback: where user code raised, or called what raised."""
    lines = [line for line in (text or "").splitlines() if line.startswith('  File "')]
    if not lines:
        return None
    path, _, rest = lines[-1].removeprefix('  File "').partition('", line ')
    return f"{Path(path).name}:{rest.partition(',')[0]}"


def function_place(function: object) -> str:
    """Return `orders.settle (orders.py:12)`: the module and name of a function, and where it is written."""
    written = getattr(function, "__wrapped__", getattr(function, "func", function))
    named = ".".join(str(getattr(written, part, "")) for part in ("__module__", "__qualname__")).strip(".")
    code = getattr(written, "__code__", None)
    return (named or type(function).__name__) + (
        f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else ""
    )


def error_line(error_class: str, message: str | None, text: str | None) -> str:
    """Return an error in one line, with the place it came from."""
    return located(redacted(f"{error_class}: {message}"), text)


def located(error: str, text: str | None) -> str:
    """Return what an error says in one line, with the place that its rendered traceback names."""
    at = place_of(text)
    return " ".join(error.split()) + (f" at {at}" if at else "")


def failure_line(where: str, error: str, text: str | None, attempt: int, wait_seconds: float | None) -> str:
    """Return a failed attempt in one line: where, what, the line of code, and when it is retried."""
    then = "it is not retried" if wait_seconds is None else f"next in {wait_seconds:g} s"
    return f"{where}: {located(error[:300], text)} (attempt {attempt}, {then})"


def normalised(message: str) -> str:
    """Return the message with every quoted value and number replaced, so that messages of one cause are the same."""
    return _NUMBER.sub("N", _QUOTED.sub("'...'", message))


def _of_one(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith((_ENGINE, "<", *_LIBRARIES))]
    shown = users or list(frames)
    left_out = len(frames) - len(shown)
    lines = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n    {frame.line}' for frame in shown]
    if left_out:
        lines.append(f"  ... and {left_out} frame{'s' * (left_out > 1)} of libraries")
    said = traceback.format_exception_only(error)[-1].strip()
    return "\n".join([*lines, said])
