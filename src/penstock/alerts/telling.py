"""An app's alerts and their sinks. Every alert is a message, so retries, back-off and dead letters are the engine's."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from penstock.alerts.alert import ALERTED, RAISED, RECOVERED, Alert, Sink, alert_of
from penstock.channels.channel import TEXT_CHARACTERS_MAX, TITLE_CHARACTERS_MAX, Channel
from penstock.contracts.effects import Bindable
from penstock.model.errors import PenstockError
from penstock.model.ids import as_text
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.model.times import iso_z
from penstock.objects.object import Object
from penstock.runtime.events import EngineEvent, MessageDied
from penstock.runtime.unit import current_unit, open_unit

if TYPE_CHECKING:
    from penstock.objects.namespace import Namespace
    from penstock.queues.queue import Queue
    from penstock.runtime.engine import Engine

QUEUE = "penstock.alerts"
SINK_SECONDS = 30.0  # what a sink gets for one alert
RETRY = Retry(8, 30.0, 3_600.0)  # for about two hours; then it is a dead letter
AnySink = TypeVar("AnySink", bound=Sink)

_log = logging.getLogger("penstock.alerts")
HOUR, DAY = 3_600_000_000, 86_400_000_000
# The hour lets a job that runs daily, and not to the second, find the same thing twice and tell it once.
AGAIN_FIRST, AGAIN_LONGEST = DAY, 7 * DAY
ALERTS_A_DAY_MAX = 12  # one that keeps changing is reported no more often
PIPELINE, AGENT = "pipeline", "alerts"
PENDING_MAX = 100  # alerts of the engine's on their way
LOOK_SECONDS = 5.0  # how often it looks whether they have been reported
WAITING = "select count(*) from (select 1 from penstock_messages where queue = :queue limit :most) as waiting"


class Listener:
    """Listens while a worker runs. What it hears before that, of messages that killed a worker, waits for its start."""

    def __init__(self, engine: Engine, queue: str, send: Callable[[Alert], object] | None) -> None:
        self._engine = engine
        self._queue = queue
        self._send = send
        self._heard: list[Alert] = []
        self._left_out = 0
        self._changed = asyncio.Event()
        kinds = ALERTED if send is not None else ()
        self._leaves = [engine.events.subscribe(self._hear, to=kind) for kind in kinds]

    async def run(self) -> None:
        while self._send is not None:
            await self._changed.wait()
            self._changed.clear()
            while self._heard or self._left_out:
                if not await self._pass_on():
                    await asyncio.sleep(LOOK_SECONDS)

    async def end(self) -> None:
        """The worker has stopped: the next one reports what it collected last."""
        for leave in self._leaves:
            leave()
        if self._heard:
            await self._pass_on()

    def _hear(self, event: EngineEvent) -> None:
        if isinstance(event, MessageDied) and event.queue == self._queue:
            return  # no alert can report that an alert failed: it becomes a dead letter like others
        alert = alert_of(event)
        if alert is None:
            return
        if len(self._heard) >= PENDING_MAX:
            self._left_out += 1
        else:
            self._heard.append(replace(alert, at=iso_z(self._engine.clock.now())))
        self._changed.set()

    async def _pass_on(self) -> bool:
        """False if there was nothing that could be sent now."""
        bound: dict[str, Bindable] = {"queue": self._queue, "most": PENDING_MAX}
        waiting = int((await self._engine.read("penstock.alerts", WAITING, bound, rows_max=1)).values[0][0])
        room = PENDING_MAX - waiting
        batch, left = self._heard[:room], self._heard[room:]
        self._heard, self._left_out = [], self._left_out + len(left)
        if not batch and self._left_out and not waiting:
            batch, self._left_out = [self._number()], 0
        if not batch:
            return False
        try:
            async with open_unit(self._engine, None):
                for alert in batch:
                    assert self._send is not None
                    self._send(alert)
        except PenstockError:
            _log.exception("%d alerts could not be saved: %s", len(batch), "; ".join(alert.text for alert in batch))
        return True

    def _number(self) -> Alert:
        text = f"{self._left_out} more alerts arrived too fast to be sent. `penstock dead list` shows all dead letters."
        return Alert(
            "alerts.left_out",
            text,
            {"left_out": self._left_out},
            title=f"{self._left_out} more alerts",
            at=iso_z(self._engine.clock.now()),
        )


def is_due(told_at: Sequence[int], *, is_open: bool, same: bool, repeats: int, now: int) -> bool:
    """Whether to report a condition that is found now. A known one that is unchanged is repeated after a day, then two, four,
    and every week."""
    if sum(at > now - DAY for at in told_at) >= ALERTS_A_DAY_MAX:
        return False
    if not is_open or not same or not told_at:
        return True
    quiet: int = min(AGAIN_LONGEST, AGAIN_FIRST * 2 ** min(repeats, 10)) + HOUR
    return now - told_at[-1] >= quiet


class AlertCondition(Object):
    """What is known about one condition. What it tells is sent in the commit that remembers it."""

    _send: ClassVar[Callable[[Alert], object]]
    is_open: bool = False  # an alert was sent, and no alert that it is over
    digest: str = ""
    title: str = ""
    told_at: list[int] = []  # noqa: RUF012 (every object gets a copy)
    repeats: int = 0

    async def found(self, title: str, text: str, compared: str) -> bool:
        now = self._residence.now()
        digest = hashlib.blake2b(compared.encode("utf-8", "replace"), digest_size=16).hexdigest()
        same = digest == self.digest
        if not is_due(self.told_at, is_open=self.is_open, same=same, repeats=self.repeats, now=now):
            return False
        self.repeats = self.repeats + 1 if same and self.is_open else 0
        self.is_open, self.digest, self.title = True, digest, title[:TITLE_CHARACTERS_MAX]
        self._tell(RAISED, self.title, text, now)
        self.told_at = [*self.told_at, now][-ALERTS_A_DAY_MAX:]
        return True

    async def over(self, title: str | None, text: str) -> bool:
        if not self.is_open:
            return False
        self.is_open = False
        self._tell(RECOVERED, title or f"Recovered: {self.title}", text, self._residence.now())
        return True

    def _tell(self, kind: str, title: str, text: str, now: int) -> None:
        shown = text[:TEXT_CHARACTERS_MAX] or title
        facts: dict[str, object] = {"condition": self.name, "title": title}
        type(self)._send(Alert(kind, shown, facts, PIPELINE, AGENT, title, self.name, iso_z(now)))


class Alerts:
    def __init__(
        self, make_queue: Callable[[QueueSettings, Any], Queue[Any]], make_objects: Callable[..., Namespace[Any]]
    ):
        self._make_queue = make_queue
        self._make_objects = make_objects
        self.sinks: list[Sink] = []
        self._names: list[str] = []
        self._queue: Queue[Any] | None = None
        self._conditions: Namespace[AlertCondition] | None = None

    def on_alert(self, sink: AnySink) -> AnySink:
        self.remember()
        if self._queue is None:
            self._queue = self._make_queue(QueueSettings(QUEUE, retry=RETRY, timeout_seconds=SINK_SECONDS), Alert)
        self.sinks.append(sink)
        name = str(getattr(sink, "name", None) or getattr(sink, "__name__", type(sink).__name__))
        same = sum(each.partition("#")[0] == name for each in self._names)
        self._names.append(f"{name}#{same + 1}" if same else name)

        async def deliver(alert: Alert) -> None:
            unit = current_unit.get()
            assert unit is not None
            assert unit.origin is not None
            known = replace(alert, id=as_text(unit.origin.id))
            await (_deliver(sink, known) if isinstance(sink, Channel) else sink(known))

        self._queue.handler(Alert, name=self._names[-1])(deliver)
        return sink

    def remember(self) -> None:
        """Keep which conditions are open, also while there is no sink: the dashboard and `penstock status` show them."""
        if self._conditions is None:
            # A class of this app's own, since it sends to this app's queue; under the name that its rows have in any.
            bound = type("AlertCondition", (AlertCondition,), {"_send": staticmethod(self._send)})
            self._conditions = self._make_objects(bound)

    def _send(self, alert: Alert) -> None:
        if self._queue is not None:
            self._queue.send(alert)

    async def alert(self, condition: str, title: str, text: str, *, key: str | None = None) -> bool:
        title, text = _storable(title), _storable(text)
        _log.warning("%s: %s: %s", condition, title, text)
        if self._conditions is None:
            return False
        return await self._conditions[condition].found(title, text, f"{title}\n{text}" if key is None else key)

    async def recovered(self, condition: str, title: str | None = None, text: str = "") -> bool:
        if self._conditions is None:
            return False
        return await self._conditions[condition].over(None if title is None else _storable(title), _storable(text))

    def listen(self, engine: Engine) -> Listener:
        return Listener(engine, QUEUE, None if self._queue is None else self._queue.send)


async def _deliver(channel: Channel, alert: Alert) -> None:
    """A second alert harms less than none, so an unknown outcome is retried, with the same key."""
    if channel.is_offline:
        _log.warning("No alert is sent by %s without %s: %s", channel.name, channel.secret_env, alert.subject)
    else:
        (await channel.send(alert.notice, alert.id)).raise_failure()


def _storable(text: str) -> str:
    """Without half characters, which no database takes: an alert is not lost for them."""
    return text.encode("utf-8", "replace").decode()
