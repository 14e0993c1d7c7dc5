"""An app's controllers: registered in code, each an object, watched so that none stands still unnoticed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.contracts.effects import Bindable
from penstock.contracts.objects import ObjectRow
from penstock.control.behind import MODES, ControllerObject, pace_of, tuned_pace
from penstock.control.controller import Controller, Definition
from penstock.control.status import status
from penstock.model.arguments import check_ranges
from penstock.model.errors import BadApp, NoSuchController, PenstockError
from penstock.model.limits import near
from penstock.objects.host import Elsewhere, Host
from penstock.objects.namespace import PLACES, Namespace, placed
from penstock.runtime.audit import audit, record
from penstock.runtime.unit import open_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

_log = logging.getLogger("penstock.control")
WATCH_SECONDS = 300.0
TOLD_SECONDS, TOLD_LOOKS = 30.0, 300  # what an operator waits for a controller that lives elsewhere
AnyController = TypeVar("AnyController", bound=type[Controller[Any]])


class Controllers:
    def __init__(
        self,
        opened: Callable[[], Awaitable[Engine]],
        host: Callable[[], Awaitable[Host]],
        register: Callable[[type[ControllerObject]], Namespace[ControllerObject]],
    ) -> None:
        self._opened = opened
        self._host = host
        self._register = register
        self._definitions: dict[str, Definition] = {}
        self._namespace: Namespace[ControllerObject] | None = None

    def add(
        self, name: str, definition: Callable[[Controller[Any]], Definition]
    ) -> Callable[[AnyController], AnyController]:
        if name in self._definitions:
            raise BadApp(f"There are two controllers called {name!r}.")

        def register(cls: AnyController) -> AnyController:
            controller = cls()
            controller.name = name
            made = definition(controller)
            if made.mode not in MODES:
                raise BadApp(f"Controller {name!r}: there is no mode {made.mode!r}; there are {', '.join(MODES)}.")
            check_ranges(f"Controller {name!r}", rate=made.rate, idle_backoff=made.idle_backoff)
            if made.hint is not None and made.hint not in PLACES:
                raise BadApp(f"Controller {name!r}: hint is {made.hint!r}; the places are {', '.join(PLACES)}.")
            self._definitions[name] = made
            if self._namespace is None:
                kept = {"definitions": self._definitions, "opened": staticmethod(self._opened)}
                self._namespace = self._register(type("Controller", (ControllerObject,), kept))
            return cls

        return register

    def __iter__(self) -> Any:
        return iter(self._definitions)

    def __getitem__(self, name: str) -> ControllerObject:
        """The controller as an object: `await app.controllers["prices"].stop()`."""
        if name not in self._definitions or self._namespace is None:
            raise NoSuchController(f"There is no controller {name!r}. {near(name, self._definitions)}")
        return self._namespace.get(name, hint=self._definitions[name].hint)

    def names(self) -> Sequence[str]:
        return sorted(self._definitions)

    async def list(self) -> Sequence[dict[str, Any]]:
        """Return the status of every controller, by name."""
        return [await self.status(name) for name in self.names()]

    async def status(self, name: str) -> dict[str, Any]:
        """From what is saved: it never waits for a tick."""
        self[name]
        engine = await self._opened()
        row: ObjectRow | None = await (await self._host()).look("Controller", name)
        state = {} if row is None else msgspec.json.decode(row.state)
        definition = self._definitions[name]
        now = engine.clock.now()
        pace = tuned_pace(definition, state.get("pace", {}), state.get("tuned", {}), now=now / 1_000_000)
        return status(name, definition.mode, state, pace, alarm=None if row is None else row.alarm, now=now)

    async def operate(self, name: str, verb: str, **wanted: object) -> dict[str, Any]:
        """Start, stop, reset, tune or wake it from whatever process, also in the middle of a tick somewhere else; its status
        afterwards."""
        self[name]
        namespace = self._namespace
        assert namespace is not None
        namespace.event(verb)
        if verb == "tune":
            await self._check(name, wanted)
        host = await self._host()
        try:
            hint = placed(self._definitions[name].hint)
            noted = audit(host.engine, f"controllers {verb}", "controller", name)
            await host.call(namespace.cls, name, verb, (), wanted, hint=hint, patient=False, audit=noted)
        except Elsewhere:
            await self._tell(namespace, name, verb, wanted)
        return await self.status(name)

    async def _check(self, name: str, wanted: dict[str, object]) -> None:
        """What cannot be tuned is refused here: whoever does it elsewhere could not answer."""
        now = (await self._opened()).clock.now() / 1_000_000
        pace_of(self._definitions[name], {}, now=now).tune(now, wanted)

    async def _tell(
        self, namespace: Namespace[ControllerObject], name: str, verb: str, wanted: dict[str, object]
    ) -> None:
        engine = await self._opened()
        async with open_unit(engine, None) as unit:
            namespace.tell(name, verb, (), wanted)
            # Its worker carries it out: what is committed here is the message, with what was asked for.
            record(unit, audit(engine, f"controllers {verb}", "controller", name, asked=wanted or verb))
        for _ in range(TOLD_LOOKS):
            if not await _waits(engine, "object.told", name):
                return
            await asyncio.sleep(TOLD_SECONDS / TOLD_LOOKS)
        raise Elsewhere(
            f"Controller {name} has not confirmed {verb} within {TOLD_SECONDS:.0f} s. The request is saved, and its worker "
            "carries it out later."
        )

    async def watch(self) -> None:
        """Sets every controller going that says it runs and has no alarm: at the start, and every five minutes."""
        while True:
            for name in self._definitions:
                try:
                    await self.arm(name)
                except PenstockError:
                    _log.exception("The upkeep of controller %s failed; it is retried.", name)
            await asyncio.sleep(WATCH_SECONDS)

    async def arm(self, name: str) -> bool:
        engine = await self._opened()
        host = await self._host()
        row = await host.look("Controller", name)
        running = True if row is None else msgspec.json.decode(row.state).get("running", True)
        if not running or (row is not None and row.alarm is not None):
            return False
        if await _waits(engine, "object.alarm", f"Controller/{name}"):
            return False  # its alarm is under way, or is being tried again
        await self[name].wake()
        return True


async def _waits(engine: Engine, type_: str, name: str) -> bool:
    """Whether a message of this type to a controller waits, or is under way."""
    bound: dict[str, Bindable] = {"queue": "object.Controller", "type": type_}
    found = await engine.read("", WAITING, bound, rows_max=WAITING_MAX)
    return any(msgspec.json.decode(body).get("name") == name for (body,) in found.values)


WAITING = """
select body
from penstock_messages
where queue = :queue
and type = :type
limit 1000
"""
WAITING_MAX = 1_000
