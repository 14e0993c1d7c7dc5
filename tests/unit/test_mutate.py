"""The pure parts of `make mutate`: which mutants a seed draws, and which tests are asked about one."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.mutate.choosing import assigned, cut, enclosing, quiet_seconds, varied
from tools.mutate.drawing import Equivalent, Mutant, area_files, draw, listed_equivalents, shares

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = """\
LIMIT = 3


class Box:
    size: int = 4

    @property
    def room(
        self,
        more: int = 1,
    ) -> int:
        if (
            self.size
            > LIMIT
        ):
            return 0
        try:
            return more
        except ValueError:
            return 0
"""


@pytest.fixture
def areas(tmp_path: Path) -> dict[str, list[Path]]:
    def written(name: str, lines: int) -> list[Path]:
        (tmp_path / name).write_text("x = 1\n" * lines, encoding="utf-8")
        return [tmp_path / name]

    return {"large": written("large.py", 300), "small": written("small.py", 100)}


def every_other_line(path: Path) -> dict[int, list[Mutant]]:
    def at(line: int) -> Iterator[Mutant]:
        yield from (Mutant(path.name, line, "x = 1", operator, line) for operator in ("first", "second"))

    return {line: list(at(line)) for line in range(1, len(path.read_text("utf-8").splitlines()) + 1, 2)}


def test_each_area_gets_mutants_in_proportion_to_its_lines(areas: dict[str, list[Path]]) -> None:
    drawn = draw(areas, 1, 40, every_other_line)

    assert [sum(mutant.file == name for mutant in drawn) for name in ("large.py", "small.py")] == [30, 10]


def test_what_does_not_divide_goes_to_the_largest_remainders() -> None:
    assert shares({"a": 50, "b": 30, "c": 20}, 7) == {"a": 4, "b": 2, "c": 1}


def test_the_same_seed_draws_the_same_mutants_and_another_seed_draws_others(areas: dict[str, list[Path]]) -> None:
    first = draw(areas, 1, 40, every_other_line)

    assert draw(areas, 1, 40, every_other_line) == first
    assert draw(areas, 2, 40, every_other_line) != first


def test_a_line_is_drawn_once_and_an_invalid_mutant_never(areas: dict[str, list[Path]]) -> None:
    drawn = draw(areas, 1, 40, every_other_line, lambda mutant: mutant.operator == "second")

    assert len({(mutant.file, mutant.line) for mutant in drawn}) == 40
    assert {mutant.operator for mutant in drawn} == {"second"}


def test_every_area_has_files() -> None:
    assert all(area_files(ROOT).values())


def test_at_most_fifteen_mutants_are_listed_as_equivalent_and_each_still_names_a_line_of_its_file() -> None:
    listed = listed_equivalents(ROOT)

    assert len(listed) <= 15
    assert all(each.reason for each in listed)
    for each in listed:
        lines = [line.strip() for line in (ROOT / each.file).read_text("utf-8").splitlines()]
        assert each.line in lines, f"tests/mutants.toml: {each.file} has no line {each.line!r}"


def test_an_equivalent_mutant_is_found_by_file_text_and_operator() -> None:
    mutant = Mutant("a.py", 7, "x = 1", "NumberReplacer", 0)

    assert Equivalent("a.py", "x = 1", "NumberReplacer", "why").covers(mutant)
    assert not Equivalent("b.py", "x = 1", "NumberReplacer", "why").covers(mutant)
    assert not Equivalent("a.py", "x = 1", "AddNot", "why").covers(mutant)


@pytest.mark.parametrize(
    "line,first_line,is_in_function",
    [
        (1, 1, False),
        (5, 5, False),
        (7, 8, False),
        (10, 8, False),
        (13, 12, True),
        (14, 12, True),
        (16, 16, True),
        (19, 19, True),
    ],
)
def test_a_line_belongs_to_the_innermost_statement(line: int, first_line: int, is_in_function: bool) -> None:
    statement, inside = enclosing(ast.parse(SOURCE), line)

    assert (statement.lineno, inside) == (first_line, is_in_function)


def test_the_names_that_a_statement_assigns() -> None:
    body = ast.parse("A = B = 1\nc: int = 2\nd, e = 3, 4\nprint()").body

    assert [assigned(statement) for statement in body] == [["A", "B"], ["c"], ["d", "e"], []]


def test_one_case_of_every_test_comes_before_the_second_case_of_any() -> None:
    seconds = {"t::a[1]": 0.1, "t::a[2]": 0.2, "t::a[3]": 0.3, "t::b": 0.5, "t::c[x]": 0.4}

    assert varied(seconds, seconds) == ["t::a[1]", "t::c[x]", "t::b", "t::a[2]", "t::a[3]"]


def test_a_batch_keeps_both_bounds_and_holds_at_least_one_test() -> None:
    seconds = {"a": 1.0, "b": 1.0, "c": 1.0}

    assert cut(["a", "b", "c"], 2, 9.0, seconds) == ["a", "b"]
    assert cut(["a", "b", "c"], 9, 2.5, seconds) == ["a", "b"]
    assert cut(["a", "b", "c"], 9, 0.5, seconds) == ["a"]
    assert cut([], 9, 0.5, seconds) == []


def test_a_test_takes_its_processor_time_or_what_it_waits_whatever_else_the_machine_does() -> None:
    taken = {"computes": (2.0, 8.0), "also": (1.0, 4.0), "waits": (0.1, 12.0), "failed": (0.5, math.inf)}

    assert quiet_seconds(taken) == {"computes": 2.0, "also": 1.0, "waits": 3.0, "failed": math.inf}


def test_a_number_changes_so_that_it_matters() -> None:
    operators = pytest.importorskip("tools.mutate.operators", reason="Cosmic Ray is installed by `make mutate`")

    assert operators.other_numbers(0) == [1]
    assert operators.other_numbers(10_000) == [20_000, 0]
    assert [(number, type(number)) for number in operators.other_numbers(0.0)] == [(1.0, float)]
    assert operators.other_numbers(2.5) == [5.0, 0.0]


def test_a_file_gets_its_numbers_comparisons_and_branches_changed(tmp_path: Path) -> None:
    operators = pytest.importorskip("tools.mutate.operators", reason="Cosmic Ray is installed by `make mutate`")
    source = "def is_full(rows: int) -> bool:\n    return rows >= 500\n"
    (tmp_path / "full.py").write_text(source, encoding="utf-8")

    found = operators.candidates(tmp_path, tmp_path / "full.py")
    changed = {operators.mutated(source, mutant).splitlines()[1].replace("  ", " ").strip() for mutant in found[2]}

    assert {"return rows >= 1000", "return rows >= 0", "return rows < 500"} <= changed
    assert set(found) == {2}


def test_identity_of_a_type_becomes_no_equality_which_is_the_same(tmp_path: Path) -> None:
    operators = pytest.importorskip("tools.mutate.operators", reason="Cosmic Ray is installed by `make mutate`")
    source = "def f(x):\n    yield x is tuple\n    yield x is Lack.GONE\n    yield x is True\n    yield x is other\n"
    (tmp_path / "f.py").write_text(source, encoding="utf-8")

    found = operators.candidates(tmp_path, tmp_path / "f.py")

    equal = [line for line, at in found.items() if "ReplaceComparisonOperator_Is_Eq" in [each.operator for each in at]]
    assert equal == [4, 5]
