"""Every test here gets a folder with a database of its own, and a warm parent to start processes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.harness import Nursery, Site, site_in
from tests.crash.oracle import Oracle


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    try:
        yield nursery
    finally:
        nursery.close()


@pytest.fixture
def site(tmp_path: Path, nursery: Nursery) -> Iterator[Site]:
    with site_in(tmp_path, nursery) as site:
        yield site


@pytest.fixture
def oracle(site: Site) -> Oracle:
    return Oracle(site.database)
