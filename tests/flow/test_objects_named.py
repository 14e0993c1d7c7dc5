"""Objects by name: a singleton has one name, every way in leads to the same instance, and its state is one value."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock.model.errors import BadMessage
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.extent import sampled
from tests.flow.shop import Listing

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Answer(msgspec.Struct):
    status: int
    body: str


class Page(ps.Object):
    """Answers as a small web server would, and by its methods."""

    visits: int = 0

    async def loaded(self) -> None:
        self.instance = id(self)

    async def fetch(self, method: str, path: str) -> Answer:
        self.visits += 1
        return Answer(200, f"{method} {path} {self.visits} {self.instance}")

    async def visited(self) -> tuple[int, int]:
        return self.visits, self.instance

    async def when(self) -> datetime:
        self.visits += 1
        return MOMENT

    async def ask(self, others: str) -> str:
        answer: Any = await pages_of(self)[others].fetch("GET", "/from-an-object")
        return str(answer.body)


_pages: dict[str, Any] = {}


def pages_of(_page: Page) -> Any:
    return _pages["pages"]


def paged() -> tuple[ps.App, Any]:
    app = ps.App("shop")
    pages: Any = app.object(Page)
    _pages["pages"] = pages
    return app, pages


@pytest.mark.spec("A5-12")
@virtual
async def test_fetch_and_methods_reach_one_instance_from_wherever_they_are_called() -> None:
    app, pages = paged()
    listings: ps.Queue[Any] = app.queue("listings")
    bodies: list[str] = []

    @listings.handler(Listing)
    async def handle(_listing: Listing) -> None:
        bodies.append((await pages["main"].fetch("POST", "/from-a-queue")).body)

    @app.cron("*/5 * * * *", reason="to see it called")
    async def crawl() -> None:
        bodies.append((await pages["main"].fetch("GET", "/from-a-cron")).body)

    async with TestApp(app) as shop:
        bodies.append((await pages["main"].fetch("GET", "/from-outside")).body)
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=1)
        bodies.append(await pages["other"].ask("main"))
        visits, instance = await pages["main"].visited()
        assert [body.split()[1:] for body in bodies] == [
            ["/from-outside", "1", str(instance)],
            ["/from-a-queue", "2", str(instance)],
            ["/from-an-object", "3", str(instance)],
        ]
        assert visits == 3
        await shop.advance(minutes=5)
        assert bodies[-1].split()[:3] == ["GET", "/from-a-cron", "4"]


@virtual
async def test_a_stored_answer_is_of_the_kind_that_was_given_at_first() -> None:
    app, pages = paged()
    listings: ps.Queue[Any] = app.queue("listings")
    answers: list[object] = []

    @listings.handler(Listing)
    async def handle(_listing: Listing) -> None:
        answers.append(await pages["main"].when())
        answers.append(await pages["main"].fetch("GET", "/"))
        if len(answers) < 4:
            raise OSError("again, please")

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)
        assert answers[:2] == answers[2:]
        assert [type(each) for each in answers] == [datetime, Answer] * 2


# -- singletons ------------------------------------------------------------------------------------------


@pytest.mark.spec("A5-01", "A5-02", "F-15")
@virtual
async def test_a_singleton_is_had_by_its_one_name_and_no_other() -> None:
    class Brain(ps.Object, singleton=True):
        thoughts: int = 0

        async def think(self) -> int:
            self.thoughts += 1
            return self.thoughts

    class Cortex(Brain):
        """What derives from a singleton is one."""

    app = ps.App("shop")
    brains, cortices = app.object(Brain), app.object(Cortex)
    async with TestApp(app):
        assert await brains["main"].think() == 1
        assert await brains.get("main").think() == 2
        for addressed in (brains, cortices):
            with pytest.raises(BadMessage, match=r"is a singleton.*'main'"):
                addressed["0198c1d2f3a47b5c8d9e0f1a2b3c4d5e"]


@pytest.mark.spec("A5-02")
@virtual
async def test_the_same_name_is_the_same_object_in_every_process_and_a_raw_id_is_a_name_too() -> None:
    app, pages = paged()
    raw = "0198c1d2f3a47b5c8d9e0f1a2b3c4d5e"
    async with TestApp(app) as shop:
        await pages[raw].fetch("GET", "/")
        await shop.kill()
        assert (await pages[raw].visited())[0] == 1
        assert (await pages["main"].visited())[0] == 0


# -- state is one value ----------------------------------------------------------------------------------


class Pair(ps.Object):
    left: int = 0
    right: int = 0

    async def step(self) -> None:
        self.left += 1
        await asyncio.sleep(1)
        self.right += 1
        self.set_alarm(after=1)

    async def alarm(self) -> None:
        await self.step()

    async def both(self) -> tuple[int, int]:
        return self.left, self.right


@pytest.mark.spec("A5-06", "F-35")
@sampled("point", [point for point in CRASH_POINTS if point.startswith(("commit", "unit", "handler"))], every=3)
@virtual
async def test_a_crash_never_mixes_old_and_new_fields(point: str) -> None:
    app = ps.App("shop")
    pairs = app.object(Pair)
    for nth in (1, 2, 3):
        async with TestApp(app) as shop:
            await pairs["main"].step()
            await shop.crash(at=point, nth=nth)
            await shop.advance(seconds=20)
            assert shop.workers_started == 2, "nobody died"
            saved = msgspec.json.decode(bytes(await app.db.value("select state from penstock_objects")))
            assert saved["left"] == saved["right"] >= 2
