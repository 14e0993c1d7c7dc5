"""What users get wrong: each mistake is named with its value and the way out, costs its own unit and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import (
    BadMessage,
    BadParameter,
    BadStatement,
    LostUpdate,
    NotYetCommitted,
    PenstockError,
    StatementFailed,
    TooLarge,
    UnitTooLarge,
)
from penstock.runtime.events import MessageFailed
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.luck.shop import EFFECT, Order, Shop, running

Mistake = Callable[[Shop], Any]

MISTAKES: list[tuple[Mistake, type[Exception], list[str]]] = [
    # -- statements
    (lambda shop: shop.db.write("commit"), BadStatement, ["commit", "Remove it"]),
    (lambda shop: shop.db.write("ROLLBACK"), BadStatement, ["rollback", "Remove it"]),
    (lambda shop: shop.db.write("attach 'other.db' as other"), BadStatement, ["attach", "Remove it"]),
    (lambda shop: shop.db.write("pragma synchronous = off"), BadStatement, ["pragma", "Remove it"]),
    (lambda shop: shop.db.write("vacuum"), BadStatement, ["vacuum", "Remove it"]),
    (lambda shop: shop.db.write("/* sly */ commit"), BadStatement, ["commit", "Remove it"]),
    (lambda shop: shop.db.write("delete from effects; commit"), BadStatement, ["2 statements", "one at a time"]),
    (lambda shop: shop.db.write("delete from penstock_messages"), BadStatement, ["penstock_messages", "engine"]),
    (lambda shop: shop.db.write('delete from "Penstock_Messages"'), BadStatement, ["penstock_messages", "engine"]),
    (lambda shop: shop.db.write("drop table effects"), BadStatement, ["drop table effects", "migration"]),
    (lambda shop: shop.db.write("select 1"), BadStatement, ["select 1", "reading call"]),
    (lambda shop: shop.db.write(""), BadStatement, ["empty", "Write one"]),
    (lambda shop: shop.db.write("insert into effects values ('a\0b')"), BadStatement, ["NUL", "Remove it"]),
    (lambda shop: shop.db.write("insert into effects values ('\ud800')"), BadStatement, ["surrogate", "Remove it"]),
    (lambda shop: shop.db.write("insert into effects values (?)", {"1": 1}), BadStatement, ["?", ":name"]),
    # -- values
    (lambda shop: shop.db.write(EFFECT), BadParameter, ["what", "missing"]),
    (lambda shop: shop.db.write(EFFECT, {}), BadParameter, ["what", "missing"]),
    (lambda shop: shop.db.write(EFFECT, what="a", more="b"), BadParameter, ["more", "unexpected"]),
    (lambda shop: shop.db.write(EFFECT, what=object()), BadParameter, ["what", "object", "text, a number or bytes"]),
    (lambda shop: shop.db.write(EFFECT, what=["a"]), BadParameter, ["what", "list", "db.json"]),
    (lambda shop: shop.db.write(EFFECT, what=Decimal("1.10")), BadParameter, ["what", "Decimal", "cents"]),
    (lambda shop: shop.db.write(EFFECT, what=float("nan")), BadParameter, ["what", "nan", "None"]),
    (lambda shop: shop.db.write(EFFECT, what=2**63), BadParameter, ["what", "64", "text"]),
    (lambda shop: shop.db.write(EFFECT, what="a\0b"), BadParameter, ["what", "NUL", "Remove it"]),
    (lambda shop: shop.db.write(EFFECT, what="\ud83c"), BadParameter, ["what", "surrogate", "replace"]),
    (lambda shop: shop.db.write(EFFECT, what="x" * 4_000_001), TooLarge, ["4,000,001", "blob"]),
    (lambda shop: shop.db.write(EFFECT, "what"), BadParameter, ["str", "Give a dict"]),
    (lambda shop: shop.db.write_many(EFFECT, [{"what": "a"}, {"wat": "b"}]), BadParameter, ["wat", "unexpected"]),
    (lambda shop: shop.db.write(EFFECT, what="a").changes, NotYetCommitted, ["committed", "atomically"]),
    # -- messages
    (lambda shop: shop.orders.send(Order(name="x" * 2_000_000)), TooLarge, ["2,000,0", "orders", "reference"]),
    (lambda shop: shop.orders.send(Order(name="\ud800")), BadMessage, ["Order", "JSON", "plain values"]),
    (lambda shop: shop.orders.send(Order(name="a"), delay=-1), BadMessage, ["-1", "0 to"]),
    (lambda shop: shop.orders.send(Order(name="a"), delay=1e12), BadMessage, ["1000000000000", "0 to"]),
    (lambda shop: shop.orders.send(Order(name="a"), priority=7), BadMessage, ["7", "0 is high"]),
    (lambda shop: [shop.db.write(EFFECT, what="a") for _ in range(1_001)], UnitTooLarge, ["1,000", "write_many"]),
    (
        lambda shop: [shop.db.write(EFFECT, what="x" * 900_000) for _ in range(6)],
        UnitTooLarge,
        ["4,000,000", "Commit earlier"],
    ),
    # -- what only the database knows
    (lambda shop: shop.db.write("insert into nowhere (a) values (1)"), StatementFailed, ["nowhere", "insert into"]),
    (lambda shop: shop.db.write(EFFECT, what=None), StatementFailed, ["NOT NULL", "effects"]),
    (lambda shop: shop.db.write("delete from effects", expect=99), LostUpdate, ["99", "delete from effects"]),
    (lambda shop: shop.db.atomically(lambda tx: tx.write("commit")), BadStatement, ["commit", "Remove it"]),
    (lambda shop: shop.db.atomically(lambda tx: tx.rows("delete from effects")), BadStatement, ["not a query"]),
]


def mistake(shop: Shop, number: int) -> None:
    make, _, _ = MISTAKES[number]
    make(shop)


def check_told(error: BaseException, number: int) -> None:
    _, kind, words = MISTAKES[number]
    assert isinstance(error, kind)
    assert isinstance(error, PenstockError)
    text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
    if isinstance(error, StatementFailed | LostUpdate):
        assert "test_bad_input.py" in text, "the line of the call is named"


def test_a_mistake_in_a_unit_is_reported_and_saves_nothing(path: Path, inspect: SqliteInspect) -> None:
    async def scenario() -> None:
        async with Shop(path) as shop:
            assert isinstance(shop, Shop)
            for number in range(len(MISTAKES)):
                with pytest.raises(MISTAKES[number][1]) as told:
                    await make_in_a_unit(shop, number)
                check_told(told.value, number)
            assert await shop.effects() == {}
            assert inspect.messages() == []
            await shop.place("still works")
            assert len(inspect.messages()) == 1

    asyncio.run(scenario())
    check_conservation(inspect)


async def make_in_a_unit(shop: Shop, number: int) -> None:
    async with shop.unit():
        shop.db.write(EFFECT, what="before")
        shop.orders.send(Order(name="before"))
        mistake(shop, number)


def test_a_mistake_in_a_handler_costs_its_own_message_and_nothing_else(path: Path, inspect: SqliteInspect) -> None:
    """Every other order goes wrong in a way of its own; those between them are handled once each."""

    async def scenario() -> None:
        shop = Shop(path)
        bad: ps.Queue[Any] = shop.queue("bad", retries=0)

        @bad.handler(Order)
        async def stumble(order: Order) -> None:
            shop.db.write(EFFECT, what="before the mistake")
            mistake(shop, int(order.name))

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.db.write(EFFECT, what=order.name)

        async with shop.unit():
            for number in range(len(MISTAKES)):
                bad.send(Order(name=str(number)))
                shop.orders.send(Order(name=f"good {number}"))
        async with running(shop):
            await shop.until(
                lambda: sum(shop.done.values()) == len(MISTAKES) and shop.saw(MessageFailed) == len(MISTAKES)
            )
        effects = await shop.effects()
        await shop.close()
        assert effects == {f"good {number}": 1 for number in range(len(MISTAKES))}

    asyncio.run(scenario())
    check_conservation(inspect)
    assert inspect.messages() == []
    # What cannot be sent can never be sent: it dies at once. The database's own refusals are tried again first.
    assert {letter.reason for letter in inspect.dead()} == {"exhausted", "permanent"}
    told = {letter.error_class for letter in inspect.dead()}
    assert told == {kind.__name__ for _, kind, _ in MISTAKES}


BAD_READS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("delete from effects", {}, BadStatement, "db.write"),
    ("select what from nowhere", {}, StatementFailed, "nowhere"),
    ("select what from effects where what = :what", {}, BadParameter, "what"),
    ("select what from effects where what = :what", {"what": "a\0b"}, BadParameter, "NUL"),
    ("pragma user_version", {}, BadStatement, "pragma"),
    ("select 1; select 2", {}, BadStatement, "2 statements"),
]


@pytest.mark.parametrize("sql, named, kind, word", BAD_READS)
def test_a_mistake_in_a_query_is_reported(
    path: Path, sql: str, named: dict[str, Any], kind: type[Exception], word: str
) -> None:
    async def scenario() -> None:
        async with Shop(path) as shop:
            assert isinstance(shop, Shop)
            with pytest.raises(kind, match=word):
                await shop.db.rows(sql, **named)
            assert await shop.db.rows("select what from effects") == []

    asyncio.run(scenario())


def test_a_unit_that_is_not_there_is_missed(path: Path) -> None:
    async def scenario() -> None:
        async with Shop(path) as shop:
            assert isinstance(shop, Shop)
            with pytest.raises(ps.NoUnit, match=r"app\.unit"):
                shop.db.write(EFFECT, what="nowhere to go")
            with pytest.raises(ps.NoUnit, match=r"app\.unit"):
                shop.orders.send(Order(name="nowhere to go"))

    asyncio.run(scenario())
