"""Lints of user code: singletons under another name, counts of whole tables, and fixed batches against outside services.

A fixed batch is what can be seen before it runs: calls inside a loop of a cron task, or of functions that it calls there, on
an HTTP client or a library for going out. Where a permit is taken around the call, the pace is no longer the task's own. A
call that is meant as it is has the comment `# penstock: fixed batch` in its line.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

UNKNOWN = object()
MAIN = "main"
COUNT = re.compile(r"\bselect\b[^()]*\bcount\s*\(", re.IGNORECASE)
BOUNDED = re.compile(
    r"\bfrom\s*\(.*\blimit\b.*\)", re.IGNORECASE | re.DOTALL
)  # it counts what an inner limit let through
COUNT_FIX = "Use `db.count(table)`, which keeps a counter, `db.exists(...)`, or give the route `cache=`."
OUTSIDE = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "urllib", "urllib3", "websockets"}
OWN_CLIENT = "penstock.outbound"
MEANT = "penstock: fixed batch"
DEPTH_MAX = 5  # of functions that call functions
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BATCH_FIX = "Make it a controller, which adapts its rate, or acquire a permit of `app.pace(...)` around the call."


class Finding(NamedTuple):
    file: str
    line: int
    message: str
    fix: str


class SourceText(NamedTuple):
    file: str
    tree: ast.AST
    lines: list[str]
    first: int  # the line of the file that the text begins with
    names: Mapping[str, Any]

    def line_of(self, node: ast.AST) -> int:
        return self.first + int(getattr(node, "lineno", 1)) - 1

    def text_of(self, node: ast.AST) -> str:
        return self.lines[int(getattr(node, "lineno", 1)) - 1]

    def meaning(self, node: ast.AST) -> Any:
        """The object that a dotted name stands for, or UNKNOWN: only what exists before it runs is known."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name, getattr(builtins, name, UNKNOWN))
            case ast.Attribute(value=value, attr=attribute):
                owner = self.meaning(value)
                return UNKNOWN if owner is UNKNOWN else inspect.getattr_static(owner, attribute, UNKNOWN)
        return UNKNOWN


def written(thing: FunctionType | ModuleType) -> SourceText | None:
    """None where there is no text, as for what was typed into an interpreter."""
    try:
        lines, first = inspect.getsourcelines(thing)
        file = inspect.getsourcefile(thing) or ""
    except (OSError, TypeError):
        return None
    names = dict(vars(thing)) if isinstance(thing, ModuleType) else _seen_by(thing)
    text = textwrap.dedent("".join(lines))
    return SourceText(file, ast.parse(text), text.splitlines(), max(first, 1), names)


def _seen_by(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosed = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return {**function.__globals__, **enclosed}


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (an empty cell raises)
    except ValueError:
        return False
    return True


def singletons(modules: Iterable[ModuleType]) -> Iterator[Finding]:
    """Every place in these modules at which a class marked singleton is addressed by anything but "main"."""
    for module in modules:
        source = written(module)
        if source is not None:
            yield from _in(source)


def _in(source: SourceText) -> Iterator[Finding]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Subscript(value=of, slice=given):
                pass
            case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[given, *_]):
                pass
            case _:
                continue
        cls: Any = getattr(source.meaning(of), "cls", None)
        is_main = isinstance(given, ast.Constant) and given.value == MAIN
        if getattr(cls, "_singleton", False) and not is_main:
            flaw = f"{cls.__name__} is a singleton and is addressed as `{ast.unparse(node)}`."
            yield Finding(source.file, source.line_of(node), flaw, f'Write `{ast.unparse(of)}["{MAIN}"]`.')


def counts(functions: Iterable[object]) -> Iterator[Finding]:
    """Find statements in these functions, written there or named, that count rows without a bound."""
    for source in (written(each) for each in functions if isinstance(each, FunctionType)):
        if source is None:
            continue
        for node in ast.walk(source.tree):
            text = node.value if isinstance(node, ast.Constant) else source.meaning(node)
            if isinstance(text, str) and COUNT.search(text) and not BOUNDED.search(text):
                flaw = f"`{' '.join(text.split())[:80]}` reads every row of the table at each run."
                yield Finding(source.file, source.line_of(node), flaw, COUNT_FIX)


def fixed_batches(tasks: Iterable[tuple[str, Any]]) -> Iterator[Finding]:
    """For each cron task, by its name, the calls to the outside that it makes in a loop."""
    for name, function in tasks:
        for source, call in _Search().calls(function, looped=False):
            flaw = f"Cron task {name!r} calls `{ast.unparse(call.func)}` in a loop: a fixed batch against a service."
            yield Finding(source.file, source.line_of(call), flaw, BATCH_FIX)


class _Search:
    def __init__(self) -> None:
        self._seen: set[tuple[Any, bool]] = set()

    def calls(self, function: Any, *, looped: bool, depth: int = 0) -> Iterator[tuple[SourceText, ast.Call]]:
        if not isinstance(function, FunctionType) or (function, looped) in self._seen or depth > DEPTH_MAX:
            return
        self._seen.add((function, looped))
        source = written(function)
        if source is not None:
            clients = {name for node in ast.walk(source.tree) for name in _clients_named(source, node)}
            yield from self._walk(source, source.tree, clients, looped, depth)

    def _walk(
        self, source: SourceText, node: ast.AST, clients: set[str], looped: bool, depth: int
    ) -> Iterator[tuple[SourceText, ast.Call]]:
        if isinstance(node, ast.With | ast.AsyncWith) and any(_is_permit(item.context_expr) for item in node.items):
            return
        if isinstance(node, ast.Call):
            if _goes_out(source, node, clients):
                if looped and MEANT not in source.text_of(node):
                    yield source, node
            else:
                called = source.meaning(node.func)
                yield from self.calls(getattr(called, "__wrapped__", called), looped=looped, depth=depth + 1)
        once = getattr(node, "iter", None) if isinstance(node, ast.For | ast.AsyncFor) else None  # asked for once
        for child in ast.iter_child_nodes(node):
            again = looped or (isinstance(node, LOOPS) and child is not once)
            yield from self._walk(source, child, clients, again, depth)


def _clients_named(source: SourceText, node: ast.AST) -> Iterator[str]:
    """Names that a function gives to a client: `client = app.http()`, `async with httpx.AsyncClient() as client`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as made) if _is_outside(
            source.meaning(made.func)
        ):
            yield name
        case ast.withitem(context_expr=ast.Call() as made, optional_vars=ast.Name(id=name)) if _is_outside(
            source.meaning(made.func)
        ):
            yield name


def _goes_out(source: SourceText, call: ast.Call, clients: set[str]) -> bool:
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    on_client = isinstance(call.func, ast.Attribute) and isinstance(root, ast.Name) and root.id in clients
    return on_client or (isinstance(call.func, ast.Attribute) and _is_outside(source.meaning(call.func.value)))


def _is_outside(thing: Any) -> bool:
    """Whether it is a library for going out, a client of one, or what makes our own."""
    if thing is UNKNOWN or isinstance(thing, str | int | float | bytes | None):
        return False
    if getattr(thing, "__qualname__", "") == "Outside.http":
        return True
    named = thing if isinstance(thing, type | FunctionType | MethodType) else type(thing)
    module = str(getattr(thing, "__name__", "")) if type(thing).__name__ == "module" else str(named.__module__)
    return module.split(".")[0] in OUTSIDE or module.startswith(OWN_CLIENT)


def _is_permit(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "permit"
