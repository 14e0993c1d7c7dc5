"""A chain of messages can be followed from its first message to its last, whatever became of each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.config import Config
from penstock.data import reports
from penstock.model.ids import as_text, from_text
from penstock.model.times import to_micros
from penstock.queues.queue import Queue
from penstock.testing import TestApp, virtual
from penstock.views import trace as tracing
from penstock.views.chain import Trace


class Research(ps.Command):
    keyword: str


class Written(ps.Event):
    keyword: str


class Published(ps.Event):
    keyword: str


def brand_app() -> tuple[ps.App, dict[str, Queue[Any]]]:
    """Research leads to two drafts; each is published, one at its second try; one publication kills its message."""
    app = ps.App("brand")
    queues: dict[str, Queue[Any]] = {name: app.queue(name, retries=1) for name in ("research", "writing", "publishing")}
    tried: list[str] = []

    @queues["research"].handler(Research)
    async def research(command: Research) -> None:
        await asyncio.sleep(0.25)
        for part in ("a", "b"):
            queues["writing"].send(Written(keyword=f"{command.keyword} {part}"))

    @queues["writing"].handler(Written)
    async def write(event: Written) -> None:
        tried.append(event.keyword)
        if event.keyword.endswith("b") and tried.count(event.keyword) == 1:
            raise ValueError("the pen broke")
        queues["publishing"].send(Published(keyword=event.keyword), delay=3_600 if event.keyword.endswith("b") else 0)

    @queues["publishing"].handler(Published)
    async def publish(event: Published) -> None:
        raise ps.Refused("not this one, token=hunter2hunter2")

    return app, queues


async def traced(shop: TestApp, id: str) -> Trace:
    engine = await shop.app._opened()
    found = await tracing.trace(shop.app.db, engine.history, from_text(id), now=to_micros(shop.now))
    assert found is not None
    return found


def told(trace: Trace) -> list[tuple[int, str, int, str]]:
    return [(event.depth, event.name, event.attempt, event.status) for event in trace.events]


@pytest.mark.spec("A12-04", "A2-06")
@virtual
async def test_a_chain_is_reported_in_full_with_children_under_what_led_to_them() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        other = await shop.send(queues["research"], Research(keyword="hats"))
        first = await shop.send(queues["research"], Research(keyword="shoes"))
        await shop.advance(minutes=5)

        trace = await traced(shop, first)

    assert told(trace) == [
        (0, "research", 1, "acked"),
        (1, "written", 1, "acked"),
        (2, "published", 1, "dead"),
        (1, "written", 1, "retried"),
        (1, "written", 2, "acked"),
        (2, "published", 1, "delayed"),
    ]
    assert as_text(trace.correlation_id) == first != other
    assert trace.notes == []
    by_id = {event.id: event for event in trace.events}
    assert all(event.causation_id in by_id for event in trace.events if event.depth)


@pytest.mark.spec("A12-04")
@virtual
async def test_any_message_of_a_chain_leads_to_all_of_it() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        first = await shop.send(queues["research"], Research(keyword="shoes"))
        await shop.advance(minutes=5)
        whole = await traced(shop, first)

        for event in whole.events:
            assert await traced(shop, as_text(event.id)) == whole


@virtual
async def test_a_trace_has_the_agreed_shape() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        first = await shop.send(queues["research"], Research(keyword="shoes"))
        began = shop.now
        await shop.advance(minutes=5)
        shape: dict[str, Any] = (await traced(shop, first)).facts()

    assert list(shape)[:2] == ["correlation_id", "events"]
    assert shape["correlation_id"] == first
    root, *_ = shape["events"]
    agreed = ["at", "service", "kind", "name", "id", "causation_id", "attempt", "status", "duration_ms"]
    assert list(root)[:9] == agreed
    at = began.isoformat(timespec="milliseconds")[:23] + "Z"
    assert [root[name] for name in agreed[:8]] == [at, "brand", "message", "research", first, None, 1, "acked"]
    assert abs(root["duration_ms"] - 250) < 0.01
    dead = next(event for event in shape["events"] if event["status"] == "dead")
    assert (dead["reason"], dead["resolution"]) == ("permanent", None)
    assert dead["error"] == "Refused: not this one, token=[redacted] at test_trace.py:54"
    waits = shape["events"][-1]
    assert (waits["status"], waits["duration_ms"]) == ("delayed", None)
    assert waits["due"] > waits["at"]
    retried = next(event for event in shape["events"] if event["status"] == "retried")
    assert retried["error"] == "ValueError: the pen broke at test_trace.py:49"


@virtual
async def test_what_waits_and_what_died_is_reported_even_if_the_history_was_lost() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        first = await shop.send(queues["research"], Research(keyword="shoes"))
        await shop.advance(minutes=5)
        engine = await app._opened()
        await engine.history.ask(lambda file: file.prune(2**62, 1_000))

        trace = await traced(shop, first)

    assert [(event.name, event.status) for event in trace.events] == [("published", "dead"), ("published", "delayed")]
    assert trace.events[0].reason == "permanent"


@virtual
async def test_a_killed_worker_loses_at_most_the_last_second_of_history_and_no_message() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        first = await shop.send(queues["research"], Research(keyword="shoes"))
        await shop.advance(seconds=2)
        later = await shop.send(queues["research"], Research(keyword="hats"))
        await shop.advance(seconds=0.5)
        await shop.kill()
        await shop.advance(seconds=2)

        assert told(await traced(shop, first))[0] == (0, "research", 1, "acked")
        lost = await traced(shop, later)
        assert "research" not in {event.name for event in lost.events}
        assert {event.status for event in lost.events} >= {"delayed"}


@virtual
async def test_nothing_is_known_of_an_id_that_was_never_sent() -> None:
    app, _ = brand_app()
    async with TestApp(app) as shop:
        engine = await app._opened()

        assert await tracing.trace(app.db, engine.history, b"x" * 16, now=to_micros(shop.now)) is None


@virtual
async def test_messages_sent_midway_belong_to_the_chain_though_their_ids_do_not_tell() -> None:
    app = ps.App("brand")
    queue: ps.Queue[Any] = app.queue("research")

    @queue.handler(Research)
    async def research(command: Research) -> None:
        await asyncio.sleep(10)
        async with app.unit():
            queue.send(Written(keyword="midway"), delay=600)

    @queue.handler
    async def write(event: Written) -> None: ...

    async with TestApp(app) as shop:
        first = await shop.send(queue, Research(keyword="shoes"))
        await shop.advance(seconds=20)
        trace = await traced(shop, first)
        (midway,) = (event for event in trace.events if event.name == "written")
        assert midway.id[:6] != from_text(first)[:6]
        assert (midway.depth, midway.status) == (1, "delayed")

        await shop.advance(seconds=700)
        assert await traced(shop, as_text(midway.id)) == await traced(shop, first)


@virtual
async def test_a_look_that_ended_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "SCANNED", 3)
    app, queues = brand_app()
    async with TestApp(app) as shop:
        async with shop.unit():
            ids = [queues["research"].send(Research(keyword=str(number)), delay=60) for number in range(5)]
        await shop.advance(seconds=1)
        later = await shop.send(queues["research"], Research(keyword="alone"), delay=60)

        among_many, alone = await traced(shop, ids[0]), await traced(shop, later)

    assert ids[0][:13] == ids[4][:13] != later[:13]
    assert [note.partition(" waiting messages")[0] for note in among_many.notes] == ["More than 3"]
    assert [note.partition(" waiting messages")[0] for note in alone.notes] == ["There are more than 3"]


@virtual
async def test_a_chain_that_is_too_long_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "CHAIN_MAX", 3)
    app, queues = brand_app()
    async with TestApp(app) as shop:
        first = await shop.send(queues["research"], Research(keyword="shoes"))
        await shop.advance(minutes=5)
        trace = await traced(shop, first)

    assert trace.notes == ["The chain has more than 3 settled deliveries; the first are shown."]


@pytest.mark.spec("A12-03", "A3-11")
@virtual
async def test_the_health_reports_tell_what_was_processed_what_died_and_the_rate() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        for keyword in ("shoes", "hats", "gloves"):
            await shop.send(queues["research"], Research(keyword=keyword))
        await shop.advance(minutes=5)
        engine = await app._opened()

        health = await reports.health(app.db, engine.history, now=to_micros(shop.now))

        assert [tuple(each) for each in health.processed] == [("written", "brand", 6), ("research", "brand", 3)]
        assert health.dead == [reports.DeadGroup("publishing", "published", 3, 3)]
        assert len(health.per_minute) == 30
        assert sum(each.messages for each in health.per_minute) == 9
        assert sum(each.messages for each in health.per_minute[-7:-4]) == 9  # five minutes ago

        await shop.advance(days=1)
        later = await reports.health(app.db, engine.history, now=to_micros(shop.now))
        assert (later.processed, sum(each.messages for each in later.per_minute)) == ([], 0)
        assert later.dead == [reports.DeadGroup("publishing", "published", 3, 3)]  # those that were published later


@virtual
@pytest.mark.spec("A3-07")
async def test_a_replay_stands_beside_the_letter_it_replays() -> None:
    app, queues = brand_app()
    async with TestApp(app) as shop:
        first = await shop.send(queues["publishing"], Published(keyword="shoes"))
        await shop.advance(seconds=5)
        (letter,) = await app.dead.list()
        await app.dead.replay(letter.id)
        await shop.advance(seconds=5)
        trace = await traced(shop, first)

    died, again = trace.events
    assert (died.status, died.reason, died.resolution) == ("dead", "permanent", "replayed")
    assert (again.status, again.resolution, again.replay_of) == ("dead", None, died.id)
    assert as_text(died.id) == first != as_text(again.id)


@virtual
async def test_every_message_of_a_batch_is_in_the_history() -> None:
    app = ps.App("brand")
    queue = app.queue("writing", Written, batch=3, batch_wait=5, retries=0)

    @queue.batch_handler
    async def write(batch: ps.Batch[Any]) -> None:
        for message in batch:
            async with message:
                await asyncio.sleep(1)
                if message.body.keyword == "bad":
                    raise ValueError("no")
            if message.body.keyword == "midway":
                return

    async with TestApp(app) as shop:
        ids = [await shop.send(queue, Written(keyword=keyword)) for keyword in ("bad", "midway", "left")]
        await shop.advance(minutes=1)
        found = [(await traced(shop, id)).events for id in ids]

    assert [[event.status for event in events] for events in found] == [["dead"], ["acked"], ["acked"]]
    assert [round((events[0].micros or 0) / 1_000) for events in found] == [1_000, 1_000, 2_000]


@virtual
@pytest.mark.spec("A3-11", "A12-03")
async def test_dead_letters_of_the_last_day_are_counted_by_queue_and_type() -> None:
    app = ps.App("brand")
    queues: list[Queue[Any]] = [app.queue(name, retries=0) for name in ("one", "two")]

    async def refuse(event: Written | Published) -> None:
        raise ps.Refused("no")

    for queue in queues:
        queue.handler(Written)(refuse)
        queue.handler(Published)(refuse)
    async with TestApp(app) as shop:
        await shop.send(queues[0], Written(keyword="too old"))
        await shop.advance(hours=24, seconds=1)
        for queue, payload in (
            (queues[1], Published(keyword="a")),
            (queues[0], Written(keyword="b")),
            (queues[1], Published(keyword="c")),
            (queues[1], Written(keyword="d")),
        ):
            await shop.send(queue, payload)
        await shop.advance(seconds=5)
        await app.dead.discard([letter.id for letter in await app.dead.list() if b'"c"' in letter.body], "not needed")

        counted = await reports.dead_letters(app.db, now=to_micros(shop.now))

    assert counted == [
        reports.DeadGroup("two", "published", 2, 1),
        reports.DeadGroup("one", "written", 1, 1),
        reports.DeadGroup("two", "written", 1, 1),
    ]


@pytest.mark.spec("A12-02")
@virtual
async def test_a_share_of_all_chains_is_recorded_each_of_them_whole() -> None:
    app, chains = ps.App("brand", config=Config(history=0.1)), 2_000
    first, second = app.queue("first", Research), app.queue("second", Written)

    @first.handler(Research)
    async def research(command: Research) -> None:
        second.send(Written(keyword=command.keyword))

    @second.handler(Written)
    async def write(_event: Written) -> None: ...

    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(chains):
                first.send(Research(keyword=str(number)), correlation=f"chain {number}")
        await shop.advance(minutes=5)
        engine = await app._opened()
        found = await reports.processed(engine.history, now=to_micros(shop.now))

    assert {report.type for report in found} == {"research", "written"}
    counts = {report.messages for report in found}
    assert len(counts) == 1, "a chain was recorded in part"
    assert 140 <= counts.pop() <= 260
