"""Fake portals over a generated city, whose truth is known: what a collector should find, join and notify."""

from __future__ import annotations

from penstock_systems.standins.rentals.city import Ad, City, Flat, make_city
from penstock_systems.standins.rentals.server import HOSTS, Portals, make_portals, portals_of

__all__ = ["HOSTS", "Ad", "City", "Flat", "Portals", "make_city", "make_portals", "portals_of"]
