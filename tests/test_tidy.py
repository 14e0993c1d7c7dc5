"""The architecture as a test: what may import what, how long a file may grow, and what no file may hold.

A rule is a function from one file's text to the problems in it. Each is run over the tree below, and over a snippet
that breaks it, because a rule that cannot fail guards nothing.
"""

from __future__ import annotations

import ast
import io
import re
import sqlite3
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Rule = Callable[[str, str], Iterator[str]]

# -- the layers: what each folder of src/penstock may import besides itself ----------------------------------------

PURE = {"contracts", "model"}
ENGINE = PURE | {"runtime"}
CONCEPTS = {
    "alerts",
    "channels",
    "connect",
    "queues",
    "objects",
    "control",
    "workflows",
    "cron",
    "outbound",
    "readiness",
}
USERS = {"data", "blobs", "metrics"}
BACKENDS = {"storage", "storage.sqlite", "storage.postgres"}
PUBLIC = ""  # penstock/__init__.py and the names in it

MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "contracts": {"model"},
    "runtime": PURE,
    **dict.fromkeys(CONCEPTS, ENGINE),
    "channels": PURE,
    "recurrence": {"model"},
    "control": ENGINE | {"objects"},  # a controller is an object whose alarm is the tick
    "alerts": ENGINE | {"channels", "objects"},  # a condition is an object that remembers whom it told when
    "connect": ENGINE | {"cron", "data", "outbound"},  # sources: cursors and records are rows, requests go outside
    # An app whose parts may have databases of their own; calls between them go through the routes of the other.
    "services": ENGINE | CONCEPTS | USERS | {"app", "config", "readiness", "routes", "topics", "web"},
    "topics": ENGINE | {"app", "queues"},  # a topic is queues of an app
    "readiness": ENGINE | {"objects"},  # that a trial has passed is an object's state
    "data": ENGINE,  # a write joins the current unit
    "blobs": PURE,
    "metrics": ENGINE,  # points are made of events, and saved in the history's lane
    "storage": PURE,
    "moving": PURE | BACKENDS | {"stores"},  # both ends of a move, and what is copied between them
    "stores": PURE | {"storage.sqlite", "storage.postgres"},
    "storage.sqlite": PURE | {"storage"},
    "storage.postgres": PURE | {"storage"},
    "config": {"model"},
    "logs": ENGINE | {"config"},
    "lifecycle": ENGINE | CONCEPTS | USERS | {"app"},
    "telemetry": ENGINE,
    "pages": PURE | {"routes", "views.view"},
    "views.view": PURE,  # how a value is written: a page of an app declares columns
    "routes": PURE | {"web"},  # `app.asgi` imports the server when it is called
    "outside": ENGINE | CONCEPTS | USERS | {"config", "lifecycle"},
    # `app.service` imports what it makes when it is called.
    "app": ENGINE
    | CONCEPTS
    | USERS
    | {"config", "lifecycle", "outside", "pages", "routes", "services", "stores", "topics"},
    "errors": ENGINE | CONCEPTS | USERS,  # every error that a program may catch
    PUBLIC: ENGINE | CONCEPTS | USERS | {"app", "errors", "routes", "services", "topics"},
    # What a command or a page shows: rows that are read from a database, and how each value is written.
    "views": ENGINE | CONCEPTS | USERS | {"app", "config", "services", "stores", "storage", "views.view"},
    "web": ENGINE | CONCEPTS | USERS | {"app", "config", "routes", "views", "web.ui", PUBLIC},
    "web.ui": ENGINE
    | CONCEPTS
    | USERS
    | {"app", "config", "pages", "routes", "stores", "views", "views.view", "web", PUBLIC},
    "cli": ENGINE
    | CONCEPTS
    | USERS
    | BACKENDS
    | {"app", "config", "logs", "moving", "services", "stores", "views", "views.view", "web", "web.ui", PUBLIC},
    "commands": {"cli", "data", "model", "views", "views.view"},  # what a system's own commands are written with
    "testing": ENGINE | CONCEPTS | USERS | BACKENDS | {"app", "config", "services", "stores", "web", "cli", PUBLIC},
    "__main__": {"cli"},
}
# These layers name no type of another layer either; the others may, for a type checker alone.
TYPED_STRICTLY = ENGINE | BACKENDS
PUBLIC_MODULES = {
    "penstock",
    "penstock.channels",
    "penstock.commands",
    "penstock.connect",
    "penstock.data",
    "penstock.errors",
    "penstock.pages",
    "penstock.recurrence",
    "penstock.telemetry",
    "penstock.testing",
    "penstock.web",
}  # what a system may import from
PUBLIC_LAYERS = {name.removeprefix("penstock.") for name in PUBLIC_MODULES}
# All in virtual time.
MAY_IMPORT_TESTING = {f"src/penstock/cli/{command}.py" for command in ("readiness", "run", "simulate")}

