"""For pytest: an async test that takes a TestApp runs in virtual time, with the app open around it."""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack

import pytest

from penstock.testing.harness import TestApp
from penstock.testing.loop import run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Name this module in `pytest_plugins`, or import this function into a conftest.py."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    apps = [value for value in given.values() if isinstance(value, TestApp)]
    if not apps:
        return None

    async def with_apps_open() -> None:
        async with AsyncExitStack() as stack:
            for app in apps:
                await stack.enter_async_context(app)
            await test(**given)

    run(with_apps_open, seed=apps[0].seed)
    return True
