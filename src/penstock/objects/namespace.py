"""Objects by name: `counters["main"].add(1)` calls one, `counters["main"].tell.add(1)` joins the caller's unit."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from penstock.model.envelope import Event
from penstock.model.errors import BadApp, BadMessage
from penstock.model.limits import Limits
from penstock.model.outcome import Later
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry, retry_of
from penstock.objects.host import Elsewhere, Host, Moved, queue_of
from penstock.objects.object import Object, events_of
from penstock.runtime.events import AlarmRang, AlarmWasLost

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.queue import Queue
    from penstock.runtime.engine import Engine

NAME_MAX = 200
MAIN = "main"  # the one name of a singleton
AGAIN_SECONDS = 0.2  # an object that lives elsewhere is looked for again after so long
# Where an object with such a hint is placed: three regions have no place of their own.
PLACES = {place: place for place in ("wnam", "enam", "weur", "eeur", "apac", "oc")} | {
    "sam": "enam",
    "afr": "weur",
    "me": "weur",
}
_NAME = re.compile(r"[^/\x00-\x1f]+")

AnyObject = TypeVar("AnyObject", bound=Object)
_TAG = re.compile(r"v([1-9][0-9]{0,5})")


class TellCall(Event, type="object.told"):
    """A call that joined a unit."""

    name: str
    method: str
    arguments: list[Any]
    named: dict[str, Any]


class Alarmed(Event, type="object.alarm"):
    """An alarm that is due. The name is Class/name."""

    name: str
    due: int


class Namespace(Generic[AnyObject]):
    """All objects of one class. The same name is the same object, in whatever process."""

    def __init__(
        self, cls: type[AnyObject], host: Callable[[], Awaitable[Host]], queue: Queue[Any], hint: str | None = None
    ) -> None:
        self.cls = cls
        self._place = placed(hint)
        self._host = host
        self._queue = queue
        self._events = events_of(cls)

    def __getitem__(self, name: str) -> AnyObject:
        return self.get(name)

    def get(self, name: str, *, hint: str | None = None) -> AnyObject:
        """A handle; nothing happens before one of its methods is called. The first call saves the place that `hint` names, or
        that of the class. It is shown and has no effect."""
        if len(name) > NAME_MAX or not _NAME.fullmatch(name):
            raise BadMessage(f"{name!r} is not a valid object name: use 1 to {NAME_MAX} characters without a slash.")
        if self.cls._singleton and name != MAIN:
            raise BadMessage(f"{self.cls.__name__} is a singleton and has one name, {MAIN!r}, not {name!r}.")
        return cast(AnyObject, _Handle(self, name, self._place if hint is None else placed(hint)))

    def event(self, method: str) -> Callable[..., Awaitable[object]]:
        if method not in self._events:
            raise AttributeError(
                f"{self.cls.__name__} has no event {method!r}; it has {', '.join(sorted(self._events))}. Events are `async "
                "def` methods without a leading underscore."
            )
        return self._events[method]

    async def call(
        self, name: str, method: str, arguments: tuple[Any, ...], named: dict[str, Any], hint: str | None
    ) -> Any:
        host = await self._host()
        return await host.call(self.cls, name, method, arguments, named, hint=hint)

    def tell(self, name: str, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._queue.send(TellCall(name=name, method=method, arguments=list(arguments), named=named))

    # -- the handlers of its queue ------------------------------------------------------------------------

    async def told(self, event: TellCall) -> Later | None:
        return await self._run(event.name, event.method, tuple(event.arguments), event.named)

    async def alarmed(self, event: Alarmed) -> Later | None:
        engine = (await self._host()).engine
        engine.events.emit(AlarmRang(event.name, max(0.0, (engine.clock.now() - event.due) / 1_000_000)))
        return await self._run(event.name.partition("/")[2], "alarm", (), {})

    async def _run(self, name: str, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Later | None:
        try:
            host = await self._host()
            await host.call(self.cls, name, method, arguments, named, hint=self._place, patient=False)
        except (Elsewhere, Moved):
            return Later(AGAIN_SECONDS)  # its owner will take this message, or let the object go
        return None


def placed(hint: str | None) -> str | None:
    """Return the place that a hint leads to. Raise BadMessage for an unknown one."""
    if hint is not None and hint not in PLACES:
        raise BadMessage(f"hint is {hint!r}; the places are {', '.join(PLACES)}.")
    return None if hint is None else PLACES[hint]


class _Handle:
    """Stands for an object wherever it lives."""

    __slots__ = ("_hint", "_name", "_namespace")

    def __init__(self, namespace: Namespace[Any], name: str, hint: str | None) -> None:
        self._namespace = namespace
        self._name = name
        self._hint = hint

    @property
    def name(self) -> str:
        return self._name

    @property
    def tell(self) -> _Tell:
        return _Tell(self._namespace, self._name)

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        self._namespace.event(method)

        def call(*arguments: Any, **named: Any) -> Awaitable[Any]:
            return self._namespace.call(self._name, method, arguments, named, self._hint)

        return call

    def __repr__(self) -> str:
        return f"<{self._namespace.cls.__name__} {self._name}>"


class _Tell:
    __slots__ = ("_name", "_namespace")

    def __init__(self, namespace: Namespace[Any], name: str) -> None:
        self._namespace = namespace
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., None]:
        self._namespace.event(method)

        def tell(*arguments: Any, **named: Any) -> None:
            self._namespace.tell(self._name, method, arguments, named)

        return tell


def settings_of(cls: type[Object], limits: Limits, retries: int | Retry | None) -> QueueSettings:
    """The queue of the calls and alarms of a class's objects: retried after 2, 4, 8 ... s, six times, then parked."""
    if cls is Object:
        raise BadApp(f"{cls!r} is not an object class: derive it from penstock.Object.")
    return QueueSettings(
        queue_of(cls.__name__),
        retry=retry_of(limits.alarm_retry, retries),
        timeout_seconds=limits.queue_invocation.timeout_seconds,
    )


