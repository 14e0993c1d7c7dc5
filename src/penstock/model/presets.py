"""Named settings for queues whose kind of work is well known."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.errors import BadApp


class Preset(NamedTuple):
    """`parallel` None: as many as the backlog asks for."""

    batch: int
    batch_wait_seconds: float
    parallel: int | None
    rate: float | None = None


PRESETS = {
    "research": Preset(5, 10.0, None),
    "publish": Preset(10, 5.0, None),
    "events": Preset(10, 5.0, None),
    "bulk-import": Preset(100, 30.0, None),
    "rate-limited-api": Preset(1, 0.0, 1),
    "search-api": Preset(1, 0.0, 1, rate=5.0),
    "dead-letters": Preset(10, 60.0, 1),
}


def preset_of(name: str) -> Preset:
    if name not in PRESETS:
        raise BadApp(f"There is no preset {name!r}. There are: {', '.join(PRESETS)}.", preset=name)
    return PRESETS[name]
