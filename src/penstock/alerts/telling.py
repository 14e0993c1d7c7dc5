"""An app's alerts: who is told, and how. Every alert is a message, so retries, back-off and dead letters are the engine's."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.alerts.alert import Alert, Sink
from penstock.alerts.conditions import AlertCondition
from penstock.alerts.listening import Listener
from penstock.model.ids import as_text
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.runtime.unit import current_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

QUEUE = "penstock.alerts"
SINK_SECONDS = 30.0  # what a sink gets for one alert
RETRY = Retry(8, 30.0, 3_600.0)  # for about two hours; then it is a dead letter
AnySink = TypeVar("AnySink", bound=Sink)

_log = logging.getLogger("penstock.alerts")


class Telling(Protocol):
    """The queue that alerts wait in."""

    def send(self, payload: object, /) -> str: ...
    def on(self, payload_class: type, *, name: str | None = None) -> Callable[[Any], Any]: ...


class Known(Protocol):
    """Conditions by their names."""

    def __getitem__(self, name: str) -> AlertCondition: ...


class Alerts:
    def __init__(self, make_queue: Callable[[QueueSettings, list[type]], Telling], make_objects: Callable[..., Known]):
        self._make_queue = make_queue
        self._make_objects = make_objects
        self.sinks: list[Sink] = []
        self._names: list[str] = []
        self._queue: Telling | None = None
        self._conditions: Known | None = None

    def on_alert(self, sink: AnySink) -> AnySink:
        """Names who is told when a message dies, when dead letters age or pile up, and of every condition: `async def
        page(alert: Alert)`. One that raises is tried again, by itself, and holds up nothing and nobody else."""
        if self._queue is None:
            self._begin()
        assert self._queue is not None
        self.sinks.append(sink)
        name = str(getattr(sink, "name", None) or getattr(sink, "__name__", type(sink).__name__))
        same = sum(each.partition("#")[0] == name for each in self._names)
        self._names.append(f"{name}#{same + 1}" if same else name)

        async def deliver(alert: Alert) -> None:
            unit = current_unit.get()
            assert unit is not None
            assert unit.origin is not None
            await sink(replace(alert, id=as_text(unit.origin.id)))

        self._queue.on(Alert, name=self._names[-1])(deliver)
        return sink

    def _begin(self) -> None:
        settings = QueueSettings(QUEUE, retry=RETRY, wall_seconds=SINK_SECONDS, accepts=(Alert.__message_type__,))
        queue = self._queue = self._make_queue(settings, [Alert])
        # A class of this app's own, since it sends to this app's queue; under the name that its rows have in any.
        bound = type("AlertCondition", (AlertCondition,), {"_send": staticmethod(queue.send)})
        self._conditions = self._make_objects(bound)

    async def alert(self, condition: str, title: str, text: str, *, key: str | None = None) -> bool:
        """Tells that something is wrong, and whether that was told: of a condition that stays the same once a day at most.
        It is another if its title or text is, or only if `key` is, where one is given. It is told even if the handler
        that found it fails afterwards."""
        title, text = _storable(title), _storable(text)
        _log.warning("%s: %s: %s", condition, title, text)
        if self._conditions is None:
            return False
        return await self._conditions[condition].found(title, text, f"{title}\n{text}" if key is None else key)

    async def recovered(self, condition: str, title: str | None = None, text: str = "") -> bool:
        """Tells that a condition is over, once, to those who were told of it. Where nobody was, nothing is told."""
        if self._conditions is None:
            return False
        return await self._conditions[condition].over(None if title is None else _storable(title), _storable(text))

    def listen(self, engine: Engine) -> Listener:
        return Listener(engine, QUEUE, None if self._queue is None else self._queue.send)


def _storable(text: str) -> str:
    """Without half characters, which no database takes: an alert is not lost for them."""
    return text.encode("utf-8", "replace").decode()
