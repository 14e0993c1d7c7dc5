"""The app of the rentals: its database, its settings, its sources, its channels."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import structs

import penstock as ps
from penstock.channels import Channel, make_channel
from penstock.connect import Change
from penstock_systems.rentals.settings import SHIPPED, Settings

app = ps.App("rentals", file="rentals.db")
db = app.db
settings = Settings.of(app.config.systems)
web = app.http(user_agent=settings.user_agent, rules=ps.Rules(allow=settings.allow))
app.collector(settings.collect, parallel=settings.parallel, budget=settings.budget)


class ListingsChanged(ps.Event, type="listings.changed"):
    """These listings are new, changed, gone or back."""

    changes: list[tuple[str, str, bool]]  # id, kind, whether it is the first run of the source


# In order by one key: a message is handled after the commit of the one before it, on whichever worker that was.
listings_changed = app.queue(
    "listings",
    ListingsChanged,
    parallel=1,
    reason="listings of two messages may be one home",
    order_by=lambda event: "homes",
    retries=5,
)


def make_channels() -> dict[str, Channel]:
    """Return the channels of `[channels]` in penstock.toml, by name."""
    return {
        name: make_channel(config, web, trust_apprise=app.config.trust_apprise)
        for name, config in app.config.channels.items()
    }


channels = make_channels()


async def save_changes(changes: Sequence[Change]) -> None:
    from penstock_systems.rentals.listings import save

    await save(changes)


def add_sources(chosen: Settings) -> None:
    """Register the sources of these settings; where none is named, those that ship, but only with fake servers."""
    if os.environ.get("PENSTOCK_STANDINS"):
        os.environ.setdefault("RENTCAST_KEY", "fake")
        if not chosen.sources:
            chosen = structs.replace(chosen, sources={name: {} for name in SHIPPED})
    for spec in chosen.specs():
        app.connector(spec, http=web).handler(save_changes)


__all__ = ["SHIPPED", "add_sources", "app", "channels", "db", "settings", "web"]
