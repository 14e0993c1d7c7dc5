"""The whole gateway: its routes and its fake servers."""

from __future__ import annotations

from penstock_systems.gateway import chat, operations, pages, routes, standing_in
from penstock_systems.gateway.app import app

__all__ = ["app", "chat", "operations", "pages", "routes", "standing_in"]
