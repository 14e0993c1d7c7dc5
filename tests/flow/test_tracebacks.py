"""A failure names the line of code: in its event, its dead letter, its step and its run, on both stores."""

from __future__ import annotations

import logging

import pytest

import penstock as ps
from penstock.logs import JsonFormatter, TextFormatter, subscribe
from penstock.model.stack import TRACEBACK_MAX, normalised, place_of, rendered
from penstock.queues.queue import Queue
from penstock.runtime.events import ItemFailed, MessageFailed, TickFailed
from penstock.testing import TestApp, virtual
from penstock.workflows.executor import RunFailed
from tests.flow.research import Lab
from tests.flow.shop import Listing
from tests.flow.test_trace import traced

RATES = {"EUR": 1.0}


def converted(currency: str) -> float:
    return RATES[currency]  # the line that fails


def failing_line() -> int:
    return converted.__code__.co_firstlineno + 1


def failing_app() -> tuple[ps.App, Queue[Listing]]:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, retries=1)

    @listings.handler
    async def handle(listing: Listing) -> None:
        converted(listing.name)

    return app, listings


@pytest.mark.spec("A3-04")
@virtual
async def test_a_dead_letter_keeps_the_traceback_of_the_handler() -> None:
    app, listings = failing_app()
    failed: list[MessageFailed] = []
    app.events.subscribe(failed.append, to=MessageFailed)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="GBP"))
        await shop.advance(hours=1)
        [letter] = await shop.dead(listings)

        here = f"test_tracebacks.py:{failing_line()}"
        assert place_of(letter.traceback) == here
        assert "return RATES[currency]" in (letter.traceback or "")
        assert "src/penstock/" not in (letter.traceback or "")
        assert [event.facts()["place"] for event in failed] == [here, here]
        assert failed[0].line() == f"listings:handle: KeyError: 'GBP' at {here} (attempt 1, next in 30 s)"
        assert failed[1].line().endswith("(attempt 2, it is not retried)")
        # The same class that `app.dead` knows: its number can be given back.
        assert await app.dead.replay(letter.id) == 1


@virtual
async def test_a_message_that_waits_for_its_next_attempt_says_where_it_failed() -> None:
    app, listings = failing_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="GBP"))
        await shop.advance(seconds=1)
        [text] = await app.db.column("select traceback from penstock_messages")
        assert place_of(text) == f"test_tracebacks.py:{failing_line()}"


@virtual
async def test_a_step_and_a_run_keep_their_tracebacks() -> None:
    lab = Lab()

    async def inner() -> None:
        converted("CHF")

    @lab.app.workflow
    async def between(_run: ps.Run) -> None:
        converted("USD")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("inner", inner, retries=0)

    async with TestApp(lab.app) as test:
        async with test.unit():
            research.start()
            between.start()
        await test.advance(minutes=5)
        for table in ("penstock_steps", "penstock_runs"):
            texts = [text for text in await lab.app.db.column(f"select traceback from {table}") if text]
            assert f"test_tracebacks.py:{failing_line()}" in [place_of(text) for text in texts]


@virtual
async def test_an_item_of_a_controller_reports_and_keeps_its_traceback() -> None:
    app = ps.App("shop")
    failed: list[ItemFailed] = []
    app.events.subscribe(failed.append, to=ItemFailed)

    @app.controller("prices")
    class Prices(ps.Controller[str]):
        async def pick(self, limit: int) -> list[str]:
            return ["SEK"]

        async def work(self, item: str) -> None:
            converted(item)

    async with TestApp(app) as test:
        await test.advance(seconds=30)
        [text] = await app.db.column("select error from penstock_items")

    here = f"test_tracebacks.py:{failing_line()}"
    assert text.startswith(f"KeyError: 'SEK' at {here}\n")
    assert "return RATES[currency]" in text
    assert failed[0].line() == f"controller prices, item \"SEK\": KeyError: 'SEK' at {here} (attempt 1, next in 60 s)"
    assert failed[0].facts()["place"] == here


