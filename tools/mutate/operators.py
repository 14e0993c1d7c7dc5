"""Applies the operators of Cosmic Ray to a file, at every place where the change can alter what the program does."""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.number_replacer import NumberReplacer
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Number

from tools.mutate.drawing import Mutant

NEEDS_ARGUMENTS = {"VariableReplacer", "VariableInserter"}
# Comparisons with None, decorators and variance for the type checker, slots, and what only refuses a mistake of ours (a
# change of a frozen value, which the type checker finds too; `zip` of lists of different lengths; an argument by its place
# that has to be named): the changed program does the same.
FOR_THE_TYPE_CHECKER = ("@overload", "@override", "@final", "@runtime_checkable")
SAME_KEYWORDS = ("slots=", "frozen=", "strict=", "covariant=", "kw_only=")
# Types and members of enums, which `is` compares: they are equal to themselves alone.
ONE_OBJECT = re.compile(
    r"is (not )?((?!True|False)[A-Z]\w*[a-z]\w*(\.[A-Z_]+)?|bool|bytes|dict|float|int|list|set|str|tuple)\b"
)
LEFT_ALONE = {"name", "string", "fstring_string", "newline"}  # no operator changes these nodes of the syntax tree

Place = tuple[int, int]  # line and column


@cache
def candidates(root: Path, path: Path) -> dict[int, list[Mutant]]:
    """Return the mutants of a file by line, without those in code that never runs, such as annotations."""
    source = path.read_text("utf-8")
    text = source.splitlines()
    never_run = list(_never_run(ast.parse(source)))
    nodes = [node for node in ast_nodes(get_ast(source)) if node.type not in LEFT_ALONE]
    found: dict[int, list[Mutant]] = {}
    for name, operator in _operators().items():
        occurrence = 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                line, column = start
                mutant = Mutant(str(path.relative_to(root)), line, text[line - 1].strip(), name, occurrence)
                changes = not _does_the_same(mutant, text[line - 1][:column], text[line - 1][column:])
                if changes and not any(first <= start < last for first, last in never_run):
                    found.setdefault(line, []).append(mutant)
                occurrence += 1
    return found


def mutated(source: str, mutant: Mutant) -> str:
    """Return the text of the file with the change in it."""
    code = mutate_code(source, _operators()[mutant.operator], mutant.occurrence)
    assert isinstance(code, str), mutant
    return code


def compiles(root: Path, mutant: Mutant) -> bool:
    """Whether Python takes the changed file without a warning, since every warning fails the tests."""
    try:
        with warnings.catch_warnings(action="error"):
            compile(mutated((root / mutant.file).read_text("utf-8"), mutant), mutant.file, "exec")
    except (
        AttributeError,
        SyntaxError,
        SyntaxWarning,
        TypeError,
    ):  # AttributeError: not every operator knows every form
        return False
    return True


def difference(source: str, mutant: Mutant) -> str:
    """Return the lines that the mutant changes, before and after."""
    lines = difflib.unified_diff(source.splitlines(), mutated(source, mutant).splitlines(), n=0, lineterm="")
    return "\n".join(f"    {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


def other_numbers(number: complex) -> list[complex]:
    """Return what a number becomes: 0 becomes 1, and any other number is doubled or becomes 0.

    Cosmic Ray adds and subtracts 1. No behaviour shows that of a limit of 10,000 rows, and a test that does repeats the
    number instead of showing what the limit does.
    """
    return [number * 2, number * 0] if number else [type(number)(1)]


class _Numbers(NumberReplacer):  # type: ignore[misc]  # of a library without types
    def mutation_positions(self, node: Any) -> Iterator[tuple[Place, Place]]:
        if isinstance(node, Number):
            yield from ((node.start_pos, node.end_pos) for _ in other_numbers(ast.literal_eval(node.value)))

    def mutate(self, node: Number, index: int) -> Number:
        return Number(f" {other_numbers(ast.literal_eval(node.value))[index]}", node.start_pos)


@cache
def _operators() -> dict[str, Any]:
    provider = OperatorProvider()
    others = {name: provider[name]() for name in provider if name not in NEEDS_ARGUMENTS}
    return others | {NumberReplacer.__name__: _Numbers()}


def _does_the_same(mutant: Mutant, before: str, after: str) -> bool:
    match mutant.operator.split("_"):
        case ("ReplaceComparisonOperator", "Is", "Eq") | ("ReplaceComparisonOperator", "IsNot", "NotEq"):
            return "None" in mutant.text or ONE_OBJECT.match(after) is not None
        case "ReplaceComparisonOperator", old, "Is" | "IsNot":
            # The mutant with `==` once more, where Python keeps one object for a number, and chance where it does not.
            return old not in ("Is", "IsNot")
        case "RemoveDecorator", *_:
            return mutant.text in FOR_THE_TYPE_CHECKER
        case "ReplaceBinaryOperator", "Mul", *_:
            return mutant.text == "*," or before.rstrip()[-1:] in ("(", ",")  # no product: what follows is named
    return before.endswith(SAME_KEYWORDS) or mutant.text.startswith(("@cache", "@lru_cache"))


def _never_run(tree: ast.AST) -> Iterator[tuple[Place, Place]]:
    """Yield annotations, the imports for the type checker and the functions without a body, those of protocols."""
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.expr):
                yield _extent(annotation)
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield _extent(node)
            case (
                ast.FunctionDef(body=[*_, ast.Expr(value=ast.Constant(value=value))])
                | ast.AsyncFunctionDef(body=[*_, ast.Expr(value=ast.Constant(value=value))])
            ) if value is ... or len(node.body) == 1:
                yield _extent(node)


def _extent(node: ast.stmt | ast.expr) -> tuple[Place, Place]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
