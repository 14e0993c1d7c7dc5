"""Starts the processes of `penstock run`: one supervisor, and workers that each run the app in one event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

import msgspec

from penstock.app import App
from penstock.config import Config
from penstock.gateway.standins import VARIABLE as STANDINS
from penstock.gateway.standins import forward
from penstock.model.errors import BadApp
from penstock.model.limits import LOCAL
from penstock.readiness.topology import unwatched
from penstock.runtime.clock import HostClock
from penstock.runtime.engine import Engine
from penstock.runtime.events import Events
from penstock.runtime.slots import end_process
from penstock.runtime.supervisor import Hello, Supervisor
from penstock.runtime.surroundings import Surroundings
from penstock.stores import is_postgres, store_at

_log = logging.getLogger("penstock.run")


def supervise(
    reference: str, *, workers: int, grace_seconds: float, until_idle: bool, config: Config, events: Events
) -> int:
    """Runs until a signal, or until the workers have ended by themselves. Gives the exit code."""
    command = [sys.executable, "-m", "penstock.cli.worker", reference, "--grace", str(grace_seconds)]
    if until_idle:
        command.append("--until-idle")
    clock = HostClock()

    def open_engine(database: str) -> Engine:
        store = store_at(database, synchronous=config.synchronous)
        return Engine(None, store, events, LOCAL, Surroundings(clock=clock), lease_longest=0.0)

    async def main() -> int:
        supervisor = Supervisor(
            command,
            workers=workers,
            grace_seconds=grace_seconds,
            clock=clock,
            events=events,
            open_engine=open_engine,
        )
        return await supervisor.run()

    return asyncio.run(main())


async def serve(app: App, *, grace_seconds: float, until_idle: bool, hello: int | None, lifeline: int | None) -> None:
    """One worker: runs the app until SIGTERM, or until its supervisor is gone."""
    if urls := os.environ.get(STANDINS):
        forward(app.standins, urls.split(","))
    engine = await app.opened()
    engine.die = end_process
    if app.requires_trial and not await app.trial.has_passed():
        raise BadApp(
            f"{app.name} is not let loose before a trial has passed. `penstock trial` runs one; `require_trial = false` "
            "under [readiness] in penstock.toml does without.",
            app=app.name,
        )
    _report(app)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, app.stop)
    if lifeline is None:
        loop.add_signal_handler(signal.SIGINT, app.stop)
    else:
        # Ctrl-C reaches the whole group: the supervisor alone decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the supervisor has held it back until here
        loop.add_reader(lifeline, _supervisor_gone, loop, lifeline, app)
    if hello is not None:
        # Where a store is says no password; a supervisor has to open it.
        database = app.database if is_postgres(app.database) else engine.store.location
        said = Hello(engine.writer.workers.me, database, str(engine.presence.path))
        os.write(hello, msgspec.json.encode(said) + b"\n")
        os.close(hello)
    await app.run(grace_seconds=grace_seconds, until_idle=until_idle)


def _report(app: App) -> None:
    """Log what runs by itself and what it is expected to cost, and warn of dead letters that no handler takes."""
    if app.requires_trial:
        crons = ", ".join(f"{task.name} ({task.rule.expression})" for task in app.crons.tasks.values()) or "none"
        asked = app.config.readiness
        _log.info("%s runs by itself. Crons: %s. Expected: %s USD a month.", app.name, crons, asked.usd_expected)
    if not app.sinks and (queues := unwatched(app.queues.values())):
        names = ", ".join(f"{queue.name}-dlq" for queue in queues)
        _log.warning("No handler takes dead letters of %s: write @queue.on_dead or @app.on_alert.", names)


def _supervisor_gone(loop: asyncio.AbstractEventLoop, lifeline: int, app: App) -> None:
    loop.remove_reader(lifeline)
    app.stop()
