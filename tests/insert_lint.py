"""Finds inserts that do not define what happens if the row exists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.model.errors import BadStatement
from penstock.model.migration import MigrationProblem
from penstock.model.statement import Piece, SqlToken, one_line, pieces

PLAIN = re.compile(r"--\s*penstock:\s*plain insert\s*", re.IGNORECASE)


def lint_inserts(sql: str) -> list[MigrationProblem]:
    """Return the inserts that do not define what happens if the row exists.

    A comment `-- penstock: plain insert` above, inside or behind an insert allows it.
    """
    try:
        found = pieces(sql)
    except BadStatement as why:
        return [MigrationProblem(why.facts.get("line", 1), why.message, "")]
    problems = []
    for piece in found:
        if any(PLAIN.fullmatch(comment) for comment in piece.comments):
            continue
        problems += [
            MigrationProblem(
                sql.count("\n", 0, insert.start) + 1,
                f"`{one_line(piece.text, 80)}` does not define what happens if the row exists.",
                "Add `on conflict ... do nothing` or `do update`, or a comment `-- penstock: plain insert`.",
            )
            for insert in _bare_inserts(piece)
        ]
    return problems


def _bare_inserts(piece: Piece) -> Iterator[SqlToken]:
    """Inserts without a conflict clause; in a trigger's body each statement answers for itself."""
    insert: SqlToken | None = None
    words = [token.word for token in piece.tokens]
    for i, token in enumerate(piece.tokens):
        begins = words[i : i + 2] == ["insert", "into"]
        if insert and (begins or token.kind == "semicolon"):
            yield insert
            insert = None
        if begins:
            insert = token
        elif words[i : i + 2] == ["on", "conflict"]:
            insert = None
    if insert:
        yield insert
