"""SQL from outside: statements with values for `?`, checked before they run, alone or as one transaction.

Made for the shapes of D1. The database itself refuses what a client may not touch; what is checked here has a clearer
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.contracts.effects import Atomic, Bindable, Transaction
from penstock.model.allowance import ENGINE_VIEWS, Allowance
from penstock.model.errors import BadParameter, BadStatement
from penstock.model.limits import Limits
from penstock.model.parameters import bind_sized
from penstock.model.statement import SqlToken, Statement, one_line, pieces, scan, tokens
from penstock.runtime.unit import caller, open_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

ROWS_MAX = 10_000  # of one answer, as for `db.rows`
ANSWER_BYTES_MAX = 8_000_000  # of all answers to one request; they are held in memory twice, as values and as JSON
SECONDS_MAX = 5.0  # a statement inside a commit holds up every other writer
TASK = "http:d1"  # what its cost is kept under

_DEFINES = ("create", "alter", "drop")


class Question(msgspec.Struct, frozen=True):
    """One statement with its values, found to be harmless."""

    text: str
    statement: Statement
    bound: dict[str, Bindable]
    size_bytes: int

    @property
    def writes(self) -> bool:
        return self.statement.writes


class QueryAnswer(NamedTuple):
    """What one statement gave and cost. `rows_read` is an estimate that is never too low."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    changes: int
    last_row_id: int
    rows_read: int
    rows_written: int
    seconds: float
    changed: bool


def question(sql: str, values: Sequence[object], limits: Limits) -> Question:
    """One statement and its values. Raises what is wrong with them."""
    text, used, highest = _named(sql)
    if len(values) != highest:
        raise BadParameter(
            f"`{one_line(sql, 80)}` takes {highest} values and was given {len(values)}.",
            needed=highest,
            given=len(values),
        )
    statement = scan(text, limits)
    _check_names(sql, pieces(text)[0].tokens)
    given = {f"p{number}": values[number - 1] for number in used}
    for name, value in given.items():
        if isinstance(value, list | dict):
            raise BadParameter(f"Value {name[1:]} of `{one_line(sql, 80)}` is a list or an object. Send it as text.")
    bound, size = bind_sized(statement, given, {}, row_bytes_max=limits.row_bytes_max)
    return Question(text, statement, bound, size + len(text))


def script(sql: str, limits: Limits) -> list[Question]:
    """The statements of a text without values, in order."""
    found = pieces(sql)
    if not found:
        raise BadStatement("The statement is empty. Write one SQL statement.")
    if len(found) > limits.batch_statements_max:
        raise BadStatement(
            f"The request has {len(found)} statements; the maximum is {limits.batch_statements_max}.",
            found=len(found),
            allowed=limits.batch_statements_max,
        )
    return [question(piece.text, (), limits) for piece in found]


async def answers(engine: Engine, questions: Sequence[Question]) -> list[QueryAnswer]:
    """Runs queries in one snapshot on a connection that cannot write, and anything else as one transaction."""
    allowance = Allowance(ROWS_MAX, ANSWER_BYTES_MAX, SECONDS_MAX)
    if not any(question.writes for question in questions):
        asked = [(question.text, question.bound) for question in questions]
        return [
            QueryAnswer(rows.columns, rows.values, 0, 0, rows.measure.rows_read, 0, rows.measure.seconds, False)
            for rows in await engine.ask(TASK, asked, allowance)
        ]
    async with open_unit(engine, None) as unit:
        unit.task = TASK
        call = Atomic(unit, partial(_run_all, questions, allowance), caller())
        unit.add_call(call, sum(question.size_bytes for question in questions))
    found: list[QueryAnswer] = call.result
    return found


def _run_all(questions: Sequence[Question], allowance: Allowance, transaction: Transaction) -> list[QueryAnswer]:
    found: list[QueryAnswer] = []
    allowance.bytes_taken = 0  # a commit may run again
    for asked in questions:
        ran = transaction.run(asked.text, asked.bound, allowance)
        inserted = asked.statement.verb in ("insert", "replace") and ran.changes > 0
        found.append(
            QueryAnswer(
                ran.columns,
                ran.values,
                ran.changes,
                ran.last_row_id if inserted else 0,
                ran.measure.rows_read,
                ran.measure.rows_written,
                ran.measure.seconds,
                ran.changes > 0 or asked.statement.verb in _DEFINES,
            )
        )
    return found


# -- checks -----------------------------------------------------------------------------------------------


def _named(sql: str) -> tuple[str, list[int], int]:
    """The text with `:p1` for `?` and `?1`, the numbers it uses, and the highest of them."""
    parts: list[str] = []
    used: dict[int, None] = {}
    highest = 0
    for token in tokens(sql):
        if token.kind in ("parameter", "positional"):
            number = _number(sql, token, highest)
            highest = max(highest, number)
            used[number] = None
            parts.append(f" :p{number} ")
        else:
            parts.append(token.text)
    return "".join(parts), list(used), highest


def _number(sql: str, token: SqlToken, highest: int) -> int:
    digits = token.text[1:]
    if not token.text.startswith("?") or len(digits) > 5 or digits.startswith("0"):
        raise BadStatement(
            f"`{one_line(sql, 80)}`: {token.text[:40]} cannot be a parameter here. Use ? or ?1, ?2 and so on.",
            found=token.text[:40],
        )
    return int(digits) if digits else highest + 1


def _check_names(sql: str, held: Sequence[SqlToken]) -> None:
    for place, token in enumerate(held):
        # SQLite would read what PostgreSQL quotes with dollars as code.
        if token.kind == "string" and not token.text.startswith("'"):
            raise BadStatement(f"`{one_line(sql, 80)}`: write strings in single quotes.")
        if token.name not in ENGINE_VIEWS:
            continue
        # SQLite asks about what a `with` reads in the name of that `with`, as it does for a view.
        behind = [each.text.lower() for each in held[place + 1 : place + 3]]
        if behind[behind[:1] == ["as"] :][:1] in (["("], ["not"], ["materialized"]):
            raise BadStatement(f"`{one_line(sql, 80)}` gives another query the name {token.name}, the engine's view.")
