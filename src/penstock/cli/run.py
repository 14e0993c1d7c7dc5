"""`penstock run`: an app's workers under a supervisor, or a span of virtual time on an empty database."""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from functools import partial
from tempfile import TemporaryDirectory

import click

from penstock import logs
from penstock.cli.apart import apart_variables, make_supervisor, run_apart, supervise
from penstock.cli.command import CliCommand, refuse, this_output
from penstock.cli.listening import LOGIN_LINK, PORT_MAX, listen, tokens_for, url_of
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Output, Reported, Title, Verbatim, listed, progress
from penstock.cli.reference import load
from penstock.cli.reload import die_with_parent, reloading
from penstock.cli.tryout import try_out
from penstock.config import Config
from penstock.model.errors import BadApp
from penstock.model.times import parse_span
from penstock.outbound.standins import VARIABLE as STANDINS
from penstock.outbound.standins import mount
from penstock.runtime.events import Events
from penstock.views import dead, queues
from penstock.views.view import Row, counted, span_text
from penstock.web.ui.access import link_digest

WORKERS_MAX = 256  # more processes than any machine that keeps one SQLite file busy
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
STEPS = 200  # of virtual time, between two moves of the bar
STEP_SECONDS_LEAST = 60.0


@click.command(cls=CliCommand)
@click.argument("app", metavar="APP")
@click.option(
    "--workers", type=click.IntRange(1, WORKERS_MAX), help="Worker processes, 1 unless penstock.toml says more."
)
@click.option("--reload", is_flag=True, help="Restart the workers whenever the code changes, for development.")
@click.option("--until-idle", is_flag=True, help="Stop when no message is due.")
@click.option(
    "--grace", type=click.FloatRange(0, 86_400), metavar="SECONDS", help="Time for handlers to finish on a stop."
)
@click.option("--standins", is_flag=True, help="Against local fake servers instead of the outside services.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve the app's routes on.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    help="Serve the app's routes on this port as well; 0 takes any that is free.",
)
@click.option("--ui", is_flag=True, help="Show the dashboard at /ui of that port, 8787 unless another is named.")
@click.option("--apart", is_flag=True, help="Give each service of the app a process, a database and a port of its own.")
@click.option("--only", metavar="NAME", help="With --apart: run only this service.")
@click.option("--virtual", metavar="SPAN", help="Run for this much virtual time (6d) on an empty database, and stop.")
@click.option("--seed", type=int, help="With --virtual: repeat a run exactly.")
@click.option("--verbose", is_flag=True, help="Log failures with all their facts and tracebacks.")
def run(
    app: str,
    workers: int | None,
    reload: bool,
    until_idle: bool,
    grace: float | None,
    standins: bool,
    host: str,
    port: int | None,
    ui: bool,
    apart: bool,
    only: str | None,
    virtual: str | None,
    seed: int | None,
    verbose: bool,
) -> Answer | int:
    """Run an app until Ctrl-C.

    APP is a file or a module, and the app's name if there are several: market.py, market.py:app, package.market:app; or the
    name of a system: appstore, brand, gateway, reminders, rentals, whose commands `penstock rentals --help` lists. Pending
    migrations are applied first; an app that requires a trial gets one. Ctrl-C lets running handlers finish; a second one
    cancels them.

    Example:
      penstock run market.py --reload
      penstock run package.market:app --workers 2
      penstock run market.py --virtual 6d --seed 7
      penstock run appstore --standins
      penstock run newsroom.py --apart
      penstock run market.py --ui
    """
    output = this_output()
    if apart or only:
        if until_idle or reload:
            raise refuse("Services that run apart run until Ctrl-C. Leave out --until-idle and --reload.")
        click.get_current_context().with_resource(apart_variables())
    if verbose:
        os.environ[logs.VERBOSE] = "1"
    if reload:
        if output.json or virtual is not None or until_idle:
            raise refuse("--reload runs until Ctrl-C. Leave out --json, --virtual and --until-idle.")
        given = {"--workers": workers, "--grace": grace, "--host": host, "--port": port}
        options = [str(part) for name, value in given.items() if value is not None for part in (name, value)]
        flags = {"--standins": standins, "--ui": ui, "--verbose": verbose}
        return reloading(output, app, ["run", app, *options, *(name for name, is_on in flags.items() if is_on)])
    if virtual is not None:
        return _run_virtual(app, virtual, seed, standins)
    config = Config.load()
    found = try_out(app, only)
    events = Events()
    count = workers or config.workers
    seconds = config.grace_seconds if grace is None else grace
    if not output.json and not found.members:
        output.err.write(f"{found.name}: {counted(count, 'worker')} on {found.database}. Ctrl-C stops.\n")
    make = partial(make_supervisor, app, workers=count, grace=seconds, config=config, events=events)
    with ExitStack() as stack:
        stack.callback(logs.attach(events, config.log))
        if standins:
            if not found.standins:
                raise BadApp(f"{app} declares no fake servers. Leave `--standins` out.", app=app)
            os.environ[STANDINS] = ",".join(stack.enter_context(running(found.standins)))
            stack.callback(os.environ.pop, STANDINS)
        if found.members:
            if not output.json:
                output.err.write(f"{found.name}: {counted(len(found.members), 'service')} apart. Ctrl-C stops.\n")
            return run_apart(output, found, make, host)
        listening = None
        if found.serves or port is not None or ui:
            listening = stack.enter_context(_serving(output, found.name, config, host, port))
        if found.awaits_trial and not _trial_passes(output, app, standins):
            raise Reported(
                f"{found.name} requires a trial, and it did not pass.",
                code="trial_failed",
                hint=f"Repeat it with: {' '.join(_trial(app, standins))}. To start without, set `require_trial = false` "
                "under [readiness].",
                exit_code=BAD_ANSWER,
            )
        code = supervise(make, ["--until-idle"] if until_idle else [], listening)
    if until_idle and code == FINE and not output.json:
        output.err.write(f"{found.name}: no message is due. See the result with: penstock status {app}\n")
    if output.json and code == FINE:
        return Answer({"app": found.name, "database": found.database, "workers": count})
    return code


