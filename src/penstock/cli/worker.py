"""The worker process that a supervisor starts: `python -m penstock.cli.worker module:app`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec

from penstock.app import App
from penstock.cli.listening import LOGIN_LINK, make_server
from penstock.cli.reference import APPS, load
from penstock.logs import attach
from penstock.model.errors import BadApp, BadConfig, BadMigration, PenstockError, StoreError, StoreReplaced
from penstock.outbound.standins import VARIABLE as STANDINS
from penstock.outbound.standins import forward
from penstock.readiness.topology import unwatched
from penstock.runtime.slots import end_process
from penstock.runtime.supervisor import EXIT_REPLACED, EXIT_STORE, EXIT_USAGE, Hello
from penstock.services.service import member
from penstock.stores import is_postgres
from penstock.web.connection import AddressLimit
from penstock.web.tokens import configured
from penstock.web.ui.access import Access

GARBAGE_THRESHOLD = (
    20_000  # new objects between two looks for garbage; the interpreter's 700 costs a tenth of the speed
)
EXIT_FAILED = 1

_log = logging.getLogger("penstock.run")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="penstock.cli.worker", description=__doc__)
    parser.add_argument("reference")
    parser.add_argument("--hello", type=int)
    parser.add_argument("--lifeline", type=int)
    parser.add_argument("--grace", type=float, default=25.0)
    parser.add_argument("--until-idle", action="store_true")
    parser.add_argument("--listen", type=int)
    parser.add_argument("--service")
    given = parser.parse_args(arguments)
    try:
        app = load(given.reference)
        if given.service:
            app = member(app, given.service)
        # What was loaded stays; a worker creates and drops thousands of small objects a second, most of them at once.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        attach(app.events, app.config.log)
        work = serve(
            app,
            grace_seconds=given.grace,
            until_idle=given.until_idle,
            hello=given.hello,
            lifeline=given.lifeline,
            listening=None if given.listen is None else socket.socket(fileno=given.listen),
            is_system=given.reference in APPS,
        )
        _run(app, work)
    except (BadApp, BadConfig, BadMigration) as error:
        return _fail(error, EXIT_USAGE)
    except StoreReplaced as error:
        return _fail(error, EXIT_REPLACED)
    except StoreError as error:
        return _fail(error, EXIT_STORE)
    except PenstockError as error:
        return _fail(error, EXIT_FAILED)
    return 0


def _run(app: App, work: Coroutine[Any, Any, None]) -> None:
    """Run the worker. An exit in a task of user code, or a closed descriptor, breaks the event loop: then the process dies
    without releasing anything, so that what ran is suspected."""
    with asyncio.Runner() as runner:
        task = runner.get_loop().create_task(work)
        try:
            runner.run(_awaited(task))
        except BaseException as error:
            if not task.done():
                if app._life.worker is not None:
                    app._life.worker.suspect_ended()
                end_process(f"{type(error).__qualname__} ended the event loop: {error}. The worker ends at once.")
            raise


async def _awaited(task: asyncio.Task[None]) -> None:
    await task


async def serve(
    app: App,
    *,
    grace_seconds: float,
    until_idle: bool,
    hello: int | None,
    lifeline: int | None,
    listening: socket.socket | None = None,
    is_system: bool = False,
) -> None:
    """Run one worker until SIGTERM, or until its supervisor is gone. With a socket it also serves the app's routes."""
    if urls := os.environ.get(STANDINS):
        forward(app.standins, urls.split(","))
    engine = await app._opened()
    engine.die = end_process
    if app.requires_trial and not await app.trial.has_passed():
        raise BadApp(
            f"{app.name} does not start before a trial has passed. Run one with: penstock trial APP. To start without, set "
            "`require_trial = false` under [readiness] in penstock.toml.",
            app=app.name,
        )
    _report(app, is_system)
    loop = asyncio.get_running_loop()
    server = None if listening is None else Beside(app, listening)
    stop = app.stop if server is None else server.stop
    loop.add_signal_handler(signal.SIGTERM, stop)
    if lifeline is None:
        loop.add_signal_handler(signal.SIGINT, stop)
    else:
        # Ctrl-C reaches the whole group, and the supervisor alone decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the supervisor has blocked it until here
        loop.add_reader(lifeline, _supervisor_gone, loop, lifeline, stop)
    if hello is not None:
        # The location of a server has no password, and the supervisor has to open it.
        database = app.database if is_postgres(app.database) else engine.store.location
        hello_text = Hello(engine.writer.workers.me, database, str(engine.presence.path))
        os.write(hello, msgspec.json.encode(hello_text) + b"\n")
        os.close(hello)
    async with nullcontext() if server is None else server:
        await app.run(grace_seconds=grace_seconds, until_idle=until_idle)


class Beside:
    """The HTTP server beside a worker: it ends before the worker, whose database its requests use."""

    def __init__(self, app: App, listening: socket.socket) -> None:
        self._app = app
        self._listening = listening
        tokens, link = configured(app.config, os.environ), os.environ.get(LOGIN_LINK)
        access = Access(tokens, app.config.dashboard.hosts, [link] if link else [])
        self._server = make_server(app, tokens, AddressLimit(), access)
        self._served: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """End the requests first, then the worker. A second call hurries both."""
        if self._served is None or self._server.should_exit:
            self._app.stop()
            return
        self._server.when_stopped()
        self._server.should_exit = True
        self._served.add_done_callback(lambda _: self._app.stop())

    async def __aenter__(self) -> None:
        self._served = asyncio.create_task(self._server.serve(sockets=[self._listening]))

    async def __aexit__(self, *_: object) -> None:
        assert self._served is not None
        self._server.when_stopped()
        self._server.should_exit = True
        await self._served


def _report(app: App, is_system: bool) -> None:
    """Log what runs by itself and what it is expected to cost, and warn of dead letters that no handler takes. Users of a
    system that ships cannot write one."""
    if app.requires_trial:
        crons = ", ".join(f"{task.name} ({task.rule.expression})" for task in app.crons.tasks.values()) or "none"
        usd = app.config.readiness.usd_expected
        expected = "" if usd is None else f" Expected: {usd} USD a month."
        _log.info("%s runs by itself. Crons: %s.%s", app.name, crons, expected)
    if not is_system and not app.sinks and (queues := unwatched(app.queues.values())):
        names = ", ".join(f"{queue.name}-dlq" for queue in queues)
        _log.warning("No handler takes dead letters of %s: write @queue.dead_letter_handler or @app.on_alert.", names)


def _supervisor_gone(loop: asyncio.AbstractEventLoop, lifeline: int, stop: Callable[[], None]) -> None:
    loop.remove_reader(lifeline)
    stop()


def _fail(error: PenstockError, code: int) -> int:
    sys.stderr.write(f"penstock: {error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