class Bell(ps.Object):
    async def ring(self) -> None:
        self.set_alarm(after=1)

    async def alarm(self) -> None:
        converted("NOK")


@virtual
async def test_an_alarm_keeps_the_traceback_in_its_event_and_its_dead_letter() -> None:
    app = ps.App("shop")
    bells = app.object(Bell)
    failed: list[MessageFailed] = []
    app.events.subscribe(failed.append, to=MessageFailed)
    async with TestApp(app) as test:
        await bells["tower"].ring()
        await test.advance(hours=1)
        [letter] = await app.dead.list()

    here = f"test_tracebacks.py:{failing_line()}"
    assert {event.facts()["place"] for event in failed} == {here}
    assert place_of(letter.traceback) == here


def test_causes_are_chained_bounded_and_without_secrets() -> None:
    def deep(number: int) -> None:
        if number == 0:
            raise ValueError("password=hunter2hunter2")
        deep(number - 1)

    try:
        try:
            deep(200)
        except ValueError as error:
            raise OSError("after that") from error
    except OSError as error:
        text = rendered(error) or ""

    assert len(text) <= TRACEBACK_MAX + 3
    assert "which led to:" in text
    assert text.endswith("OSError: after that")
    assert "hunter2" not in text
    assert rendered(ValueError("never raised")) is None


@pytest.mark.parametrize(
    "message, pattern",
    [
        ("'GBP'", "'...'"),
        ("page 17 of `x` took 0x7fa6cd67", "page N of '...' took N"),
        ("no run 019a8c3e-7f00-7abc-8def-0123456789ab", "no run N"),
        ("plain words stay", "plain words stay"),
    ],
)
def test_messages_of_one_cause_are_the_same_once_their_values_are_gone(message: str, pattern: str) -> None:
    assert normalised(message) == pattern


@virtual
async def test_a_terminal_shows_a_failure_in_one_line_and_a_program_all_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app, listings = failing_app()
    leave = subscribe(app.events)
    with caplog.at_level(logging.INFO, "penstock"):
        async with TestApp(app) as shop:
            await shop.send(listings, Listing(name="GBP"))
            await shop.advance(seconds=1)
    leave()
    [record] = [each for each in caplog.records if each.getMessage() == "message.failed"]

    line = TextFormatter().format(record)
    assert line.endswith(
        f"message.failed listings:handle: KeyError: 'GBP' at test_tracebacks.py:{failing_line()} (attempt 1, next in 30 s)"
    )
    assert "return RATES[currency]" in TextFormatter(verbose=True).format(record)
    assert "return RATES[currency]" in JsonFormatter().format(record)


@virtual
async def test_a_failed_cron_task_and_a_failed_run_are_one_line_with_the_place() -> None:
    lab = Lab()
    failed: list[TickFailed | RunFailed] = []
    lab.app.events.subscribe(failed.append, to=TickFailed)
    lab.app.events.subscribe(failed.append, to=RunFailed)

    @lab.app.cron("*/5 * * * *", reason="charts move slowly")
    async def crawl() -> None:
        converted("GBP")

    @lab.app.workflow
    async def research(_run: ps.Run) -> None:
        converted("USD")

    async with TestApp(lab.app) as test:
        async with test.unit():
            research["usd"].start()
        await test.advance(minutes=5)
        [kept] = await lab.app.db.column("select error from pipeline_log")

    here = f"test_tracebacks.py:{failing_line()}"
    assert sorted(event.line() for event in failed) == [
        f"crawl: KeyError: 'GBP' at {here}",
        f"research usd: KeyError: 'USD' at {here}",
    ]
    assert [event.facts()["place"] for event in failed] == [here, here]
    assert kept == f"KeyError: 'GBP' at {here}"


@virtual
async def test_a_trace_names_the_place_of_each_failed_delivery() -> None:
    app, listings = failing_app()
    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="GBP"))
        await shop.advance(minutes=10)
        found = await traced(shop, id)

    here = f"test_tracebacks.py:{failing_line()}"
    assert {event.error for event in found.events} == {f"KeyError: 'GBP' at {here}"}
