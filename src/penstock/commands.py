"""What the commands of a system are written with: how a command answers, and how it opens a database.

A package offers its commands under the entry point group `penstock.commands`: a name, and a click command or group.
"""

from __future__ import annotations

from penstock.cli.command import CliCommand as Command
from penstock.cli.command import Noun, confirm, opened_app, operating, refuse, this_output, yes_option
from penstock.cli.connect import allow_option, read_once
from penstock.cli.output import Answer, NotFound, Output, Verbatim, fill, plain, table
from penstock.cli.target import database_option, find, reading
from penstock.data.usage import MonthUsage, month_usage
from penstock.model.errors import StatementFailed
from penstock.views.observer import Observer, Target
from penstock.views.view import printable, usd_text

__all__ = [
    "Answer",
    "Command",
    "MonthUsage",
    "NotFound",
    "Noun",
    "Observer",
    "Output",
    "StatementFailed",
    "Target",
    "Verbatim",
    "allow_option",
    "confirm",
    "database_option",
    "fill",
    "find",
    "month_usage",
    "opened_app",
    "operating",
    "plain",
    "printable",
    "read_once",
    "reading",
    "refuse",
    "table",
    "this_output",
    "usd_text",
    "yes_option",
]
