"""How batches end: when their time is spent, at their wall limit, with their worker, and as a model of all rules says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.model.errors import BadApp, PenstockError
from penstock.runtime.events import RowsReturned
from penstock.testing import CRASH_POINTS, TestApp, run, virtual
from tests.extent import EVERYTHING, sampled
from tests.flow.shop import EFFECT, Listing, Photo, effects
from tests.flow.test_batches import batch_app, send
from tests.flow.test_crashes import ELSEWHERE

# -- time -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-19", "G4-14")
@pytest.mark.parametrize("budget, each", [(20, 10), (None, 300)])
@virtual
async def test_what_the_time_is_not_enough_for_comes_back_after_5_seconds_with_no_attempt_lost(
    budget: float | None, each: float
) -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        for message in batch.within(budget):
            await asyncio.sleep(each)
            app.db.write(EFFECT, what=message.body.name)

    app, listings = batch_app(take, batch=5, batch_wait=0)
    async with TestApp(app) as shop:
        await send(shop, listings, "abcde")
        await shop.advance(seconds=2 * each + 4)
        assert await effects(app) == ["a", "b"]
        counts = await shop.counts(listings)
        assert (counts.acked, counts.delayed) == (2, 3)
        assert await app.db.column("select attempts from penstock_messages") == [0, 0, 0]
        await shop.advance(seconds=1)
        assert len(shop.delivered(listings)) == 8
        await shop.advance(hours=1)

        assert await effects(app) == list("abcde")
        assert {delivery.number for delivery in shop.delivered(listings)} == {1}


@virtual
async def test_a_message_of_a_batch_is_settled_once_whichever_of_them_it_is() -> None:
    refused: list[str] = []

    async def take(batch: ps.Batch[Listing]) -> None:
        for message in list(batch)[:3]:  # the other two are still open, and end with the batch
            async with message:
                app.db.write(EFFECT, what=message.body.name)
            try:
                async with message:
                    app.db.write(EFFECT, what=f"{message.body.name} again")
            except PenstockError as error:
                refused.append(str(error))

    app, listings = batch_app(take, batch=5, batch_wait=0)
    async with TestApp(app) as shop:
        await send(shop, listings, "abcde")
        await shop.advance(minutes=1)

        assert sorted(await effects(app)) == ["a", "b", "c"]
        assert [text.endswith("is settled already.") for text in refused] == [True] * 3
        counts = await shop.counts(listings)
        assert (counts.acked, counts.dead) == (5, 0)


@pytest.mark.spec("A1-18")
@pytest.mark.only_on(
    "sqlite"
)  # which are in one batch: a server that has cleaned up takes what is due at once in any order
@pytest.mark.parametrize("stubborn", [False, True])
@virtual
async def test_a_batch_past_its_wall_limit_is_cancelled_and_what_is_not_settled_is_retried(stubborn: bool) -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        first, *rest = batch
        tasks.setdefault(first.body.name, asyncio.current_task())
        await asyncio.sleep(0.001)
        if first.attempt == 1 and first.body.name == "a":
            async with first:
                app.db.write(EFFECT, what=first.body.name)
            app.db.write(EFFECT, what="lost")
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                if stubborn:
                    raise OSError("instead") from None
                raise
        if first.attempt == 1 and first.body.name == "d":
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone  # its own failure, though the task was cancelled for another batch before
        app.db.write(EFFECT, what=f"{len(rest)} more")

    tasks: dict[str, asyncio.Task[object] | None] = {}
    app, listings = batch_app(take, batch=3, batch_wait=0, timeout=10, parallel=1)
    async with TestApp(app) as shop:
        # After quick ones, so that the slot goes on from one to the next.
        await send(shop, listings, "q" * 27 + "abcdef")
        await shop.advance(seconds=9)
        assert (await shop.counts(listings)).acked == 28
        await shop.advance(seconds=2)
        assert ((await shop.counts(listings)).acked, (await shop.counts(listings)).delayed) == (28, 5)
        await shop.advance(minutes=5)

        assert (await shop.counts(listings)).acked == 33
        assert await effects(app) == ["1 more", *["2 more"] * 10, "a"]
        assert tasks["a"] is tasks["d"]
        assert [each.number for each in shop.delivered(listings)] == [1] * 33 + [2] * 5
        assert await shop.dead(listings) == []


@virtual
async def test_a_block_whose_commit_is_refused_while_its_batch_is_cancelled_is_retried_like_any_other() -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        async with batch.messages[0] as message:
            broken = message.attempt == 1
            app.db.write("insert into effects (what) values (:what || null)" if broken else EFFECT, what="x")

    app, listings = batch_app(take, batch=1, timeout=5)
    async with TestApp(app, latency=4) as shop:
        await send(shop, listings, "a")
        await shop.advance(minutes=2)

        assert [each.number for each in shop.delivered(listings)] == [1, 2]
        assert await effects(app) == ["x"]


# -- death ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-09", "A2-09")
@pytest.mark.fault("F01", "F29")
@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("how", ["together", "one by one"])
@sampled("point", [point for point in CRASH_POINTS if point not in ELSEWHERE], every=3)
@virtual
async def test_a_death_at_any_point_of_a_batch_leaves_every_effect_once(point: str, how: str, nth: int) -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            if how == "together":
                await work(message)
            else:
                async with message:
                    await work(message)

    async def work(message: ps.Message[Listing]) -> None:
        await asyncio.sleep(1)
        app.db.write(EFFECT, what=message.body.name)
        photos.send(Photo(name=message.body.name))

    app, listings = batch_app(take, batch=4, batch_wait=1)
    photos = app.queue("photos", Photo)
    async with TestApp(app) as shop:
        await shop.crash(at=point, nth=nth)
        await send(shop, listings, "abcdef")
        await shop.advance(seconds=2.5)
        if point.startswith("return."):
            await shop.kill()
        if point == "drain.begun":
            await shop.restart()
        await shop.advance(minutes=2)

        assert shop.workers_started > 1 or nth > 1, "nobody died"
        assert await effects(app) == list("abcdef")
        assert ((await shop.counts(listings)).acked, (await shop.counts(photos)).sent) == (6, 6)
        assert {each.number for each in shop.delivered(listings)} == {1}


@pytest.mark.fault("F06")
@virtual
async def test_a_batch_that_died_is_blamed_whole_and_then_each_of_it_runs_alone() -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        seen.append("".join(message.body.name for message in batch))
        await asyncio.sleep(1)
        if any(message.body.name == "d" for message in batch):
            shop.die()
        app.db.write(EFFECT, what=seen[-1])

    seen: list[str] = []
    app, listings = batch_app(take, batch=5, batch_wait=0)
    returned: list[RowsReturned] = []
    app.events.subscribe(returned.append, to=RowsReturned)
    async with TestApp(app) as shop:
        await send(shop, listings, "abcde")
        await shop.advance(minutes=1)

        assert seen[0] == "abcde"
        assert all(len(names) == 1 for names in seen[1:])
        assert await effects(app) == ["a", "b", "c", "e"]
        assert [(each.suspected, each.dead) for each in returned[:1]] == [(5, 0)]
        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.crashes, dead.body) == ("worker_died", 3, b'{"name":"d"}')


# -- every order of words, blocks and failures -------------------------------------------------------------------

NAMES = "abcd"
WORDS = ("ack", "retry", "later", "discard")


@dataclass(frozen=True)
class Say:
    name: str
    word: str


@dataclass(frozen=True)
class SayAll:
    word: str


@dataclass(frozen=True)
class Block:
    name: str
    writes: bool
    raises: bool
    word: str | None


@dataclass(frozen=True)
class WriteForAll:
    pass


Step = Say | SayAll | Block | WriteForAll
SAYS = st.builds(Say, st.sampled_from(NAMES), st.sampled_from(WORDS))
BLOCKS = st.builds(
    Block, st.sampled_from(NAMES), st.booleans(), st.booleans(), st.one_of(st.none(), st.sampled_from(WORDS))
)
STEPS = st.lists(
    st.one_of(SAYS, SAYS, BLOCKS, BLOCKS, st.builds(SayAll, st.sampled_from(["ack", "retry"])), st.just(WriteForAll())),
    max_size=8,
)


def say(message: ps.Message[Listing], word: str | None) -> None:
    match word:
        case "ack":
            message.ack()
        case "retry":
            message.retry(delay=50)
        case "later":
            message.later(40)
        case "discard":
            message.discard("no")


@dataclass
class Expected:
    """The rules as a reader would state them."""

    words: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    saved: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)

    def step(self, step: Step) -> None:
        match step:
            case Say(name, word):
                self.words.setdefault(name, word)
            case SayAll(word):
                for name in NAMES:
                    self.words.setdefault(name, word)
            case WriteForAll():
                self.held.append("all")
            case Block(name, writes, raises, word) if name not in self.ends:
                if word is not None:
                    self.words.setdefault(name, word)
                self.ends[name] = self._end(name, raises, lost=writes)
                if writes and not raises and self.ends[name] != "retry":
                    self.saved.append(name)

    def finish(self, raises: bool) -> None:
        for name in NAMES:
            self.ends.setdefault(name, self._end(name, raises, lost=bool(self.held)))
        if not raises:
            self.saved += self.held

    def _end(self, name: str, raises: bool, *, lost: bool) -> str:
        """The first word stands, except that an acknowledgement falls with the work it was for."""
        word = self.words.get(name)
        if word is None or (word == "ack" and raises and lost):
            return "failed" if raises else "ack"
        return word


@pytest.mark.spec("A1-07", "A1-08", "F-18")
@settings(max_examples=200 if EVERYTHING else 40)
@given(STEPS, st.booleans())
def test_any_order_of_words_blocks_and_failures_ends_as_the_rules_say(steps: list[Step], raises: bool) -> None:
    expected = Expected()
    for step in steps:
        expected.step(step)
    expected.finish(raises)

    async def take(batch: ps.Batch[Listing]) -> None:
        messages = {message.body.name: message for message in batch}
        in_blocks: set[str] = set()
        for step in steps:
            match step:
                case Say(name, word):
                    say(messages[name], word)
                case SayAll("ack"):
                    batch.ack_all()
                case SayAll():
                    batch.retry_all(delay=50)
                case WriteForAll():
                    app.db.write(EFFECT, what="all")
                case Block(name, writes, fails, word) if name not in in_blocks:
                    in_blocks.add(name)
                    async with messages[name] as message:
                        if writes:
                            app.db.write(EFFECT, what=name)
                        say(message, word)
                        if fails:
                            raise OSError("in a block")
        if raises:
            raise OSError("at the end")

    app, listings = batch_app(take, batch=len(NAMES))

    async def story() -> None:
        async with TestApp(app) as shop:
            await send(shop, listings, NAMES)
            await shop.advance(seconds=1)

            rows = await app.db.rows(
                "select body, attempts, (due - :now) / 1000000 + 1 as delay from penstock_messages",
                now=round(shop.now.timestamp() * 1_000_000),
            )
            found = {bytes(row.body)[9:10].decode(): (row.attempts, row.delay) for row in rows}
            waits = {"failed": (1, 30), "retry": (1, 50), "later": (0, 40)}
            assert found == {name: waits[end] for name, end in expected.ends.items() if end in waits}
            dead = {letter.body[9:10].decode() for letter in await shop.dead(listings)}
            assert dead == {name for name, end in expected.ends.items() if end == "discard"}
            assert (await shop.counts(listings)).acked == list(expected.ends.values()).count("ack")
            assert await effects(app) == sorted(expected.saved)

    run(story)


@virtual
async def test_a_key_in_a_batch_needs_the_message_it_belongs_to() -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=2)
    told: list[str] = []

    @listings.batch_handler
    async def handle(batch: ps.Batch[Listing]) -> None:
        try:
            async with app.unit(key="charge"):
                pass
        except BadApp as error:
            told.append(str(error))
        for message in batch:
            async with message:
                await app.once("charge", charge, message.id)

    charged: list[str] = []

    async def charge(id: str) -> None:
        charged.append(id)

    async with TestApp(app) as shop:
        ids = [await shop.send(listings, Listing(name=name)) for name in "ab"]
        await shop.drain()

    assert "async with message" in told[0]
    assert sorted(charged) == sorted(ids)


@pytest.mark.spec("A2-20")
@virtual
async def test_messages_that_only_meet_in_batches_do_not_look_like_one_long_chain() -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=5, batch_wait=1, parallel=1)

    @listings.batch_handler
    async def handle(batch: ps.Batch[Listing]) -> None:
        await asyncio.sleep(0.1)
        for message in batch:
            if message.body.name.startswith("first"):
                listings.send(Listing(name="second"))

    async with TestApp(app) as shop:
        for number in range(40):
            await shop.send(listings, Listing(name=f"first {number}"))
            await shop.advance(seconds=0.7)
        await shop.advance(minutes=2)

        assert (await shop.counts(listings)).acked == 80
        assert await shop.dead(listings) == []
