"""The fake servers that can take the place of the providers: `--standins`."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette

from penstock_systems.gateway.app import STAND_IN_KEY, app, settings, web
from penstock_systems.standins.paid import make_paid


def make(now: Callable[[], float]) -> Starlette:
    """Chats and searches at no price."""
    return make_paid(now, key=STAND_IN_KEY)


app.stand_in(
    web,
    *sorted({each.base_url.removesuffix("/v1") for each in settings.providers.values()}),
    make=make,
    module="penstock_systems.standins.paid",
)
