"""The whole system: imports everything that declares a source, a task or a route."""

from __future__ import annotations

from penstock_systems.rentals import homes, listings, pages, routes, sending, standing_in
from penstock_systems.rentals.app import add_sources, app, settings

add_sources(settings)

__all__ = ["app", "homes", "listings", "pages", "routes", "sending", "standing_in"]
