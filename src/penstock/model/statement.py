"""One SQL statement, read once: what it does, which :names it takes, and whether it may run inside a unit of work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from penstock.model.errors import BadStatement
from penstock.model.limits import LOCAL, Limits

ENGINE_PREFIX = "penstock_"

_CACHED_STATEMENTS_MAX = 1_024  # more texts than a program has; a text made anew for each call does not pile up
_CACHED_CHARACTERS_MAX = 10_000  # longer texts are read again each time, so that the cache stays under 40 MB


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READS = _words("select values")
_MODIFIES = _words("insert update delete replace merge")
_DEFINES = _words("create alter drop truncate reindex analyze comment grant revoke refresh")
_CONTROLS = _words(
    "begin start commit end rollback abort savepoint release attach detach vacuum pragma set reset show lock listen "
    "unlisten notify copy prepare deallocate execute declare fetch move close discard checkpoint cluster load"
)
_BEFORE_TARGET = _words("into from only or abort fail ignore replace rollback")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that passed the checks that need no database. `verb` is the main one after a `with` clause."""

    text: str
    verb: str
    names: tuple[str, ...]
    writes: bool
    tables_written: tuple[str, ...] = ()  # as far as the text shows it: not through triggers or functions


def scan(sql: str, limits: Limits = LOCAL) -> Statement:
    """Reads one statement and refuses what no unit of work can hold. The same text is read once."""
    if not isinstance(sql, str):
        raise BadStatement(f"A statement is text, and this is a {type(sql).__name__}.")
    if len(sql) * 4 > limits.sql_bytes_max:  # a character has at most four bytes: most texts need no counting
        _check_length(sql, limits.sql_bytes_max)
    statement = _scan_cached(sql) if len(sql) <= _CACHED_CHARACTERS_MAX else _scan(sql)
    if (found := len(statement.names)) > (allowed := limits.parameters_max):
        raise BadStatement(
            f"{_quote(sql)} has {found} parameters, and {allowed} are allowed. Write fewer rows at a time: `chunk_rows` "
            "returns how many fit.",
            found=found,
            allowed=allowed,
        )
    return statement


def readable(sql: str, limits: Limits = LOCAL) -> Statement:
    """A statement that only reads: select, values, `with` before them, or explain."""
    statement = scan(sql, limits)
    if statement.writes:
        raise BadStatement(
            f"{_quote(sql)} is not a query. Change rows with db.write, and tables in a migration.", verb=statement.verb
        )
    return statement


def writable(sql: str, limits: Limits = LOCAL) -> Statement:
    """A statement that changes rows: insert, update, delete, replace or merge, also behind a `with` clause."""
    statement = scan(sql, limits)
    if statement.verb in _MODIFIES or (statement.verb in _READS and statement.tables_written):
        return statement
    if statement.verb in _DEFINES:
        way_out = "Tables change in migrations: put it in a new file in the migrations folder."
    elif not statement.writes:
        way_out = "It only reads: use a reading call."
    else:
        way_out = "Only insert, update, delete, replace and merge can be written here."
    raise BadStatement(f"{_quote(sql)} does not write rows. {way_out}", verb=statement.verb)


def to_psycopg(statement: Statement | str) -> str:
    """The text as psycopg takes it. Always run it with a mapping, even an empty one, or `%%` stays doubled."""
    return _to_psycopg(statement if isinstance(statement, str) else statement.text)


def one_line(sql: str, most: int = 200) -> str:
    """The text for a log line: no comments, no line breaks, at most `most` characters. Never raises."""
    return _one_line_cached(sql, most) if len(sql) <= _CACHED_CHARACTERS_MAX else _one_line(sql, most)


@lru_cache(_CACHED_STATEMENTS_MAX)
def _one_line_cached(sql: str, most: int) -> str:
    return _one_line(sql, most)


