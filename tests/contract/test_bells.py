"""Wake-ups between processes on one database of either store: what one rings the others hear, and none hears itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock.contracts.presence import Bell
from penstock.storage.postgres.bell import NAMES_BYTES_MAX
from penstock.storage.postgres.store import PostgresStore
from tests.contract.conftest import Made
from tests.postgres import END_OTHERS, empty_database, look
from tests.real_time import in_real_time


class Heard:
    """What a bell heard, in the order in which it came."""

    def __init__(self) -> None:
        self._all: asyncio.Queue[set[str]] = asyncio.Queue()

    def __call__(self, queues: set[str]) -> None:
        self._all.put_nowait(queues)

    async def until(self, *queues: str) -> None:
        """Wait until it heard of these queues, perhaps with others that were rung for just before; of none: of any."""
        async with asyncio.timeout(30):
            heard = await self._all.get()
            while not (heard >= set(queues) if queues else heard == set()):
                heard = await self._all.get()

    def rest(self) -> list[set[str]]:
        return [self._all.get_nowait() for _ in range(self._all.qsize())]


@pytest.fixture
def bells(made: Made) -> Iterator[tuple[Bell, Bell]]:
    made.store.open_writer(now=1).close()  # so that there is a database
    both = made.store.bell(1), made.another.bell(2)
    yield both
    for bell in both:
        bell.close()


@pytest.fixture
def url() -> str:
    return empty_database()


@pytest.fixture
def notify_bells(url: str) -> Iterator[tuple[Bell, Bell]]:
    both = PostgresStore(url).bell(1), PostgresStore(url).bell(2)
    yield both
    for bell in both:
        bell.close()


async def listen(bell: Bell, ringing: Bell) -> Heard:
    """Return what `bell` hears from now on."""
    heard = Heard()
    bell.listen(heard)
    async with asyncio.timeout(30):
        while not heard.rest():  # on PostgreSQL the connection takes a moment
            ringing.ring(["first"])
            await asyncio.sleep(0.01)
    ringing.ring(["listening"])
    await heard.until("listening")
    return heard


@in_real_time
async def test_a_bell_hears_the_queues_that_another_process_rings_for_and_not_its_own(bells: tuple[Bell, Bell]) -> None:
    ringing, listening = bells
    own = Heard()
    ringing.listen(own)
    heard = await listen(listening, ringing)

    ringing.ring(["orders", "bills"])
    await heard.until("orders", "bills")
    listening.ring(["answer"])
    await own.until("answer")

    assert heard.rest() == []
    assert not any("orders" in queues for queues in own.rest())


@in_real_time
async def test_a_ring_for_no_queue_in_particular_means_any(bells: tuple[Bell, Bell]) -> None:
    ringing, listening = bells
    heard = await listen(listening, ringing)

    ringing.ring([])

    await heard.until()


@in_real_time
async def test_what_a_process_rings_before_it_ends_is_heard(made: Made, bells: tuple[Bell, Bell]) -> None:
    heard = await listen(bells[1], bells[0])

    ending = made.store.bell(3)
    ending.ring(["last words"])
    ending.close()

    await heard.until("last words")


@in_real_time
async def test_a_list_of_queues_that_is_too_long_for_a_notification_means_any(notify_bells: tuple[Bell, Bell]) -> None:
    ringing, listening = notify_bells
    heard = await listen(listening, ringing)

    ringing.ring(["q" * NAMES_BYTES_MAX])
    await heard.until("q" * NAMES_BYTES_MAX)
    ringing.ring(["q" * (NAMES_BYTES_MAX + 1)])
    await heard.until()


@pytest.mark.fault("F22")
@in_real_time
async def test_after_a_lost_connection_a_bell_hears_that_any_queue_may_have_news_and_goes_on(
    url: str, notify_bells: tuple[Bell, Bell]
) -> None:
    ringing, listening = notify_bells
    heard = await listen(listening, ringing)

    look(url, END_OTHERS)
    ringing.ring(["lost, perhaps"])

    await heard.until()
    while True:
        ringing.ring(["orders"])
        try:
            async with asyncio.timeout(0.2):
                await heard.until("orders")
        except TimeoutError:
            continue  # the connection of the ringing bell is not back yet
        break
