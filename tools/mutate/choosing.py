"""Chooses the tests for a line: what statement it belongs to, and which of the tests that execute it come first."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

Statement = ast.stmt | ast.ExceptHandler


def varied(tests: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """Order tests by duration, but take one case of every test function before a second case of any of them."""
    cases: dict[str, int] = {}
    ranked: list[tuple[int, float, str]] = []
    for test in sorted(tests, key=lambda each: (seconds[each], each)):
        function = test.split("[")[0]
        cases[function] = cases.get(function, 0) + 1
        ranked.append((cases[function], seconds[test], test))
    return [test for _, _, test in sorted(ranked)]


def enclosing(tree: ast.Module, line: int) -> tuple[Statement, bool]:
    """Return the innermost statement or `except` clause at a line, and whether it is in a function."""
    found: Statement | None = None
    is_in_function = False
    for parent in ast.walk(tree):  # outer nodes first
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, Statement) and _first_line(node) <= line <= (node.end_lineno or 0):
                if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
                    is_in_function = True
                found = node
    assert found is not None, line
    return found, is_in_function


def assigned(statement: Statement) -> list[str]:
    """Return the names that a statement gives a value to."""
    match statement:
        case ast.Assign(targets=targets):
            return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def cut(tests: Sequence[str], most: int, within: float, seconds: Mapping[str, float]) -> list[str]:
    """Return the first tests within both bounds, and at least one."""
    batch: list[str] = []
    for test in tests[:most]:
        within -= seconds[test]
        if within < 0 and batch:
            break
        batch.append(test)
    return batch


def quiet_seconds(taken: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Return what each test takes on a quiet machine, of the seconds of processor and of clock that it took on this one.

    Other programs slowed down most tests by the same factor. A test that waits takes its share of the clock.
    """
    slower = max(1.0, median([clock / used for used, clock in taken.values() if used and clock < math.inf] or [1.0]))
    return {test: max(used, clock / slower) for test, (used, clock) in taken.items()}


def _first_line(statement: Statement) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def header_end(statement: Statement) -> int:
    """Return the last line of a statement, or of the part before the block that it opens."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno
