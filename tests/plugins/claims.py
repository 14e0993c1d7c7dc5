"""Which test claims which requirement and which fault, read from the marks in the source: nothing is imported or run."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent.parent
MARKS = ("spec", "fault")


class Proof(NamedTuple):
    """A test by its file, from the root of the project on, and its name."""

    file: str
    name: str


@cache
def claims() -> Mapping[str, list[Proof]]:
    """By id, in the order of files and lines."""
    found: defaultdict[str, list[Proof]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text("utf-8")
        if "mark.spec" in source or "mark.fault" in source:
            for test, ids in claims_of(source, path.relative_to(TESTS.parent).as_posix()):
                for id in ids:
                    found[id].append(test)
    return found


def claims_of(source: str, file: str) -> Iterator[tuple[Proof, list[str]]]:
    tree = ast.parse(source)
    of_all = [id for node in tree.body if _is_for_all(node) for id in _ids(node)]
    for node in (each for top in tree.body for each in (top.body if isinstance(top, ast.ClassDef) else [top])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            ids = {*of_all, *(id for decorator in node.decorator_list for id in _ids(decorator))}
            yield Proof(file, node.name), sorted(ids)


def _is_for_all(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="pytestmark")]):
            return True
    return False


def _ids(node: ast.AST) -> Iterator[str]:
    """Of every `pytest.mark.spec(...)` and `pytest.mark.fault(...)` inside, also among the parameters of a test."""
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr=kind), args=args) if kind in MARKS:
                yield from (ast.literal_eval(argument) for argument in args)
