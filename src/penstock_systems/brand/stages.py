"""The whole brand system: its services, their routes and the coordinator."""

from __future__ import annotations

from penstock_systems.brand import pages, standing_in
from penstock_systems.brand.app import app, brain, hands
from penstock_systems.brand.gatherfeed import research
from penstock_systems.brand.gatherfeed import routes as research_routes
from penstock_systems.brand.pages_plus import publishing
from penstock_systems.brand.scalable_media import audit, content, coordinator, routes, routing
from penstock_systems.brand.social_good import posting
from penstock_systems.brand.social_good import routes as post_routes

__all__ = [
    "app",
    "audit",
    "brain",
    "content",
    "coordinator",
    "hands",
    "pages",
    "post_routes",
    "posting",
    "publishing",
    "research",
    "research_routes",
    "routes",
    "routing",
    "standing_in",
]
