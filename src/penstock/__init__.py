"""Penstock: durable queues, units of work and time one can wind forward, on one's own machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock import errors
from penstock.alerts.alert import Alert
from penstock.app import App
from penstock.blobs.folder import Expiry
from penstock.connect.connector import Connector
from penstock.control.controller import Controller
from penstock.cron.task import Tick
from penstock.model.ceiling import Ceiling
from penstock.model.envelope import Command, Event, Typed
from penstock.model.errors import (
    BadConfig,
    BetweenSteps,
    BudgetSpent,
    Gone,
    HttpError,
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
from penstock.model.retry import Retry
from penstock.objects.object import Object
from penstock.outbound.budgets import Budgets
from penstock.outbound.chat import Answer
from penstock.outbound.models import Model
from penstock.outbound.paid import Gateway, PaidCall
from penstock.queues.batch import Batch
from penstock.queues.external import Outgoing
from penstock.queues.letters import DeadLetter, DeadLetterFilter
from penstock.queues.message import Message
from penstock.queues.queue import Queue
from penstock.routes import Redirect, Reply, Request, ServiceKey
from penstock.runtime.lanes import in_thread
from penstock.workflows.run import Run
from penstock.workflows.steps import ChildFailed, Step, StepFailed, TimedOut, step
from penstock.workflows.workflow import Workflow

if TYPE_CHECKING:
    from penstock.outbound.addresses import Rules
    from penstock.outbound.bodies import Bounds
    from penstock.outbound.client import Client
    from penstock.services.binding import Binding
    from penstock.services.service import Service
    from penstock.topics.topic import Topic

__version__ = "0.1.0"

__all__ = [
    "Alert",
    "Answer",
    "App",
    "BadConfig",
    "Batch",
    "BetweenSteps",
    "Binding",
    "Bounds",
    "BudgetSpent",
    "Budgets",
    "Ceiling",
    "ChildFailed",
    "Client",
    "Command",
    "Connector",
    "Controller",
    "DeadLetter",
    "DeadLetterFilter",
    "Discard",
    "Event",
    "Expiry",
    "Gateway",
    "Gone",
    "HttpError",
    "Later",
    "LeaseLost",
    "LoopBroken",
    "LostUpdate",
    "Message",
    "Model",
    "NoSuchQueue",
    "NoUnit",
    "Object",
    "Outgoing",
    "PaidCall",
    "PenstockError",
    "Permanent",
    "Queue",
    "QueueFull",
    "Redirect",
    "Reentrant",
    "Refused",
    "Reply",
    "Request",
    "Retry",
    "Rules",
    "Run",
    "Service",
    "ServiceKey",
    "Step",
    "StepFailed",
    "StorageFull",
    "Throttled",
    "Tick",
    "TimedOut",
    "Topic",
    "Typed",
    "Unavailable",
    "UnitClosed",
    "Unparsable",
    "Workflow",
    "errors",
    "in_thread",
    "step",
]

# Imported at first use: the HTTP client takes longer to load than everything else.
_LATER = {
    "Binding": "penstock.services.binding",
    "Bounds": "penstock.outbound.bodies",
    "Client": "penstock.outbound.client",
    "Rules": "penstock.outbound.addresses",
    "Service": "penstock.services.service",
    "Topic": "penstock.topics.topic",
}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        return getattr(import_module(_LATER[name]), name)
