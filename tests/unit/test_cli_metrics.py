"""`penstock metrics`: datasets and their sums, for people and for programs, on both stores."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import penstock as ps
from penstock.cli.reference import load
from penstock.metrics import summary
from penstock.metrics.asking import named
from penstock.metrics.point import Noted, Sorts
from penstock.metrics.saving import DAY, Rolling, ready, save
from penstock.model.times import to_micros
from tests.unit.cli import Terminal, shop_in

BOTH_STORES = True

SHOP = """
import penstock as ps

app = ps.App("shop")
app.metrics("sales", names={"shop_name": "blob1", "pieces": "double1", "price": "double2"})
"""
HOSTILE = "[bold]south[/]\x1b[31m\u202e"


@pytest.fixture
def shop(empty_folder: Path) -> ps.App:
    """Three sales, something that is none, and a point of cron."""
    shop_in(empty_folder, SHOP)
    app = load("shop.py")
    asyncio.run(sell(app))
    return app


async def sell(app: ps.App) -> None:
    async with app:
        points = app.metrics("sales")
        points.write(blobs=("north", "hats"), doubles=(2, 9.5), index="eu")
        points.write(blobs=("north", "shoes"), doubles=(1, 80), index="eu")
        points.write(blobs=(HOSTILE, "hats"), doubles=(5,), index="us")
        points.write(blobs="no point")
        app.metrics("platform_metrics").write(blobs=("shop", "cron", "sweep"), doubles=(1, 2, 3, 4), index="shop")


@pytest.mark.spec("A10-03")
def test_programs_get_datasets_and_the_sums_of_one(terminal: Terminal, shop: ps.App) -> None:
    told = terminal("metrics", "shop.py", "--dataset", "sales", "--by", "shop_name", "--json").told

    assert list(told) == ["since", "datasets", "dataset", "by", "groups"]
    assert [(each["name"], each["written"], each["dropped"], each["refused"]) for each in told["datasets"]] == [
        ("platform_metrics", 1, 0, 0),
        ("sales", 3, 0, 1),
    ]
    assert told["groups"] == [
        {"shop_name": "north", "points": 2, "sums": {"pieces": 3.0, "price": 89.5}},
        {"shop_name": HOSTILE, "points": 1, "sums": {"pieces": 5.0}},
    ]


@pytest.mark.spec("A10-03", "G2-47")
def test_without_an_app_the_platforms_points_are_added_up_by_trigger_and_phase(
    terminal: Terminal, shop: ps.App
) -> None:
    told = terminal("metrics", "--database", "shop.db", "--json").told

    assert (told["dataset"], told["by"]) == ("platform_metrics", ["trigger", "phase"])
    sums = {"double1": 1.0, "double2": 2.0, "double3": 3.0, "double4": 4.0}
    assert told["groups"] == [{"trigger": "cron", "phase": "sweep", "points": 1, "sums": sums}]


def test_several_columns_make_finer_groups(terminal: Terminal, shop: ps.App) -> None:
    told = terminal("metrics", "shop.db", "--dataset", "sales", "--by", "index1", "--by", "blob2", "--json").told

    assert [(each["index1"], each["blob2"], each["points"]) for each in told["groups"]] == [
        ("eu", "hats", 1),
        ("eu", "shoes", 1),
        ("us", "hats", 1),
    ]


def test_people_get_two_tables_in_which_no_text_moves_the_cursor(terminal: Terminal, shop: ps.App) -> None:
    said = terminal("metrics", "shop.py", "--dataset", "sales", "--by", "shop_name")

    assert said.code == 0
    assert "sales in the last 24h" in said.out
    assert "north 2 3 89.5" in said.words
    assert "[bold]south[/]?[31m? 1 5 -" in said.words
    assert "\x1b" not in said.out
    assert "double3" not in said.out


@pytest.mark.parametrize("days, span", [(1, "points"), (30, "hours"), (400, "days")])
@pytest.mark.spec("A10-07")
def test_a_long_time_is_added_up_from_hours_or_days(shop: ps.App, days: int, span: str) -> None:
    names, now = named("ages", {"what": "blob1"}), to_micros(datetime(2026, 3, 1, 12, tzinfo=UTC))
    points = [Noted("ages", now - age * DAY, (what,), (age, None, 1), None) for what in "ab" for age in (0, 20, 300)]
    with closing(shop._store().open_history()) as file:
        checked = ready(points, Sorts())
        file.transact(lambda run: save(run, checked, {}, Rolling(), now=now, writes_max=None))
        found = summary.groups(file, names, ["what"], since=now - days * DAY, now=now)

    within = [age for age in (0, 20, 300) if age <= days]
    assert [(group.words, group.points, group.sums[:3]) for group in found] == [
        ((what,), len(within), (float(sum(within)), None, float(len(within)))) for what in "ab"
    ]


def test_nothing_written_yet_is_said_in_a_sentence(terminal: Terminal, empty_folder: Path) -> None:
    shop_in(empty_folder, SHOP)
    app = load("shop.py")
    asyncio.run(opened(app))

    assert "No data points in the last 24h" in terminal("metrics", "shop.py").words
    assert terminal("metrics", "shop.py", "--json").told["groups"] == []


async def opened(app: ps.App) -> None:
    async with app:
        pass


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("--dataset", "nobody"), 4, "There are: platform_metrics, sales"),
        (("--by", "double1"), 2, "not a column to group by"),
        (("--by", "blob1; drop table points"), 2, "not a column to group by"),
        (("--since", "yesterday"), 2, "not a duration"),
    ],
)
def test_what_cannot_be_answered_says_why(
    terminal: Terminal, shop: ps.App, arguments: tuple[str, ...], code: int, words: str
) -> None:
    said = terminal("metrics", "shop.py", *arguments)

    assert (said.code, words in said.words) == (code, True), said.err