DRIVERS = {"apsw", "psycopg", "psycopg_pool"}
# Layers that may use only these libraries; the others may use any but a database driver.
ONLY_LIBRARIES: dict[str, set[str]] = {
    "model": {"cronsim", "msgspec"},
    "contracts": set(),
    "storage": {"msgspec"},
    "storage.sqlite": {"apsw", "msgspec"},
    "storage.postgres": {"psycopg", "psycopg_pool", "msgspec"},
}
MAY_IMPORT_DRIVERS = {"app", "cli", "moving", "testing"}
WAITS = {"asyncio", "concurrent", "multiprocessing", "select", "selectors", "socket", "subprocess", "threading"}

# -- the other numbers and lists ------------------------------------------------------------------------------------

FILE_LINES_MAX = 400  # a longer file holds two concepts
# Lines of Python and SQL, docstrings aside, by folder of src/penstock. Lower a number when its folder shrinks; raising
# one, or adding a folder, is a decision with a page in docs/decisions.
FOLDER_LINES_MAX = {
    "": 1_715,
    "alerts": 290,
    "blobs": 350,
    "channels": 880,
    "connect": 2_280,
    "connect/migrations": 70,
    "cli": 4_770,
    "contracts": 1_115,
    "control": 3_060,
    "cron": 395,
    "data": 1_045,
    "outbound": 2_035,
    "pages": 210,
    "metrics": 1_070,
    "model": 3_820,
    "moving": 1_200,
    "objects": 780,
    "queues": 2_215,
    "readiness": 640,
    "recurrence": 480,
    "runtime": 3_235,
    "services": 900,
    "topics": 330,
    "topics/migrations": 30,
    "storage": 4_525,
    "storage/postgres": 2_500,
    "storage/sqlite": 2_645,
    "testing": 2_250,
    "views": 3_125,
    "web": 1_775,
    "web/ui": 4_840,
    "workflows": 1_400,
}

AMBIENT = re.compile(
    r"time\.(time|monotonic)(_ns)?"
    r"|datetime\.(datetime|date)\.(now|utcnow|today)"
    r"|random\.(?!Random$)\w+"
    r"|uuid\.uuid[1467]"
)
MAY_READ_AMBIENT = (
    "src/penstock/runtime/clock.py",
    "src/penstock/testing/loop.py",
    "src/penstock/cli/",
    "src/penstock/views/observer.py",
)

SQL_CALLS = {"execute", "executemany", "executescript"}
# Files and batches have methods of these names too, so here the text has to look like SQL.
SQL_CALLS_BY_LOOK = {"rows", "first", "value", "column", "write", "write_many"}
SQL_LINES = re.compile(
    r"\s*(select|insert|update|delete|with)\b(?s:.*)^\s*(from|set|values|select|where)\b", re.MULTILINE
)
SQL_START = re.compile(r"\s*(select|insert|update|delete|with|create|drop|alter|pragma|replace)\b", re.IGNORECASE)
# Statements in the words of a driver, which no .sql file of both databases can hold; the others are to be moved yet.
MAY_HOLD_SQL = (
    "src/penstock/storage/postgres/",
    "src/penstock/cli/readiness.py",
    "src/penstock/control/controllers.py",
    "src/penstock/queues/",
)
MAY_FORMAT_SQL = {"src/penstock/cli/readiness.py": "a statement of the app is explained, which takes its text"}

SQL_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
SQL_NOISE = re.compile(SQL_COMMENT.pattern + r"|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
SQL_FUNCTION = re.compile(r"\$\$.*?\$\$", re.DOTALL)
SQL_CAPITALS = re.compile(r"\w*[A-Z]\w*")
SQL_STAR = re.compile(r"\b(select|returning)(\s+(distinct|all))?\s+\*|\b[a-z_]\w*\.\*", re.IGNORECASE)
SQL_NOW = re.compile(r"'now'|\bcurrent_(timestamp|time|date)\b|\bnow\s*\(\s*\)", re.IGNORECASE)
SQL_NAME = re.compile(r"^-- name: *(.*?) *$", re.MULTILINE)

# Libraries of extras that code still to come will import (blobs in S3, traces), or that connectors import by name.
IMPORTED_LATER = {
    "feedparser",
    "jmespath",
    "markdown-it-py",
    "nh3",
    "obstore",
    "opentelemetry-exporter-otlp-proto-http",  # the program that instruments an app chooses where spans go
    "opentelemetry-sdk",
    "price-parser",
}

# Names of classes that stand for several things yet. A name is removed here when one is left of it, and none is added.
SHARED_CLASS_NAMES = {
    *("Answer", "Flight", "Minute", "Outcome", "Page", "Rules", "Step", "Tally", "Tick"),
}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "types", "misc"}

