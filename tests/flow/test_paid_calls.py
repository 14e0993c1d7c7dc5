"""Paid calls: reserved before they are made, settled after, and never more than a budget holds, whoever dies when."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadApp, BadParameter
from penstock.testing import TestApp, attempt, virtual
from tests.flow.research import Lab
from tests.flow.shelf import Shelf
from tests.flow.shop import EFFECT, Listing, effects, shop_app

NOON = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)
LEDGER = "select operation, state, cost, units, run, correlation_id from api_calls_ledger order by created_at, id"


async def ledger(app: ps.App) -> list[Any]:
    return await app.db.rows(LEDGER)


async def states(app: ps.App) -> list[tuple[str, float]]:
    return [(row.state, round(row.cost, 9)) for row in await ledger(app)]


async def counted(app: ps.App, scope: str) -> float:
    """What counts in a sum, in dollars."""
    total = await app.db.value(
        "select sum(reserved + settled) from penstock_spending where scope = :scope", scope=scope
    )
    return round((total or 0) / 1_000_000_000, 9)


def paying(
    budgets: ps.Budgets, *, at_most: float = 0.1, usd: float = 0.1, seconds: float = 1.0, **settings: int
) -> Any:
    """An app whose handler pays for each listing. A name `a/r1` is of the run r1."""

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        run = listing.name.partition("/")[2] or None
        async with gateway.paid(provider="brave", operation=listing.name, at_most=at_most, run=run) as call:
            await asyncio.sleep(seconds)
            app.db.write(EFFECT, what=listing.name)
            call.settle(units=1, usd=usd)

    app, listings = shop_app(handle, **settings)
    gateway = app.gateway(budgets=budgets)
    return app, listings


@pytest.mark.spec("B6-03", "B8-T33")
@virtual
async def test_each_call_is_a_row_with_its_cost_and_the_correlation_of_its_message() -> None:
    app, listings = paying(ps.Budgets(run=1.0, day=2.0, month=20.0), usd=0.0031)
    async with TestApp(app) as shop:
        first = await shop.send(listings, Listing(name="a/r1"))
        await shop.send(listings, Listing(name="b"))
        await shop.drain()

        rows = await ledger(app)
        assert [(row.operation, row.state, row.cost, row.units, row.run) for row in rows] == [
            ("a/r1", "settled", 0.0031, 1, "r1"),
            ("b", "settled", 0.0031, 1, None),
        ]
        assert rows[0].correlation_id == first.replace("-", "")
        assert (await counted(app, "day"), await counted(app, "run")) == (0.0062, 0.0031)


@pytest.mark.spec("B6-03")
@virtual
async def test_fifty_handlers_at_once_never_exceed_a_budget_and_use_all_of_it() -> None:
    app, listings = paying(ps.Budgets(day=1.0), at_most=0.1, usd=0.04, parallel=50)
    most: list[float] = []

    async def watch() -> None:
        while True:
            most.append(await counted(app, "day"))
            await asyncio.sleep(1.0)

    async with TestApp(app, start=NOON) as shop:
        async with shop.unit():
            for number in range(50):
                listings.send(Listing(name=f"{number:02}"))
        watching = asyncio.ensure_future(watch())
        await shop.advance(hours=1)
        watching.cancel()

        assert max(most) == 1.0, "ten at a time reserve all of it"
        # 23 x 0.04 leaves 0.08, in which a call that may cost 0.1 does not fit.
        assert (len(await effects(app)), await counted(app, "day")) == (23, 0.92)
        assert (await shop.counts(listings)).delayed == 27
        assert shop.delivered(listings)[-1] == attempt(1)

        await shop.advance(days=2)
        assert len(await effects(app)) == 50
        assert (await shop.counts(listings)).dead == 0


@pytest.mark.spec("B6-03")
@pytest.mark.parametrize(
    "budgets, back_at",
    [
        (ps.Budgets(day=0.1), datetime(2026, 4, 1, tzinfo=UTC)),
        (ps.Budgets(day=0.1, month=5.0), datetime(2026, 4, 1, tzinfo=UTC)),
        (ps.Budgets(month=0.1), datetime(2026, 4, 1, tzinfo=UTC)),
    ],
)
@virtual
async def test_a_message_comes_back_uncharged_when_the_period_begins(budgets: ps.Budgets, back_at: datetime) -> None:
    app, listings = paying(budgets)
    async with TestApp(app, start=NOON) as shop:
        for name in "ab":
            await shop.send(listings, Listing(name=name))
            await shop.advance(minutes=1)
        assert await effects(app) == ["a"]
        before = len(shop.delivered(listings))
        await shop.advance(seconds=(back_at - shop.now).total_seconds() - 1)
        assert len(shop.delivered(listings)) == before, "it was tried before the budget began anew"
        await shop.advance(seconds=5)
        assert await effects(app) == ["a", "b"]
        assert shop.delivered(listings)[-1] == attempt(1)


@virtual
async def test_of_two_spent_budgets_the_one_that_takes_longer_counts() -> None:
    app = ps.App("shop")
    gateway = app.gateway(budgets=ps.Budgets(day=0.1, month=0.1))
    async with TestApp(app, start=datetime(2026, 11, 3, tzinfo=UTC)):
        async with gateway.paid(provider="p", operation="o", at_most=0.1) as call:
            call.settle(usd=0.1)
        with pytest.raises(ps.BudgetSpent) as spent:
            async with gateway.paid(provider="p", operation="o", at_most=0.1):
                raise AssertionError("never reached")
        assert (spent.value.budget, spent.value.until) == ("month", datetime(2026, 12, 1, tzinfo=UTC))
        assert "$0.10 of $0.10 is spent" in str(spent.value)
        assert "2026-12-01 00:00 UTC" in str(spent.value)


@pytest.mark.spec("B6-03")
@virtual
async def test_a_run_that_has_spent_its_budget_never_gets_another() -> None:
    app, listings = paying(ps.Budgets(run=0.1))
    async with TestApp(app) as shop:
        for name in ("a/r1", "b/r1", "c/r2"):
            await shop.send(listings, Listing(name=name))
            await shop.drain()
        await shop.advance(days=40)
        [letter] = await shop.dead(listings)
        assert (letter.reason, letter.error_class) == ("permanent", "BudgetSpent")
        assert await effects(app) == ["a/r1", "c/r2"]


@virtual
async def test_a_call_that_is_larger_than_its_budget_does_not_come_back_every_day() -> None:
    app, listings = paying(ps.Budgets(day=0.05), at_most=0.1)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        assert (await shop.counts(listings)).dead == 1
        assert await counted(app, "day") == 0.0


# -- how a call ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, state, cost",
    [
        (ps.Throttled("429", status=429), "released", 0.0),
        (ps.Refused("400", status=400), "released", 0.0),
        (ps.Gone("404", status=404), "released", 0.0),
        (ps.Unavailable("529", status=529), "released", 0.0),
        (ps.Unavailable("no address", reason="dns"), "released", 0.0),
        (ps.Unavailable("500", status=500), "unknown", 0.1),
        (ps.Unavailable("no answer", reason="timeout"), "unknown", 0.1),
        (ps.Unparsable("what is this"), "unknown", 0.1),
        (ValueError("ours"), "unknown", 0.1),
    ],
)
@virtual
async def test_only_what_certainly_cost_nothing_is_given_back(error: Exception, state: str, cost: float) -> None:
    app = ps.App("shop")
    gateway = app.gateway(budgets=ps.Budgets(day=1.0))
    async with TestApp(app):
        with pytest.raises(type(error)):
            async with gateway.paid(provider="p", operation="o", at_most=0.1):
                raise error
        assert await states(app) == [(state, cost)]
        assert await counted(app, "day") == cost


@virtual
async def test_a_block_that_forgets_to_settle_counts_at_its_most_and_one_that_releases_does_not() -> None:
    app = ps.App("shop")
    gateway = app.gateway()
    async with TestApp(app):
        async with gateway.paid(provider="p", operation="o", at_most=0.1):
            pass
        async with gateway.paid(provider="p", operation="o", at_most=0.1) as call:
            call.release()
        assert await states(app) == [("unknown", 0.1), ("released", 0.0)]


@virtual
async def test_what_was_settled_stays_settled_whatever_the_block_raises_afterwards() -> None:
    app = ps.App("shop")
    gateway = app.gateway(budgets=ps.Budgets(day=1.0))
    async with TestApp(app):
        with pytest.raises(ps.Throttled):
            async with gateway.paid(provider="p", operation="o", at_most=0.1) as call:
                call.settle(usd=0.25, units=3)
                raise ps.Throttled("the next page")
        assert await states(app) == [("settled", 0.25)], "more than was expected is spent all the same"
        assert await counted(app, "day") == 0.25


@pytest.mark.fault("F01")
@pytest.mark.spec("B6-03")
@virtual
async def test_a_crash_between_reserving_and_settling_counts_at_the_most_and_is_shown_so() -> None:
    deaths = ["a"]

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        async with gateway.paid(provider="p", operation=listing.name, at_most=0.4) as call:
            if listing.name in deaths:
                deaths.remove(listing.name)
                shop.die()
            call.settle(usd=0.1, units=1)

    app, listings = shop_app(handle)
    gateway = app.gateway(budgets=ps.Budgets(day=1.0))
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)

        assert shop.workers_started == 2
        assert sorted(await states(app)) == [("settled", 0.1), ("unknown", 0.4)]
        assert await counted(app, "day") == 0.5
        assert (await shop.counts(listings)).acked == 1


@pytest.mark.fault("F01")
@pytest.mark.parametrize("point", ["handler.after", "commit.before", "commit.after"])
@virtual
async def test_a_crash_after_settling_loses_the_handlers_work_but_not_what_was_spent(point: str) -> None:
    app, listings = paying(ps.Budgets(day=1.0), usd=0.03)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.crash(at=point, nth=2 if point.startswith("commit") else 1)
        await shop.advance(minutes=5)
        assert await effects(app) == ["a"]
        paid = await states(app)
        assert set(paid) <= {("settled", 0.03), ("unknown", 0.1)}
        assert await counted(app, "day") == round(sum(cost for _, cost in paid), 9)


@virtual
async def test_a_handler_past_its_wall_limit_has_spent_the_most() -> None:
    app, listings = paying(ps.Budgets(day=1.0), seconds=60.0, timeout=5, retries=0)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)
        assert await states(app) == [("unknown", 0.1)]
        assert await effects(app) == []


# -- workflows and controllers ------------------------------------------------------------------------------------


@pytest.mark.spec("B6-03")
@virtual
async def test_a_workflow_without_money_sleeps_until_there_is_some_and_goes_on() -> None:
    lab = Lab()
    gateway = lab.app.gateway(budgets=ps.Budgets(day=0.1))

    async def ask(what: str) -> str:
        async with gateway.paid(provider="openai", operation="chat", at_most=0.1) as call:
            call.settle(usd=0.1, units=10)
        return await lab.write(what)

    @lab.app.workflow
    async def research(run: ps.Run) -> list[str]:
        heard = []
        for number in range(3):
            for again in range(5):
                try:
                    heard.append(await run.step(f"ask-{number}-{again}", ask, f"{number}"))
                    break
                except ps.BudgetSpent as spent:
                    await run.sleep_until(spent.until or NOON)
        return heard

    async with TestApp(lab.app, start=NOON) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(hours=1)
        assert (await handle.status()).state == "waiting"
        await test.restart()
        await test.kill()
        await test.advance(hours=11.5)
        assert lab.did == ["0", "1"], "it goes on at midnight"
        await test.advance(days=1)
        assert await handle.result() == ["0", "1", "2"]
        assert await counted(lab.app, "day") == 0.3


@pytest.mark.spec("B6-03")
@virtual
async def test_a_workflow_whose_run_has_spent_its_budget_can_end_so() -> None:
    lab = Lab()
    gateway = lab.app.gateway(budgets=ps.Budgets(run=0.1))
    raised: list[object] = []

    async def ask(run_id: str) -> str:
        async with gateway.paid(provider="openai", operation="chat", at_most=0.1, run=run_id) as call:
            call.settle(usd=0.1, units=10)
        return "heard"

    @lab.app.workflow
    async def research(run: ps.Run) -> str:
        await run.step("first", ask, run.id)
        try:
            return await run.step("second", ask, run.id)
        except ps.BudgetSpent as spent:
            raised.append((spent.budget, spent.until, isinstance(spent, ps.StepFailed)))
            await run.sleep(hours=1)
            return "budget_exceeded"

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(hours=2)
        assert await handle.result() == "budget_exceeded"
        assert raised == [("run", None, True)] * 2, "what was raised is raised again when the run goes on"


@virtual
async def test_between_steps_nothing_is_paid_for() -> None:
    lab = Lab()
    gateway = lab.app.gateway()

    @lab.app.workflow
    async def research(_run: ps.Run) -> None:
        async with gateway.paid(provider="p", operation="o", at_most=0.1):
            raise AssertionError("never reached")

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.drain()
        assert "BetweenSteps" in str((await handle.status()).error)
        assert await states(lab.app) == []


@virtual
async def test_an_item_of_a_controller_waits_for_money_and_is_not_given_up() -> None:
    async def work(item: str) -> None:
        async with gateway.paid(provider="p", operation=item, at_most=0.1) as call:
            call.settle(usd=0.1)

    shelf = Shelf(work, idle_backoff=(1.0, 1_800.0))
    gateway = shelf.app.gateway(budgets=ps.Budgets(day=0.1))
    async with TestApp(shelf.app, start=NOON) as shop:
        await shelf.fill(shop, "a", "b", "c")
        await shop.advance(hours=11.9)
        assert len(await effects(shelf.app)) == 1
        assert set((await shelf.notes()).values()) == {"waiting"}
        # Those that came while the first was under way ask once more, since it might have given something back.
        assert Counter(shelf.worked) == {"a": 1, "b": 2, "c": 2}
        await shop.advance(days=2)
        assert await effects(shelf.app) == ["a", "b", "c"]


# -- what cannot be -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("usd", [-1.0, float("nan"), float("inf"), 1e12, "much", True])
@virtual
async def test_amounts_that_are_none_are_refused(usd: Any) -> None:
    app = ps.App("shop")
    gateway = app.gateway()
    with pytest.raises(BadApp):
        ps.Budgets(day=usd)
    async with TestApp(app):
        with pytest.raises(BadParameter):
            async with gateway.paid(provider="p", operation="o", at_most=usd):
                raise AssertionError("never reached")
        async with gateway.paid(provider="p", operation="o", at_most=0.1) as call:
            with pytest.raises(BadParameter):
                call.settle(usd=usd)
            call.settle(usd=0.0)
        assert await states(app) == [("settled", 0.0)]


@pytest.mark.parametrize("name", ["", "a\0b", "\x1b[31m", "x" * 201, "\ud800", "right\u202eleft"])
@virtual
async def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    app = ps.App("shop")
    gateway = app.gateway()
    async with TestApp(app):
        for given in ({"provider": name}, {"operation": name}, {"run": name}):
            with pytest.raises(BadParameter):
                async with gateway.paid(**{"provider": "p", "operation": "o", "at_most": 0.1} | given):  # type: ignore[arg-type]
                    raise AssertionError("never reached")


@virtual
async def test_only_the_engine_writes_the_ledger() -> None:
    app = ps.App("shop")
    async with TestApp(app) as shop:
        for statement in ("update penstock_spending set settled = 0", "delete from penstock_calls"):
            with pytest.raises(ps.PenstockError):
                async with shop.unit():
                    app.db.write(statement)
