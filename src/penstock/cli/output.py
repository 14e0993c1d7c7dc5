"""What a command answers: one JSON object or tables and sentences on stdout, errors and progress on stderr, an exit code."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, cast

import msgspec

from penstock.model.errors import (
    BadApp,
    BadConfig,
    BadMessage,
    BadMigration,
    BadParameter,
    NoSuchController,
    NoSuchLetter,
    NoSuchQueue,
    NoSuchRun,
    NoSuchSchedule,
    NoSuchSource,
    PenstockError,
    StoreError,
    TooLarge,
)
from penstock.model.redaction import redacted
from penstock.views.view import NONE, Column, Row, View, counted, printable, tone_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

FINE, BAD_ANSWER, USAGE, UNREACHABLE, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 4, 130
COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "busy": "cyan", "dull": "dim", "": ""}
FOLDED_FROM = 24  # characters of a column of prose: what is longer continues in the next line
LINE_SECONDS = 5.0  # between two lines of progress where there is no terminal

HINTS: tuple[tuple[type[PenstockError], str], ...] = (
    (BadConfig, "`penstock doctor` checks the settings; docs/operate/running.md lists them."),
    (BadMigration, "`penstock migrate APP --check` lists what is wrong with the files."),
    (StoreError, "`penstock doctor` checks the database."),
)


class NotFound(PenstockError):
    """There is no such thing."""


class Reported(PenstockError):
    """An error that another process has described, with the exit code it ended with."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows of a view, as a table."""

    view: View
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Facts:
    """One row of a view: a line for each column that has a value."""

    columns: Sequence[Column]
    row: Row


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that keeps its lines, such as a payload or a traceback."""

    text: str


@dataclass(frozen=True, slots=True)
class Title:
    """The name of one thing with its state, or of the part that follows."""

    text: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class Toned:
    """A sentence in the colour of its meaning."""

    text: str
    tone: str


class Marked:
    """The result of one check: a coloured mark and a sentence, with indented lines behind it."""

    def __init__(self, status: str, text: str, *lines: str) -> None:
        self.status = status
        self.text = text
        self.lines = lines


class Answer:
    """What a command returns: the object that `--json` prints, the parts that a person reads, and the exit code."""

    def __init__(self, facts: dict[str, Any], *parts: object, code: int = FINE) -> None:
        self.facts = facts
        self.parts = parts
        self.code = code


def listed(view: View, rows: Sequence[Row], *more: object, internals: bool = True) -> Answer:
    """Answer with the rows of a view. Internal rows are in the JSON, and in the table only if they are asked for."""
    shown = view.visible(rows, internals=internals)
    hidden = len(rows) - len(shown)
    note = ["", f"{counted(hidden, f'internal {view.name[:-1]}')} not shown: --all shows them."] if hidden else []
    return Answer({view.name: list(rows)}, Listed(view, shown), *more, *note)


@dataclass(slots=True)
class Output:
    """Where a command writes. Programs ask for `--json` and get one object on stdout."""

    json: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def answer(self, answer: Answer) -> int:
        self.show(answer.facts, lambda console: draw(console, answer.parts))
        return answer.code

    def show(self, value: object, draw: Callable[[Console], None]) -> None:
        if self.json:
            self.out.write(msgspec.json.encode(value).decode() + "\n")
        else:
            draw(self.console())

    def console(self) -> Console:
        from rich.console import Console

        return Console(file=self.out, highlight=False, soft_wrap=False)

    def fail(self, error: BaseException, code: int) -> int:
        """Write what went wrong; return the exit code."""
        message = redacted(str(error)) or type(error).__name__
        usual = next((hint for kind, hint in HINTS if isinstance(error, kind)), "")
        hint = redacted(str(getattr(error, "hint", None) or usual))
        if self.json:
            reported = {"error": {"code": code_name(error), "message": message, "hint": hint}}
            self.err.write(msgspec.json.encode(reported).decode() + "\n")
        else:
            self.err.write(f"penstock: {printable(message)}\n" + (f"  {printable(hint)}\n" if hint else ""))
        return code


def exit_code(error: PenstockError) -> int:
    match error:
        case Reported():
            return int(error.facts["exit_code"])
        case NotFound() | NoSuchQueue() | NoSuchLetter() | NoSuchController() | NoSuchRun() | NoSuchSchedule():
            return NOT_FOUND
        case NoSuchSource():
            return NOT_FOUND
        case BadConfig() | BadApp() | BadMigration() | BadParameter() | BadMessage() | TooLarge():
            return USAGE
        case StoreError():
            return UNREACHABLE
        case _:
            return BAD_ANSWER


def code_name(error: BaseException) -> str:
    """Return `store_unavailable` for `StoreUnavailable`: a name by which scripts distinguish errors."""
    name = str(getattr(error, "code", None) or type(error).__name__)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


# -- drawing ----------------------------------------------------------------------------------------------


def draw(console: Console, parts: Iterable[object]) -> None:
    for part in parts:
        if isinstance(part, Verbatim):
            console.out(printable(part.text), highlight=False)
        else:
            console.print(rendered(part, console.width))


def rendered(part: object, width: int) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    match part:
        case str():
            return plain(part)
        case Listed(view, rows):
            return drawn(view.columns, rows, width) if rows else plain(view.empty)
        case Facts(columns, row):
            return drawn_facts(columns, row)
        case Title(text, state):
            coloured = f"  {in_colour(state.replace('_', ' '), tone_of(state))}" if state else ""
            return f"[bold]{plain(text)}[/]{coloured}"
        case Toned(text, tone):
            return in_colour(text, tone)
        case Verbatim(text):
            return Text(printable(text))
        case Marked():
            grid = Table.grid(padding=(0, 2))
            grid.add_column(no_wrap=True)
            grid.add_column(overflow="fold")
            grid.add_row(in_colour(part.status, tone_of(part.status)), plain("\n".join([part.text, *part.lines])))
            return grid
    return cast("RenderableType", part)


def drawn(columns: Sequence[Column], rows: Sequence[Row], width: int) -> RenderableType:
    """A table of the columns for which there is room."""
    now = time.time_ns() // 1_000
    cells = [[column.text(row, now) for row in rows] for column in columns]
    widths = [max(map(len, [column.heading, *texts])) for column, texts in zip(columns, cells, strict=True)]
    needed = [
        min(most, FOLDED_FROM) if column.kind == "prose" else most for column, most in zip(columns, widths, strict=True)
    ]
    chosen = [place for place, texts in enumerate(cells) if not columns[place].rank or set(texts) != {NONE}]
    while sum(needed[place] + 3 for place in chosen) - 3 > width:
        last = max(chosen, key=lambda place: (columns[place].rank, place))
        if not columns[last].rank:
            break
        chosen.remove(last)
    made = table(*((columns[place].heading, "right" if columns[place].is_right else "left") for place in chosen))
    return fill(
        made, ([_cell(columns[place], cells[place][number]) for place in chosen] for number in range(len(rows)))
    )


def drawn_facts(columns: Sequence[Column], row: Row) -> RenderableType:
    now = time.time_ns() // 1_000
    made = table(("", "left"), ("", "left"))
    made.show_header = False
    made.columns[0].no_wrap = True
    shown = [(column, column.text(row, now)) for column in columns]
    return fill(made, [(column.heading, _cell(column, text)) for column, text in shown if text != NONE])


def _cell(column: Column, text: str) -> Any:
    from rich.text import Text

    colour = COLOURS[tone_of(text)] if column.kind == "state" else "dim" if text == NONE else ""
    return Text(printable(text), colour)


def in_colour(text: str, tone: str) -> str:
    return f"[{COLOURS[tone]}]{plain(text)}[/]" if COLOURS[tone] else plain(text)


def plain(text: object) -> str:
    """Text from elsewhere, safe in a line that is drawn: markup in it has no effect."""
    return printable(str(text)).replace("[", r"\[")


def table(*columns: tuple[str, str]) -> Table:
    """A plain table that folds in a narrow terminal instead of cutting. Columns are (title, "left" or "right")."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title, side in columns:
        number = side == "right"
        made.add_column(title, justify="right" if number else "left", overflow="fold", no_wrap=number)
    return made


