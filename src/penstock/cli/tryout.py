"""Tries out an app before a supervisor starts its workers: `python -m penstock.cli.tryout REFERENCE`, in its own process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import redirect_stdout

import msgspec

from penstock import logs
from penstock.app import App
from penstock.cli.command import by_this_user
from penstock.cli.output import INTERRUPTED, Output, Reported, exit_code
from penstock.cli.reference import load
from penstock.model.errors import BadApp, PenstockError
from penstock.model.redaction import address_shown
from penstock.runtime.supervisor import uninterrupted
from penstock.services.service import Service, member, members


class Member(msgspec.Struct, frozen=True):
    """A service that runs apart."""

    name: str
    database: str
    port: int


class Found(msgspec.Struct, frozen=True):
    """What is known about an app without running it."""

    name: str
    database: str
    standins: list[str]  # the modules of its fake servers
    serves: bool  # its routes are served by `penstock run` as well
    awaits_trial: bool  # none has passed, and it requires one
    members: list[Member] = []  # services with databases of their own


def try_out(reference: str, only: str | None = None) -> Found:
    """Load the app, or only one service of it, open its database and apply pending migrations in a process of its own. A
    failure is reported here, once, and not by every worker that would start."""
    with uninterrupted():
        command = [sys.executable, "-m", "penstock.cli.tryout", reference, *([only] if only else [])]
        asked = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        answered, _ = asked.communicate()
    except BaseException:
        asked.kill()
        raise
    try:
        answer = msgspec.json.decode(answered)
    except msgspec.DecodeError:
        raise BadApp(f"Importing {reference} ended Python with exit code {asked.returncode}.") from None
    if "error" in answer:
        error = answer["error"]
        raise Reported(error["message"], code=error["code"], hint=error["hint"], exit_code=asked.returncode)
    return msgspec.convert(answer, Found)


async def _open_once(app: App) -> bool:
    """Return whether the app waits for a trial. Warnings about its declaration are logged here: no worker opens it first."""
    logs.attach(app.events, app.config.log)
    async with app:
        return app.requires_trial and not await app.trial.has_passed()


def main() -> int:
    output = Output(json=True, err=sys.stdout)
    try:
        app = load(sys.argv[1])
        own = members(app)
        if len(sys.argv) > 2:
            own = {sys.argv[2]: member(app, sys.argv[2])}
        with redirect_stdout(sys.stderr), by_this_user():
            awaits_trial = sum([asyncio.run(_open_once(each)) for each in own.values()]) > 0
    except PenstockError as error:
        return output.fail(error, exit_code(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    modules = [each.module for each in app.standins]
    apart = [
        Member(
            each.name, each.database, each.port if isinstance(each, Service) else app.config.port + len(app.services)
        )
        for each in own.values()
    ]
    found = Found(
        app.name, address_shown(app.database), modules, app.serves, awaits_trial, apart if app.is_apart else []
    )
    output.show(found, lambda _: None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
