"""A pytest plugin that records which test executes which line and how long it takes, or that runs the listed tests only.

Coverage keeps one context a test. The context is switched for all threads, because the stores write in threads of their own.
Results that functions of the source keep are dropped before each test: a later one would not execute what it depends on.
"""

from __future__ import annotations

import json
import math
import os
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = "PENSTOCK_MUTATE_RECORD"  # where each process leaves what it recorded
KEEPING = type(cache(print))  # what `cache` and `lru_cache` make of a function
KEEPERS = ("penstock.", "penstock_systems.appstore.")
LISTED = "PENSTOCK_MUTATE_TESTS"  # the file with the ids of the tests to run, in this order

_running: Any = None
_processor_seconds: dict[str, float] = {}
_seconds: dict[str, float] = {}  # infinite for a test that failed or was skipped


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    global _running
    if FOLDER not in os.environ or (config.option.numprocesses and not hasattr(config, "workerinput")):
        return
    import coverage

    _running = coverage.Coverage(
        data_file=str(Path(os.environ[FOLDER], "part")),
        data_suffix=True,
        config_file=False,
        source=["src"],
        messages=False,
    )
    _running.set_option("run:relative_files", True)
    _running.start()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if LISTED in os.environ:
        order = {test: place for place, test in enumerate(Path(os.environ[LISTED]).read_text("utf-8").split("\n"))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if _running is not None:
        _running.switch_context(item.nodeid)
        for function in _keeping(len(sys.modules)):
            function.cache_clear()
    before = _processor()
    try:
        return (yield)
    finally:
        _processor_seconds[item.nodeid] = _processor() - before


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    passed = not report.failed and not report.skipped
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + (report.duration if passed else math.inf)


@cache
def _keeping(modules: int) -> set[Any]:
    """Return the functions and methods of the source that keep results, searched for again when more modules are imported."""
    owners: list[Any] = [module for name, module in sys.modules.items() if name.startswith(KEEPERS)]
    owners += [each for owner in owners for each in vars(owner).values() if isinstance(each, type)]
    found = (getattr(each, "__func__", each) for owner in owners for each in vars(owner).values())
    return {each for each in found if isinstance(each, KEEPING)}


def _processor() -> float:
    """Return the processor time of this process and of those that it waited for."""
    return sum(os.times()[:4])


def pytest_unconfigure() -> None:
    if _running is not None:
        _running.stop()
        _running.save()
        name = f"seconds-{uuid.uuid4().hex}.json"
        both = {test: (_processor_seconds[test], took) for test, took in _seconds.items()}
        Path(os.environ[FOLDER], name).write_text(json.dumps(both), encoding="utf-8")
