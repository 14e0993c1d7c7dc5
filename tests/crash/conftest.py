"""Every test here gets a folder with a database of its own, and a warm parent to start processes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash.harness import ForkServer, Site, site_in
from tests.crash.oracle import Oracle


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    fork_server = ForkServer()
    try:
        yield fork_server
    finally:
        fork_server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    """Every test runs on both stores, but for those about what only one of them has."""
    return str(request.param)


@pytest.fixture
def site(tmp_path: Path, fork_server: ForkServer, store: str) -> Iterator[Site]:
    with site_in(tmp_path, fork_server, store) as site:
        yield site


@pytest.fixture
def sites(tmp_path: Path, fork_server: ForkServer, store: str) -> Iterator[Callable[[str], Site]]:
    """Several sites at once, each under its name, for cases that take long and can wait side by side."""
    with ExitStack() as all_of_them:
        known: dict[str, Site] = {}

        def named(name: str) -> Site:
            if name not in known:
                (tmp_path / name).mkdir()
                known[name] = all_of_them.enter_context(site_in(tmp_path / name, fork_server, store))
            return known[name]

        yield named


@pytest.fixture
def oracle(site: Site) -> Oracle:
    return Oracle(site.database)
