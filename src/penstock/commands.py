"""What the commands of a system are written with: how a command speaks, and how it opens a database.

A package offers its commands under the entry point group `penstock.commands`: a name, and a click command or group.
"""

from __future__ import annotations

from penstock.cli.operating import confirm, operating, refuse, show_help, yes_option
from penstock.cli.output import NotFound, Output, fill, money_shown, plain, printable, table
from penstock.cli.target import OnlyReading, Target, database_option, find, reading
from penstock.data.usage import MonthUsage, month_usage
from penstock.model.errors import StatementFailed

__all__ = [
    "MonthUsage",
    "NotFound",
    "OnlyReading",
    "Output",
    "StatementFailed",
    "Target",
    "confirm",
    "database_option",
    "fill",
    "find",
    "money_shown",
    "month_usage",
    "operating",
    "plain",
    "printable",
    "reading",
    "refuse",
    "show_help",
    "table",
    "yes_option",
]
