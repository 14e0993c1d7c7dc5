"""Penstock: durable queues, units of work and time one can wind forward, on one's own machine."""

from __future__ import annotations

from penstock.app import App
from penstock.control.chunks import in_chunks
from penstock.control.controller import Controller
from penstock.cron.task import Tick
from penstock.data import chunks, cut, first_by
from penstock.model.ceiling import rows, usd
from penstock.model.envelope import Command, Event, Tagged
from penstock.model.errors import (
    Gone,
    LeaseLost,
    LoopBroken,
    LostUpdate,
    NoSuchQueue,
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
from penstock.objects.object import Object
from penstock.queues.alerts import Alert
from penstock.queues.batch import Batch
from penstock.queues.draft import Draft
from penstock.queues.letters import DeadLetter, Which
from penstock.queues.message import Message
from penstock.runtime.threads import in_thread

__version__ = "0.1.0"

__all__ = [
    "Alert",
    "App",
    "Batch",
    "Command",
    "Controller",
    "DeadLetter",
    "Discard",
    "Draft",
    "Event",
    "Gone",
    "Later",
    "LeaseLost",
    "LoopBroken",
    "LostUpdate",
    "Message",
    "NoSuchQueue",
    "NoUnit",
    "Object",
    "PenstockError",
    "Permanent",
    "QueueFull",
    "Reentrant",
    "Refused",
    "StorageFull",
    "Tagged",
    "Throttled",
    "Tick",
    "Unavailable",
    "UnitClosed",
    "Unparsable",
    "Which",
    "chunks",
    "cut",
    "first_by",
    "in_chunks",
    "in_thread",
    "rows",
    "usd",
]