@contextmanager
def _serving(output: Output, name: str, config: Config, host: str, port: int | None) -> Iterator[socket.socket]:
    """Listen for all workers, so that a worker that dies refuses no connection, and say where and with which token."""
    chosen = int(os.environ.get("PENSTOCK_PORT") or config.port) if port is None else port
    _, secret = tokens_for(config, host)
    with listen(host, chosen) as listening:
        url = url_of(listening)
        output.err.write(f"{name}: serving its routes at {url}.\n")
        if secret is None:
            output.err.write(f"Dashboard: {url}/ui/\n")
        else:
            code = secrets.token_urlsafe(24)
            # The workers, which are processes of their own, know both by these.
            os.environ |= {"PENSTOCK_TOKEN": secret, LOGIN_LINK: link_digest(code)}
            output.err.write(f"No token is configured. The token of this run: {secret}\n")
            output.err.write(f"Dashboard: {url}/ui/login?link={code}\n")
        output.err.flush()
        try:
            yield listening
        finally:
            if secret is not None:
                del os.environ["PENSTOCK_TOKEN"], os.environ[LOGIN_LINK]


def _trial_passes(output: Output, app: str, standins: bool) -> bool:
    """In a process of its own: the supervisor runs no user code."""
    output.err.write("It requires a trial first: ten items are followed through every stage.\n")
    output.err.flush()
    command = [sys.executable, "-m", *_trial(app, standins)]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == FINE


def _trial(app: str, standins: bool) -> list[str]:
    return ["penstock", "trial", app, *(["--standins"] if standins else [])]


# -- virtual time -------------------------------------------------------------------------------------------


def _run_virtual(reference: str, span: str, seed: int | None, standins: bool) -> Answer:
    from penstock import testing

    seconds = parse_span(span)
    app = load(reference)
    chosen = int(os.environ.get("PENSTOCK_SEED") or 0) if seed is None else seed
    rows: list[Row] = []
    dead_rows: list[Row] = []

    async def main() -> None:
        town = testing.TestServices(app, seed=chosen)
        running = next(iter(town.shops.values()))
        if standins:
            mount(app.standins, lambda: running.now.timestamp())
        done, step = 0.0, max(STEP_SECONDS_LEAST, seconds / STEPS)
        async with town:
            with progress(this_output(), "virtual time", seconds, span_text) as moved:
                while done < seconds:
                    await town.advance(seconds=min(step, seconds - done))
                    done += step
                    moved(min(done, seconds))
            for shop in town.shops.values():
                rows.extend(await queues.rows(shop.app.db, now=round(shop.now.timestamp() * 1_000_000)))
                dead_rows.extend(map(dead.row_of_group, await shop.app.dead.groups()))

    with TemporaryDirectory(prefix="penstock-virtual-") as folder, chdir(folder):  # with the files that the app writes
        testing.run(main, seed=chosen)
    facts = {"app": app.name, "virtual_seconds": seconds, "seed": chosen, "queues": rows, "dead_letters": dead_rows}
    died = [f"  {row['queue']}: {dead.group_error(row) or row['reason']} ({row['letters']:,})" for row in dead_rows]
    return Answer(
        facts,
        Title(f"{app.name}  {span} of virtual time, seed {chosen}"),
        "",
        *listed(queues.QUEUES, rows, internals=False).parts,
        *(["", Verbatim("\n".join(["Dead letters:", *died]))] if died else []),
    )


# -- fake servers -------------------------------------------------------------------------------------------


@contextmanager
def running(modules: Sequence[str], arguments: Sequence[str] = ()) -> Iterator[list[str]]:
    """Start fake servers; yield where each listens. They end with the block."""
    processes: list[subprocess.Popen[str]] = []
    try:
        urls = []
        for module in modules:
            command = [sys.executable, "-u", "-m", module, "--port", "0", *arguments]
            # A group of its own: Ctrl-C is for the workers, which finish what they run.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=die_with_parent
            )
            processes.append(process)
            assert process.stdout is not None
            line = process.stdout.readline()
            found = ADDRESS.search(line)
            if found is None:
                raise BadApp(f"The fake server {module} did not print where it listens: {line!r}.", module=module)
            urls.append(found[0])
        yield urls
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
