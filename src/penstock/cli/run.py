"""`penstock run`: an app's workers under a supervisor, or a whole week of it in virtual time."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from penstock import logs
from penstock.cli import launch
from penstock.cli.output import BAD_ANSWER, FINE, Output, Told, plain
from penstock.cli.reference import load, try_out
from penstock.cli.status import draw_queues
from penstock.config import Config
from penstock.data import overview
from penstock.gateway.standins import VARIABLE as STANDINS
from penstock.gateway.standins import mount
from penstock.model.errors import BadApp
from penstock.model.times import parse_span
from penstock.runtime.events import Events

WORKERS_MAX = 256  # more processes than any machine that keeps one SQLite file busy
PR_SET_PDEATHSIG = 1
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@click.command()
@click.argument("app", metavar="APP")
@click.option("--workers", type=click.IntRange(1, WORKERS_MAX), help="Processes that work at the same time.")
@click.option("--until-idle", is_flag=True, help="Stop when nothing is left that is due.")
@click.option("--grace", type=click.FloatRange(0, 86_400), metavar="SECONDS", help="What handlers get to finish.")
@click.option("--standins", is_flag=True, help="Against local stand-ins of what the app talks to.")
@click.option("--virtual", metavar="SPAN", help="Run so much virtual time (6d) on an empty database, and stop.")
@click.option("--verbose", is_flag=True, help="Show failures with all their facts and tracebacks.")
@click.option("--seed", type=int, help="With --virtual: repeat a run exactly.")
@click.pass_obj
def run(
    output: Output,
    app: str,
    workers: int | None,
    until_idle: bool,
    grace: float | None,
    standins: bool,
    virtual: str | None,
    verbose: bool,
    seed: int | None,
) -> int:
    """Run an app until Ctrl-C.

    APP is a file or a module, and the app's name if there are several: market.py, market.py:app, package.market:app; or
    the name of a system: appstore. Pending migrations are applied first; an app that requires a trial gets one. Ctrl-C
    lets running handlers finish; a second one hurries them.

    \b
    Example:
      penstock run market.py --workers 2
      penstock run package.market:app --until-idle
      penstock run market.py --virtual 6d --seed 7
      penstock run appstore --standins
    """
    if verbose:
        os.environ[logs.VERBOSE] = "1"
    if virtual is not None:
        return _run_virtual(output, app, virtual, seed, standins)
    config = Config.load()
    found = try_out(app)
    events = Events()
    logs.attach(events, config.log)
    count = workers or config.workers
    if not output.json:
        plural = "" if count == 1 else "s"
        output.err.write(f"{found.name}: {count} worker{plural} on {found.database}. Ctrl-C stops.\n")
    with ExitStack() as stack:
        if standins:
            if not found.standins:
                raise BadApp(f"{app} names no stand-ins. Leave `--standins` out.", app=app)
            os.environ[STANDINS] = ",".join(stack.enter_context(running(found.standins)))
            stack.callback(os.environ.pop, STANDINS)
        if found.awaits_trial and not _tried(output, app, standins):
            raise Told(
                f"{found.name} requires a trial, and it did not pass.",
                code="trial_failed",
                hint=f"`{' '.join(_trial(app, standins))}` repeats it. `require_trial = false` under [readiness] does "
                "without.",
                exit_code=BAD_ANSWER,
            )
        code = launch.supervise(
            app,
            workers=count,
            grace_seconds=config.grace_seconds if grace is None else grace,
            until_idle=until_idle,
            config=config,
            events=events,
        )
    if output.json and code == FINE:
        output.show({"app": found.name, "database": found.database, "workers": count}, lambda _: None)
    return code


def _tried(output: Output, app: str, standins: bool) -> bool:
    """In a process of its own: the supervisor runs no user code."""
    output.err.write("It requires a trial first: ten items are followed through every stage.\n")
    output.err.flush()
    command = [sys.executable, "-m", *_trial(app, standins)]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == FINE


def _trial(app: str, standins: bool) -> list[str]:
    return ["penstock", "trial", app, *(["--standins"] if standins else [])]


def _run_virtual(output: Output, reference: str, span: str, seed: int | None, standins: bool) -> int:
    from penstock import testing

    seconds = parse_span(span)
    app = load(reference)
    chosen = int(os.environ.get("PENSTOCK_SEED") or 0) if seed is None else seed
    states: list[overview.QueueState] = []

    async def main() -> None:
        running = testing.TestApp(app, seed=chosen)
        if standins:
            mount(app.standins, lambda: running.now.timestamp())
        async with running:
            await running.advance(seconds=seconds)
            now = round(running.now.timestamp() * 1_000_000)
            states.extend(await overview.queues(app.db, now=now))

    with TemporaryDirectory(prefix="penstock-virtual-") as folder, chdir(folder):  # what it keeps in files goes with it
        testing.run(main, seed=chosen)
    told: dict[str, Any] = {"app": app.name, "virtual_seconds": seconds, "seed": chosen}
    told["queues"] = [msgspec.to_builtins(state) for state in states]

    def draw(console: Any) -> None:
        console.print(f"[bold]{plain(app.name)}[/]  {plain(span)} of virtual time, seed {chosen}\n")
        draw_queues(console, states, everything=False)

    output.show(told, draw)
    return FINE


@contextmanager
def running(modules: Sequence[str], arguments: Sequence[str] = ()) -> Iterator[list[str]]:
    """Where each listens. They end with the block."""
    processes: list[subprocess.Popen[str]] = []
    try:
        urls = []
        for module in modules:
            command = [sys.executable, "-u", "-m", module, "--port", "0", *arguments]
            # A group of its own: Ctrl-C is for the workers, which want to finish what they are doing.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=_die_with_parent
            )
            processes.append(process)
            assert process.stdout is not None
            line = process.stdout.readline()
            found = ADDRESS.search(line)
            if found is None:
                raise BadApp(f"The stand-in {module} did not say where it listens: {line!r}.", module=module)
            urls.append(found[0])
        yield urls
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _die_with_parent() -> None:
    """In the child: who is killed cannot end it. Elsewhere than on Linux it stays, and listens on its port."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
