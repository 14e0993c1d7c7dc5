"""Conditions: what stays the same is told once, what changes is told, and so is its end, whoever restarts when."""

from __future__ import annotations

import asyncio

import pytest

import penstock as ps
from penstock.alerts.telling import ALERTS_A_DAY_MAX, DAY, HOUR, is_due
from penstock.testing import TestApp, virtual
from tests.flow.crons import START
from tests.flow.shop import EFFECT, Listing, effects, shop_app

DEGRADED = "[Pipeline] Data quality degraded: 2 fields"


class Watched:
    """An app with a sink that keeps what it is told."""

    def __init__(self) -> None:
        self.app = ps.App("shop")
        self.told: list[tuple[str, str]] = []
        self.alerts: list[ps.Alert] = []
        self.app.on_alert(self.page)

    async def page(self, alert: ps.Alert) -> None:
        self.alerts.append(alert)
        self.told.append((alert.kind.partition(".")[2], alert.title))


@pytest.mark.spec("A12-07", "G2-31")
@virtual
async def test_a_daily_job_that_finds_the_same_twice_tells_it_once() -> None:
    watched = Watched()

    @watched.app.cron("0 6 * * *", reason="daily")
    async def look() -> None:
        await watched.app.alert("data-quality", DEGRADED, "languages 12 %, similar 30 %")

    async with TestApp(watched.app, start=START) as shop:
        await shop.advance(days=1)
        assert watched.told == [("raised", DEGRADED)]
        await shop.restart()
        await shop.advance(days=1)
        assert watched.told == [("raised", DEGRADED)], "told again on the second day"
        [alert] = watched.alerts
        assert (alert.condition, alert.subject, alert.text) == (
            "data-quality",
            DEGRADED,
            "languages 12 %, similar 30 %",
        )

        await shop.advance(days=28)
        assert len(watched.told) == 6, "it is called to mind on days 3, 6, 11, 19 and 27"


@pytest.mark.spec("A12-07")
@virtual
async def test_what_changes_is_reported_at_once_and_what_is_over_once() -> None:
    watched = Watched()
    app = watched.app
    async with TestApp(app) as shop:
        assert await app.recovered("source") is False, "nobody was told that it was bad"
        assert await app.alert("source", "Source down", "no answer") is True
        assert await app.alert("source", "Source down", "no answer") is False
        assert await app.alert("source", "Source down", "now it answers 500") is True
        assert await app.alert("other", "Source down", "no answer") is True, "conditions do not know each other"
        assert await app.recovered("source") is True
        assert await app.recovered("source") is False
        await shop.drain()
        assert sorted(watched.told) == [
            ("raised", "Source down"),
            ("raised", "Source down"),
            ("raised", "Source down"),
            ("recovered", "Recovered: Source down"),
        ]
        assert await app.alert("source", "Source down", "no answer") is True, "it is bad again"
        assert await app.recovered("source", "The source is back", "after 3 minutes") is True
        await shop.drain()
        assert watched.told[-1] == ("recovered", "The source is back")
        assert watched.alerts[-1].text == "after 3 minutes"


@virtual
async def test_with_a_key_only_the_key_tells_one_condition_from_another() -> None:
    watched = Watched()
    app = watched.app
    async with TestApp(app):
        assert await app.alert("quality", "Degraded", "languages 12.1 %", key="languages")
        assert not await app.alert("quality", "Degraded", "languages 11.9 %", key="languages")
        assert await app.alert("quality", "Degraded", "languages 11.9 %, similar 3 %", key="languages similar")


@pytest.mark.spec("A12-07")
@virtual
async def test_one_that_comes_and_goes_all_day_causes_no_flood() -> None:
    watched = Watched()
    app = watched.app
    async with TestApp(app) as shop:
        for _ in range(100):
            await app.alert("flapping", "Down", "no answer")
            await app.recovered("flapping")
            await shop.advance(minutes=5)
        assert watched.told.count(("raised", "Down")) == ALERTS_A_DAY_MAX
        assert len(watched.told) == 2 * ALERTS_A_DAY_MAX, "who was not told that it is bad is not told that it is good"
        await shop.advance(days=1)
        assert await app.alert("flapping", "Down", "no answer")