# Words of one system. The command line may name a system that comes with Penstock, as `appstore`.
CUSTOMERS_WORDS = re.compile(
    r"\bapp ?stores?\b|apple|itunes|storefront|\benrich|brave|in-app purchase|_purchases?\b|purchases?_|subreddit|airbnb",
    re.IGNORECASE,
)
SYSTEMS = re.compile(r"\bappstore\b")

TRACES = re.compile(
    r"(?<![\w./~-])/(work|root|home)/"
    r"|--(extra-)?index-url|--find-links"
    r"|co-authored-by:|generated (with|by) \[",
    re.IGNORECASE,
)
MAY_HOLD_TRACES = {"tests/test_tidy.py"}

# Words of the project's earlier language, in which a text does not name who acts, or renames a term of the field.
OLD_WORDS = re.compile(
    r"\b(?:whoever|nobody|somebody|anybody|everybody|so many|tells? of|told of|hears? of|and the like|goes on|tried again"
    r"|hand(?:s|ed|ing)? back|g[ia]v(?:e|es|en|ing) back|begins? anew|begun anew|befell|mend(?:s|ed|ing)?|parcels?"
    r"|knock(?:s|ed|ing)?|bur(?:y|ies|ied|ials?)|exhum\w+)\b|\bdesk\b|\bwall=".replace(" ", r"\s+"),
    re.IGNORECASE,
)
# The pages of a release name what it renamed; a name of a test is not a text of the page.
MAY_HOLD_OLD_WORDS = {
    "CHANGELOG.md": re.compile(r"`wall=`|`handed back`"),
    "docs/operate/upgrade-0.2.md": re.compile(r"`wall=`"),
    "docs/explain/faults.md": re.compile(r"\*[^*\n]+\*"),
    "docs/reference/app.md": re.compile(r"filters: .*"),
    "ARCHITECTURE.md": re.compile(r"`\S+\.py`"),
}
# Folders whose comments and docstrings are still to be written in plain English.
MAY_COMMENT_IN_OLD_WORDS = ("src/penstock/control/",)
# Texts that are data: words of reviews, and what fake users write.
TEXTS_AS_DATA = ("src/penstock_systems/appstore/sentiment.py", "src/penstock_systems/standins/")

PYTHON = ("src/**/*.py", "tests/**/*.py", "bench/**/*.py", "examples/**/*.py", "tools/**/*.py")


# -- the rules over the tree ----------------------------------------------------------------------------------------


def test_layers_import_only_what_the_table_allows() -> None:
    check(layers, files("src/penstock/**/*.py"))


def test_the_systems_use_only_public_names() -> None:
    check(public_names_only, files("src/penstock_systems/**/*.py"))


def test_no_file_holds_two_concepts() -> None:
    check(file_size, files("src/**/*.py"))


def test_no_folder_outgrows_its_budget(note: Callable[[str], None]) -> None:
    sizes = folder_sizes()
    note(f"src/penstock: {sum(sizes.values()):,} lines without docstrings")
    problems = list(too_large(sizes))
    assert not problems, "\n".join(problems)


def test_time_and_chance_come_only_through_the_clock() -> None:
    check(ambient, files("src/**/*.py", "examples/**/*.py"))


def test_sql_is_never_put_together_from_strings() -> None:
    check(formatted_sql, files("src/**/*.py", "examples/**/*.py"))


def test_statements_of_several_lines_are_in_sql_files() -> None:
    check(sql_in_python, files("src/penstock/**/*.py"))


def test_sql_files_are_lower_case_named_and_explicit() -> None:
    check(sql_file, files("src/**/*.sql"))


def test_no_module_has_a_name_that_says_nothing() -> None:
    check(vague_name, files(*PYTHON))


def test_texts_for_users_name_the_actor_and_use_the_terms_of_the_field() -> None:
    check(old_words, files("*.md", "docs/**/*.md", "examples/*.py"))
    check(old_words, [path for path in files("src/**/*.py") if not shown(path).startswith(TEXTS_AS_DATA)])


def test_a_class_name_stands_for_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in files("src/penstock/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{shown(path)}:{node.lineno}")
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert shared.keys() - SHARED_CLASS_NAMES == set(), {
        name: shared[name] for name in shared.keys() - SHARED_CLASS_NAMES
    }
    assert SHARED_CLASS_NAMES - shared.keys() == set(), "remove these from SHARED_CLASS_NAMES"


