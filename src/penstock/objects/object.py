"""The class users derive from: annotated fields are its saved state, methods are its events."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, get_origin, get_type_hints

import msgspec

from penstock.model.errors import BadApp, BadMessage
from penstock.model.times import from_micros, in_seconds, to_micros

if TYPE_CHECKING:
    from penstock.objects.host import Resident

KEY_BYTES_MAX = 128_000  # of one field: more belongs into a table


class Object:
    """State with a name. Annotated fields are saved together after every event that changed them; everything else lives only
    while the object is in memory. One event runs at a time."""

    _state: ClassVar[type[msgspec.Struct]]
    _fields: ClassVar[tuple[str, ...]]
    _singleton: ClassVar[bool] = False
    name: str
    if TYPE_CHECKING:
        _residence: Resident  # where it lives while it is in memory

    def __init_subclass__(cls, *, singleton: bool = False) -> None:
        super().__init_subclass__()
        cls._singleton = singleton or cls._singleton  # there is one of its class, and its name is "main"
        hints = get_type_hints(cls, localns={cls.__name__: cls})
        fields: list[Any] = []
        for name in _own_annotations(cls):
            if name.startswith("_") or name == "name" or get_origin(hints[name]) is ClassVar:
                continue
            if not hasattr(cls, name):
                raise BadApp(f"{cls.__qualname__}.{name} needs a default: an object is created without arguments.")
            fields.append((name, hints[name], msgspec.field(default_factory=_copier(getattr(cls, name)))))
        cls._fields = tuple(name for name, *_ in fields)
        cls._state = msgspec.defstruct(f"{cls.__name__}State", fields, kw_only=True)

    async def alarm(self) -> object:
        """Called when the object's alarm is due. Override it."""
        raise BadApp(f"{type(self).__qualname__} has an alarm and no `async def alarm(self)`.")

    def set_alarm(self, at: datetime | None = None, *, after: float | timedelta | None = None) -> None:
        """Joins the current event: `alarm` is called at that moment, or this many seconds from now. An object has one alarm;
        setting it again moves it."""
        if (at is None) == (after is None):
            raise BadMessage("Give the alarm either a time or seconds from now (`after`).")
        due = to_micros(at) if at is not None else self._residence.now() + int(in_seconds(after or 0) * 1_000_000)
        self._residence.set_alarm(due)

    def clear_alarm(self) -> None:
        """Takes the alarm back, with the rest of the event."""
        self._residence.clear_alarm()

    async def get_alarm(self) -> datetime | None:
        """When it is set for; None while its handler runs, unless that has set it anew."""
        due = await self._residence.next_alarm()
        return None if due is None else from_micros(due)

    async def loaded(self) -> object:
        """Called when the object comes into memory, before any event. Override it to load what is not saved."""
        return None

    def released(self) -> AbstractAsyncContextManager[None]:
        """`async with self.released():` lets other events in during a long wait. State may have changed afterwards."""
        return self._residence.released()

    @property
    def tell(self) -> Any:
        """`counters["main"].tell.add(1)` joins the caller's unit of work and is run once after it has committed."""
        raise BadApp("`tell` is for handles: `counters[name].tell.method(...)`.")

    # -- state ------------------------------------------------------------------------------------------

    def _load(self, saved: bytes) -> None:
        """Takes the saved fields over; what is missing gets its default, what does not fit is an error that names it."""
        try:
            state = msgspec.json.decode(saved or b"{}", type=self._state)
        except msgspec.ValidationError as error:
            raise BadApp(
                f"The saved state of {type(self).__name__}/{self.name} does not fit its class: {error}. Give the "
                "field another name, or migrate the state."
            ) from error
        for name in self._fields:
            setattr(self, name, getattr(state, name))

    def _saved(self) -> bytes:
        values = {name: getattr(self, name) for name in self._fields}
        try:
            body = msgspec.json.encode(values)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadMessage(f"The state of {type(self).__name__}/{self.name} cannot be saved: {error}.") from error
        for name, value in values.items() if len(body) > KEY_BYTES_MAX else ():
            if (size := len(msgspec.json.encode(value))) > KEY_BYTES_MAX:
                raise BadMessage(
                    f"{type(self).__name__}.{name} has {size:,} bytes; the maximum is {KEY_BYTES_MAX:,}. "
                    "Store large values in a table."
                )
        msgspec.json.decode(body, type=self._state)  # what could not be loaded again is not saved
        return body


def _own_annotations(cls: type) -> Iterator[str]:
    for base in reversed(cls.__mro__):
        if issubclass(base, Object) and base is not Object:
            yield from inspect.get_annotations(base)


def _copier(default: Any) -> Callable[[], Any]:
    """A fresh copy each time: two objects must not share a list."""
    saved = msgspec.json.encode(default)
    kind = type(default)
    return lambda: msgspec.json.decode(saved, type=kind)


def events_of(cls: type[Object]) -> dict[str, Callable[..., Awaitable[object]]]:
    """The methods that can be called from outside."""
    return {
        name: function
        for name, function in inspect.getmembers(cls, inspect.iscoroutinefunction)
        if not name.startswith("_") and name not in ("loaded", "get_alarm")
    }
