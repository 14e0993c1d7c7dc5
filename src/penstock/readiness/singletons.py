"""Singletons that are addressed by another name than their own: an id, or a name that is only known when it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from penstock.readiness.finding import Finding
from penstock.readiness.source import Written, written

MAIN = "main"


def singletons(modules: Iterable[ModuleType]) -> Iterator[Finding]:
    """Every place in these modules at which a class marked singleton is addressed by anything but "main"."""
    for module in modules:
        source = written(module)
        if source is not None:
            yield from _in(source)


def _in(source: Written) -> Iterator[Finding]:
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
            told = f"{cls.__name__} is a singleton and is addressed as `{ast.unparse(node)}`."
            yield Finding(source.file, source.line_of(node), told, f'Write `{ast.unparse(of)}["{MAIN}"]`.')
