"""How far a demonstration has come, in a file beside its database: one that was killed goes on from there."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from penstock_systems.appstore.reading.facts import PacePoint

START = datetime(2026, 1, 1, tzinfo=UTC)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is made of. Another value is another run."""

    apps: int
    markets: int
    seed: int
    days: float
    without: tuple[str, ...] = ()
    database: str = ""


class Course(msgspec.Struct, kw_only=True):
    """`until` is the end of the step that is under way: nothing in the database is later than that."""

    settings: Settings
    until: datetime = START
    points: list[PacePoint] = []
    answered: int = 0
    refused: int = 0
    done: bool = False

    @property
    def ends(self) -> datetime:
        return START + timedelta(days=self.settings.days)


def resumed(path: Path, settings: Settings) -> Course | None:
    """The run that was broken off there, if it is of these settings."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Course)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    return found if found.settings == settings and not found.done else None


def save(path: Path, course: Course) -> None:
    """Whole or not at all."""
    beside = path.with_suffix(".new")
    beside.write_bytes(msgspec.json.encode(course))
    os.replace(beside, path)
