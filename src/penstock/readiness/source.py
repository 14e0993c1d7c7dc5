"""A function, or a module, as it was written: its tree with the lines of its file, and what the names in it stand for."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

UNKNOWN = object()


class Written(NamedTuple):
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


def written(thing: FunctionType | ModuleType) -> Written | None:
    """None where there is no text, as for what was typed into an interpreter."""
    try:
        lines, first = inspect.getsourcelines(thing)
        file = inspect.getsourcefile(thing) or ""
    except (OSError, TypeError):
        return None
    names = dict(vars(thing)) if isinstance(thing, ModuleType) else _seen_by(thing)
    text = textwrap.dedent("".join(lines))
    return Written(file, ast.parse(text), text.splitlines(), max(first, 1), names)


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
