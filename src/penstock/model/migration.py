"""Which migrations to apply, and which to refuse: applied files never change, and columns are only ever added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from penstock.model.errors import BadMigration, BadStatement
from penstock.model.statement import Piece, one_line, pieces, scan, tokens

Dialect = Literal["sqlite", "postgres"]

OWN_PREFIX = "penstock-"
_FILE = re.compile(r"(?P<name>[^/\\]+?)(?:\.(?P<dialect>sqlite|postgres))?\.sql", re.IGNORECASE)
_NUMBER = re.compile(r"\d+", re.ASCII)
_ALLOW_DROP = "allow drop"
_ALLOWS = re.compile(rf"--\s*penstock:\s*{_ALLOW_DROP}\s*", re.IGNORECASE)


class Migration(msgspec.Struct, frozen=True):
    """One file. `dialect` is None where the file serves both databases; twins have the same name."""

    name: str
    checksum: str
    statements: tuple[str, ...]
    dialect: Dialect | None = None


class MigrationProblem(NamedTuple):
    """Something a file may not do, where it stands, and the way out."""

    line: int
    message: str
    fix: str


def read(file_name: str, text: str) -> Migration:
    """The migration in a file called `0003_prices.sql`, `0003_prices.sqlite.sql` or `0003_prices.postgres.sql`."""
    found = _FILE.fullmatch(file_name)
    if found is None:
        raise BadMigration(f"{file_name!r} is not a migration name. Write it like 0003_prices.sql.", name=file_name)
    # A byte-order mark or other line ends, as an editor or git may leave them, are not a change.
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    problems = lint(plain)
    if problems:
        listed = "\n".join(f"  line {problem.line}: {problem.message} {problem.fix}".rstrip() for problem in problems)
        raise BadMigration(f"{file_name} cannot be applied:\n{listed}", name=found["name"], problems=problems)
    dialect: Dialect | None = None
    if found["dialect"]:
        dialect = "sqlite" if found["dialect"].lower() == "sqlite" else "postgres"
    statements = tuple(piece.text for piece in pieces(plain))
    return Migration(found["name"], sha256(plain.encode("utf-8", "surrogatepass")).hexdigest(), statements, dialect)


def for_dialect(found: Iterable[Migration], dialect: Dialect) -> list[Migration]:
    """One migration a name, in order: the twin written for this database where there is one, else the common file."""
    by_name: dict[str, dict[str | None, Migration]] = {}
    for migration in found:
        twins = by_name.setdefault(migration.name, {})
        if migration.dialect in twins:
            raise BadMigration(f"There are two migrations {migration.name}. Rename one.", name=migration.name)
        twins[migration.dialect] = migration
    return [_twin(by_name[name], name, dialect) for name in sorted(by_name, key=_order)]


def plan(found: Sequence[Migration], applied: Sequence[tuple[str, str]]) -> list[Migration]:
    """What is still to be applied, in order, if what was applied is unchanged and comes first."""
    by_name = {migration.name: migration for migration in found}
    if len(by_name) != len(found):
        raise BadMigration("Two migrations have one name. Select the files of one database with `for_dialect`.")
    for name, checksum in applied:
        if name in by_name or not _is_own(name):  # the engine's are found only where an app uses their tables
            _check_applied(name, checksum, by_name.get(name))
    done = {name for name, _ in applied}
    left = sorted((migration for migration in found if migration.name not in done), key=lambda each: _order(each.name))
    own = [migration for migration in left if _is_own(migration.name)]
    pending = [migration for migration in left if not _is_own(migration.name)]
    last = max((name for name in done if not _is_own(name)), key=_order, default=None)
    if pending and last is not None and _order(pending[0].name) < _order(last):
        raise BadMigration(
            f"Migration {pending[0].name} comes before {last}, which is applied already. Rename it so that it comes "
            "after.",
            name=pending[0].name,
            after=last,
        )
    return [*own, *pending]


def _is_own(name: str) -> bool:
    """Whether it makes tables of the engine: it may come at any time, before or after an app's own."""
    return name.startswith(OWN_PREFIX)


def _check_applied(name: str, checksum: str, migration: Migration | None) -> None:
    if migration is None:
        raise BadMigration(
            f"Migration {name} was applied, and its file is gone. Put it back: applied files stay.", name=name
        )
    if migration.checksum != checksum:
        raise BadMigration(
            f"Migration {name} was edited after it was applied (checksum {checksum[:12]} then, "
            f"{migration.checksum[:12]} now). Restore it, and write the change into a new file.",
            name=name,
            applied=checksum,
            found=migration.checksum,
        )


def _twin(twins: dict[str | None, Migration], name: str, dialect: Dialect) -> Migration:
    chosen = twins.get(dialect) or twins.get(None)
    if chosen is None:
        raise BadMigration(
            f"Migration {name} has no file for {dialect}. Add {name}.{dialect}.sql; if there is nothing to do, a "
            "comment in it is enough.",
            name=name,
            dialect=dialect,
        )
    return chosen


def _order(name: str) -> tuple[int, str]:
    """By the number in front, so that 10 comes after 9, then by name."""
    number = _NUMBER.match(name)
    return (int(number.group()) if number else 10**18, name)


# -- what a file may not do -----------------------------------------------------------------------------------


def lint(text: str) -> list[MigrationProblem]:
    """Everything in a migration that is not allowed. A line `-- penstock: allow drop` lets it remove and rename."""
    found = _pieces_or_problem(text)
    if isinstance(found, MigrationProblem):
        return [found]
    allowed = any(_ALLOWS.fullmatch(token.text) for token in tokens(text) if token.kind == "comment")
    problems = [_runnable(text, piece) for piece in found]
    problems += [] if allowed else [_removal(text, piece) for piece in found]
    return sorted(problem for problem in problems if problem)


def _pieces_or_problem(text: str) -> list[Piece] | MigrationProblem:
    try:
        return pieces(text)
    except BadStatement as why:
        return MigrationProblem(why.facts.get("line", 1), why.message, "")


def _runnable(text: str, piece: Piece) -> MigrationProblem | None:
    line = _line(text, piece.start)
    try:
        statement = scan(piece.text)
    except BadStatement as why:
        return MigrationProblem(line, why.message, "")
    if statement.names:
        return MigrationProblem(line, f"A migration has no values for :{statement.names[0]}.", "Write the value out.")
    return None


def _removal(text: str, piece: Piece) -> MigrationProblem | None:
    words = [token.word for token in piece.tokens]
    removes = words[0] == "drop" and words[1:2] in (["table"], ["schema"], ["database"])
    if removes or (words[0] == "alter" and _alters_away(words)):
        return MigrationProblem(
            _line(text, piece.start),
            f"`{one_line(piece.text, 80)}` removes or renames something that other code may read.",
            f"Add columns instead, or write `-- penstock: {_ALLOW_DROP}` on a line of its own.",
        )
    return None


def _alters_away(words: Sequence[str]) -> bool:
    """`drop` may do without the word `column`, but what follows it tells the harmless kinds apart."""
    for i, word in enumerate(words):
        named = words[i - 1] in ("add", "column", "table", "exists")  # a column or table of that name
        following = words[i + 1] if i + 1 < len(words) else ""
        harmless = following in ("constraint", "default", "not", "expression", "identity")
        if not named and (word == "rename" or (word == "drop" and not harmless)):
            return True
    return False


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
