"""The fake portals that take the place of the real ones: `--standins`."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette

from penstock_systems.rentals.app import app, web
from penstock_systems.standins.rentals.server import HOSTS, make_portals


def make(now: Callable[[], float]) -> Starlette:
    return make_portals(now)


app.stand_in(web, *HOSTS, make=make, module="penstock_systems.standins.rentals")
