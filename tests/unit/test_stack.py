"""Tracebacks as text: which frames and causes are kept, and the place that a rendered traceback names."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path

import pytest

from penstock.model.ids import derived
from penstock.model.stack import TRACEBACK_MAX, failure_line, function_place, located, place_of, rendered

HERE = Path(__file__).name


def first() -> None:
    second()


def second() -> None:
    third()


def third() -> None:
    raise LookupError("gone")  # the line that fails


def text_of(fails: Callable[[], object]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  (of any kind)
        fails()
    text = rendered(caught.value)
    assert text is not None
    return text


def line_of(function: Callable[[], None]) -> int:
    return function.__code__.co_firstlineno + 1


def test_the_place_of_a_traceback_is_its_innermost_frame() -> None:
    text = text_of(first)

    lines = [line_of(each) for each in (first, second, third)]
    assert [f"line {line}, in" in text for line in lines] == [True, True, True]
    assert place_of(text) == f"{HERE}:{lines[-1]}"
    assert text.endswith("LookupError: gone")


@pytest.mark.parametrize("text", [None, "", "LookupError: gone", '    File "not a frame'])
def test_a_text_without_frames_names_no_place(text: str | None) -> None:
    assert place_of(text) is None
    assert located("LookupError:\n  gone", text) == "LookupError: gone"


def test_frames_of_libraries_are_counted_and_the_users_line_is_the_place() -> None:
    text = text_of(lambda: json.loads("{"))

    assert "json/decoder.py" not in text
    assert "  ... and 3 frames of libraries\n" in text
    assert (place_of(text) or "").startswith(f"{HERE}:")


def test_one_frame_of_a_library_is_counted_in_the_singular() -> None:
    assert "  ... and 1 frame of libraries\n" in text_of(lambda: derived(b"", 7))  # type: ignore[arg-type]


def test_an_error_that_no_user_code_raised_shows_the_frames_of_the_library() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    caught.value.__traceback__ = caught.tb.tb_next

    text = rendered(caught.value) or ""

    assert "json/decoder.py" in text
    assert "of libraries" not in text


def because_of_another() -> None:
    try:
        third()
    except LookupError as error:
        raise ValueError("no such order") from error


def while_another_was_handled() -> None:
    try:
        third()
    except LookupError:
        raise ValueError("no such order")  # noqa: B904  (the context that is meant)


def instead_of_another() -> None:
    try:
        third()
    except LookupError:
        raise ValueError("no such order") from None


@pytest.mark.parametrize("raises", [because_of_another, while_another_was_handled])
def test_what_led_to_an_error_comes_before_it(raises: Callable[[], None]) -> None:
    cause, error = text_of(raises).split("\n\nwhich led to:\n\n")

    assert cause.endswith("LookupError: gone")
    assert error.endswith("ValueError: no such order")


def test_a_context_that_was_suppressed_is_left_out() -> None:
    text = text_of(instead_of_another)

    assert "which led to" not in text
    assert text.endswith("ValueError: no such order")


def test_the_last_three_errors_of_a_chain_are_kept() -> None:
    def chained(number: int) -> None:
        try:
            if number:
                chained(number - 1)
        finally:
            raise LookupError(f"error {number}")

    said = [part.rsplit(": ", 1)[1] for part in text_of(lambda: chained(4)).split("\n\nwhich led to:\n\n")]

    assert said == ["error 2", "error 3", "error 4"]


def test_the_end_of_a_long_traceback_is_kept() -> None:
    def fails() -> None:
        raise LookupError("x" * 2 * TRACEBACK_MAX + " the end")

    text = text_of(fails)

    assert text.startswith("...x")
    assert text.endswith("x the end")
    assert len(text) == len("...") + TRACEBACK_MAX


def test_a_failed_attempt_is_a_line_with_the_beginning_of_its_error() -> None:
    line = failure_line("orders:handle", "x" * 1_000, None, 2, 2.5)

    assert line == f"orders:handle: {'x' * 300} (attempt 2, next in 2.5 s)"
    assert failure_line("orders:handle", "gone", None, 3, None) == "orders:handle: gone (attempt 3, it is not retried)"


def test_a_function_is_named_with_the_place_where_it_is_written() -> None:
    @wraps(third)
    def decorated() -> None:
        third()

    place = f"{third.__module__}.third ({HERE}:{third.__code__.co_firstlineno})"

    assert [function_place(each) for each in (third, decorated, partial(third))] == [place] * 3


def test_what_was_not_written_in_python_is_named_without_a_place() -> None:
    class Callback:
        __module__ = ""

        def __call__(self) -> None: ...

    assert function_place(len) == "builtins.len"
    assert function_place(Callback()) == "Callback"