class ObjectClass(NamedTuple):
    cls: type[Object]
    tag: str | None


async def introduce(engine: Engine, classes: Iterable[ObjectClass]) -> None:
    """Notes each class under its tag. A tag that comes after one that was never there is refused, as is a class that was
    introduced under another."""
    tagged = sorted(((_number(each), each) for each in classes if each.tag is not None), key=lambda pair: pair[0])
    given = [number for number, _ in tagged]
    if missing := sorted({*range(1, max(given, default=0) + 1)} - {*given}):
        raise BadApp(f"Objects are tagged up to v{max(given)}, and v{missing[0]} is missing. Tags leave no gap.")
    if len(given) > len({*given}):
        raise BadApp(f"Two of {[each.cls.__name__ for _, each in tagged]} have the same tag. Give each its own.")
    now = engine.clock.now()
    for _, each in tagged:
        assert each.tag is not None
        before = await engine.in_writer(engine.writer.objects.introduce, each.cls.__name__, each.tag, now=now)
        if before is not None and before != each.tag:
            raise BadApp(f"{each.cls.__name__} was introduced as {before} and is tagged {each.tag} now. Keep its tag.")


def _number(each: ObjectClass) -> int:
    found = _TAG.fullmatch(each.tag or "")
    if found is None:
        raise BadApp(f"{each.cls.__name__} has the tag {each.tag!r}; tags are v1, v2 and so on.")
    return int(found[1])


def namespace_of(home: App, cls: type[AnyObject], queue: Any, hint: str | None) -> Namespace[AnyObject]:
    """Return the objects of a class, with the handlers of their events on this queue."""
    namespace = Namespace(cls, home.host, queue, hint)
    queue.handler(TellCall, name="told")(namespace.told)
    queue.handler(Alarmed, name="alarm")(namespace.alarmed)
    queue.dead_letter_handler(partial(_failed, home))
    return namespace


async def _failed(home: App, letter: Any) -> None:
    """Flag a lost alarm on its object, after an event of an object has failed for the last time."""
    payload = home.dead.payload(letter)
    if letter.type != "object.alarm":
        return
    engine = await home._opened()
    class_name, _, name = payload.name.partition("/")
    await engine.in_writer(engine.writer.objects.lost_alarm, class_name, name, lost=True)
    engine.events.emit(AlarmWasLost(payload.name, letter.error_message))
