"""An app's controllers: registered in code, each an object, watched so that none stands still unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.contracts.objects import ObjectRow
from penstock.control.behind import ControllerObject
from penstock.control.controller import Controller, Definition
from penstock.control.modes import MODES, pace_of
from penstock.control.status import status
from penstock.model.errors import BadApp, NoSuchController
from penstock.objects.host import Host
from penstock.objects.namespace import Namespace

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

WATCH_SECONDS = 300.0
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
            self._definitions[name] = made
            if self._namespace is None:
                kept = {"definitions": self._definitions, "opened": staticmethod(self._opened)}
                self._namespace = self._register(type("Controller", (ControllerObject,), kept))
            return cls

        return register

    def __iter__(self) -> Any:
        return iter(self._definitions)

    def __getitem__(self, name: str) -> ControllerObject:
        """The controller as an object: `await app.controllers["enrichment"].stop()`."""
        if name not in self._definitions or self._namespace is None:
            raise NoSuchController(
                f"There is no controller {name!r}. There are: {', '.join(sorted(self._definitions)) or 'none'}."
            )
        return self._namespace[name]

    async def status(self, name: str) -> dict[str, Any]:
        """From what is saved: it never waits for a tick."""
        self[name]
        engine = await self._opened()
        row: ObjectRow | None = await (await self._host()).look("Controller", name)
        state = {} if row is None else msgspec.json.decode(row.state)
        definition = self._definitions[name]
        now = engine.clock.now()
        pace = pace_of(definition, state.get("pace", {}), now=now / 1_000_000)
        return status(name, definition.mode, state, pace, alarm=None if row is None else row.alarm, now=now)

    async def watch(self) -> None:
        """Sets every controller going that says it runs and has no alarm: at the start, and every five minutes."""
        while True:
            for name in self._definitions:
                await self.arm(name)
            await asyncio.sleep(WATCH_SECONDS)

    async def arm(self, name: str) -> bool:
        engine = await self._opened()
        host = await self._host()
        row = await host.look("Controller", name)
        running = True if row is None else msgspec.json.decode(row.state).get("running", True)
        if not running or (row is not None and row.alarm is not None):
            return False
        waiting = await engine.read("", WAITING, {"queue": "object.Controller", "name": f"%{name}%"}, rows_max=1)
        if waiting.values:
            return False  # its alarm is under way, or is being tried again
        await self[name].wake()
        return True


WAITING = """
select 1
from penstock_messages
where queue = :queue
and cast(body as text) like :name
limit 1
"""
