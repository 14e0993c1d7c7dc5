"""`penstock appstore report`, `share`, `shared`, `shares`, `unshare`: the whole of it as a file, for oneself and others."""

from __future__ import annotations

from pathlib import Path

import click

import penstock as ps
from penstock.commands import NotFound, Output, database_option, plain, refuse
from penstock_systems.appstore.reading import page, sharing
from penstock_systems.appstore.reading import report as reports
from penstock_systems.appstore.reading.commands_shared import change, listing, look, show_list
from penstock_systems.appstore.reading.drawing import SHARES
from penstock_systems.appstore.reading.facts import Report
from penstock_systems.appstore.reading.shown import calm

NONE_SHARED = "Nothing is shared. `penstock appstore share` shares a report."

out_option = click.option("--out", metavar="FILE", help="Where to write it: report.html, or report.json for programs.")
title_option = click.option("--title", default=reports.TITLE, show_default=True, help="The title of the report.")


@click.command()
@out_option
@title_option
@database_option
@click.pass_obj
def report(output: Output, out: str | None, title: str, database: str | None) -> None:
    """Everything on one page.

    Opportunities with their reasons, the market map, what moved, what it took. FILE is one HTML page that needs nothing
    else, neither scripts nor the network. The same database gives the same page, to the byte. --json gives the facts that
    it is made of.

    \b
    Example:
      penstock appstore report --out report.html
      penstock appstore report --json > report.json
    """
    if out is None and not output.json:
        raise refuse("Name a file with --out report.html, or use --json.")
    made = look(database, lambda reading: reports.gather(reading, title=title))
    if out is None:
        output.show(made, lambda console: None)
    else:
        write(out, made)
        output.show(
            {"file": out, "ends": made.ends, "opportunities": made.figures.opportunities},
            lambda console: console.print(plain(f"{out}: {made.figures.opportunities} opportunities.")),
        )


@click.command()
@out_option
@title_option
@click.option("--days", type=click.IntRange(1, 3_650), help="How long the report is shared. Default: until `unshare`.")
@database_option
@click.pass_obj
def share(output: Output, out: str | None, title: str, days: int | None, database: str | None) -> None:
    """Share the report as it is now.

    A file to send, and a token by which it can be had again.

    \b
    Example:
      penstock appstore share --days 30 --out for-ada.html
    """

    async def deed(app: ps.App) -> tuple[str, Report]:
        made = await reports.gather(app.db, title=title)
        return await sharing.share(app, made, days=days), made

    token, made = change(database, deed)
    if out is not None:
        write(out, made)
    output.show(
        {"token": token, "file": out, "days": days},
        lambda console: console.print(plain(f"{token}{'' if out is None else f'  {out}'}")),
    )


@click.command()
@click.argument("token")
@out_option
@database_option
@click.pass_obj
def shared(output: Output, token: str, out: str | None, database: str | None) -> None:
    """Open a shared report. That it was opened is noted.

    \b
    Example:
      penstock appstore shared TOKEN --out report.html
    """
    if out is None and not output.json:
        raise refuse("Name a file with --out report.html, or use --json.")
    made = change(database, lambda app: sharing.opened(app, token))
    if made is None:
        raise NotFound(
            "No report is shared under this token.", hint="`penstock appstore shares` lists all shared reports."
        )
    if out is None:
        output.show(made, lambda console: None)
    else:
        write(out, made)
        output.show({"file": out, "title": made.title}, lambda console: console.print(plain(f"{out}: {made.title}")))


@click.command()
@listing
@click.pass_obj
def shares(output: Output, most: int, as_csv: bool, database: str | None) -> None:
    """What is shared, until when, and how often it was opened.

    \b
    Example:
      penstock appstore shares
    """
    found = look(database, lambda reading: sharing.shares(reading, most=most))
    show_list(output, "shares", found, SHARES, as_csv=as_csv, none=NONE_SHARED)


@click.command()
@click.argument("token")
@database_option
@click.pass_obj
def unshare(output: Output, token: str, database: str | None) -> None:
    """Take a shared report back. Files that were sent stay where they are.

    \b
    Example:
      penstock appstore unshare TOKEN
    """
    if not change(database, lambda app: sharing.unshare(app, token)):
        raise NotFound(
            f"No report is shared under {calm(token, 60)!r}.",
            hint="`penstock appstore shares` lists all shared reports.",
        )
    output.show({"unshared": token}, lambda console: console.print("It is no longer shared."))


def write(out: str, made: Report) -> None:
    """As a page, or as facts where the file is called so."""
    text = reports.as_json(made) if out.endswith(".json") else page.html(made).encode()
    try:
        Path(out).write_bytes(text)
    except OSError as error:
        raise ps.BadConfig(
            f"{out} cannot be written: {error.strerror}.", hint="Name another file with --out."
        ) from error
