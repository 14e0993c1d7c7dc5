"""The `penstock` command: finds the command that is named, and turns every failure into a sentence and an exit code."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from penstock.cli.output import BAD_ANSWER, FINE, INTERRUPTED, USAGE, Answer, Output, Verbatim, exit_code
from penstock.cli.reference import SHIPPED, load_command, system_commands
from penstock.model.errors import PenstockError
from penstock.model.limits import near

# By what one wants, each with an example. A command's module is imported only when the command is asked for.
GROUPS = {
    ("Run", "penstock run market.py --reload"): {
        "new": "new:new",
        "demo": SHIPPED["demo"],
        "run": "run:run",
        "serve": "serve:serve",
    },
    ("Look", "penstock status market.py --watch"): {
        "status": "status:status",
        "why": "trace:why",
        "trace": "trace:trace",
        "paces": "controllers:paces",
        "objects": "objects:objects",
        "cost": "reports:cost",
        "metrics": "reports:metrics",
        "graph": "graph:graph",
        "audit": "reports:audit",
    },
    ("Act", "penstock dead replay --queue found --canary"): {
        "queues": "queues:queues",
        "dead": "dead:dead",
        "cron": "cron:cron",
        "sources": "sources:sources",
        "workflows": "workflows:workflows",
        "controllers": "controllers:controllers",
    },
    ("Keep", "penstock backup backups/today.db market.py"): {
        "migrate": "migrate:migrate",
        "backup": "move:backup",
        "restore": "move:restore",
        "move": "move:move",
        "doctor": "doctor:doctor",
    },
    ("Prove", "penstock check market.py"): {
        "check": "readiness:check",
        "trial": "readiness:trial",
        "smoke": "readiness:smoke",
        "simulate": "simulate:simulate",
        "connect": "connect:connect",
        "audit-services": "audit_services:audit_services",
    },
}
COMMANDS = {
    name: place if "." in place else f"penstock.cli.{place}"
    for commands in GROUPS.values()
    for name, place in commands.items()
}
TEXT = "Durable data pipelines from one Python file and one database."
CODES = "0 fine, 1 the answer is bad, 2 usage or configuration, 3 no database, 4 no such thing, 130 interrupted"


class Commands(click.Group):
    """Commands by name, each in a file of its own. `--json` may stand before or behind the command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        command = _own(cmd_name) if cmd_name in COMMANDS else load_command(cmd_name)
        if command is None:
            known = near(cmd_name, {**COMMANDS, **system_commands()})
            raise click.UsageError(f"There is no command {cmd_name!r}. {known}", ctx)
        _take_json(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by purpose. Those of systems are named without importing their code."""
        for (purpose, example), commands in GROUPS.items():
            with formatter.section(f"{purpose}  (such as {example})"):
                formatter.write_dl([(name, _own(name).get_short_help_str(200)) for name in commands])
        with formatter.section("Systems"):
            systems = sorted(system_commands().keys() - COMMANDS.keys())
            formatter.write_dl([(name, f"Read what it found: penstock {name} --help") for name in systems])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"penstock COMMAND --help explains a command, with an example. Exit codes: {CODES}.")


def _own(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def _take_json(command: click.Command) -> None:
    """Every command takes `--json`, and so does every verb of a noun."""
    if not any(parameter.name == "as_json" for parameter in command.params):
        command.params.append(_json_option())
    for verb in command.commands.values() if isinstance(command, click.Group) else ():
        _take_json(verb)


def _json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, expose_value=False, help="Print one JSON object.")


@click.command(
    "penstock",
    cls=Commands,
    invoke_without_command=True,
    params=[_json_option()],
    context_settings={"help_option_names": ["-h", "--help"]},
    help=TEXT,
)
@click.option("--config", metavar="FILE", help="Settings, instead of penstock.toml (or PENSTOCK_CONFIG).")
@click.option("--version", is_flag=True, help="Print the versions of Penstock, Python and SQLite.")
@click.pass_context
def penstock(ctx: click.Context, config: str | None, version: bool) -> Answer | None:
    if config is not None:
        os.environ["PENSTOCK_CONFIG"] = config  # workers, which are processes of their own, read it too
    if version:
        versions = _versions()
        line = "penstock {penstock} (Python {python}, SQLite {sqlite})".format(**versions)
        ctx.exit(ctx.obj.answer(Answer(versions, line)))
    if ctx.invoked_subcommand is None:
        return Answer({"commands": list(COMMANDS)}, Verbatim(ctx.get_help()))
    return None


def _versions() -> dict[str, str]:
    import apsw

    from penstock import __version__

    return {"penstock": __version__, "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    output = Output(json="--json" in given)
    try:
        answer: Any = penstock.main(args=given, prog_name="penstock", standalone_mode=False, obj=output)
        code = output.answer(answer) if isinstance(answer, Answer) else answer
        output.out.flush()
        return code if isinstance(code, int) else FINE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has seen enough. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except click.ClickException as error:
        ctx: click.Context | None = getattr(error, "ctx", None)
        usage = "penstock --help" if ctx is None else f"{ctx.command_path} --help"
        if ctx is not None and isinstance(error, click.MissingParameter):
            usage = " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx)])
        return output.fail(_Usage(error.format_message(), hint=f"Usage: {usage}"), USAGE)
    except PenstockError as error:
        return output.fail(error, exit_code(error))
    except Exception as error:
        if not output.json:
            traceback.print_exc(file=output.err)
        return output.fail(_Bug(f"Penstock itself failed: {type(error).__name__}: {error}"), BAD_ANSWER)


class _Usage(PenstockError):
    """The command cannot be understood."""

    code = "usage"


class _Bug(PenstockError):
    """A mistake in Penstock."""

    code = "internal"
    hint = "Please report it with the traceback above."


if __name__ == "__main__":
    sys.exit(main())