def _one_line(sql: str, most: int) -> str:
    line = ""
    for token in tokens(sql[: most * 20]):
        line += " " if token.kind in ("space", "comment") else token.text
        if len(line) > most * 2:
            break
    line = "".join(character if character.isprintable() else "?" for character in " ".join(line.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


# -- tokens -------------------------------------------------------------------------------------------

# Both databases take every character beyond ASCII as part of a name, so this says what is no letter: a class that reaches to
# the end of Unicode takes milliseconds to compile, and that at every start.
_OTHER = r"\x00-#%-/:-@\[-^`{-\x7f"
_LETTER = rf"[^{_OTHER}0-9$]"
_LETTERS = rf"[^{_OTHER}]"
_TAG = rf"(?:{_LETTER}[^{_OTHER}$]*+)?"
# No possessive quantifier around a group: Python before 3.11.5 gets those wrong. The parts are disjoint, so it is as quick.
_TOKEN = re.compile(
    rf"""
      (?P<space>     [ \t\n\r\f\v]++ )
    | (?P<comment>   --[^\r\n]*+(?!\r(?!\n)) | /\*(?:[^*/]++|\*(?!/)|/(?!\*))*\*/ )
    | (?P<string>    '[^']*+(?:''[^']*+)*' | [eE]'(?:[^'\\]++|''|\\[^'])*' | \$(?P<tag>{_TAG})\$.*?\$(?P=tag)\$ )
    | (?P<quoted>    "[^"]*+(?:""[^"]*+)*" | `[^`]*+(?:``[^`]*+)*` )
    | (?P<bracketed> \[[^\]]*+\] )
    | (?P<unclosed>  ['"`\[] | /\* | -- | [eE]' | \${_TAG}\$ | [uU]&" )
    | (?P<word>      {_LETTER}{_LETTERS}*+ )
    | (?P<number>    \.?[0-9][A-Za-z0-9_.]*+ )
    | (?P<symbol>    :: | := | @@ | <@ )
    | (?P<parameter> :{_LETTERS}++ )
    | (?P<positional> \?[0-9]*+ | \${_LETTERS}++ | @{_LETTERS}++ | %s(?!{_LETTERS}) | %\([^()\s]*+\)s )
    | (?P<semicolon> ; )
    | (?P<other>     . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SqlToken(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """The keyword in lower case, or nothing if this is no bare word."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """What a bare or quoted identifier names, in lower case. SQLite takes a string for a name in some places."""
        match self.kind:
            case "word":
                return self.text.lower()
            case "quoted" | "string" | "bracketed":
                return self.text[1:-1].replace(self.text[-1] * 2, self.text[-1]).lower()
            case _:
                return ""


def tokens(sql: str) -> Iterator[SqlToken]:
    """Every character of the text in tokens. What cannot be read is a token too, of kind `unclosed`: nothing raises."""
    start, depth = 0, 0
    before = word = ""  # the text just before this token, and the last one that is no space
    while found := _TOKEN.match(sql, start):
        kind, text = str(found.lastgroup), found.group()
        # PostgreSQL's array[...] and name[...] hold code; SQLite's [name] stands where a name begins.
        if kind == "bracketed" and (depth or _is_operand(before) or word == "array"):
            kind, text, depth = "other", "[", depth + 1
        elif kind == "parameter" and depth and (_is_operand(before) or text[1].isdigit()):
            kind, text = "other", ":"  # a slice: a[1:2]
        elif text == "]" and depth:
            depth -= 1
        elif depth and "]" in text:
            kind, text = "unclosed", text[0]  # SQLite would end a name here, and read the rest as code
        yield SqlToken(kind, text, start)
        start += len(text)
        before = text
        word = word if kind in ("space", "comment") else text.lower()


def _is_operand(text: str) -> bool:
    return text[-1:].isalnum() or text[-1:] in ("_", ")", "]", '"')


# -- statements in a script -----------------------------------------------------------------------------


class Piece(NamedTuple):
    """One statement of a script: its tokens without spaces and comments, and the comments that belong to it."""

    text: str
    tokens: tuple[SqlToken, ...]
    comments: tuple[str, ...]
    start: int


def pieces(script: str) -> list[Piece]:
    """The statements of a script. A trigger stays in one piece, and a comment behind `;` belongs to what it follows."""
    found: list[Piece] = []
    held: list[SqlToken] = []
    comments: list[str] = []
    start, inside, behind = 0, False, False  # inside a body; behind: on the line on which the last statement ended
    for token in _readable_tokens(script):
        if token.kind == "semicolon":
            inside = (inside or _opens_body(held)) and not _closes_body(held)
        if token.kind == "semicolon" and not inside:
            if held:
                found.append(_piece(script, start, held, comments))
            held, comments, start, behind = [], [], token.start + 1, bool(found)
        elif token.kind == "comment" and behind:
            found[-1] = found[-1]._replace(comments=(*found[-1].comments, token.text))
            start = token.start + len(token.text)
        elif token.kind == "comment":
            comments.append(token.text)
        elif token.kind == "space":
            behind = behind and "\n" not in token.text
        else:
            held.append(token)
            behind = False
    if held:
        found.append(_piece(script, start, held, comments))
    return found


def _piece(script: str, start: int, held: Sequence[SqlToken], comments: Sequence[str]) -> Piece:
    end = held[-1].start + len(held[-1].text)
    return Piece(script[start:end].strip(" \t\n\r\f\v"), tuple(held), tuple(comments), held[0].start)


def _readable_tokens(script: str) -> Iterator[SqlToken]:
    if "\0" in script:
        raise BadStatement(f"{_quote(script)} contains a NUL character. Remove it.")
    for token in tokens(script):
        if "\ufeff" in token.text and token.kind not in ("string", "comment"):
            raise BadStatement(f"{_quote(script)} contains U+FEFF, an invisible character, outside strings. Remove it.")
        if token.kind == "unclosed":
            line = script.count("\n", 0, token.start) + 1
            raise BadStatement(
                f"{_quote(script)}: {token.text} in line {line} is not closed, is nested, or begins a name with escapes.",
                line=line,
            )
        yield token


def _opens_body(held: Sequence[SqlToken]) -> bool:
    """Whether this is a trigger or routine whose body has semicolons of its own."""
    if not held or held[0].word != "create":
        return False
    words = [token.word for token in held]
    kind = next((word for word in words[1:] if word not in ("or", "replace", "temp", "temporary", "constraint")), "")
    if kind == "trigger":
        return "begin" in words and "execute" not in words[: words.index("begin")]
    return kind in ("function", "procedure") and "atomic" in words


def _closes_body(held: Sequence[SqlToken]) -> bool:
    return held[-1].word == "end" and (held[-2].kind == "semicolon" or held[-2].word in ("begin", "atomic"))


# -- what a statement does --------------------------------------------------------------------------------


@lru_cache(_CACHED_STATEMENTS_MAX)
def _scan_cached(sql: str) -> Statement:
    return _scan(sql)


def _scan(sql: str) -> Statement:
    try:
        sql.encode()
    except UnicodeEncodeError as why:
        raise BadStatement(f"{_quote(sql)} contains a lone surrogate, which is half a character. Remove it.") from why
    found = pieces(sql)
    if not found:
        raise BadStatement("The statement is empty. Write one SQL statement.")
    if len(found) > 1:
        raise BadStatement(
            f"{_quote(sql)} contains {len(found)} statements. Pass one at a time: the unit of work commits them together.",
            found=len(found),
        )
    piece = found[0]
    verb, main = _verb(sql, piece.tokens)
    if verb in _CONTROLS:
        raise BadStatement(
            f"{_quote(sql)}: `{verb}` is not allowed. The engine opens and commits transactions and owns the "
            "connection. Remove it.",
            verb=verb,
        )
    targets = _targets(piece.tokens, main)
    writes = _writes(verb, piece.tokens, targets)
    if writes:
        _refuse_engine_tables(sql, verb, piece.tokens, targets)
    return Statement(piece.text, verb, _names(sql, piece.tokens), writes, tuple(dict.fromkeys(targets)))


def _verb(sql: str, held: Sequence[SqlToken]) -> tuple[str, int]:
    """The main verb and where it stands: after the common table expressions if there are any."""
    first = next((i for i, token in enumerate(held) if token.text != "("), 0)
    verb = held[first].word
    if not verb:
        raise BadStatement(f"{_quote(sql)} does not begin with an SQL keyword.")
    if verb != "with":
        return verb, first
    for i, depth in _depths(held):
        named = held[i - 1].word in ("with", "recursive") or held[i - 1].text == ","  # a name such as `replace`
        if depth == first and not named and held[i].word in _READS | _MODIFIES:
            return held[i].word, i
    raise BadStatement(f"{_quote(sql)} has a `with` clause and no statement after it.")


def _depths(held: Sequence[SqlToken]) -> Iterator[tuple[int, int]]:
    depth = 0
    for i, token in enumerate(held):
        depth += (token.text == "(") - (token.text == ")")
        yield i, depth


def _targets(held: Sequence[SqlToken], main: int) -> list[str]:
    """The tables that insert, update, delete, replace and merge name, also inside common table expressions."""
    starts = [i for i, token in enumerate(held) if token.word in _MODIFIES and (i == main or held[i - 1].text == "(")]
    return [name for i in starts if (name := _target(held, i))]


def _target(held: Sequence[SqlToken], start: int) -> str:
    at = start + 1
    if at >= len(held) or (held[start].word != "update" and held[at].word not in ("into", "or", "from")):
        return ""  # a function such as replace(...), or a column of that name
    while at < len(held) - 1 and held[at].word in _BEFORE_TARGET:
        at += 1
    while at < len(held) - 2 and held[at + 1].text == ".":
        at += 2
    return held[at].name


def _writes(verb: str, held: Sequence[SqlToken], targets: Sequence[str]) -> bool:
    words = [token.word for token in held]
    if verb == "explain":  # only PostgreSQL's `explain analyze` runs what it explains
        reads_only = _READS & set(words) and not (_MODIFIES | _DEFINES - {"analyze"}) & set(words)
        return bool({"analyze", "analyse"} & set(words)) and not reads_only
    makes_table = any(depth == 0 and words[i] == "into" for i, depth in _depths(held))
    return verb not in _READS or bool(targets) or makes_table


def _refuse_engine_tables(sql: str, verb: str, held: Sequence[SqlToken], targets: Sequence[str]) -> None:
    kinds = ("word", "quoted", "bracketed", "string") if verb in _DEFINES else ("word", "quoted", "bracketed")
    for name in (*targets, *(token.name for token in held if token.kind in kinds)):
        if name.startswith(ENGINE_PREFIX):
            raise BadStatement(
                f"{_quote(sql)} writes and uses {name}: names that begin with {ENGINE_PREFIX} are reserved for "
                "the engine. Read its tables in a separate query.",
                table=name,
            )


def _names(sql: str, held: Sequence[SqlToken]) -> tuple[str, ...]:
    for token in held:
        plain = token.kind != "parameter" or _NAME.fullmatch(token.text, 1)
        if token.kind == "positional" or not plain:
            raise BadStatement(
                f"{_quote(sql)}: {token.text} cannot be a parameter. Use :name, with letters, digits and underscores "
                "(for the operator ? use jsonb_exists, for % write a space after it).",
                found=token.text,
            )
    return tuple(dict.fromkeys(token.text[1:] for token in held if token.kind == "parameter"))


@lru_cache(_CACHED_STATEMENTS_MAX)
def _to_psycopg(text: str) -> str:
    return "".join(
        f"%({token.text[1:]})s" if token.kind == "parameter" else token.text.replace("%", "%%")
        for token in tokens(text)
    )


def _check_length(sql: str, bytes_max: int) -> None:
    size = len(sql.encode("utf-8", "surrogatepass"))
    if size > bytes_max:
        raise BadStatement(
            f"{_quote(sql)} is {size:,} bytes of SQL, and {bytes_max:,} are allowed. Bind large values as :name.",
            size=size,
            allowed=bytes_max,
        )


def _quote(sql: str) -> str:
    return f"`{one_line(sql, 80)}`"
