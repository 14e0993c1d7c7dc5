"""Cron tasks that go through a batch and call the outside for each: too fast on a bad day, too slow on a good one.

Seen is what can be seen before it runs: calls inside a loop of the task, or of functions that it calls there, on an HTTP
client or a library for going out. Where a permit is taken around the call, the pace is no longer the task's own. A call
that is meant as it is has the comment `# penstock: fixed batch` in its line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

from penstock.readiness.finding import Finding
from penstock.readiness.source import UNKNOWN, Written, written

OUTSIDE = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "urllib", "urllib3", "websockets"}
OWN_CLIENT = "penstock.gateway"
MEANT = "penstock: fixed batch"
DEPTH_MAX = 5  # of functions that call functions; deeper nobody finds it by reading either
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FIX = "Make it a controller, which finds its own pace, or take a permit of `app.pace(...)` around the call."


def fixed_batches(tasks: Iterable[tuple[str, Any]]) -> Iterator[Finding]:
    """For each cron task, by its name, the calls to the outside that it makes in a loop."""
    for name, function in tasks:
        for source, call in _Search().calls(function, looped=False):
            told = f"Cron task {name!r} calls `{ast.unparse(call.func)}` in a loop: a fixed batch against a service."
            yield Finding(source.file, source.line_of(call), told, FIX)


class _Search:
    def __init__(self) -> None:
        self._seen: set[tuple[Any, bool]] = set()

    def calls(self, function: Any, *, looped: bool, depth: int = 0) -> Iterator[tuple[Written, ast.Call]]:
        if not isinstance(function, FunctionType) or (function, looped) in self._seen or depth > DEPTH_MAX:
            return
        self._seen.add((function, looped))
        source = written(function)
        if source is not None:
            clients = {name for node in ast.walk(source.tree) for name in _clients_named(source, node)}
            yield from self._walk(source, source.tree, clients, looped, depth)

    def _walk(
        self, source: Written, node: ast.AST, clients: set[str], looped: bool, depth: int
    ) -> Iterator[tuple[Written, ast.Call]]:
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


def _clients_named(source: Written, node: ast.AST) -> Iterator[str]:
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


def _goes_out(source: Written, call: ast.Call, clients: set[str]) -> bool:
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
