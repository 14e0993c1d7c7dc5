"""A stand-in for Apple's App Store: a seeded catalogue behind Apple's paths, shapes, limits and oddities."""

from __future__ import annotations

from penstock_systems.standins.appstore.app import FIRST_DAY, App
from penstock_systems.standins.appstore.book import Book, Minute
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.manners import Fault, Limit, Manners
from penstock_systems.standins.appstore.markets import Market
from penstock_systems.standins.appstore.store import Store, make_store, store_of
from penstock_systems.standins.appstore.truth import Truth, market_of, write_truth

__all__ = [
    "FIRST_DAY",
    "App",
    "Book",
    "Catalogue",
    "Fault",
    "Limit",
    "Manners",
    "Market",
    "Minute",
    "Store",
    "Truth",
    "make_store",
    "market_of",
    "store_of",
    "write_truth",
]
