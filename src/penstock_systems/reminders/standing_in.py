"""The fake servers that take the place of Resend and of receivers: `--standins`."""

from __future__ import annotations

import os
from collections.abc import Callable

from starlette.applications import Starlette

from penstock_systems.reminders.app import RESEND_KEY, app, web
from penstock_systems.standins.notifications import make_servers
from penstock_systems.standins.notifications.server import HOSTS

FAKE_KEY = "re_fake"


def make(now: Callable[[], float]) -> Starlette:
    return make_servers(now)


if os.environ.get("PENSTOCK_STANDINS"):
    os.environ.setdefault(RESEND_KEY, FAKE_KEY)  # what the fake Resend asks for

app.stand_in(web, *HOSTS, make=make, module="penstock_systems.standins.notifications")
