"""Alerts: a person is told of every death with the facts; a sink that fails is tried again and holds nothing up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.alerts.telling import PENDING_MAX
from penstock.channels import Resend, Slack
from penstock.config import parse
from penstock.queues.queue import Queue
from penstock.testing import TestApp, attempt, virtual
from penstock_systems.standins.notifications import Faults, make_servers
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app


def alerting_app() -> tuple[ps.App, Queue[Listing], list[ps.Alert]]:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if listing.name == "killer":
            raise AssertionError("never reached")
        raise OSError(listing.name)

    app, listings = shop_app(handle)
    alerts: list[ps.Alert] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        alerts.append(alert)

    return app, listings, alerts


@pytest.mark.spec("A3-05", "A3-03")
@virtual
async def test_an_alert_tells_attempts_queue_type_source_and_id_under_the_labels_of_the_monitor() -> None:
    app, listings, alerts = alerting_app()
    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=3)
        assert alerts == []
        await shop.advance(minutes=57)

        [alert] = alerts
        for fact in ("4 attempts", "listings", "listing", "shop", id):
            assert fact in alert.text
        assert (alert.machine, alert.agent, alert.kind) == ("dlq-monitor", "queue-monitor", "message.died")
        told = {name: alert.facts[name] for name in ("attempts", "queue", "type", "source", "id")}
        assert told == {"attempts": 4, "queue": "listings", "type": "listing", "source": "shop", "id": id}


@pytest.mark.spec("A3-03", "A12-07", "G2-31")
@virtual
async def test_a_sink_that_raises_is_tried_again_and_holds_up_neither_the_letter_nor_the_other_sinks() -> None:
    app, listings, alerts = alerting_app()
    mended: list[str] = []
    is_down = True

    @app.on_alert
    async def mail(alert: ps.Alert) -> None:
        if is_down:
            raise ConnectionError("no network")
        mended.append(alert.id)

    async with TestApp(app) as shop:
        for name in "abc":
            await shop.send(listings, Listing(name=name))
        await shop.advance(minutes=4)
        assert (await shop.counts(listings)).dead == 3
        assert len(alerts) == 3, "the other sink was told at once"
        assert mended == []

        await shop.kill()
        is_down = False
        await shop.advance(hours=1)
        assert sorted(mended) == sorted(alert.id for alert in alerts), "one alert has one id at every sink"
        assert len(alerts) == 3, "who was told is not told again"


@pytest.mark.spec("A12-07")
@virtual
async def test_an_alert_that_no_sink_takes_becomes_a_dead_letter_and_no_alert() -> None:
    app, listings, alerts = alerting_app()

    @app.on_alert
    async def mail(_alert: ps.Alert) -> None:
        raise ps.Refused("no such mailbox")

    @app.on_alert
    async def chat(_alert: ps.Alert) -> None:
        raise OSError("never there")

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(days=1)
        letters = await shop.dead(app.queues["penstock.alerts"])
        assert {letter.reason for letter in letters} == {"permanent", "exhausted"}
        assert len(alerts) == 1


@pytest.mark.spec("A3-03")
@virtual
async def test_a_sink_that_never_answers_keeps_no_worker_from_going_on_or_stopping() -> None:
    app, listings, _ = alerting_app()

    @app.on_alert
    async def hang(_alert: ps.Alert) -> None:
        await asyncio.Event().wait()

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=211)
        assert (await shop.counts(listings)).dead == 1
        await shop.send(listings, Listing(name="b"))
        before = len(shop.delivered(listings))
        await shop.restart()
        await shop.drain()
        assert shop.delivered(listings)[before] == attempt(1)


@virtual
async def test_a_flood_of_deaths_is_reported_as_a_number() -> None:
    told: list[ps.Alert] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        raise ps.Permanent(listing.name)

    app, listings = shop_app(handle)

    @app.on_alert
    async def slow(alert: ps.Alert) -> None:
        await asyncio.sleep(5)
        told.append(alert)

    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(3 * PENDING_MAX):
                listings.send(Listing(name=str(number)))
        await shop.advance(minutes=5)

        assert len(told) == PENDING_MAX + 1
        assert told[-1].facts["left_out"] == 2 * PENDING_MAX
        assert "200 more alerts" in told[-1].text


@pytest.mark.spec("A3-03", "A3-05")
@virtual
async def test_a_message_that_kills_its_worker_is_reported_by_the_next_one() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if listing.name == "killer":
            shop.die()
        raise ps.Permanent("no")

    app, listings = shop_app(handle)
    alerts: list[ps.Alert] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        alerts.append(alert)

    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="killer"))
        await shop.advance(minutes=5)
        assert {(alert.facts["id"], alert.facts["reason"]) for alert in alerts} == {(id, "worker_died")}
        assert "listing from shop became a dead letter of listings" in alerts[0].text

        other = await shop.send(listings, Listing(name="other"))
        await shop.advance(minutes=5)
        assert {alert.facts["id"] for alert in alerts} == {id, other}


@pytest.mark.spec("A3-03", "A3-05")
@pytest.mark.parametrize("how", ["given back", "lapsed"])
@virtual
async def test_a_message_that_dies_outside_is_reported_too(how: str) -> None:
    app, _, alerts = alerting_app()
    photos: ps.Queue[Any] = app.queue("photos", retries=0)
    async with TestApp(app) as shop:
        await shop.send(photos, Photo(name="a"))
        desk = await app.desk()
        [pulled] = await desk.pull("photos", limit=1, lease_seconds=30)
        if how == "given back":
            await desk.settle("photos", acks=[], retries=[(pulled.lease_id, None)])
        else:
            await shop.advance(hours=1)
            assert await desk.pull("photos", limit=1, lease_seconds=30) == []
        await shop.advance(minutes=1)

        assert (await shop.counts(photos)).dead == 1
        assert len(alerts) == 1


@virtual
async def test_without_a_sink_deaths_cost_nothing_and_handlers_go_on() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what=listing.name)
        if listing.name == "bad":
            raise ps.Permanent("no")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        for name in ("bad", "good"):
            await shop.send(listings, Listing(name=name))
        await shop.drain()
        assert await effects(app) == ["good"]


@pytest.mark.spec("A12-07", "G2-31")
@virtual
async def test_a_channel_gets_an_alert_with_one_key_until_its_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESEND_API_KEY", "re_fake")
    app, _ = shop_app()
    web = app.http()
    app.on_alert(Resend(web, sender="a@example.org", to="team@example.org"))
    async with TestApp(app) as shop:
        servers = make_servers(lambda: shop.now.timestamp(), faults=Faults(lost=0.5, failed=0.5, rate=1_000))
        web.mount("https://api.resend.com", servers)
        for number in range(10):
            await app.alert(f"source-{number}", "The source is down", "It answers 503")
        await shop.advance(hours=3)

        arrived = servers.state.arrivals.all
        assert len(arrived) == len({each["key"] for each in arrived}) == 10
        assert await shop.dead(app.queues["penstock.alerts"]) == []


@virtual
async def test_a_channel_without_its_secret_logs_the_alert(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)
    app, _ = shop_app()
    app.on_alert(Slack(app.http()))
    async with TestApp(app) as shop:
        await app.alert("source", "The source is down", "It answers 503")
        await shop.advance(minutes=1)
    assert "No alert is sent by slack without SLACK_WEBHOOK_URL: The source is down" in caplog.text


@virtual
async def test_a_channel_of_the_settings_that_asks_for_alerts_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESEND_API_KEY", "re_fake")
    given = """
        [channels.ops]
        kind = "resend"
        sender = "a@example.org"
        to = "ops@example.org"
        alerts = true

        [channels.people]
        kind = "slack"
    """
    app = ps.App("settled", config=parse(given, "penstock.toml"))
    [sink] = app.sinks
    assert isinstance(sink, Resend)
    async with TestApp(app) as running:
        servers = make_servers(lambda: running.now.timestamp(), faults=Faults(lost=0.0, failed=0.0, rate=1_000))
        sink._http.mount("https://api.resend.com", servers)
        await app.alert("source", "The source is down", "It answers 503")
        await running.advance(minutes=1)
        [arrived] = servers.state.arrivals.all
        assert "ops@example.org" in str(arrived)
