"""The demo's run: portals, people and their searches, and an operator who answers alerts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import penstock as ps
from penstock.channels import Channel, Flight, Notice, Outcome
from penstock.connect import DeclaredConnector
from penstock.testing import TestApp
from penstock_systems.rentals import searches
from penstock_systems.rentals.app import add_sources, app, channels, web
from penstock_systems.rentals.searches import Filter, NewSearch
from penstock_systems.rentals.settings import Notify, Settings
from penstock_systems.standins.rentals import HOSTS, City, Portals, make_city, make_portals, portals_of

START = datetime(2026, 11, 2, 6, 0, tzinfo=UTC)
EURO = {"fields": {"currency": {"value": "EUR"}}}
SOURCES: dict[str, dict[str, Any]] = {
    "yad2": EURO | {"params": {"city": 5000, "region": None}},  # as before the portal asked for one
    "stockholm": EURO,
    "rentcast": EURO,
    "olx": {},
    "kijiji": EURO,
}
REPAIRED_AFTER = timedelta(hours=12)  # an operator reads the alert, and adapts the connector
PEOPLE = {
    "couple": NewSearch(
        name="Two rooms",
        person="ann",
        filter=Filter(min_rooms=2, max_rooms=2.5, max_price=1_100),
        notify=Notify(channel="inbox"),
    ),
    "centre": NewSearch(
        name="Near the station",
        person="ben",
        filter=Filter(near=(50.07, 19.97, 2.5), max_price=1_500, min_area=45),
        notify=Notify(channel="inbox", quiet_from="22:00", quiet_to="07:00"),
    ),
    "family": NewSearch(
        name="For a family",
        person="eva",
        filter=Filter(min_rooms=3.5, max_price=1_800),
        notify=Notify(channel="inbox", digest_at="18:00"),
    ),
}


class Inbox(Channel):
    """Keeps what people get."""

    name = "inbox"

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.messages: list[tuple[int, Notice]] = []

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        self.messages.append((self._now(), notice))
        return Outcome("sent")


@dataclass(slots=True)
class Course:
    """What happened: the portals with their truth, and what the app reported."""

    city: City
    portals: Portals
    inbox: Inbox
    alerts: list[tuple[float, ps.Alert]] = field(default_factory=list)  # hour, alert
    changed_seen: float | None = None  # hour of the alert that yad2 has changed

    def hour(self, text: str) -> float:
        """Return the hour of a stored time."""
        return (datetime.fromisoformat(text).replace(tzinfo=UTC) - START).total_seconds() / 3_600


def prepare(seed: int, flats: int, days: float, now: Callable[[], float]) -> Course:
    """Set up the fake portals, the sources and the inbox; before the app is opened."""
    city = make_city(seed, flats, days)
    portals = make_portals(now, city=city, begins=START.timestamp())
    for host in HOSTS:
        web.mount(host, portals)
    inbox = Inbox(lambda: round(now() * 1_000_000))
    channels["inbox"] = inbox
    course = Course(city, portals_of(portals), inbox)
    if not app.sources.sources:
        add_sources(Settings(sources=SOURCES))
    app.sinks.clear()

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        course.alerts.append((course.portals.hour, alert))

    return course


async def begin(running: TestApp) -> None:
    """Save the searches of three people before anything is collected."""
    async with running.unit():
        for id, search in PEOPLE.items():
            await searches.create(search, id)


def operate(course: Course, environment: dict[str, str]) -> None:
    """Do what an operator would: after an alert, adapt the connector of yad2, and set the new key of rentcast."""
    for hour, alert in course.alerts:
        named = alert.condition or ""
        if alert.kind != "condition.raised" or course.portals.hour < hour:
            continue
        late = course.portals.hour - hour >= REPAIRED_AFTER.total_seconds() / 3_600
        if named.startswith("source yad2: c") and hour >= course.portals.course.region_needed_from:
            course.changed_seen = hour if course.changed_seen is None else min(course.changed_seen, hour)
            if late:
                _adapt("yad2", EURO | {"params": {"city": 5000, "region": 3}})
        if named.startswith("source rentcast: errors") and late:
            environment["RENTCAST_KEY"] = "fake-2"


def _adapt(name: str, words: dict[str, Any]) -> None:
    source = app.sources.sources[name]
    connector = source.connector
    assert isinstance(connector, DeclaredConnector)
    if connector.spec.params != words["params"]:
        [spec] = Settings(sources={name: words}).specs()
        source.connector = DeclaredConnector(spec)
