"""Topics: every subscription gets every event at its own pace, and keeps the order of a key where it is asked to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import timedelta
from random import Random

import pytest

import penstock as ps
from penstock.model.times import in_seconds
from penstock.testing import TestApp, TestServices, virtual
from penstock.topics.order import Before, later

KILLS = 10_000  # more than a test has: no kill makes a message a suspect for good


class Published(ps.Event, type="published"):
    brand: str
    number: int


class Removed(ps.Event, type="removed"):
    brand: str


class Press:
    """A topic with two subscriptions; `broken` makes the first fail."""

    def __init__(self, *, retention: float | None = 86_400.0, retries: int = 2, ordered: bool = True) -> None:
        self.app = ps.App("press")
        self.topic = self.app.topic("published", Published, retention=retention, order_by=lambda event: event.brand)
        self.broken = False
        self.failing: set[int] = set()
        self.searched: list[Published] = []
        self.mailed: list[Published] = []
        self.running: set[str] = set()

        @self.topic.subscription("search", retries=retries, ordered=ordered, parallel=8, crashes_max=KILLS)
        async def search(event: Published) -> None:
            assert not ordered or event.brand not in self.running, "two of one key at once"
            self.running.add(event.brand)
            try:
                await asyncio.sleep(0.05)
            finally:
                self.running.discard(event.brand)
            if self.broken or event.number in self.failing:
                raise ValueError("the index is down")
            self.searched.append(event)

        @self.topic.subscription("mail", parallel=8, crashes_max=KILLS)
        async def mail(event: Published, message: ps.Message[Published]) -> None:
            assert message.queue == "published.mail"
            self.mailed.append(event)

    async def publish(self, *events: Published) -> None:
        async with self.app.unit():
            for event in events:
                self.topic.publish(event)

    def numbers(self, brand: str) -> list[int]:
        return [event.number for event in self.searched if event.brand == brand]


@virtual
@pytest.mark.spec("G1-12")
async def test_a_failing_subscription_affects_no_other() -> None:
    press = Press()
    press.broken = True
    async with TestApp(press.app) as shop:
        await press.publish(*(Published(brand="a", number=number) for number in range(5)))
        await shop.advance(1)
        assert [event.number for event in press.mailed] == [0, 1, 2, 3, 4]

        await shop.advance(days=1)
        dead = await shop.dead(press.topic["search"])
        assert len(dead) == 5
        assert await shop.dead(press.topic["mail"]) == []


@virtual
@pytest.mark.spec("G1-12")
async def test_events_of_one_key_are_handled_in_the_order_of_their_publication() -> None:
    press = Press()
    async with TestApp(press.app, shuffled=True) as shop:
        for number in range(12):
            await press.publish(*(Published(brand=brand, number=number) for brand in "abc"))
        press.failing = {3}
        await shop.advance(15)
        assert press.numbers("a") == [0, 1, 2], "the fourth fails, and those behind it wait"

        press.failing = set()
        await shop.advance(minutes=10)
        await shop.drain()
        for brand in "abc":
            assert press.numbers(brand) == list(range(12))


@virtual
async def test_an_event_that_becomes_a_dead_letter_is_passed_over() -> None:
    press = Press(retries=1)
    press.failing = {1}
    async with TestApp(press.app) as shop:
        await press.publish(*(Published(brand="a", number=number) for number in range(4)))
        await shop.advance(minutes=10)
        await shop.drain()

        assert press.numbers("a") == [0, 2, 3]
        assert len(await shop.dead(press.topic["search"])) == 1
        assert await press.app.db.column("select message_id from message_order") == []


def test_a_message_is_put_off_by_how_many_are_before_it_and_by_how_long_it_has_waited() -> None:
    def seconds(ahead: int, waited: float) -> float:
        return in_seconds(later(Before("a", ahead), waited=waited).seconds)

    assert seconds(200, 10.0) == pytest.approx(199), "not every few seconds, while hundreds are before it"
    assert [seconds(1, waited) for waited in (-5.0, 0.0, 20.0, 3_600.0)] == pytest.approx([0.1, 0.1, 2.0, 5.0])


@virtual
async def test_other_keys_go_on_while_one_waits() -> None:
    press = Press(retries=5)
    press.failing = {100}
    async with TestApp(press.app) as shop:
        await press.publish(Published(brand="a", number=100))
        await press.publish(*(Published(brand="a", number=number) for number in range(20)))
        await press.publish(*(Published(brand="b", number=number) for number in range(20)))
        await shop.advance(20)

        assert press.numbers("a") == []
        assert press.numbers("b") == list(range(20))


@virtual
@pytest.mark.spec("G1-12")
async def test_the_order_of_a_key_holds_under_kills(seed: int) -> None:
    press, chance = Press(retries=50), Random(seed)
    async with TestApp(press.app, seed=seed) as shop:
        for number in range(40):
            await press.publish(Published(brand=chance.choice("ab"), number=number))
            if chance.random() < 0.3:
                await shop.advance(chance.random())
            if chance.random() < 0.3:
                await shop.kill()
                press.running.clear()
        await shop.advance(minutes=30)
        await shop.drain()

        for brand in "ab":
            told = press.numbers(brand)
            first = list(dict.fromkeys(told))
            assert first == sorted(first), "a repeat after a kill is allowed, another order is not"
        assert {event.number for event in press.searched} == set(range(40))
        assert [event.number for event in press.mailed] != []


@virtual
@pytest.mark.spec("G1-12")
async def test_a_subscription_is_given_again_what_was_published_since_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.topics.topic.PAGE", 20)
    press = Press()
    async with TestApp(press.app) as shop:
        await press.publish(Published(brand="a", number=0))
        await shop.advance(60)
        since = shop.now
        await press.publish(*(Published(brand="a", number=number) for number in range(1, 60)))
        await shop.drain()
        before, mailed = len(press.searched), len(press.mailed)

        assert await press.topic.replay("search", since=since) == 59
        await shop.drain()

        assert sorted(event.number for event in press.searched[before:]) == list(range(1, 60))
        again = [event.number for event in press.searched[before:] if event.brand == "1"]
        assert again == sorted(again)
        assert len(press.mailed) == mailed


@virtual
@pytest.mark.spec("G1-12")
async def test_a_subscription_of_a_service_with_its_own_database_gets_events_in_order_and_a_replay() -> None:
    app = ps.App("press", apart=True, database="press.db")
    writers, readers = app.service("writers"), app.service("readers")
    topic = writers.topic("published", Published, retention=3_600.0, order_by=lambda event: event.brand)
    got: list[int] = []

    @topic.subscription("broken", retries=0)
    async def fail(event: Published) -> None:
        raise ValueError("no")

    @topic.subscription("read", service=readers, ordered=True)
    async def read(event: Published) -> None:
        got.append(event.number)

    async with TestServices(app) as town:
        since = town["writers"].now
        async with writers.unit():
            for number in range(20):
                topic.publish(Published(brand="a", number=number))
        await town.drain()
        assert got == list(range(20))
        assert len(await town["writers"].dead(topic["broken"])) == 20

        assert await topic.replay("read", since=since) == 20
        await town.drain()
        assert got == [*range(20), *range(20)]


@virtual
async def test_events_are_kept_for_their_retention() -> None:
    press = Press(retention=3_600.0)
    async with TestApp(press.app) as shop:
        start = shop.now
        await press.publish(Published(brand="a", number=0))
        await shop.advance(hours=3)

        assert await press.topic.replay("mail", since=start) == 0
        with pytest.raises(ps.errors.BadApp, match="retention="):
            await Press(retention=None).topic.replay("mail", since=start - timedelta(1))


@virtual
async def test_a_topic_refuses_what_it_does_not_accept_and_a_unit_that_fails_publishes_nothing() -> None:
    press = Press()
    async with TestApp(press.app) as shop:
        with pytest.raises(ps.errors.BadMessage, match="does not accept Removed"):
            async with press.app.unit():
                press.topic.publish(Removed(brand="a"))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no"):
            async with press.app.unit():
                press.topic.publish(Published(brand="a", number=1))
                raise ValueError("no")
        await shop.drain()
        assert press.mailed == []


class Chain:
    """Two services; what the first sends of a brand arrives in order."""

    def __init__(self, *, apart: bool) -> None:
        self.app = ps.App("chain", apart=apart, database="chain.db")
        self.one, self.two = self.app.service("one"), self.app.service("two")
        self.events = self.two.queue(
            "two-events", Published, order_by=lambda event: event.brand, parallel=8, crashes_max=KILLS
        )
        self.got: dict[str, list[int]] = defaultdict(list)

        @self.events.handler
        async def note(event: Published) -> None:
            await asyncio.sleep(0.3 if event.number % 3 == 0 else 0.01)
            self.got[event.brand].append(event.number)


@virtual
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
async def test_the_order_of_a_key_holds_over_an_outbox_and_under_kills(apart: bool, seed: int) -> None:
    chain, chance = Chain(apart=apart), Random(seed)
    async with TestServices(chain.app, seed=seed) as town:
        for number in range(60):
            async with chain.one.unit():
                chain.events.send(Published(brand=chance.choice("ab"), number=number))
            match chance.randrange(6):
                case 0:
                    await town.advance(chance.random())
                case 1:
                    await town[chance.choice(["one", "two"])].kill()
        await town.advance(minutes=20)
        await town.drain()

        assert set(chain.got["a"]) | set(chain.got["b"]) == set(range(60))
        for numbers in chain.got.values():
            first = list(dict.fromkeys(numbers))
            assert first == sorted(first)


@virtual
async def test_a_dead_message_is_passed_over_though_another_queue_has_its_id() -> None:
    app = ps.App("press")
    handled: list[int] = []
    ordered = app.queue("ordered", Published, order_by=lambda event: event.brand, retries=0, parallel=1)
    copies = app.queue("copies", Published)

    @ordered.handler
    async def on_ordered(event: Published) -> None:
        if event.number == 0:
            raise ValueError("no")
        handled.append(event.number)

    @copies.handler
    async def on_copy(event: Published) -> None: ...

    async with TestApp(app) as shop:
        async with app.unit():
            id = ordered.send(Published(brand="a", number=0), id="01890000-0000-7000-8000-000000000001")
            copies.send(Published(brand="a", number=0), id=id, delay=timedelta(days=1))
            ordered.send(Published(brand="a", number=1))
        await shop.advance(minutes=1)
        assert len(await shop.dead(ordered)) == 1
        assert handled == [1]


@virtual
async def test_waiting_for_an_earlier_message_is_no_part_of_a_handlers_time() -> None:
    app = ps.App("press")
    handled: list[int] = []
    queue = app.queue("ordered", Published, order_by=lambda event: event.brand, retries=0, parallel=8, timeout=10.0)

    @queue.handler
    async def on_event(event: Published) -> None:
        await asyncio.sleep(6)
        handled.append(event.number)

    async with TestApp(app) as shop:
        async with app.unit():
            for number in range(5):
                queue.send(Published(brand="a", number=number))
        await shop.advance(minutes=2)
        assert await shop.dead(queue) == []
        assert handled == [0, 1, 2, 3, 4]


@virtual
async def test_the_end_of_a_message_wakes_the_next_of_its_key_in_a_long_backlog() -> None:
    app = ps.App("shop")
    queue = app.queue("ordered", Published, order_by=lambda event: event.brand, parallel=8)
    handled: list[int] = []

    @queue.handler
    async def on_event(event: Published, message: ps.Message[Published]) -> ps.Later | None:
        if event.number == 0 and message.sent_at > shop.now - timedelta(seconds=60):
            return ps.Later(60)
        handled.append(event.number)
        return None

    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(400):
                queue.send(Published(brand="a", number=number))
        await shop.advance(seconds=59)
        assert handled == []
        assert len(shop.delivered(queue)) < 800, (
            "that they look again and again takes the time of those whose turn it is"
        )
        await shop.advance(seconds=6)

        assert handled == list(range(400)), "each would sleep until it looks whether its turn has come"


@virtual
async def test_dead_messages_in_a_row_hold_up_a_long_backlog_for_no_longer_than_they_take() -> None:
    app = ps.App("shop")
    queue = app.queue("ordered", Published, order_by=lambda event: event.brand, retries=0, parallel=8)
    handled: list[int] = []

    @queue.handler
    async def on_event(event: Published, message: ps.Message[Published]) -> ps.Later | None:
        if event.number == 0 and message.sent_at > shop.now - timedelta(seconds=60):
            return ps.Later(60)
        if event.number < 100:
            raise ValueError("no")
        handled.append(event.number)
        return None

    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(200):
                queue.send(Published(brand="a", number=number))
        await shop.advance(seconds=65)

        assert len(await shop.dead(queue)) == 100
        assert handled == list(range(100, 200)), "none of the dead wakes the next: the one that finds it dead does"


@virtual
async def test_a_delayed_message_is_not_handled_early_because_the_one_before_it_ended() -> None:
    app = ps.App("shop")
    queue = app.queue("ordered", Published, order_by=lambda event: event.brand)
    handled: list[int] = []

    @queue.handler
    async def on_event(event: Published) -> None:
        handled.append(event.number)

    async with TestApp(app) as shop:
        async with shop.unit():
            queue.send(Published(brand="a", number=0))
            queue.send(Published(brand="a", number=1), delay=60)
        await shop.advance(seconds=59)
        assert handled == [0]
        await shop.advance(seconds=2)
        assert handled == [0, 1]
