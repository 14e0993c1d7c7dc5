"""The stand-in that can take the store's place: `--standins`."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette

from penstock_systems.appstore.app import app, settings, web
from penstock_systems.standins.appstore import Catalogue, Manners, make_store

APPS, MARKETS, SEED = 240, 4, 1


def make(now: Callable[[], float]) -> Starlette:
    """A small store that takes its time, and as many requests as anybody has for it."""
    return make_store(Catalogue(APPS, MARKETS, SEED), now, Manners(limits={}))


app.stand_in(
    web,
    settings.bases.itunes,
    settings.bases.search,
    settings.bases.apps,
    make=make,
    module="penstock_systems.standins.appstore",
)
