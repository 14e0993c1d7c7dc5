"""Data points in real time and from other threads, and the rules by which one is checked and cut."""

from __future__ import annotations

import asyncio
import threading
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.metrics.point import Noted, Sorts, Unfit, numbers
from penstock.metrics.saving import DatasetTally


class Phase(StrEnum):
    SCAN = "scan"


def sort(*blobs: Any, index: Any = None, dataset: str = "sales") -> Any:
    return Sorts().of(Noted(dataset, 0, blobs, (), index))


# -- real time ------------------------------------------------------------------------------------------------


@pytest.mark.spec("A10-01")
def test_points_are_written_from_any_thread(tmp_path: Path) -> None:
    app = ps.App("shop", database=tmp_path / "shop.db")
    points = app.metrics("sales")

    def write(number: int) -> None:
        for _ in range(200):
            points.write(blobs=(f"thread {number}",), doubles=(1,))

    async def work() -> list[Any]:
        async with app:
            await asyncio.gather(*(ps.in_thread(write, number) for number in range(4)))
            stranger = threading.Thread(target=write, args=(4,))
            stranger.start()
            stranger.join()
            return await points.query("select blob1, sum(double1) from points group by blob1 order by blob1")

    assert [tuple(row) for row in asyncio.run(work())] == [(f"thread {number}", 200.0) for number in range(5)]


def test_a_closed_app_has_saved_everything_and_opened_again_goes_on(tmp_path: Path) -> None:
    app = ps.App("shop", database=tmp_path / "shop.db")
    points = app.metrics("sales")

    async def write() -> None:
        async with app:
            points.write(doubles=(1,))

    async def total() -> float:
        async with app:
            [row] = await points.query("select sum(double1) from points")
            return float(row[0])

    asyncio.run(write())
    points.write(doubles=(1,))  # while it is closed
    asyncio.run(write())

    assert asyncio.run(total()) == 3.0


def test_writing_after_the_loop_is_gone_raises_nothing(tmp_path: Path) -> None:
    app = ps.App("shop", database=tmp_path / "shop.db")
    points = app.metrics("sales")

    async def leave() -> None:
        """As a program that never closes its app, but for what the test would leave open."""
        await (await app._open()).close()

    asyncio.run(leave())
    points.write(doubles=(1,))
    points.write(blobs="no point")

    assert points.counts == (0, 0, 1)


def test_an_app_that_writes_no_point_and_handles_no_message_makes_no_file(tmp_path: Path) -> None:
    app = ps.App("shop", database=tmp_path / "shop.db")
    app.metrics("sales")

    async def idle() -> None:
        async with app:
            pass

    asyncio.run(idle())
    assert not any("history" in path.name for path in tmp_path.iterdir())


# -- what a point is ------------------------------------------------------------------------------------------


def test_points_with_the_same_words_are_of_one_sort_and_others_are_not() -> None:
    alike = [sort("a", "b"), sort("a", "b", None), sort("a", "b", None, None)]
    other = [
        sort("a", "b", ""),
        sort("a"),
        sort("ab"),
        sort("a", "b", index=""),
        sort("a", "b", index="i"),
        sort("a", "b", dataset="other"),
        sort(None, "a", "b"),
        sort("b", "a"),
        sort("a\x1f", "b"),
    ]

    assert len({each.digest for each in alike}) == 1
    assert len({each.digest for each in (alike[0], *other)}) == 1 + len(other)
    assert all(0 <= each.digest < 2**63 for each in (*alike, *other))


def test_the_digest_of_a_sort_never_changes() -> None:
    """It is stored: another digest would split what was added up before from what comes after."""
    assert sort("pipeline", "cron", "scan", index="pipeline").digest == 7428953598422503970


def test_words_that_are_equal_but_not_the_same_stay_apart() -> None:
    known = Sorts()
    texts = [known.of(Noted("sales", 0, (blob,), (), None)).blobs for blob in (1, True, 1.0, "1", Phase.SCAN, "scan")]

    assert texts == [("1",), ("True",), ("1.0",), ("1",), ("scan",), ("scan",)]


def test_more_sorts_than_are_known_by_heart_are_distinguished_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.metrics.point.SORTS_KNOWN_MAX", 5)
    known = Sorts()
    seen = [known.of(Noted("sales", 0, (f"{number % 9}",), (), None)).digest for number in range(90)]

    assert len(set(seen)) == 9
    assert len(known._known) <= 5


@pytest.mark.parametrize("given", [(1.0, 2.5), (1, 2.5), (True, None), ()])
def test_numbers_are_floats(given: tuple[Any, ...]) -> None:
    found = numbers(given)

    assert found == given
    assert all(each is None or type(each) is float for each in found)


@pytest.mark.parametrize("bad", ["1", float("nan"), float("-inf"), 1e291, -(10**400), 1j, [1], b"1"])
def test_what_cannot_be_added_up_is_no_number(bad: Any) -> None:
    with pytest.raises(Unfit):
        numbers((1.0, bad))


def test_tallies_add_up() -> None:
    tally = DatasetTally(written=1, asked=2)
    tally.add(DatasetTally(written=3, dropped=4, refused=5, asked=6))

    assert tally == DatasetTally(written=4, dropped=4, refused=5, asked=8)
