"""A database path and a disk that can be told to misbehave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.inspection import SqliteInspect
from tests.disk import Disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "luck.db"


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Nothing is synced for real: where power is not cut, that only takes time."""
    disk = Disk(honest=False)
    yield disk
    disk.heal()
    disk.quota_bytes = None


@pytest.fixture
def inspect(path: Path) -> SqliteInspect:
    return SqliteInspect(path)