def fill(made: Table, rows: Iterable[Sequence[Any]]) -> Table:
    from rich.text import Text

    for row in rows:
        made.add_row(*(each if isinstance(each, Text) else Text(printable(str(each))) for each in row))
    return made


# -- progress ---------------------------------------------------------------------------------------------


@contextmanager
def progress(
    output: Output, title: str, total: float | None, shown: Callable[[float], str] = "{:,.0f}".format
) -> Iterator[Callable[[float], None]]:
    """Report on stderr how far a command is: a bar on a terminal, a line every few seconds elsewhere, nothing with --json.
    The block calls what it gets with how much is done."""
    if output.json or not output.err.isatty():
        yield (lambda done: None) if output.json else _lines(output.err, title, total, shown)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    columns += [BarColumn(), TextColumn("{task.fields[at]}"), TimeRemainingColumn()] if total is not None else []
    with Progress(*columns, console=Console(file=output.err), transient=True) as bar:
        task = bar.add_task(title, total=total, at="")
        yield lambda done: bar.update(task, completed=done, at=_at(done, total, shown))


def _lines(err: TextIO, title: str, total: float | None, shown: Callable[[float], str]) -> Callable[[float], None]:
    last = time.monotonic()

    def moved(done: float) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            err.write(f"{title}: {_at(done, total, shown)}\n")
            err.flush()

    return moved


def _at(done: float, total: float | None, shown: Callable[[float], str]) -> str:
    return f"{shown(done)} of {shown(total)} ({min(1.0, done / total):.0%})" if total else shown(done)
