"""Sources with cursors: connectors that read them, and the collector that runs them, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.connect.connector import Connector, Expect
from penstock.connect.page import Blocked, Change, Changed, Page, Record
from penstock.connect.source import RunResult, Source
from penstock.connect.web import Http

if TYPE_CHECKING:
    from penstock.connect.declared import DeclaredConnector

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

if not TYPE_CHECKING:  # a type checker would take every misspelt name for the class

    def __getattr__(name: str) -> Any:
        if name != "DeclaredConnector":
            raise AttributeError(f"module 'penstock.connect' has no attribute {name!r}")
        from penstock.connect.declared import DeclaredConnector  # what it reads files with takes long to load

        return DeclaredConnector
