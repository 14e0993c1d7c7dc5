"""What is left to do where services that call each other are to send messages instead: ten steps, read from their code.

Each service is a folder with Python files, and perhaps SQL files and tests. Nothing of it is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.model.errors import BadApp

STEPS = (
    "List the calls between services",
    "Replace chains of calls by messages",
    "Give each service a table of processed events",
    "Give each service a queue of commands",
    "Give each queue a consumer of dead letters",
    "Send a command where a service calls an action",
    "Repeat an insert without a second row",
    "Remove the endpoints of actions",
    "Check the answer and limit the time of the reads that stay",
    "Test each consumer with a message that arrives twice",
)
READS, ACTIONS = {"get", "head"}, {"post", "put", "patch", "delete"}
CHECKS = {"raise_for_status", "status_code", "status", "is_success", "ok"}
ROUTERS = {"app", "router", "api", "blueprint", "bp", "service"}
DEDUPLICATION = re.compile(r"\bprocessed_events\b", re.IGNORECASE)
INSERT = re.compile(r"\binsert\s+into\b(?!.*\bon\s+conflict\b)", re.IGNORECASE | re.DOTALL)
TWICE = re.compile(r"\bdeliver_twice\b|\btwice\b|\bduplicate", re.IGNORECASE)
FILES_MAX, FILE_BYTES_MAX = 5_000, 2_000_000


class Leftover(NamedTuple):
    """Something that a step leaves to do. Steps count from 1."""

    step: int
    service: str
    file: str
    line: int
    message: str
    fix: str


class _File(NamedTuple):
    path: str
    text: str
    tree: ast.Module | None


def audit(folder: Path) -> Iterator[Leftover]:
    """Read every service below a folder, and yield what is left of each step. Raises BadApp where there is none."""
    services = {each.name: _files(each, folder) for each in sorted(folder.iterdir()) if each.is_dir()}
    services = {name: files for name, files in services.items() if any(each.tree for each in files)}
    if not services:
        raise BadApp(f"{folder} has no services: each is a folder with Python files.", path=str(folder))
    found = [each for name, files in services.items() for each in _of_service(name, files, list(services))]
    yield from sorted(found)


def _files(service: Path, root: Path) -> list[_File]:
    files = []
    for path in sorted(service.rglob("*"))[:FILES_MAX]:
        if path.suffix in (".py", ".sql") and path.is_file() and path.stat().st_size <= FILE_BYTES_MAX:
            text = path.read_text(encoding="utf-8", errors="replace")
            files.append(_File(str(path.relative_to(root)), text, _parsed(path, text)))
    return files


def _parsed(path: Path, text: str) -> ast.Module | None:
    if path.suffix != ".py":
        return None
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise BadApp(f"{path} is not valid Python: {error.msg} (line {error.lineno}).", path=str(path)) from error


def _of_service(service: str, files: Sequence[_File], services: Sequence[str]) -> Iterator[Leftover]:
    others = {_plain(each): each for each in services if each != service}
    own = [each for each in files if "test" not in Path(each.path).name]
    for file in own:
        if file.tree is not None:
            yield from _calls(service, file, file.tree, others)
            yield from _endpoints(service, file, file.tree)
        yield from _inserts(service, file)
    yield from _missing(service, files, own)


def _calls(service: str, file: _File, tree: ast.Module, others: Mapping[str, str]) -> Iterator[Leftover]:
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)):
        called = [
            (call, verb, target)
            for call in ast.walk(function)
            if isinstance(call, ast.Call) and (verb := _verb(call)) and (target := _target(call, others))
        ]
        checked = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)} & CHECKS
        for call, verb, target in called:
            flaw = f"{function.name}() calls {verb.upper()} of {target}"
            place = (service, file.path, call.lineno)
            yield Leftover(1, *place, f"{flaw}.", f"Declare it: app.service({service!r}, uses=[{target!r}]).")
            if verb in ACTIONS:
                yield Leftover(6, *place, f"{flaw}, which is an action.", f"Send a command to the queue of {target}.")
                continue
            if not checked:
                fix = "A binding raises for every status but 2xx; so does `raise_for_status()`."
                yield Leftover(9, *place, f"{flaw} and does not look at the status.", fix)
            if not any(keyword.arg == "timeout" for keyword in call.keywords):
                yield Leftover(
                    9, *place, f"{flaw} without a time limit.", "A binding has one of 10 s; or give `timeout=`."
                )
        targets = list(dict.fromkeys(target for _, _, target in called))
        if len(targets) > 1:
            flaw = f"{function.name}() waits for {len(targets)} services: {', '.join(targets)}."
            fix = "Let each step be a message, so that no retry repeats the steps before it."
            yield Leftover(2, service, file.path, function.lineno, flaw, fix)


def _endpoints(service: str, file: _File, tree: ast.Module) -> Iterator[Leftover]:
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)):
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=of), attr=verb), args=[ast.Constant(value=str(path)), *_]
                ) if verb in ACTIONS and of.lower() in ROUTERS:
                    flaw = f"{verb.upper()} {path} is an endpoint for an action."
                    fix = "Handle a command of the service's queue instead, once no service calls it any more."
                    yield Leftover(8, service, file.path, decorator.lineno, flaw, fix)


def _inserts(service: str, file: _File) -> Iterator[Leftover]:
    for node in ast.walk(file.tree) if file.tree is not None else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and INSERT.search(node.value):
            flaw = f"`{' '.join(node.value.split())[:60]}` adds a row each time that it runs."
            yield Leftover(7, service, file.path, node.lineno, flaw, "Add `on conflict ... do nothing` or `do update`.")


def _missing(service: str, files: Sequence[_File], own: Sequence[_File]) -> Iterator[Leftover]:
    text = "\n".join(each.text for each in own)
    queues = re.findall(r"\.queue\(\s*[\"']([\w.-]+)[\"']", text)
    if not DEDUPLICATION.search(text):
        flaw = "No migration creates the table processed_events."
        yield Leftover(3, service, service, 0, flaw, "Handle messages with Penstock, which has one, or create it.")
    if not queues:
        fix = f'Declare one: app.service("{service}").queue("{service}-commands", ...).'
        yield Leftover(4, service, service, 0, "The service has no queue of commands.", fix)
    if "dead_letter_handler" not in text and "on_alert" not in text:
        flaw = f"Dead letters of {', '.join(queues) or 'its queues'} have no consumer."
        yield Leftover(
            5, service, service, 0, flaw, "Write `@queue.dead_letter_handler`, or `@app.on_alert` for all queues."
        )
    tests = "\n".join(each.text for each in files if each not in own)
    if not TWICE.search(tests):
        fix = "`penstock.testing.deliver_twice` sends a message twice and compares the effects."
        yield Leftover(10, service, service, 0, "No test delivers a message twice.", fix)


def _verb(call: ast.Call) -> str:
    """Return the method of an HTTP call: `client.post(...)`, or `client.request("POST", ...)`."""
    match call:
        case ast.Call(func=ast.Attribute(attr=verb)) if verb.lower() in READS | ACTIONS:
            return str(verb).lower()
        case ast.Call(func=ast.Attribute(attr="request" | "fetch"), args=[ast.Constant(value=str(verb)), *_]):
            return verb.lower() if verb.lower() in READS | ACTIONS else ""
    return ""


def _target(call: ast.Call, others: Mapping[str, str]) -> str | None:
    """Return the other service that the address of a call names, in a text or in the name of a variable."""
    words = [node for argument in call.args[:2] for node in ast.walk(argument)]
    named = [str(node.value) for node in words if isinstance(node, ast.Constant)]
    named += [node.id for node in words if isinstance(node, ast.Name)]
    named += [node.attr for node in words if isinstance(node, ast.Attribute)]
    text = " ".join(_plain(each) for each in named)
    return next((name for plain, name in others.items() if plain in text), None)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
