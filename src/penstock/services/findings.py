"""What `penstock check` finds where the services of an app know too much of each other."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from penstock.app import App
from penstock.data.database import Database
from penstock.model.envelope import Command
from penstock.model.queue import is_internal
from penstock.queues.queue import Queue
from penstock.readiness.lints import Finding, SourceText, written
from penstock.services.binding import Binding, Bindings
from penstock.services.service import Service

READS = {"rows", "first", "value", "column", "exists", "more_than", "pages", "hot"}
WRITES = {"write", "write_many", "insert_many", "upsert", "prune", "archive", "count"}
CHANGES = {"post", "put", "patch", "delete"}
LITERAL = re.compile(r"'(?:[^']|'')*'|--[^\n]*")


def findings(app: App, modules: Iterable[ModuleType]) -> Iterator[Finding]:
    """Find undeclared calls, calls that are no GET, addresses of services, and SQL that names another service's tables."""
    if not app.services:
        return
    for service in app.services.values():
        for name in service.uses:
            if name not in app.services:
                text = f"Service {service.name!r} uses {name!r}, and the app has no such service."
                yield Finding("", 0, text, f"Declare it with app.service({name!r}), or remove it from `uses`.")
    for source in (written(module) for module in modules):
        if source is not None:
            for node in ast.walk(source.tree):
                yield from _of_call(app, source, node)
                yield from _of_address(source, node)
                yield from _of_tables(app, source, node)


def queue_findings(app: App) -> Iterator[Finding]:
    """Find services that share a queue of commands or have several, and commands that another service carries out."""
    if not app.services:
        return
    owners: dict[str, list[str]] = {}
    for queue in app.queues.values():
        accepted = [each for each in (queue.accepts or {}).values() if isinstance(each, type)]
        if is_internal(queue.name) or not any(issubclass(each, Command) for each in accepted):
            continue
        owner = queue._home
        yield from _of_consumers(owner, queue)
        owners.setdefault(owner.name, []).append(queue.name)
        if not isinstance(owner, Service):
            text = f"Queue {queue.name!r} accepts commands, and belongs to no service."
            yield Finding("", 0, text, "Declare it on the service that carries them out: `service.queue(...)`.")
    for name, queues in owners.items():
        if name in app.services and len(queues) > 1:
            text = f"Service {name!r} has {len(queues)} queues of commands: {', '.join(queues)}."
            yield Finding("", 0, text, "Use one queue of commands for a service, with the union of their types.")


def _of_consumers(owner: Any, queue: Queue[Any]) -> Iterator[Finding]:
    """Find handlers that carry out a service's commands in another service's database. Any service may send them."""
    functions = [handler.function for handlers in queue.handlers.values() for handler in handlers]
    functions += [] if queue.batches is None else [queue.batches.function]
    for function in functions:
        if (source := written(inspect.unwrap(function))) is None:
            continue
        for node in ast.walk(source.tree):
            used = source.meaning(node) if isinstance(node, ast.Attribute) else None
            other = used._home if isinstance(used, Database) else None
            if isinstance(other, Service) and other is not owner:
                text = f"A handler of queue {queue.name!r} of {owner.name!r} uses the database of {other.name!r}."
                fix = f"Only the owner of a queue consumes it: use the owner's `db`, or send {other.name!r} a message."
                yield Finding(source.file, source.line_of(node), text, fix)


def _of_call(app: App, source: SourceText, node: ast.AST) -> Iterator[Finding]:
    match node:
        case ast.Subscript(value=of, slice=ast.Constant(value=str(name))):
            bindings = source.meaning(of)
            if isinstance(bindings, Bindings) and name not in bindings:
                text = f"Service {bindings.service!r} calls {name!r}, and does not declare it."
                fix = f"Add {name!r} to `uses` of app.service({bindings.service!r})."
                yield Finding(source.file, source.line_of(node), text, fix)
        case ast.Call(func=ast.Attribute(value=of, attr=verb)) if verb in CHANGES:
            target = _target(source, of)
            if target is not None and target in app.services and not app.services[target].infrastructure:
                text = f"`{ast.unparse(node.func)}` is no GET: {target!r} is not infrastructure."
                fix = f"Send a message to a queue of {target!r}, or declare it with `infrastructure=True`."
                yield Finding(source.file, source.line_of(node), text, fix)


def _target(source: SourceText, node: ast.expr) -> str | None:
    """Return the service that a binding leads to: `media.bindings["x"]`, or a name that stands for one."""
    match node:
        case ast.Subscript(value=of, slice=ast.Constant(value=str(name))) if isinstance(source.meaning(of), Bindings):
            return name
    meant: Any = source.meaning(node)
    return meant.target if isinstance(meant, Binding) else None


def _of_address(source: SourceText, node: ast.AST) -> Iterator[Finding]:
    match node:
        case ast.Attribute(value=of, attr="url") if isinstance(service := source.meaning(of), Service):
            text = f"`{ast.unparse(node)}` is the address of a service: a call to it is not declared."
            fix = f'Declare it with `uses=["{service.name}"]`, and call `service.bindings["{service.name}"].get(...)`.'
            yield Finding(source.file, source.line_of(node), text, fix)


def _of_tables(app: App, source: SourceText, node: ast.AST) -> Iterator[Finding]:
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr=verb), args=[given, *_]) if verb in READS | WRITES:
            database = source.meaning(of)
        case _:
            return
    if not isinstance(database, Database):
        return
    text = given.value if isinstance(given, ast.Constant) else source.meaning(given)
    if not isinstance(text, str):
        return
    owner = database._home
    for service in app.services.values():
        if service is owner or not service.tables:
            continue
        found = re.search(rf"\b{re.escape(service.tables)}\w+", LITERAL.sub(" ", text))
        if found is not None:
            text = f"{getattr(owner, 'name', 'The app')!r} names the table {found[0]} of service {service.name!r}."
            fix = f"Ask {service.name!r} for it through a binding, or send it a message."
            yield Finding(source.file, source.line_of(node), text, fix)
