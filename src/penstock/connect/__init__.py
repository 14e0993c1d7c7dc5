"""Sources with cursors: connectors that read them, and the collector that runs them, each on its own."""

from __future__ import annotations

from penstock.connect.connector import Connector, Expect
from penstock.connect.declared import DeclaredConnector
from penstock.connect.page import Blocked, Change, Changed, Page, Record
from penstock.connect.source import RunResult, Source
from penstock.connect.web import Http

__all__ = [
    "Blocked",
    "Change",
    "Changed",
    "Connector",
    "DeclaredConnector",
    "Expect",
    "Http",
    "Page",
    "Record",
    "RunResult",
    "Source",
]
