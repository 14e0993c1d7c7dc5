"""The people of the demonstration and their reminders, drawn from a seed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from penstock_systems.reminders.people import Person
from penstock_systems.reminders.reminders import NewReminder
from penstock_systems.standins.notifications import CHARACTERS, Faults, Times

START = datetime(2026, 3, 9, tzinfo=UTC)
DAYS = int(os.environ.get("DAYS") or 28)
LEAP = datetime(2026, 3, 29, tzinfo=UTC)  # clocks in Europe go forward
PEOPLE = 60
REMINDERS = 400
KILLS = int(os.environ.get("KILLS") or 20)
HOOKS = "https://hooks.example.com/hooks"
BOUNCING = "bounces@example.org"
ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "Europe/Warsaw",
    "Europe/Lisbon",
    "Asia/Jerusalem",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "America/New_York",
    "America/Sao_Paulo",
    "Australia/Sydney",
    "Africa/Cairo",
    "UTC",
)
WHAT = (
    "Pay the rent",
    "Call the bank",
    "Water the plants",
    "Renew the domain",
    "Send the invoice",
    "Stand up",
    "Backup",
)
FAULTS = Faults(
    rate=2.0, lost=0.01, lost_seconds=11.0, failed=0.005, bouncing=frozenset({BOUNCING}), bounce_seconds=600.0
)
TIMES = Times(seconds=0.05)  # broken for two hours of day 5, gone after day 3, a wrong clock on days 6 and 7
CHATS_LOST = 0.03


def people(seed: int) -> Iterator[tuple[str, Person]]:
    """Sixty people in twelve zones; some sleep undisturbed, and some want one mail a day."""
    random = Random(f"people {seed}")
    for number in range(PEOPLE):
        given: dict[str, Any] = {"zone": ZONES[number % len(ZONES)]}
        given["email"] = BOUNCING if number == 3 else f"person{number}@example.org"
        if number % 4 == 1:
            given |= {"quiet_from": "22:00", "quiet_to": "07:00"}
        if number % 10 == 4:
            given["digest_at"] = f"{random.randrange(6, 10):02}:00"
        yield f"person{number}", Person(**given)


def reminders(seed: int) -> Iterator[NewReminder]:
    """Four hundred reminders: by mail, by webhook, by both, by chat; once, daily and weekly."""
    random = Random(f"reminders {seed}")
    for number in range(REMINDERS):
        who = number % PEOPLE
        zone = ZONES[who % len(ZONES)]
        day = START + timedelta(days=random.randrange(27), hours=random.randrange(24))
        at = day.replace(minute=random.choice((0, 15, 30, 45)))
        given: dict[str, Any] = {"title": f"{random.choice(WHAT)} ({number})", "user": f"person{who}", "zone": zone}
        given |= {"key": f"demo {number}", "at": f"{at:%Y-%m-%dT%H:%M}", "body": "Until the end of the day."}
        kind = number % 20
        if kind == 0:  # at a time that does not exist on the day of the leap
            given |= {"rule": {"every": "1 day"}, "at": "2026-03-09T02:30"}
        elif kind in (1, 2):
            given |= {"rule": {"cron": f"0 {random.randrange(7, 19)} * * 1-5"}, "at": "2026-03-09T00:00"}
        elif kind in (3, 4):
            given |= {
                "rule": {"rrule": f"FREQ=WEEKLY;BYDAY={random.choice(('MO', 'WE', 'SU'))}"},
                "at": "2026-03-09T09:00",
            }
        elif kind in (5, 6, 7, 8):
            character = CHARACTERS[number // 20 % len(CHARACTERS)]
            given |= {"webhook": f"{HOOKS}/{character}/hook{number}", "channels": ["webhook"]}
            given |= {"rule": {"every": "1 day"}} if kind < 7 else {}
        elif kind in (9, 10):
            character = CHARACTERS[number // 10 % len(CHARACTERS)]
            given |= {"webhook": f"{HOOKS}/{character}/hook{number}", "channels": ["email", "webhook"]}
        elif kind in (11, 12):
            given |= {"channels": ["telegram"], "chat": f"chat{who}"}
            given |= {"rule": {"every": "2 days"}} if kind == 11 else {}
        elif kind == 13:
            given |= {"nag_every": "1h", "nag_times": 2}
        elif kind == 14:
            given |= {"urgent": True}
        yield NewReminder(**given)
