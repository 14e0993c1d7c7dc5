"""Hears what the engine says that a person should know, and puts it in the queue of alerts. A flood is told as a number."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.alerts.alert import ALERTED, Alert, alert_of
from penstock.contracts.ledger import Bindable
from penstock.model.errors import PenstockError
from penstock.model.times import iso_z
from penstock.runtime.events import EngineEvent, MessageDied
from penstock.runtime.unit import open_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

PENDING_MAX = 100  # alerts of the engine's on their way
LOOK_SECONDS = 5.0  # how often it looks whether they have been told
WAITING = "select count(*) from (select 1 from penstock_messages where queue = :queue limit :most) as waiting"

_log = logging.getLogger("penstock.alerts")


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
        """The worker has stopped: what it heard last is told by the next one."""
        for leave in self._leaves:
            leave()
        if self._heard:
            await self._pass_on()

    def _hear(self, event: EngineEvent) -> None:
        if isinstance(event, MessageDied) and event.queue == self._queue:
            return  # an alert that nobody takes cannot be told by an alert; it is a dead letter like others
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
        told, left = self._heard[:room], self._heard[room:]
        self._heard, self._left_out = [], self._left_out + len(left)
        if not told and self._left_out and not waiting:
            told, self._left_out = [self._number()], 0
        if not told:
            return False
        try:
            async with open_unit(self._engine, None):
                for alert in told:
                    assert self._send is not None
                    self._send(alert)
        except PenstockError:
            _log.exception("%d alerts could not be saved: %s", len(told), "; ".join(alert.text for alert in told))
        return True

    def _number(self) -> Alert:
        text = f"{self._left_out} more alerts came faster than they could be told. `penstock dead list` shows all."
        return Alert(
            "alerts.left_out",
            text,
            {"left_out": self._left_out},
            title=f"{self._left_out} more alerts",
            at=iso_z(self._engine.clock.now()),
        )
