"""The fake servers that take the place of what the brand system calls: `penstock run brand --standins`."""

from __future__ import annotations

from penstock_systems.brand.app import app, reader, settings, web
from penstock_systems.standins.publishing import PAGES, make_world

app.stand_in(
    web,
    *sorted({settings.gateway, *(each.base_url for each in settings.networks.values())}),
    make=make_world,
    module="penstock_systems.standins.publishing",
)
app.stand_in(reader, PAGES, make=make_world, module="penstock_systems.standins.publishing")
