"""A topic: an event is published once, and every subscription gets it through a queue of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from penstock.model.envelope import encode, types_in
from penstock.model.errors import BadApp, BadMessage
from penstock.model.ids import as_text
from penstock.model.limits import near
from penstock.model.times import Span, in_seconds, to_micros
from penstock.runtime.unit import require_unit

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.queue import Queue

T = TypeVar("T")
PAGE = 500  # events of a replay in one commit
PRUNED = 1_000
KEEP = (
    "insert into topic_events (topic, id, at, type, body) values (:topic, :id, :at, :type, :body) "
    "on conflict (topic, id) do nothing"
)
READ = (
    "select id, at, type, body from topic_events where topic = :topic and at < :until "
    "and (at > :at or (at = :at and id > :id)) order by at, id limit :limit"
)
OLD = "select 1 from topic_events where topic = :topic and at < :before limit 1"
PRUNE = (
    "delete from topic_events where topic = :topic and id in "
    "(select id from topic_events where topic = :topic and at < :before order by at limit :limit)"
)


class Topic(Generic[T]):
    """Events that several parts of an app react to, each at its own pace. `app.topic` makes it.

    A subscription is a queue: it has its own retries, dead letters and rate, and one that fails delays no other.
    """

    def __init__(
        self,
        app: App,
        name: str,
        payload_type: Any,
        *,
        retention_seconds: float | None,
        order_by: Callable[[T], str] | None,
    ) -> None:
        self._app = app
        self.name = name
        self.payload_type = payload_type
        self.retention_seconds = retention_seconds
        self.subscriptions: dict[str, Queue[Any]] = {}
        self._order_by = order_by
        self._types = types_in(payload_type)
        self._names = {type_: named for named, type_ in self._types.items()}

    def subscription(
        self, name: str, *, ordered: bool = False, service: App | None = None, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function that gets every event published from now on, with the options of `app.queue`.

        Its queue is called `<topic>.<name>`. With `ordered`, events of one key are handled one after the other, in the order
        of their publication; an event that becomes a dead letter is passed over. `service` is the service that handles them.

        Example:
            @published.subscription("search", ordered=True, retries=5)
            async def index(event: Published) -> None:
                print(event.id)"""
        if name in self.subscriptions:
            raise BadApp(f"Topic {self.name!r} has two subscriptions called {name!r}.", name=name)
        if ordered and self._order_by is None:
            raise BadApp(f"Topic {self.name!r} has no key to order by: app.topic({self.name!r}, ..., order_by=...).")
        home: App = service or self._app
        order_by = self._order_by if ordered else None
        queue = home.queue(f"{self.name}.{name}", self.payload_type, order_by=order_by, **options)
        self.subscriptions[name] = queue

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for type_ in self._types.values():
                queue.handler(type_, name=name)(function)
            return function

        return register

    def __getitem__(self, subscription: str) -> Queue[Any]:
        """Return the queue of a subscription."""
        if subscription not in self.subscriptions:
            near_by = near(subscription, self.subscriptions)
            raise BadMessage(f"Topic {self.name!r} has no subscription {subscription!r}. {near_by}")
        return self.subscriptions[subscription]

    def publish(self, event: T, *, delay: Span = 0.0, correlation: str | None = None) -> str:
        """Send an event to every subscription in the current unit of work, and return its id.

        Example:
            published.publish(Published(id=7))"""
        unit = require_unit(self._app)
        if type(event) not in self._names:
            raise BadMessage(
                f"Topic {self.name!r} does not accept {type(event).__qualname__}; it accepts {', '.join(self._types)}.",
                type=type(event).__qualname__,
            )
        id = as_text(unit.next_id(f"topic.{self.name}"))
        if self.retention_seconds is not None:
            at, type_ = unit.engine.clock.now(), self._names[type(event)]
            self._app.db.write(KEEP, topic=self.name, id=id, at=at, type=type_, body=encode(event).decode())
        for queue in self.subscriptions.values():
            queue.send(event, delay=in_seconds(delay), correlation=correlation)
        return id

    async def replay(self, subscription: str, *, since: datetime, until: datetime | None = None) -> int:
        """Send a subscription again what was published since then, in that order, and return how many events that are.

        The events are new messages of this subscription alone. They are kept for `retention`."""
        queue = self[subscription]
        if self.retention_seconds is None:
            raise BadApp(f"Topic {self.name!r} keeps no events. Declare it with `retention=`.", topic=self.name)
        end = (await self._app._opened()).clock.now() if until is None else to_micros(until)
        at, id, sent = to_micros(since) - 1, "", 0
        while True:
            bound = {"topic": self.name, "until": end, "at": at, "id": id, "limit": PAGE}
            rows = await self._app.db.rows(READ, bound)
            if not rows:
                return sent
            async with self._app.unit():
                for row in rows:
                    queue.send(msgspec.json.decode(row.body, type=self._types[row.type]))
            at, id, sent = rows[-1].at, rows[-1].id, sent + len(rows)

    async def prune(self, *, now: int) -> None:
        """Delete what is older than the retention, a portion in each commit."""
        before = now - int((self.retention_seconds or 0.0) * 1_000_000)
        while await self._app.db.value(OLD, topic=self.name, before=before) is not None:
            async with self._app.unit():
                self._app.db.write(PRUNE, topic=self.name, before=before, limit=PRUNED)


def make_topic(
    app: App, name: str, payload_type: Any, *, retention: Span | None, order_by: Callable[[Any], str] | None
) -> Topic[Any]:
    """Declare a topic of an app, as `App.topic` describes it."""
    if name in app.topics:
        raise BadApp(f"App {app.name!r} has two topics called {name!r}.", name=name)
    seconds = None if retention is None else in_seconds(retention)
    topic: Topic[Any] = Topic(app, name, payload_type, retention_seconds=seconds, order_by=order_by)
    app.topics[name] = topic
    if seconds is not None:

        @app.cron("23 * * * *", name=f"{name}.retention", reason="kept events expire", when=None)
        async def prune_events() -> None:
            await topic.prune(now=(await app._opened()).clock.now())

    return topic
