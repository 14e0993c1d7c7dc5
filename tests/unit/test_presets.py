"""Settings of queues: presets by their names, each number of which a queue may override, and the range of each number."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadApp
from penstock.model.queue import PRESETS, preset_of

TABLE = {
    "research": (5, 10, None, None),
    "publish": (10, 5, None, None),
    "events": (10, 5, None, None),
    "bulk-import": (100, 30, None, None),
    "rate-limited-api": (1, 0, 1, None),
    "dead-letters": (10, 60, 1, None),
    "search-api": (1, 0, 1, 5),
}


@pytest.mark.spec("A1-23", "A1-22")
@pytest.mark.parametrize("profile", ["local", "cloudflare"])
@pytest.mark.parametrize("name", TABLE)
def test_a_preset_gives_a_queue_its_numbers(name: str, profile: str) -> None:
    app = ps.App("shop", config=parse(f'profile = "{profile}"', "penstock.toml"))
    settings = app.queue("work", preset=name).settings

    assert (settings.batch, settings.batch_wait_seconds, settings.parallel, settings.rate) == TABLE[name]


@pytest.mark.spec("A1-23")
def test_there_is_no_preset_that_is_not_in_the_table() -> None:
    assert set(PRESETS) == set(TABLE)


def test_what_a_queue_says_itself_wins() -> None:
    queue = ps.App("shop").queue("work", preset="search-api", batch=7, batch_wait=0.5, parallel=3, rate=2)
    settings = queue.settings

    assert (settings.batch, settings.batch_wait_seconds, settings.parallel, settings.rate) == (7, 0.5, 3, 2)


def test_a_wait_of_nothing_wins_too() -> None:
    assert ps.App("shop").queue("work", preset="events", batch_wait=0).settings.batch_wait_seconds == 0


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadApp, match="bulk-import"):
        preset_of("bulk")


@pytest.mark.spec("A1-11", "A1-12", "A1-13", "A1-16", "A15-04", "A15-05", "A15-08", "A15-09")
@pytest.mark.parametrize(
    "setting",
    [
        {"batch": 0},
        {"batch": 101},
        {"batch_wait": -1},
        {"batch_wait": 61},
        {"parallel": 0},
        {"parallel": 251},
        {"retries": -1},
        {"retries": 101},
        {"retention": 0},
        {"retention": 14 * 86_400 + 1},
        {"rate": 0},
        {"timeout": 0},
        {"messages_max": 0},
    ],
)
def test_settings_out_of_range_are_refused_by_name(setting: dict[str, Any]) -> None:
    app = ps.App("shop", config=parse('profile = "cloudflare"', "penstock.toml"))
    with pytest.raises(BadApp, match=next(iter(setting))):
        app.queue("listings", **setting)


@pytest.mark.spec("A1-11", "A1-12", "A1-13", "A1-16", "A15-04", "A15-05", "A15-08", "A15-09")
def test_the_ends_of_every_range_are_accepted_and_the_profile_gives_the_defaults() -> None:
    app = ps.App("shop", config=parse('profile = "cloudflare"', "penstock.toml"))
    usual = app.queue("usual").settings
    assert (usual.batch, usual.batch_wait_seconds, usual.parallel, usual.parallel_max) == (10, 5.0, None, 250)
    assert (usual.retry.retries, usual.retention_seconds) == (3, 4 * 86_400)
    least = app.queue("least", batch=1, batch_wait=0, parallel=1, retries=0).settings
    most = app.queue("most", batch=100, batch_wait=60, parallel=250, retries=100, retention=14 * 86_400).settings
    assert (least.batch, most.batch, most.parallel, most.retry.retries) == (1, 100, 250, 100)
