"""A function that cannot be a handler, a task or a route is named with its module, file and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock as ps
from penstock.model.errors import BadApp


def blocking(body: dict[str, str]) -> None: ...


async def without_arguments() -> None: ...


def line_of(function: Callable[..., object]) -> str:
    return (
        f"tests.unit.test_bad_functions.{function.__name__} (test_bad_functions.py:{function.__code__.co_firstlineno})"
    )


@pytest.mark.parametrize(
    "declare, function",
    [
        (lambda app: app.queue("q").handler(dict), blocking),
        (lambda app: app.queue("q").handler(dict), without_arguments),
        (lambda app: app.queue("q", batch=5).batch_handler, blocking),
        (lambda app: app.queue("q", batch=5).batch_handler, without_arguments),
        (lambda app: app.cron("0 6 * * *", reason="it is early"), blocking),
        (lambda app: app.get("/v1/status"), blocking),
    ],
)
def test_a_function_that_does_not_fit_is_named_with_its_line(
    declare: Callable[[ps.App], Callable[..., object]], function: Callable[..., object]
) -> None:
    with pytest.raises(BadApp) as refused:
        declare(ps.App("shop"))(function)

    assert line_of(function) in str(refused.value)
    assert " at 0x" not in str(refused.value)
