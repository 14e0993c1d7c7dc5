"""Services: in one database and apart, with messages and declared calls between them."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx2
import msgspec
import pytest

import penstock as ps
from penstock.model.ids import from_text
from penstock.model.message import NewMessage
from penstock.services.outbox import KIND, PATH, Accepted, Carrier
from penstock.services.peers import service_key
from penstock.testing import TestServices, virtual
from tests.flow.newsroom import Newsroom, Wanted

BOTH = pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])


@BOTH
@pytest.mark.spec("F-16", "A11-01")
@virtual
async def test_services_send_each_other_messages_and_call_each_other(apart: bool) -> None:
    room = Newsroom(apart=apart)
    async with TestServices(room.app) as town:
        await room.order("llc", "taxes")
        await town.drain()

        assert await room.notes() == ["llc", "taxes"]
        assert room.sources == ["desk" if apart else "newsroom"] * 2
        assert await room.desk.bindings["gatherfeed"].get("/v1/research/llc") == {"keyword": "llc", "pages": 3}
        assert len(town.shops) == (3 if apart else 1)


@BOTH
@pytest.mark.spec("A11-04")
@virtual
async def test_a_failing_call_is_a_typed_error_in_the_handler(apart: bool) -> None:
    room = Newsroom(apart=apart)
    async with TestServices(room.app) as town:
        with pytest.raises(ps.Gone):
            await room.desk.bindings["gatherfeed"].get("/v1/research/nothing")

        room.fails = 1
        await room.order("llc")
        await town.drain()
        assert await room.notes() == []
        await town.advance(120)
        await town.drain()
        assert await room.notes() == ["llc"]
        assert room.sources[0] == room.sources[1]


@BOTH
@pytest.mark.spec("A11-02", "A11-03")
@virtual
async def test_undeclared_calls_and_posts_between_business_services_are_refused(apart: bool) -> None:
    room = Newsroom(apart=apart)
    async with TestServices(room.app):
        with pytest.raises(ps.errors.BadApp, match=r"uses=\[\.\.\., 'library'\]"):
            await room.desk.bindings["library"].get("/v1/pages", about="x")
        with pytest.raises(ps.errors.BadApp, match="not infrastructure"):
            await room.desk.bindings["gatherfeed"].post("/v1/research/llc")
        assert await room.gather.bindings["library"].post("/v1/shelves") == "added"


@BOTH
@pytest.mark.spec("A11-05")
@virtual
async def test_a_call_without_the_service_key_is_refused(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Newsroom(apart=apart)
    async with TestServices(room.app):
        assert await room.gather.bindings["library"].get("/v1/pages", about="abc") == 3
        monkeypatch.setenv("SERVICE_KEY", "another")
        with pytest.raises(ps.Refused) as refused:
            await room.gather.bindings["library"].get("/v1/pages", about="abc")
        assert refused.value.facts["status"] == 401


@virtual
@pytest.mark.parametrize("hours", [6, pytest.param(72, marks=pytest.mark.slow)])
async def test_a_message_to_a_service_that_is_down_is_carried_when_it_is_back(hours: int) -> None:
    room = Newsroom(apart=True)
    async with TestServices(room.app) as town:
        town.cut_off("gatherfeed")
        await room.order(*(f"keyword-{number}" for number in range(250)))
        await town.advance(hours=hours)

        outbox = room.desk.queues["outbox.gatherfeed"]
        waiting = await town["desk"].counts(outbox)
        assert waiting.ready + waiting.leased + waiting.delayed == 250
        assert await town["desk"].dead(outbox) == []

        town.reach("gatherfeed")
        await town.advance(minutes=3)
        await town.drain()
        assert len(await room.notes()) == 250
        assert (await town["desk"].counts(outbox)).acked == 250


@virtual
async def test_the_id_that_a_send_returns_names_the_message_in_both_databases() -> None:
    room = Newsroom(apart=True)
    kept = "select queue from penstock_messages where id = :id"
    seen = "select id from penstock_seen where queue = 'gatherfeed-commands'"
    async with TestServices(room.app) as town:
        town.cut_off("gatherfeed")
        async with room.desk.unit():
            id = from_text(room.commands.send(Wanted(keyword="llc")))
            own = "01890000-0000-7000-8000-000000000001"
            room.commands.send(Wanted(keyword="tax"), id=own)
        engine = await room.desk._opened()
        assert (await engine.read("", kept, {"id": id}, rows_max=9)).values == [("outbox.gatherfeed",)]

        town.reach("gatherfeed")
        await town.advance(minutes=3)
        await town.drain()
        there = await (await room.gather._opened()).read("", seen, {}, rows_max=9)
        assert {bytes(each) for (each,) in there.values} == {id, from_text(own)}


@pytest.mark.parametrize("point", ["send.after_commit", "unit.sealed"])
@pytest.mark.parametrize("victim", ["desk", "gatherfeed"])
@virtual
async def test_a_kill_of_either_side_neither_loses_nor_doubles_a_message(point: str, victim: str) -> None:
    room = Newsroom(apart=True)
    async with TestServices(room.app) as town:
        await town[victim].crash(at=point)
        await room.order(*(f"keyword-{number}" for number in range(30)))
        for _ in range(20):
            await town.advance(30)
        await town.drain()

        assert await room.notes() == sorted(f"keyword-{number}" for number in range(30))


@virtual
async def test_a_refused_message_is_a_dead_letter_of_the_outbox() -> None:
    room = Newsroom(apart=True)
    strange = room.gather.queue("not-there")
    async with TestServices(room.app) as town:
        del room.gather.queues["not-there"]
        async with room.desk.unit():
            strange.send({"keyword": "x"})
        await room.order("llc")
        await town.drain()

        [letter] = await town["desk"].dead(room.desk.queues["outbox.gatherfeed"])
        assert "there is no queue 'not-there'" in str(letter.reason) + str(letter.error_message)
        assert await room.notes() == ["llc"]


@virtual
async def test_a_unit_that_fails_carries_nothing() -> None:
    room = Newsroom(apart=True)
    async with TestServices(room.app) as town:
        with pytest.raises(ValueError, match="no"):
            async with room.desk.unit():
                room.commands.send(Wanted(keyword="llc"))
                raise ValueError("no")
        await town.drain()
        assert await room.notes() == []


@virtual
async def test_a_keyed_message_is_delivered_once_however_often_it_is_sent() -> None:
    room = Newsroom(apart=True)
    async with TestServices(room.app) as town:
        for _ in range(3):
            async with room.desk.unit():
                room.commands.send(Wanted(keyword="llc"), unique="cycle-7")
            await town.drain()
        assert room.sources == ["desk"]


@virtual
async def test_the_chain_of_a_message_goes_on_in_the_other_database() -> None:
    room = Newsroom(apart=True)
    async with TestServices(room.app) as town:
        async with room.desk.unit():
            room.commands.send(Wanted(keyword="llc"), correlation="cycle-7")
        await town.drain()
        [wanted] = town["gatherfeed"].delivered(room.commands)
        [found] = town["desk"].delivered(room.events)
        assert wanted.number == found.number == 1


@virtual
async def test_more_than_a_bounded_queue_takes_at_once_is_carried_in_portions() -> None:
    room = Newsroom(apart=True, messages_max=7)
    async with TestServices(room.app) as town:
        await room.order(*(f"keyword-{number:02}" for number in range(40)))
        await town.advance(minutes=30)
        await town.drain()

        assert await room.notes() == [f"keyword-{number:02}" for number in range(40)]


@virtual
async def test_a_message_that_is_larger_than_its_queue_is_a_dead_letter_of_the_outbox() -> None:
    room = Newsroom(apart=True)
    room.commands.settings = replace(room.commands.settings, bytes_max=60)
    async with TestServices(room.app) as town:
        await room.order("llc", "x" * 100, "taxes")
        await town.advance(minutes=1)
        await town.drain()

        assert await room.notes() == ["llc", "taxes"]
        [letter] = await town["desk"].dead(room.desk.queues["outbox.gatherfeed"])
        assert "413" in str(letter.reason) + str(letter.error_message)


@virtual
async def test_a_receiver_that_refuses_for_days_is_named_with_its_reason_and_asked_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    room = Newsroom(apart=True)
    posts: list[float] = []
    async with TestServices(room.app) as town:
        outbox = room.desk.queues["outbox.gatherfeed"]
        post = Carrier._post

        async def counted(carrier: Carrier, content: bytes, count: int) -> Accepted:
            posts.append(carrier._now())
            return await post(carrier, content, count)

        monkeypatch.setattr(Carrier, "_post", counted)
        monkeypatch.setenv("SERVICE_KEY", "another")  # of the receiver, while callers keep the first
        monkeypatch.setattr("penstock.services.peers.service_key", lambda: "wrong")
        await room.order(*(f"keyword-{number}" for number in range(150)))
        with caplog.at_level(logging.WARNING, "penstock.services"):
            await town.advance(hours=2)

        engine = await room.desk._opened()
        rows = "select id, attempts, error_message from penstock_messages where error_class is not null"
        kept = (await engine.read("", rows, {}, rows_max=1_000)).values
        assert len(kept) >= 100
        assert all(attempts == 0 and "Set the same SERVICE_KEY" in reason for _, attempts, reason in kept)
        assert len(posts) < 2 * 60 * 2 * 2, "two batches, and a try at least every half minute"
        warnings = [each for each in caplog.messages if each.startswith("outbox.gatherfeed")]
        assert 10 <= len(warnings) <= 12
        assert "gatherfeed took no messages" in warnings[0]

        monkeypatch.undo()
        with caplog.at_level(logging.INFO, "penstock.services"):
            await town.advance(minutes=2)
        await town.drain()
        assert "outbox.gatherfeed: gatherfeed takes messages again." in caplog.messages
        assert len(await room.notes()) == 150
        assert (await town["desk"].counts(outbox)).acked == 150


@virtual
@pytest.mark.parametrize(
    "body",
    [
        b"<html>welcome</html>",
        b"{}",
        b'{"accepted": 0, "duplicates": 0}',
        b'{"accepted": 29, "duplicates": 0, "refused": {"40": "no"}}',
    ],
)
async def test_an_answer_of_another_program_takes_no_message_away(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Newsroom(apart=True)
    async with TestServices(room.app) as town:
        with monkeypatch.context() as patched:

            async def odd(*_: object, **__: object) -> object:
                return SimpleNamespace(body=body)

            patched.setattr("penstock.services.outbox.call", odd)
            await room.order(*(f"keyword-{number:02}" for number in range(30)))
            await town.advance(hours=1)
            engine = await room.desk._opened()
            rows = "select attempts, error_message from penstock_messages where error_class is not null"
            kept = (await engine.read("", rows, {}, rows_max=1_000)).values
            assert len(kept) == 30
            assert all(attempts == 0 and "is no outbox" in reason for attempts, reason in kept)
        await town.advance(minutes=3)
        await town.drain()
        assert await room.notes() == [f"keyword-{number:02}" for number in range(30)]


GOOD = NewMessage(
    *(b"i" * 16, "gatherfeed-commands", 1, 1, "research.wanted", "desk", b"c" * 16, None, 0, 0, 1),
    *(0, b'{"keyword": "llc"}', 0, None),
)


@virtual
async def test_a_faulty_sender_harms_no_other_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_KEY", "of this test")
    room = Newsroom(apart=True)

    @room.gather.cron("0 0 * * *", reason="a queue of the engine")
    async def nightly() -> None: ...

    headers = {"X-Service-Key": service_key(), "Content-Type": KIND}
    async with TestServices(room.app) as town, town["gatherfeed"].client() as http:

        async def post(*messages: NewMessage, key: object = None, content: bytes = b"") -> httpx2.Response:
            bodies = [msgspec.msgpack.encode((*each[:11], *each[12:], key)) for each in messages]
            framed = [len(bodies).to_bytes(4, "big"), *(len(body).to_bytes(4, "big") + body for body in bodies)]
            return await http.post(PATH, content=content or b"".join(framed), headers=headers)

        for content in (b"x", b"\x00\x00\x00\x00", b"\xff" * 4, b"\xff" * 64, b"\x00\x00\x00\x01\x7f\xff\xff\xff\x90"):
            assert (await post(content=content)).status_code == 422
        wrong: list[dict[str, Any]] = [
            *({"id": b"short"}, {"correlation_id": b"x" * 17}, {"causation_id": b""}, {"priority": 9}, {"due": 2**63}),
            *(
                {"sent_at": -1},
                {"hops": -1},
                {"depth": 2**40},
                {"flags": 2**63},
                {"expires": "soon"},
                {"type": "another"},
            ),
            *({"source": "s" * 5_000}, {"source": "a\0b"}, {"queue": "cron.nightly"}, {"queue": "outbox.desk"}),
            *({"queue": "gatherfeed-commands-dlq"}, {"queue": "none"}),
        ]
        answer = (await post(*(GOOD._replace(**each) for each in wrong), GOOD)).json()
        assert (answer["accepted"], set(answer["refused"])) == (1, {str(place) for place in range(len(wrong))})
        assert set((await post(GOOD, key=7)).json()["refused"]) == {"0"}
        await town.drain()
        assert await room.notes() == ["llc"]

        headers["X-Service-Key"] = "wrong"
        assert (await post(GOOD)).status_code == 401