@pytest.mark.spec("A12-07")
@virtual
async def test_many_handlers_that_find_the_same_at_once_tell_it_once() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(0.1)
        await app.alert("store", "The store is closed", "403 everywhere")
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle, parallel=20)
    told: list[str] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        told.append(alert.title)

    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(20):
                listings.send(Listing(name=str(number)))
        await shop.drain()
        assert told == ["The store is closed"]
        assert len(await effects(app)) == 20


@pytest.mark.spec("A12-07")
@virtual
async def test_an_alert_outlives_the_handler_that_failed_after_it_and_a_repeat_does_not_tell_it_again() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        number = len(shop.delivered(listings))
        await app.alert("parser", "The parser fails", f"attempt {number}")
        raise OSError("and so does the handler")

    app, listings = shop_app(handle, retries=2)
    told: list[str] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        if alert.condition is not None:
            told.append(alert.text)

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(hours=1)
        assert told == ["attempt 1", "attempt 2", "attempt 3"], "each of them says something else"


@pytest.mark.fault("F01")
@pytest.mark.parametrize("point", ["unit.sealed", "commit.before", "commit.after", "commit.known"])
@virtual
async def test_a_crash_around_the_alert_neither_loses_nor_doubles_it(point: str) -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        await app.alert("store", "The store is closed", "403 everywhere")

    app, listings = shop_app(handle)
    told: list[str] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        told.append(alert.id)

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.crash(at=point, nth=2)
        await shop.advance(minutes=10)
        assert len(set(told)) == 1, "a sink may be called twice around a crash, under one id"
        assert (await shop.counts(listings)).acked == 1


@virtual
async def test_without_a_sink_an_alert_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    app = ps.App("shop")
    async with TestApp(app):
        assert await app.alert("disk", "The disk fills up", "91 %") is False
        assert await app.recovered("disk") is False
        assert "disk: The disk fills up: 91 %" in caplog.text
        assert list(app.queues) == []


@pytest.mark.parametrize(
    "title, text",
    [
        ("\x1b[31mred\r\nBcc: everybody", "\0\u202e<script>\U0001f600 =1+1"),
        ("", ""),
        ("x" * 10_000, "y" * 100_000),
        ("half \ud800", "a character"),
    ],
)
@virtual
async def test_hostile_words_are_printed_in_one_line_and_within_bounds(title: str, text: str) -> None:
    watched = Watched()
    async with TestApp(watched.app) as shop:
        await watched.app.alert("odd", title, text)
        await shop.drain()
        [alert] = watched.alerts
        assert "\n" not in alert.subject
        assert "\r" not in alert.subject
        assert len(alert.subject) <= 200
        assert len(alert.text) <= 8_000


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "x" * 201])
@virtual
async def test_a_name_that_cannot_be_kept_is_refused(name: str) -> None:
    watched = Watched()
    async with TestApp(watched.app):
        with pytest.raises(ps.PenstockError):
            await watched.app.alert(name, "title", "text")


def test_two_sinks_of_one_name_are_distinguished() -> None:
    app = ps.App("shop")
    for _ in range(3):

        @app.on_alert
        async def page(_alert: ps.Alert) -> None: ...

    handlers = app.queues["penstock.alerts"].handlers["penstock.alert"]
    assert [handler.name for handler in handlers] == ["page", "page#2", "page#3"]


@pytest.mark.parametrize(
    "told_at, is_open, same, repeats, expected",
    [
        ([], False, False, 0, True),
        ([0], True, True, 0, False),
        ([-DAY], True, True, 0, False),  # a day later, to the second
        ([-DAY - HOUR], True, True, 0, True),
        ([-DAY - HOUR], True, True, 1, False),
        ([-2 * DAY - HOUR], True, True, 1, True),
        ([-7 * DAY - HOUR], True, True, 50, True),
        ([0], True, False, 0, True),
        ([0], False, True, 0, True),
        ([0] * ALERTS_A_DAY_MAX, True, False, 0, False),
        ([-DAY] * ALERTS_A_DAY_MAX, True, False, 0, True),
    ],
)
def test_when_a_condition_is_reported(
    told_at: list[int], is_open: bool, same: bool, repeats: int, expected: bool
) -> None:
    now = 1_790_000_000_000_000
    times = [now + at for at in told_at]
    assert is_due(times, is_open=is_open, same=same, repeats=repeats, now=now) is expected
