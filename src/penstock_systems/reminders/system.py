"""The whole system: imports everything that declares a task or a route."""

from __future__ import annotations

from penstock_systems.reminders import deliver, links, pages, routes, standing_in, trial
from penstock_systems.reminders.app import app

__all__ = ["app", "deliver", "links", "pages", "routes", "standing_in", "trial"]
