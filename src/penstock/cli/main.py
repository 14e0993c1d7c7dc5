"""The `penstock` command: finds the command asked for, and turns every failure into a sentence and an exit code."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from penstock.cli import systems
from penstock.cli.output import BAD_ANSWER, FINE, INTERRUPTED, USAGE, Output, exit_code
from penstock.model.errors import PenstockError
from penstock.model.limits import near

# Loaded only when they are asked for, so that each starts quickly.
COMMANDS = {
    "new": "penstock.cli.new:new",
    "run": "penstock.cli.run:run",
    "status": "penstock.cli.status:status",
    "migrate": "penstock.cli.migrate:migrate",
    "queues": "penstock.cli.queues:queues",
    "dead": "penstock.cli.dead:dead",
    "cron": "penstock.cli.cron:cron",
    "objects": "penstock.cli.objects:objects",
    "controllers": "penstock.cli.controllers:controllers",
    "workflows": "penstock.cli.workflows:workflows",
    "why": "penstock.cli.why:why",
    "trace": "penstock.cli.trace:trace",
    "audit": "penstock.cli.audit:audit",
    "serve": "penstock.cli.serve:serve",
    "cost": "penstock.cli.cost:cost",
    "metrics": "penstock.cli.metrics:metrics",
    "move": "penstock.cli.move:move",
    "backup": "penstock.cli.backup:backup",
    "restore": "penstock.cli.backup:restore",
    "check": "penstock.cli.check:check",
    "smoke": "penstock.cli.smoke:smoke",
    "trial": "penstock.cli.trial:trial",
    "simulate": "penstock.cli.simulate:simulate",
    "doctor": "penstock.cli.doctor:doctor",
}

TOUR = """\
Penstock runs durable data pipelines from one Python file and one database.

  1  Write an app        market.py:  app = penstock.App("market"), a queue, a handler
  2  Run it              penstock run market.py
  3  Look at it          penstock status market.py
  4  Why does it wait?   penstock why ID; what became of it: penstock trace ID
  5  What died?          penstock dead groups, then show, edit, replay, discard
  6  What it costs       penstock cost market.py
  7  When in doubt       penstock doctor market.py
  8  Keep it safe        penstock backup FILE market.py; to PostgreSQL: penstock move

`penstock COMMAND --help` explains each with an example. Every command takes --json.
Exit codes: 0 fine, 1 the answer is bad, 2 usage or configuration, 3 no database, 4 no such thing, 130 interrupted.
"""


class Commands(click.Group):
    """Commands by name, each in a file of its own. `--json` may stand before or behind the command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        command = _own(cmd_name) if cmd_name in COMMANDS else systems.load(cmd_name)
        if command is None:
            known = near(cmd_name, [*COMMANDS, *systems.named()])
            raise click.UsageError(f"There is no command {cmd_name!r}. {known}", ctx)
        _speak_json(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Systems are told by their names alone: what they import is no business of who asks for help."""
        super().format_commands(ctx, formatter)
        with formatter.section("Systems"):
            formatter.write_dl(
                [(name, f"`penstock {name} --help` tells what it can.") for name in sorted(systems.named())]
            )


def _own(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def _speak_json(command: click.Command) -> None:
    """Every command takes `--json`, and so does every verb of a noun."""
    if not any(parameter.name == "as_json" for parameter in command.params):
        command.params.append(_json_option())
    for verb in command.commands.values() if isinstance(command, click.Group) else ():
        _speak_json(verb)


def _json_option() -> click.Option:
    return click.Option(
        ["--json", "as_json"], is_flag=True, expose_value=False, help="One JSON object on stdout and nothing else."
    )


@click.command(
    "penstock",
    cls=Commands,
    invoke_without_command=True,
    params=[_json_option()],
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Durable data pipelines from one Python file and one database.",
)
@click.option("--config", metavar="FILE", help="Settings, instead of penstock.toml (or PENSTOCK_CONFIG).")
@click.option("--version", is_flag=True, help="The version of Penstock, Python and SQLite.")
@click.pass_context
def penstock(ctx: click.Context, config: str | None, version: bool) -> None:
    output: Output = ctx.obj
    if config is not None:
        os.environ["PENSTOCK_CONFIG"] = config  # workers, which are processes of their own, read it too
    if version:
        told = _versions()
        line = "penstock {penstock} (Python {python}, SQLite {sqlite})".format(**told)
        output.show(told, lambda console: console.print(line))
        ctx.exit(FINE)
    if ctx.invoked_subcommand is None:
        output.show({"commands": list(COMMANDS)}, lambda console: console.print(TOUR, end="", soft_wrap=True))


def _versions() -> dict[str, str]:
    import apsw

    from penstock import __version__

    return {"penstock": __version__, "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    output = Output(json="--json" in given)
    try:
        code: Any = penstock.main(args=given, prog_name="penstock", standalone_mode=False, obj=output)
        output.out.flush()
        return code if isinstance(code, int) else FINE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except click.ClickException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "penstock")
        return output.fail(_Usage(error.format_message(), hint=f"`{path} --help` shows how it is called."), USAGE)
    except PenstockError as error:
        return output.fail(error, exit_code(error))
    except Exception as error:
        if not output.json:
            traceback.print_exc(file=output.err)
        return output.fail(_Bug(f"Penstock itself failed: {type(error).__name__}: {error}"), BAD_ANSWER)


class _Usage(PenstockError):
    """The command was called in a way that it does not understand."""

    code = "usage"


class _Bug(PenstockError):
    """Something nobody thought of."""

    code = "internal"
    hint = "Please report it with what is above."


if __name__ == "__main__":
    sys.exit(main())
