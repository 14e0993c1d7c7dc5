"""What an app is declared with: an argument of the wrong type is refused at the call, by the name of its parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadApp

NAN = float("nan")
NO_TEXT: tuple[Any, ...] = (5, 2.5, True, b"x", (), [], {}, object())
NO_NUMBER: tuple[Any, ...] = ("x", "5", True, NAN, b"x", (), [], {}, object())
NO_COUNT: tuple[Any, ...] = (*NO_NUMBER, None, 0, -1, 2.5)
NO_RANGE: tuple[Any, ...] = (*NO_NUMBER, None, 5, (1,), (1, 2, 3), ("a", "b"), (0, 1), (2, 1), (NAN, 1))
NO_FUNCTION: tuple[Any, ...] = (5, "x", True, (), [], {}, object())
NO_CLASS: tuple[Any, ...] = (5, "x", None, [], lambda: None)


async def task() -> None: ...


async def flow(run: ps.Run) -> None: ...


class Idle(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return []


def queue(app: ps.App, **given: Any) -> object:
    return app.queue(given.pop("name", "jobs"), **given)


def cron(app: ps.App, **given: Any) -> object:
    return app.cron(given.pop("expression", "0 4 * * *"), **{"reason": "it is quiet", **given})(task)


def controller(app: ps.App, **given: Any) -> object:
    return app.controller(given.pop("name", "prices"), **given)(Idle)


def pace(app: ps.App, **given: Any) -> object:
    return app.pace(given.pop("name", "shop.example"), **given)


def workflow(app: ps.App, **given: Any) -> object:
    return app.workflow(**given)(flow)


def objects(app: ps.App, **given: Any) -> object:
    return app.object(given.pop("cls", type("Shelf", (ps.Object,), {})), **given)


def route(app: ps.App, **given: Any) -> object:
    return app.get(given.pop("path", "/v1/shop"), **given)(task)


def stage(app: ps.App, **given: Any) -> object:
    return app.trial.stage(given.pop("name", "crawl"), **{"within": "1h", **given})(task)  # type: ignore[arg-type]


def gateway(app: ps.App, **given: Any) -> object:
    return app.gateway(**given)


def http(app: ps.App, **given: Any) -> object:
    return app.http(**given)


WRONG: dict[Callable[..., object], dict[str, tuple[Any, ...]]] = {
    queue: {
        "name": (*NO_TEXT, None),
        "preset": NO_TEXT,
        "batch": NO_NUMBER,
        "batch_wait": NO_NUMBER,
        "parallel": (*NO_NUMBER, 2.5),
        "rate": NO_NUMBER,
        "retries": (*NO_NUMBER, 2.5),
        "jitter": (5, "x", None, ()),
        "timeout": NO_NUMBER,
        "cpu_timeout": NO_NUMBER,
        "crashes_max": (*NO_NUMBER, None, 0, 2.5),
        "messages_max": (*NO_NUMBER, 2.5),
        "retention": NO_NUMBER,
    },
    cron: {
        "expression": (*NO_TEXT, None),
        "reason": (*NO_TEXT, None),
        "name": NO_TEXT,
        "when": NO_FUNCTION,
        "ceiling": (*NO_TEXT, "x"),
        "zone": (*NO_TEXT, None, ("a", "b")),
        "jitter": (*NO_NUMBER, None, 2.5),
        "catch_up": (*NO_TEXT, None, "x"),
        "overlap": (*NO_TEXT, None, "x"),
        "timeout": (*NO_NUMBER, 0, -1),
    },
    controller: {
        "name": (*NO_TEXT, None),
        "mode": (*NO_TEXT, None, "x"),
        "parallel": NO_COUNT,
        "rate": NO_RANGE,
        "timeout": (*NO_NUMBER, None, 0, -1),
        "idle_backoff": NO_RANGE,
        "flush_after": (*NO_NUMBER, None, -1),
        "version": (*NO_TEXT, None),
        "alias": NO_TEXT,
        "hint": (*NO_TEXT, "moon"),
    },
    pace: {"name": (*NO_TEXT, None), "rate": NO_RANGE, "parallel": NO_COUNT, "max_wait": (*NO_NUMBER, None, -1)},
    workflow: {
        "name": NO_TEXT,
        "parallel": (*NO_NUMBER, 0, 2.5),
        "priority": (*NO_NUMBER, None, 7),
        "retries": (*NO_NUMBER, -1, 2.5),
        "timeout": (*NO_NUMBER, None, 0),
        "keep_days": (*NO_NUMBER, None, -1),
    },
    objects: {"cls": (*NO_CLASS, int), "tag": NO_TEXT, "hint": (*NO_TEXT, "moon")},
    route: {
        "path": (*NO_TEXT, None),
        "cache": (*NO_NUMBER, None, -1),
        "auth": (*NO_TEXT, "x", "App:Read"),
        "status": (*NO_NUMBER, None, 99, 404, 2.5),
    },
    stage: {"name": (*NO_TEXT, None), "within": (*NO_TEXT, None), "push": NO_FUNCTION, "least": (*NO_NUMBER, 0)},
    gateway: {"budgets": (*NO_TEXT, "x"), "service": NO_TEXT},
    http: {
        "rules": (*NO_TEXT, "x"),
        "bounds": (*NO_TEXT, "x"),
        "user_agent": NO_TEXT,
        "unverified": (5, "x", None, (2,), object()),
    },
}
CASES = [
    pytest.param(declare, parameter, id=f"{declare.__name__}-{parameter}")
    for declare, parameters in WRONG.items()
    for parameter in parameters
]


@pytest.mark.parametrize("declare, parameter", CASES)
def test_an_argument_of_the_wrong_type_is_refused_by_its_name(declare: Callable[..., object], parameter: str) -> None:
    for value in WRONG[declare][parameter]:
        with pytest.raises(ps.PenstockError, match=rf"\b{parameter}\b"):
            declare(ps.App("shop"), **{parameter: value})


@pytest.mark.parametrize("wrong", [5, "x", b"x", True, ("a",), [Idle], object(), Idle, int | str, list[int] | None])
def test_a_payload_type_that_is_no_class_of_messages_is_refused(wrong: Any) -> None:
    with pytest.raises(BadApp, match="cannot be a message"):
        ps.App("shop").queue("jobs", wrong)


@pytest.mark.parametrize("declare", WRONG, ids=lambda declare: declare.__name__)
def test_without_them_it_is_declared(declare: Callable[..., object]) -> None:
    assert declare(ps.App("shop")) is not None


def test_the_refusal_names_the_call_the_value_and_what_fits() -> None:
    with pytest.raises(BadApp) as refused:
        controller(ps.App("shop"), parallel="8")
    assert str(refused.value) == "App.controller('prices'): parallel is '8'; give a whole number from 1."

    with pytest.raises(BadApp) as refused:
        cron(ps.App("shop"), catch_up="never")
    assert str(refused.value) == "App.cron('0 4 * * *'): catch_up is 'never'; give one of once, skip, all."
