"""Penstock: durable queues, units of work and time one can wind forward, on one's own machine."""

from __future__ import annotations

from penstock.app import App
from penstock.data import chunks, cut, first_by
from penstock.model.envelope import Command, Event
from penstock.model.errors import (
    Gone,
    LeaseLost,
    LostUpdate,
    NoUnit,
    PenstockError,
    Permanent,
    QueueFull,
    Reentrant,
    Refused,
    StorageFull,
    Throttled,
    Unavailable,
    UnitClosed,
    Unparsable,
)
from penstock.model.outcome import Discard, Later
from penstock.queues.message import Message
from penstock.runtime.threads import in_thread

__version__ = "0.1.0"

__all__ = [
    "App",
    "Command",
    "Discard",
    "Event",
    "Gone",
    "Later",
    "LeaseLost",
    "LostUpdate",
    "Message",
    "NoUnit",
    "PenstockError",
    "Permanent",
    "QueueFull",
    "Reentrant",
    "Refused",
    "StorageFull",
    "Throttled",
    "Unavailable",
    "UnitClosed",
    "Unparsable",
    "chunks",
    "cut",
    "first_by",
    "in_thread",
]
