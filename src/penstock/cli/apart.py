"""The supervisors of `penstock run`: one of an app, or with `--apart` one for each of its services."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from penstock.app import APART
from penstock.cli.listening import listen, url_of
from penstock.cli.output import FINE, Output
from penstock.cli.tryout import Found, Member
from penstock.config import Config
from penstock.contracts.clock import Clock
from penstock.model.limits import LOCAL
from penstock.model.redaction import address_shown
from penstock.runtime.clock import HostClock
from penstock.runtime.engine import Engine
from penstock.runtime.events import Events
from penstock.runtime.supervisor import Supervisor
from penstock.runtime.surroundings import Surroundings
from penstock.services.peers import KEY
from penstock.stores import store_at


@contextmanager
def apart_variables() -> Iterator[None]:
    """Let this process and those that it starts give each service its own database, and share one key."""
    before = {name: os.environ.get(name) for name in (APART, KEY)}
    os.environ |= {APART: "1", KEY: before[KEY] or secrets.token_urlsafe(32)}
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


Supervising = Callable[[Sequence[str], socket.socket | None, Clock], Supervisor]


def run_apart(output: Output, found: Found, make: Supervising, host: str) -> int:
    """Run the services until a signal. Return the exit code of the first that failed, else 0."""
    with ExitStack() as stack:
        listening = {each.name: stack.enter_context(listen(host, each.port, _advice(each))) for each in found.members}
        width = max(len(each.name) for each in found.members)
        for each in found.members:
            url, database = url_of(listening[each.name]), address_shown(each.database)
            output.err.write(f"{each.name:{width}}  {url}  {database}\n")
        output.err.flush()

        async def main() -> int:
            clock = HostClock()
            supervisors = [make(["--service", each.name], listening[each.name], clock) for each in found.members]
            running = [asyncio.create_task(each.run()) for each in supervisors]
            await asyncio.sleep(0)  # each has asked for the signals; from now on all get them
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, _stop_all, supervisors, number)
            codes = await asyncio.gather(*running)
            return next((code for code in codes if code != FINE), FINE)

        return asyncio.run(main())


def _advice(member: Member) -> str:
    return f"Give service {member.name} another one in penstock.toml: `[services.{member.name}]` with `port`."


def _stop_all(supervisors: Sequence[Supervisor], number: signal.Signals) -> None:
    for each in supervisors:
        each.interrupt() if number is signal.SIGINT else each.stop()


def supervise(make: Supervising, more: Sequence[str], listening: socket.socket | None) -> int:
    """Run workers with `more` arguments until a signal, or until they have ended. Return the exit code."""

    async def main() -> int:
        return await make(more, listening, HostClock()).run()

    return asyncio.run(main())


def make_supervisor(
    reference: str,
    more: Sequence[str],
    listening: socket.socket | None,
    clock: Clock,
    *,
    workers: int,
    grace: float,
    config: Config,
    events: Events,
) -> Supervisor:
    shared = [] if listening is None else [listening.fileno()]
    command = [sys.executable, "-m", "penstock.cli.worker", reference, "--grace", str(grace), *more]
    command += [part for each in shared for part in ("--listen", str(each))]

    def open_engine(database: str) -> Engine:
        store = store_at(database, synchronous=config.synchronous)
        return Engine(None, store, events, LOCAL, Surroundings(clock=clock), lease_longest=0.0)

    return Supervisor(
        command,
        workers=workers,
        grace_seconds=grace,
        clock=clock,
        events=events,
        open_engine=open_engine,
        shared=shared,
    )
