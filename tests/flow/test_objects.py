"""Objects: one of each name, one event at a time, saved whole or not at all, wherever and however often it is called."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

import penstock as ps
from penstock.model.errors import BadApp, BadMessage, NoUnit
from penstock.objects.host import IDLE_SECONDS, Elsewhere
from penstock.objects.namespace import Namespace
from penstock.queues.queue import Queue
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.extent import sampled
from tests.flow.crew import Crew
from tests.flow.shop import EFFECT, Listing, effects
from tests.flow.tampering import tamper


class Counter(ps.Object):
    constructed: ClassVar[int] = 0

    count: int = 0
    names: list[str] = []  # noqa: RUF012 (every object gets a copy)

    async def loaded(self) -> None:
        type(self).constructed += 1
        self.in_memory = 0
        await asyncio.sleep(1)

    async def add(self, by: int = 1) -> int:
        self.count += by
        self.in_memory += 1
        return self.count

    async def value(self) -> int:
        return self.count

    async def memory(self) -> int:
        return self.in_memory

    async def slow_add(self, seconds: float) -> int:
        before = self.count
        await asyncio.sleep(seconds)
        self.count = before + 1
        return self.count

    async def generous_add(self, seconds: float) -> int:
        async with self.released():
            await asyncio.sleep(seconds)
        self.count += 1
        return self.count

    async def fail(self) -> None:
        self.count += 100
        self.names.append("of an event that failed")
        raise OSError("no")

    async def write_badly(self) -> None:
        self.count += 100
        self.app.db.write("insert into no_such_table (what) values (1)")

    async def write(self, what: str) -> None:
        self.count += 1
        self.app.db.write(EFFECT, what=what)

    async def whoami(self) -> str:
        return self.name

    async def call(self, other: str) -> int:
        return int(await self.others[other].add(10))

    async def call_back(self, other: str) -> int:
        return int(await self.others[other].call(self.name))

    async def oversize(self) -> None:
        self.names = ["x" * 200_000]

    async def misfit(self) -> None:
        self.count = "many"  # type: ignore[assignment]

    app: ClassVar[ps.App]
    others: ClassVar[Any]


def counting(handle: Any = None, **settings: Any) -> tuple[ps.App, Namespace[Counter], Queue[Listing]]:
    app = ps.App("shop")
    kept: dict[str, Any] = {"app": app, "constructed": 0}
    cls = type("Counter", (Counter,), kept)
    counters: Namespace[Counter] = app.object(cls)
    cls.others = counters  # type: ignore[attr-defined]
    listings = app.queue("listings", **settings)
    if handle is not None:
        listings.handler(Listing)(handle)
    return app, counters, listings


@pytest.mark.spec("A5-01", "A5-04")
@virtual
async def test_a_hundred_callers_at_once_find_one_object_that_was_made_once() -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        answers = await asyncio.gather(*(counters["main"].add() for _ in range(100)))
        assert sorted(answers) == list(range(1, 101))
        assert counters.cls.constructed == 1


@pytest.mark.spec("A5-05", "A5-13")
@pytest.mark.parametrize("how", ["restart", "kill"])
@virtual
async def test_state_survives_the_process_and_memory_does_not(how: str) -> None:
    app, counters, _ = counting()
    async with TestApp(app) as shop:
        await counters["main"].add(5)
        await (shop.restart() if how == "restart" else shop.kill())
        assert await counters["main"].value() == 5
        assert await counters["main"].memory() == 0
        assert await counters["main"].whoami() == "main"
        assert await counters["other"].value() == 0


@pytest.mark.spec("A5-04")
@virtual
async def test_an_object_whose_loading_fails_is_loaded_anew_for_the_next_caller() -> None:
    fails = [True, False]

    class Fragile(ps.Object):
        async def loaded(self) -> None:
            await asyncio.sleep(1)
            if fails.pop(0):
                raise OSError("away")

        async def ping(self) -> str:
            return "pong"

    app = ps.App("shop")
    objects = app.object(Fragile)
    async with TestApp(app):
        first, second = await asyncio.gather(objects["main"].ping(), objects["main"].ping(), return_exceptions=True)
        assert (type(first), second) == (OSError, "pong")


@pytest.mark.spec("A5-03")
@virtual
async def test_one_event_runs_at_a_time() -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        await asyncio.gather(*(counters["main"].slow_add(5) for _ in range(10)))
        assert await counters["main"].value() == 10


@pytest.mark.spec("A5-03")
@virtual
async def test_others_come_in_only_while_an_event_is_released_and_no_update_is_lost() -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        loop = asyncio.get_running_loop()
        await counters["main"].value()
        began = loop.time()
        await asyncio.gather(*(counters["main"].generous_add(5) for _ in range(10)), counters["main"].add(100))
        assert loop.time() - began < 6
        assert await counters["main"].value() == 110


@virtual
async def test_a_released_event_that_is_cancelled_while_it_waits_lets_no_other_event_in() -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        await counters["main"].value()
        released = asyncio.ensure_future(counters["main"].generous_add(1))
        await asyncio.sleep(0.5)
        holding = asyncio.ensure_future(counters["main"].slow_add(10))
        await asyncio.sleep(1)
        released.cancel()
        await asyncio.sleep(0.1)
        await asyncio.gather(*(counters["main"].slow_add(1) for _ in range(3)), holding)
        assert await counters["main"].value() == 4
        with pytest.raises(asyncio.CancelledError):
            await released


@virtual
async def test_a_caller_who_is_cancelled_at_the_commit_leaves_memory_and_database_alike() -> None:
    app, counters, _ = counting()
    async with TestApp(app, latency=1.0):
        await counters["main"].add(1)
        adding = asyncio.ensure_future(counters["main"].add(10))
        await asyncio.sleep(0.5)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        with pytest.raises(OSError, match="no"):
            await counters["main"].fail()
        await counters["main"].add(100)
        in_memory = await counters["main"].value()
        (await app.host()).evict_all()
        assert in_memory == await counters["main"].value() == 111


@pytest.mark.spec("A5-05")
@pytest.mark.parametrize("method", ["fail", "write_badly", "oversize", "misfit"])
@virtual
async def test_an_event_that_fails_leaves_memory_as_it_was_saved(method: str) -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        await counters["main"].add(1)
        with pytest.raises((OSError, ps.PenstockError, msgspec.ValidationError)):
            await getattr(counters["main"], method)()
        assert await counters["main"].value() == 1
        await counters["main"].add(1)
        (await app.host()).evict_all()
        assert await counters["main"].value() == 2


@pytest.mark.spec("A5-05")
@sampled("point", [point for point in CRASH_POINTS if point.startswith(("commit", "unit", "handler"))], every=3)
@virtual
async def test_a_call_from_a_handler_changes_state_once_wherever_the_worker_dies(point: str) -> None:
    async def handle(_listing: Listing) -> None:
        answers.append(await counters["main"].add())
        await counters["main"].write("called")
        await asyncio.sleep(5)

    answers: list[int] = []
    app, counters, listings = counting(handle)
    for nth in range(1, 6):
        answers.clear()
        async with TestApp(app) as shop:
            await shop.crash(at=point, nth=nth)
            await shop.send(listings, Listing(name="a"))
            await shop.advance(minutes=2)
            assert await counters["main"].value() == 2
            assert await effects(app) == ["called"]
            assert set(answers) == {1}


@virtual
async def test_calls_that_are_made_again_in_another_order_change_state_once() -> None:
    orders = [["a", "b", "a"], ["b", "a", "a"]]

    async def handle(_listing: Listing) -> None:
        for name in orders.pop(0):
            await counters[name].add()
        if orders:
            raise OSError("again, please")

    app, counters, listings = counting(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)
        assert (await counters["a"].value(), await counters["b"].value(), orders) == (2, 1, [])


@virtual
async def test_the_same_call_inside_and_outside_a_unit_of_a_handler_is_two_calls() -> None:
    async def handle(_listing: Listing) -> None:
        await counters["main"].add()
        for key in ("x", "y", None):
            async with app.unit(key):
                await counters["main"].add()

    app, counters, listings = counting(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)
        assert await counters["main"].value() == 4


@virtual
async def test_a_call_inside_a_call_that_is_repeated_happens_once() -> None:
    fails = [True, False]

    async def handle(_listing: Listing) -> None:
        await counters["outer"].call("inner")
        if fails.pop(0):
            raise OSError("again, please")

    app, counters, listings = counting(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)
        assert (await counters["inner"].value(), fails) == (10, [])


@virtual
async def test_what_is_sent_to_an_object_joins_the_unit_and_is_discarded_with_it() -> None:
    fails = [True, False]

    async def handle(_listing: Listing) -> None:
        counters["main"].tell.add(7)
        if fails.pop(0):
            raise OSError("again, please")

    app, counters, listings = counting(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=1)
        assert await counters["main"].value() == 0
        await shop.advance(minutes=2)
        assert await counters["main"].value() == 7
        with pytest.raises(NoUnit):
            counters["main"].tell.add(1)


@sampled("point", [point for point in CRASH_POINTS if point.startswith(("commit", "unit", "handler"))], every=3)
@virtual
async def test_what_is_sent_to_an_object_happens_once_wherever_the_worker_dies(point: str) -> None:
    app, counters, _ = counting()
    for nth in range(1, 4):
        async with TestApp(app) as shop:
            await shop.crash(at=point, nth=nth)
            async with shop.unit():
                counters["main"].tell.write("told")
            await shop.advance(minutes=2)
            assert await effects(app) == ["told"]
            assert await counters["main"].value() == 1


@virtual
async def test_a_chain_that_comes_back_to_an_object_it_is_inside_is_refused() -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        assert await counters["a"].call("b") == 10
        with pytest.raises(ps.Reentrant, match="Counter/a -> Counter/b -> Counter/a"):
            await counters["a"].call_back("b")
        assert await counters["a"].value() == 0


@pytest.mark.spec("A5-14", "G5-27")
@virtual
async def test_an_idle_object_leaves_memory_and_comes_back_as_it_was_saved() -> None:
    app, counters, _ = counting()
    async with TestApp(app) as shop:
        await counters["main"].add(3)
        assert await counters["main"].memory() == 1
        await shop.advance(seconds=IDLE_SECONDS * 2 + 1)
        assert await counters["main"].memory() == 0
        assert await counters["main"].value() == 3
        assert counters.cls.constructed == 2


@virtual
async def test_an_object_in_use_stays_in_memory() -> None:
    app, counters, _ = counting()
    async with TestApp(app) as shop:
        adding = asyncio.ensure_future(counters["main"].generous_add(300))
        await shop.advance(minutes=6)
        assert await adding == 1
        assert counters.cls.constructed == 1


# -- several processes ------------------------------------------------------------------------------------


def shared() -> ps.App:
    app, counters, listings = counting()

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        await counters[listing.name].add()

    app.counters = counters  # type: ignore[attr-defined]
    return app


async def value(crew: Crew, post: int, name: str = "main") -> int:
    app: Any = crew.apps[post]
    found: Any = await crew.inside(post, lambda: app.counters[name].value())
    return int(found)


async def add(crew: Crew, post: int, by: int = 1) -> None:
    app: Any = crew.apps[post]
    await crew.inside(post, lambda: app.counters["main"].add(by))


@pytest.mark.spec("A5-01")
@virtual
async def test_an_object_moves_to_the_process_that_asks_for_it(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=2) as crew:
        for turn in range(6):
            await add(crew, turn % 2)
        assert await value(crew, 0) == await value(crew, 1) == 6


@pytest.mark.spec("A5-01")
@virtual
async def test_an_object_moves_when_its_owner_dies(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=2) as crew:
        await add(crew, 0, 5)
        crew.kill(0)
        assert await value(crew, 1) == 5


@virtual
async def test_an_object_that_was_evicted_is_had_by_another_process(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=2) as crew:
        await add(crew, 0, 5)
        await crew.advance(seconds=IDLE_SECONDS * 2 + 1)
        assert await value(crew, 1) == 5


@virtual
async def test_a_process_that_runs_nothing_keeps_no_object(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=1) as crew:
        await crew.man(1, visits=True)
        for _ in range(3):
            await add(crew, 1)
            assert crew.apps[1]._life._host is not None
            await add(crew, 0)
        assert await value(crew, 0) == 6


@virtual
async def test_a_busy_object_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=2) as crew:
        first: Any = crew.apps[0]
        slow = asyncio.ensure_future(crew.inside(0, lambda: first.counters["main"].slow_add(20)))
        await crew.advance(seconds=2)
        assert await value(crew, 1) == 1
        await slow

        second: Any = crew.apps[1]
        slow = asyncio.ensure_future(crew.inside(1, lambda: second.counters["main"].slow_add(100)))
        await crew.advance(seconds=2)
        with pytest.raises(Elsewhere, match="Counter/main"):
            await value(crew, 0)
        await slow


@pytest.mark.spec("A5-01")
@virtual
async def test_two_processes_that_both_call_one_object_lose_no_update(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=2) as crew:
        first = crew.apps[0]

        async def send() -> None:
            async with first.unit():
                for _ in range(200):
                    first.queues["listings"].send(Listing(name="main"))

        await crew.inside(0, send)
        await crew.advance(minutes=10)
        assert await value(crew, 1) == 200


@virtual
async def test_a_process_that_was_thought_dead_saves_nothing(tmp_path: Path) -> None:
    async with Crew(shared, tmp_path, workers=2) as crew:
        await add(crew, 0, 5)
        tamper(crew.apps[1].database, "update penstock_objects set owner = null, epoch = epoch + 1")
        await add(crew, 1, 10)
        first: Any = crew.apps[0]
        with pytest.raises(ps.PenstockError, match="taken over"):
            await crew.inside(0, lambda: first.counters["main"].add(100))
        await add(crew, 0, 1)
        assert await value(crew, 1) == 16


# -- declaring --------------------------------------------------------------------------------------------


@pytest.mark.spec("A5-15")
def test_tags_leave_no_gap_and_a_class_keeps_its_own(tmp_path: Path) -> None:
    class Agent(ps.Object): ...

    class Coordinator(ps.Object): ...

    def opened(*tags: tuple[type[ps.Object], str]) -> None:
        async def once() -> None:
            app = ps.App("shop", database=tmp_path / "tags.db", migrations=tmp_path)
            for cls, tag in tags:
                app.object(cls, tag=tag)
            async with app:
                pass

        asyncio.run(once())

    opened((Agent, "v1"), (Coordinator, "v2"))
    opened((Agent, "v1"), (Coordinator, "v2"))
    with pytest.raises(BadApp, match="v1 is missing"):
        opened((Coordinator, "v2"))
    with pytest.raises(BadApp, match="Keep its tag"):
        opened((Coordinator, "v1"), (Agent, "v2"))
    with pytest.raises(BadApp, match="have the same tag"):
        opened((Coordinator, "v1"), (Agent, "v1"))
    with pytest.raises(BadApp, match="tags are v1"):
        opened((Agent, "first"))
    opened((Agent, "v1"), (Coordinator, "v2"))


def test_what_cannot_be_an_object_is_refused() -> None:
    with pytest.raises(BadApp, match="needs a default"):

        class Bare(ps.Object):
            count: int

    app = ps.App("shop")

    class Plain(ps.Object):
        async def ping(self) -> None: ...

    plain = app.object(Plain)
    with pytest.raises(BadApp, match="two classes"):
        app.object(Plain)
    with pytest.raises(AttributeError, match="ping"):
        plain["main"].pong()  # type: ignore[attr-defined]
    for name in ("", "a/b", "x" * 201, "a\n"):
        with pytest.raises(BadMessage):
            plain[name]


@pytest.mark.spec("A5-16")
@virtual
async def test_the_first_hint_is_kept_and_an_unknown_one_is_refused() -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        await counters.get("main", hint="enam").add()
        await counters.get("main", hint="weur").add()
        assert await app.db.value("select hint from penstock_objects") == "enam"
        with pytest.raises(BadMessage, match="moon"):
            counters.get("main", hint="moon")


@pytest.mark.spec("A5-16")
@pytest.mark.parametrize(
    "hint, place", [("sam", "enam"), ("afr", "weur"), ("me", "weur"), ("apac", "apac"), ("oc", "oc")]
)
@virtual
async def test_a_region_without_a_place_of_its_own_falls_back_to_a_near_one(hint: str, place: str) -> None:
    app, counters, _ = counting()
    async with TestApp(app):
        await counters.get("main", hint=hint).add()
        assert await app.db.value("select hint from penstock_objects") == place


@pytest.mark.spec("A5-16", "F-36")
@virtual
async def test_the_place_of_a_class_holds_for_objects_that_are_called_sent_to_or_controlled() -> None:
    class Shelf(ps.Object):
        count: int = 0

        async def add(self) -> None:
            self.count += 1

    app = ps.App("shop")
    shelves = app.object(Shelf, hint="afr")

    @app.controller("prices", hint="sam")
    class Prices(ps.Controller[int]):
        async def pick(self, limit: int) -> list[int]:
            return []

    with pytest.raises(BadApp, match="Controller 'goods': hint is 'moon'"):
        app.controller("goods", hint="moon")(Prices)
    async with TestApp(app) as shop:
        await shelves["called"].add()
        await shelves.get("elsewhere", hint="oc").add()
        async with shop.unit():
            shelves["told"].tell.add()
        await shop.advance(seconds=2)
        rows = await app.db.rows("select name, hint from penstock_objects order by name limit 9")

        assert [tuple(row) for row in rows] == [
            ("called", "weur"),
            ("elsewhere", "oc"),
            ("prices", "enam"),
            ("told", "weur"),
        ]