def test_comments_and_docstrings_name_the_actor_too() -> None:
    here = [path for path in files("src/penstock/**/*.py") if not shown(path).startswith(MAY_COMMENT_IN_OLD_WORDS)]
    check(old_words_in_comments, here)


def test_every_limit_has_a_reader() -> None:
    limits = ROOT / "src/penstock/model/limits.py"
    declared = next(
        node
        for node in ast.parse(limits.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Limits"
    )
    fields = {
        each.target.id
        for each in declared.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    # A limit is read as an attribute, also by a property of the class, or named as text, as in `near(name)`.
    texts = [ast.unparse(declared), *(path.read_text("utf-8") for path in files("src/**/*.py") if path != limits)]
    read = {name for text in texts for name in re.findall(r"[.\"](\w+)", text)}
    assert len(fields) > 30
    assert fields - read == set(), "enforce these limits, or remove them"


def test_no_file_tells_where_it_was_made() -> None:
    check(traces, tracked_files())


def test_the_engine_contains_no_words_of_its_customers() -> None:
    check(customers_words, files("src/penstock/**/*.py", "src/penstock/**/*.sql"))


def test_an_extra_installs_only_what_the_source_imports() -> None:
    check(unused_extras, files("pyproject.toml"))


# -- the rules ------------------------------------------------------------------------------------------------------


class Imported(NamedTuple):
    line: int
    module: str
    name: str | None

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


def imports(text: str) -> Iterator[Imported]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                yield from (Imported(node.lineno, alias.name, None) for alias in node.names)
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                yield from (Imported(node.lineno, module, alias.name) for alias in node.names)


def layer_of(dotted: str) -> str:
    """`penstock.storage.sqlite.ledger` is in `storage.sqlite`; `penstock.App` is a public name."""
    parts = dotted.split(".")[1:]
    return next((name for name in (".".join(parts[:2]), parts[0] if parts else "") if name in MAY_IMPORT), PUBLIC)


def layers(path: str, text: str) -> Iterator[str]:
    module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    own = layer_of(module)
    if own == PUBLIC and module != "penstock":
        yield f"{path}: no layer of this name. Add it to MAY_IMPORT in tests/test_tidy.py with what it may import."
        return
    allowed = MAY_IMPORT[own] | {own}
    types = set() if own in TYPED_STRICTLY else typing_lines(text)
    for found in imports(text):
        top = found.module.split(".")[0]
        where = f"{path}:{found.line}"
        if top == "":
            yield f"{where}: write the import from the top, `from penstock...`, not with dots."
        elif top == "penstock":
            layer = layer_of(found.dotted)
            if layer == "testing" and own != "testing" and path not in MAY_IMPORT_TESTING:
                yield f"{where}: nothing imports penstock.testing. Move what both need one layer down."
            elif layer not in allowed and layer != "testing" and found.line not in types:
                names = ", ".join(sorted(allowed - {PUBLIC}))
                yield (
                    f"{where}: layer `{own or 'penstock'}` may not import `{found.dotted}`, only {names}. "
                    "Depend on a contract and let app.py hand in the object."
                )
        elif top == "penstock_systems":
            yield f"{where}: the engine does not know the systems built on it."
        elif top in sys.stdlib_module_names:
            if own == "model" and top in WAITS:
                yield f"{where}: penstock.model holds pure rules; `{top}` waits. Do it in runtime."
        elif own in ONLY_LIBRARIES:
            if top not in ONLY_LIBRARIES[own]:
                yield f"{where}: layer `{own}` may not use `{top}`; ONLY_LIBRARIES in tests/test_tidy.py says which."
        elif top in DRIVERS and own not in MAY_IMPORT_DRIVERS:
            yield f"{where}: only storage talks to `{top}`. Go through a contract."


def typing_lines(text: str) -> set[int]:
    """The lines of imports that only a type checker reads."""
    blocks = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.If))
    typed = (node for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING")
    return {line for node in typed for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def public_names_only(path: str, text: str) -> Iterator[str]:
    for found in imports(text):
        public = found.module in PUBLIC_MODULES and layer_of(found.dotted) in {PUBLIC, *PUBLIC_LAYERS}
        if found.module.split(".")[0] == "penstock" and not public:
            yield f"{path}:{found.line}: `{found.dotted}` is not public. Use one of {', '.join(sorted(PUBLIC_MODULES))}."


def file_size(path: str, text: str) -> Iterator[str]:
    if (lines := line_count(text)) > FILE_LINES_MAX:
        yield f"{path}: {lines} lines, more than {FILE_LINES_MAX}. It holds two concepts: find the second one's name."


def folder_sizes() -> Counter[str]:
    sizes: Counter[str] = Counter()
    for path in files("src/penstock/**/*.py", "src/penstock/**/*.sql"):
        folder = path.parent.relative_to(ROOT / "src/penstock").as_posix().removeprefix(".")
        sizes[folder] += code_lines(path.read_text("utf-8"), is_python=path.suffix == ".py")
    return sizes


def too_large(sizes: Mapping[str, int]) -> Iterator[str]:
    for folder, size in sizes.items():
        if size > (most := FOLDER_LINES_MAX.get(folder, 0)):
            yield f"src/penstock/{folder} has {size:,} lines, more than {most:,}. Delete something before adding."


def ambient(path: str, text: str) -> Iterator[str]:
    if path.startswith(MAY_READ_AMBIENT):
        return
    tree = ast.parse(text)
    known = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and AMBIENT.fullmatch(name := spelled(node, known)):
            yield f"{path}:{node.lineno}: `{name}` cannot be repeated. Take the clock, or a Random, as an argument."
        elif isinstance(node, ast.Call) and spelled(node.func, known) == "random.Random" and not node.args:
            yield f"{path}:{node.lineno}: `Random()` without a seed cannot be repeated. Take a Random as an argument."


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for: after `from time import time as t`, `t` is `time.time`."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
            known |= {top: top for alias in node.names if not alias.asname for top in alias.name.split(".")[:1]}
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def spelled(node: ast.AST, known: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return known.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            return f"{before}.{attribute}" if (before := spelled(value, known)) else ""
    return ""


def formatted_sql(path: str, text: str) -> Iterator[str]:
    if path in MAY_FORMAT_SQL:
        return
    tree = ast.parse(text)
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and is_formatted(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        for argument in (*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "sql")):
            value = assigned.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
            looks_like_sql = called in SQL_CALLS_BY_LOOK and SQL_START.match(literal_text(value))
            if is_formatted(value) and (called in SQL_CALLS or looks_like_sql):
                yield f"{path}:{call.lineno}: SQL put together from strings. Put it in a .sql file and pass parameters."


def sql_in_python(path: str, text: str) -> Iterator[str]:
    if path.startswith(MAY_HOLD_SQL):
        return
    for node in ast.walk(ast.parse(text)):
        held = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if SQL_LINES.match(held):
            line = getattr(node, "lineno", 1)
            yield f"{path}:{line}: put this statement in a .sql file, and load it with penstock.model.sql_files."


def is_formatted(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr(values=parts):
            return any(isinstance(part, ast.FormattedValue) for part in parts)
        case ast.BinOp(left=left, op=ast.Mod() | ast.Add(), right=right):
            return any(is_formatted(side) or is_text(side) for side in (left, right))
        case ast.Call(func=ast.Attribute(attr="format" | "format_map")):
            return True
    return False


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def literal_text(node: ast.expr) -> str:
    return "".join(
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def sql_file(path: str, text: str) -> Iterator[str]:
    bare = SQL_NOISE.sub(blanked, text)
    spoken = SQL_COMMENT.sub(blanked, text)
    for pattern, searched, remedy in (
        (SQL_CAPITALS, bare, "write SQL in lower case"),
        (SQL_STAR, bare, "name the columns"),
        (SQL_NOW, spoken, "take the time as `:now`, never from the database"),
    ):
        for found in pattern.finditer(searched):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path}:{line}: `{found[0]}`: {remedy}."
    if "/migrations/" not in path:
        yield from unnamed_statements(path, text)


def unnamed_statements(path: str, text: str) -> Iterator[str]:
    before, *rest = SQL_NAME.split(text)
    names, bodies = rest[::2], rest[1::2]
    if statement_count(before):
        yield f"{path}: a statement stands before the first `-- name:` line. Give it a name."
    for name, body in zip(names, bodies, strict=True):
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            yield f"{path}: `-- name: {name}` is no name. Write lower case words joined by `_`."
        if (count := statement_count(body)) != 1:
            yield f"{path}: `{name}` holds {count} statements. One statement a name."
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{path}: two statements are named `{name}`."


def statement_count(text: str) -> int:
    """How many statements there are, where the body of a trigger or of a function is not counted apart."""
    count, statement = 0, ""
    for piece in re.split("(?<=;)", SQL_FUNCTION.sub(" ", SQL_NOISE.sub(blanked, text))):
        statement += piece
        if statement.strip() and sqlite3.complete_statement(statement):
            count, statement = count + 1, ""
    return count + bool(statement.strip())


def blanked(noise: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", noise[0])


def vague_name(path: str, text: str) -> Iterator[str]:
    for part in path.removesuffix(".py").split("/"):
        if part.strip("_") in VAGUE_NAMES:
            yield f"{path}: `{part}` says nothing. Name the one concept it holds."


def traces(path: str, text: str) -> Iterator[str]:
    if path in MAY_HOLD_TRACES:
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if found := TRACES.search(line):
            yield f"{path}:{number}: `{found[0]}` belongs to one machine or one maker. Take it out."


def customers_words(path: str, text: str) -> Iterator[str]:
    named = SYSTEMS.sub("", text) if path.startswith("src/penstock/cli/") else text
    for number, line in enumerate(named.splitlines(), start=1):
        if found := CUSTOMERS_WORDS.search(line):
            yield f"{path}:{number}: `{found[0]}` is a word of one system. Let the system pass it in."


def unused_extras(path: str, text: str) -> Iterator[str]:
    source = "\n".join(each.read_text("utf-8") for each in files("src/**/*.py"))
    extras: dict[str, list[str]] = tomllib.loads(text)["project"]["optional-dependencies"]
    for extra, libraries in extras.items():
        if not libraries:
            yield f"{path}: the extra `{extra}` installs nothing. Remove it."
        for library in libraries if extra != "dev" else ():
            name = re.match(r"[\w.-]+", library)
            assert name is not None
            if name[0] not in IMPORTED_LATER and name[0].replace("-", "_") not in source:
                yield f"{path}: no file of src imports `{name[0]}` of the extra `{extra}`. Remove it."


def old_words(path: str, text: str) -> Iterator[str]:
    for line, told in texts_for_users(path, text):
        for found in OLD_WORDS.finditer(told):
            where = f"{path}:{line + told.count(chr(10), 0, found.start())}"
            yield f"{where}: `{found[0]}`: name the actor, or use the term of docs/explain/glossary.md."


def old_words_in_comments(path: str, text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        told = token.string if token.type in (tokenize.COMMENT, tokenize.STRING) else ""
        for found in OLD_WORDS.finditer(told):
            line = token.start[0] + told.count("\n", 0, found.start())
            yield f"{path}:{line}: `{found[0]}`: name the actor, or use the term of docs/explain/glossary.md."


def texts_for_users(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield what users read, each text with its line: pages and examples whole; of the source the strings that are a text
    (errors, hints, log lines, reports) and the help of commands. Other docstrings are for those who read the code."""
    if not path.startswith("src/"):
        current = text.partition("\n## [0.1.0]")[0] if path == "CHANGELOG.md" else text
        allowed = MAY_HOLD_OLD_WORDS.get(path)
        yield 1, allowed.sub("", current) if allowed else current
        return
    tree = ast.parse(text)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and not any("command" in ast.unparse(each) for each in getattr(node, "decorator_list", ()))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.lineno, node.value if " " in node.value.strip() else ""


# -- the rules can fail ---------------------------------------------------------------------------------------------

RETRY = "src/penstock/model/retry.py"
QUEUE = "src/penstock/queues/queue.py"
LEDGER = "src/penstock/storage/sqlite/ledger.py"
APP = "src/penstock/app.py"
BRAND = "src/penstock_systems/brand/app.py"
UNIT = "src/penstock/runtime/unit.py"
DATA = "src/penstock/data/db.py"
SQL = "src/penstock/storage/sqlite/a.sql"

BAD: list[tuple[Rule, str, str]] = [
    (layers, RETRY, "import penstock.runtime.clock"),
    (layers, RETRY, "from penstock.contracts import store"),
    (layers, RETRY, "import apsw"),
    (layers, RETRY, "import asyncio"),
    (layers, RETRY, "from . import errors"),
    (layers, "src/penstock/contracts/store.py", "import msgspec"),
    (layers, UNIT, "from penstock.queues.queue import Queue"),
    (layers, UNIT, "def late() -> None:\n    from penstock import queues"),
    (layers, QUEUE, "from penstock.objects import calls"),
    (layers, RETRY, "if TYPE_CHECKING:\n    from penstock.app import App"),
    (layers, QUEUE, "import penstock"),
    (layers, QUEUE, "import apsw"),
    (layers, "src/penstock/objects/calls.py", "from penstock.control import pace"),
    (layers, "src/penstock/web/page.py", "from penstock.storage.sqlite import ledger"),
    (layers, LEDGER, "from penstock.storage.postgres import ledger"),
    (layers, LEDGER, "from penstock.runtime import clock"),
    (layers, LEDGER, "import psycopg"),
    (layers, APP, "from penstock.testing import TestApp"),
    (layers, "src/penstock/cli/status.py", "from penstock.testing.loop import VirtualLoop"),
    (layers, APP, "import penstock_systems"),
    (layers, "src/penstock/novelty/idea.py", ""),
    (public_names_only, BRAND, "from penstock.model import errors"),
    (public_names_only, BRAND, "from penstock import storage"),
    (public_names_only, BRAND, "import penstock.testing.loop"),
    (public_names_only, BRAND, "from penstock.cli.output import Output"),
    (file_size, APP, "\n" * (FILE_LINES_MAX + 1)),
    (ambient, UNIT, "import time\nat = time.time()"),
    (ambient, UNIT, "from time import monotonic as tick\nread = tick"),
    (ambient, UNIT, "import datetime as dt\nat = dt.datetime.now(dt.UTC)"),
    (ambient, UNIT, "from datetime import datetime\nat = datetime.utcnow()"),
    (ambient, UNIT, "import random\nshare = random.random()"),
    (ambient, UNIT, "from random import Random\nshare = Random().random()"),
    (ambient, UNIT, "from uuid import uuid4\nid = uuid4()"),
    (formatted_sql, DATA, 'tx.execute(f"select a from {table}")'),
    (formatted_sql, DATA, 'db.write("update %s set a = 1" % table)'),
    (formatted_sql, DATA, 'db.rows("select a from {}".format(table))'),
    (formatted_sql, DATA, 'db.first(sql="select a from " + table)'),
    (formatted_sql, DATA, 'sql = f"delete from {table}"\ndb.write(sql)'),
    (sql_in_python, DATA, 'A = """\nselect a\nfrom b\n"""'),
    (sql_file, SQL, "-- name: a\nSELECT a from b;"),
    (sql_file, SQL, "-- name: a\nselect * from b;"),
    (sql_file, SQL, "-- name: a\nselect\n  *\nfrom b;"),
    (sql_file, SQL, "-- name: a\nselect b.* from b;"),
    (sql_file, SQL, "-- name: a\nselect a from b where at < current_timestamp;"),
    (sql_file, SQL, "select a from b;"),
    (sql_file, SQL, "-- name: a\nselect a from b;\nselect c from d;"),
    (sql_file, SQL, "-- name: a\n-- name: b\nselect a from b;"),
    (sql_file, SQL, "-- name: a\nselect 1;\n-- name: a\nselect 2;"),
    (vague_name, "src/penstock/runtime/_utils.py", ""),
    (vague_name, "src/penstock/common/unit.py", ""),
    (customers_words, QUEUE, 'ALIAS = "enrichment"'),
    (customers_words, QUEUE, 'HOSTS = {"apple.com"}'),
    (customers_words, QUEUE, 'PRESETS = {"brave-search": 5}'),
    (customers_words, QUEUE, "purchases_max = 5"),
    (customers_words, QUEUE, 'APPS = {"appstore": 1}'),
    (old_words, "docs/start.md", "Whoever sends it again\nis told so."),
    (old_words, "docs/start.md", "The message is handed\nback."),
    (old_words, "docs/start.md", "| `release` | gives back a claim |"),
    (old_words, "README.md", "Set `wall=60`, `cpu=30` and the like."),
    (old_words, "CHANGELOG.md", "- Nobody is told of it.\n\n## [0.1.0]\n"),
    (old_words, "docs/explain/faults.md", "| F01 | Nobody answers | `tests/a.py`: *nobody answers* |"),
    (old_words, "examples/order.py", "sleep(1)  # somebody takes a minute"),
    (old_words, QUEUE, 'raise BadMessage(f"{name}: {count} parcels were sent, and nobody took them.")'),
    (old_words, QUEUE, '_log.warning("The letter of %s is buried.", name)'),
    (old_words, "src/penstock/cli/dead.py", '@dead.command()\ndef bury(id: int) -> None:\n    """Bury a letter."""'),
    (old_words_in_comments, DATA, 'def rows() -> None:\n    """Return so many rows."""'),
    (old_words_in_comments, DATA, "a = 1  # nobody reads it"),
    (unused_extras, "pyproject.toml", '[project.optional-dependencies]\nanalytics = ["duckdb>=2.0"]'),
    (unused_extras, "pyproject.toml", "[project.optional-dependencies]\nllm = []"),
    (traces, "docs/start.md", "cd /" + "home/ada/penstock"),
    (traces, "requirements/dev.lock", "--index-" + "url https://registry.example"),
]

GOOD: list[tuple[Rule, str, str]] = [
    (layers, RETRY, "import uuid\nimport msgspec\nfrom penstock.model.errors import Gone"),
    (layers, DATA, "if TYPE_CHECKING:\n    from penstock.app import App"),
    (layers, "src/penstock/control/pace.py", "from penstock.objects.calls import Call"),
    (layers, LEDGER, "import apsw\nfrom penstock.model.sql_files import load"),
    (layers, APP, "from penstock.stores import store_at"),
    (layers, "src/penstock/__init__.py", "from penstock.app import App"),
    (layers, "src/penstock/cli/run.py", "import penstock\nfrom penstock.testing.loop import VirtualLoop"),
    (public_names_only, BRAND, "import penstock as ps\nfrom penstock.testing import TestApp"),
    (public_names_only, BRAND, "from penstock.commands import Output"),
    (public_names_only, BRAND, "from penstock import errors\nfrom penstock.data import cut"),
    (file_size, APP, "\n" * FILE_LINES_MAX),
    (ambient, UNIT, "import time\nfrom random import Random\nRandom(1); time.perf_counter()"),
    (ambient, "src/penstock/runtime/clock.py", "import time\nat = time.time()"),
    (formatted_sql, DATA, 'tx.execute("select a from b where c = :c", {"c": f"{c}"})'),
    (formatted_sql, DATA, 'db.rows(PENDING, url=f"{shop}/a")'),
    (formatted_sql, DATA, 'file.write(f"data: {line}")'),
    (sql_in_python, DATA, 'A = "select a from b"'),
    (sql_file, SQL, "-- All.\n\n-- name: a\nselect count(*), 'A;' from b; -- Why; so.\n"),
    (sql_file, SQL, "-- name: a\ncreate trigger a after insert on b begin delete from c; delete from d; end;"),
    (customers_words, "src/penstock/cli/systems.py", 'APPS = {"appstore": 1}'),
    (customers_words, QUEUE, 'alias = "/v1/prices"  # or the store of the app'),
    (old_words, "docs/start.md", "The worker releases the claim. An operator reads the title of a book on deskwork."),
    (old_words, "CHANGELOG.md", "- `timeout=` replaces `wall=`.\n\n## [0.1.0]\n- Whoever waits."),
    (old_words, "docs/explain/faults.md", "| F01 | No answer | `tests/a.py`: *nobody answers* |"),
    (old_words, QUEUE, 'def told() -> str:\n    """Say what somebody is told of."""\n    return "sent"  # by whoever'),
    (old_words, QUEUE, 'PLACES = {"desk": 1, "parcel": 2}'),
    (old_words_in_comments, DATA, "somebody = 1  # the caller"),
    (unused_extras, "pyproject.toml", '[project.optional-dependencies]\npostgres = ["psycopg[binary]>=3.3"]'),
    (traces, "docs/start.md", "https://shop.example/home/a and ~/work/ and ./home/"),
]


@pytest.mark.parametrize("rule, path, text", BAD)
def test_a_rule_finds_what_breaks_it(rule: Rule, path: str, text: str) -> None:
    assert list(rule(path, text))


@pytest.mark.parametrize("rule, path, text", GOOD)
def test_a_rule_lets_pass_what_keeps_it(rule: Rule, path: str, text: str) -> None:
    assert list(rule(path, text)) == []


def test_docstrings_do_not_count_as_lines_of_code() -> None:
    text = '"""One\n\nline."""\n\n\ndef one() -> str:\n    """Return it."""\n    return """a\n    b"""\n'

    assert (code_lines(text, is_python=True), code_lines(text, is_python=False)) == (5, 9)


def test_a_folder_can_grow_too_large() -> None:
    assert not list(too_large(FOLDER_LINES_MAX))
    assert list(too_large({"model": FOLDER_LINES_MAX["model"] + 1}))
    assert list(too_large({"new": 1}))


# -- files ----------------------------------------------------------------------------------------------------------


def check(rule: Rule, paths: list[Path]) -> None:
    problems = [problem for path in paths for problem in rule(shown(path), path.read_text("utf-8", errors="replace"))]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())


def tracked_files() -> list[Path]:
    """What git keeps or would keep on the next commit; where there is no git, all that is neither hidden nor made."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return files(
            "*",
            *(
                f"{folder}/**/*"
                for folder in ("src", "tests", "docs", "bench", "deploy", "examples", "requirements", "tools")
            ),
        )
    return sorted(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def line_count(text: str) -> int:
    return len(text.splitlines())


def code_lines(text: str, *, is_python: bool) -> int:
    """Lines without docstrings, whose examples may be as long as a reader needs."""
    nodes = ast.walk(ast.parse(text)) if is_python else ()
    documented = (node for node in nodes if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False))
    docstrings = [node.body[0] for node in documented]
    return line_count(text) - sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in docstrings)
