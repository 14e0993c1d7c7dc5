"""What a command says: one JSON object or a drawn page on stdout, errors on stderr, and the exit code that goes with them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from penstock.model.errors import BadApp, BadConfig, BadMigration, BadParameter, PenstockError, StoreError
from penstock.model.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FINE, BAD_ANSWER, USAGE, UNREACHABLE, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 4, 130

HINTS: tuple[tuple[type[PenstockError], str], ...] = (
    (BadConfig, "`penstock doctor` checks the settings; docs/operate/running.md lists them."),
    (BadMigration, "`penstock migrate APP --check` lists what is wrong with the files."),
    (StoreError, "`penstock doctor` looks at the database and says what is wrong with it."),
)


class NotFound(PenstockError):
    """There is no such thing."""


class Told(PenstockError):
    """An error that another process has put into words, with the exit code it ended with."""


@dataclass(slots=True)
class Output:
    """Where a command speaks. Programs ask for `--json` and get one object on stdout and nothing else there."""

    json: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def show(self, value: object, draw: Callable[[Console], None]) -> None:
        if self.json:
            self.out.write(msgspec.json.encode(value).decode() + "\n")
        else:
            draw(self.console())

    def console(self) -> Console:
        from rich.console import Console

        return Console(file=self.out, highlight=False, soft_wrap=False)

    def fail(self, error: BaseException, code: int) -> int:
        """Tells what went wrong, and gives the exit code back."""
        message = redacted(str(error)) or type(error).__name__
        usual = next((hint for kind, hint in HINTS if isinstance(error, kind)), "")
        hint = redacted(str(getattr(error, "hint", None) or usual))
        if self.json:
            told = {"error": {"code": code_name(error), "message": message, "hint": hint}}
            self.err.write(msgspec.json.encode(told).decode() + "\n")
        else:
            self.err.write(f"penstock: {printable(message)}\n" + (f"  {printable(hint)}\n" if hint else ""))
        return code


def exit_code(error: PenstockError) -> int:
    match error:
        case Told():
            return int(error.facts["exit_code"])
        case NotFound():
            return NOT_FOUND
        case BadConfig() | BadApp() | BadMigration() | BadParameter():
            return USAGE
        case StoreError():
            return UNREACHABLE
        case _:
            return BAD_ANSWER


def code_name(error: BaseException) -> str:
    """`StoreUnavailable` is `store_unavailable`: a name that scripts can tell errors apart by."""
    name = str(getattr(error, "code", None) or type(error).__name__)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def plain(text: object) -> str:
    """Text from elsewhere, safe to stand in a line that is drawn: no markup in it is obeyed."""
    return printable(str(text)).replace("[", r"\[")


def printable(text: str) -> str:
    """Without what could move a terminal's cursor. Line breaks stay."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


# -- drawing ----------------------------------------------------------------------------------------------


def table(*columns: tuple[str, str]) -> Table:
    """A plain table that folds in a narrow terminal instead of cutting. Columns are (title, "left" or "right")."""
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title, side in columns:
        number = side == "right"
        drawn.add_column(title, justify="right" if number else "left", overflow="fold", no_wrap=number)
    return drawn


def fill(drawn: Table, rows: Iterable[Sequence[Any]]) -> Table:
    from rich.text import Text

    for row in rows:
        drawn.add_row(*(each if isinstance(each, Text) else Text(printable(str(each))) for each in row))
    return drawn


def bytes_shown(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 1_000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1_000
    raise AssertionError("every size has a unit")


def age_shown(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for span, unit, below, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= span:
            return f"{seconds // span:.0f}{unit} {seconds % span // below:.0f}{part}"
    return f"{seconds:.0f}s"


def money_shown(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else "<$0.01"
