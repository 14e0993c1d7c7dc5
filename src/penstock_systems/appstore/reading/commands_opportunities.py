"""`penstock appstore opportunities`, `opportunity`: what the analysts made of the markets, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.commands import NotFound, Output, database_option
from penstock_systems.appstore.reading import answers
from penstock_systems.appstore.reading.commands_shared import listing, look, show_list
from penstock_systems.appstore.reading.drawing import (
    OPPORTUNITIES,
    Column,
    draw_facts,
    draw_lines,
    draw_part,
    moment,
    name,
    one,
    short,
)
from penstock_systems.appstore.reading.shown import calm, number

if TYPE_CHECKING:
    from rich.console import Console

NONE_YET = "No market has been evaluated yet. The best markets are evaluated after each clustering."
REFERENCES = (
    Column("id", "track_id", str),
    Column("app", "track_name", name),
    Column("role", "role", short),
    Column("ratings", "rating_count", number, right=True),
    Column("stars", "average_rating", one, right=True),
)
METHODS = (
    Column("method", "name", short),
    Column("score", "score", one, right=True),
    Column("why", "reason", lambda value: calm(value, 140)),
)
EARLIER = (
    Column("at", "created_at", moment),
    Column("score", "score", one, right=True),
    Column("verdict", "verdict", short),
    Column("by", "made_by", short),
)


@click.command()
@listing
@click.pass_obj
def opportunities(output: Output, most: int, as_csv: bool, database: str | None) -> None:
    """Markets worth a look, the best first, and why.

    Each is the newest evaluation of its market. --json and --csv also have the apps it refers to and the tips.

    \b
    Example:
      penstock appstore opportunities
      penstock appstore opportunities --most 50 --csv > opportunities.csv
    """
    found = look(database, lambda reading: answers.opportunities(reading, most=most))
    show_list(output, "opportunities", found, OPPORTUNITIES, as_csv=as_csv, none=NONE_YET)


@click.command()
@click.argument("id", metavar="ID")
@database_option
@click.pass_obj
def opportunity(output: Output, id: str, database: str | None) -> None:
    """One opportunity in depth.

    Its reference apps, tips, methods, the debate and the playbook. ID is that of an evaluation, or the number of a market,
    of which it is then the newest.

    \b
    Example:
      penstock appstore opportunity 101
    """
    found = look(database, lambda reading: answers.opportunity(reading, id))
    if found is None:
        raise NotFound(
            f"There is no evaluation {calm(id, 60)!r}.", hint="`penstock appstore opportunities` lists all evaluations."
        )
    output.show({"opportunity": found}, lambda console: _draw(console, found))


def _draw(console: Console, found: dict[str, Any]) -> None:
    draw_facts(
        console,
        found["name"],
        [
            ("market", str(found["cluster_id"])),
            ("score", one(found["score"])),
            ("verdict", name(found["verdict"])),
            ("made by", name(found["made_by"])),
            ("at", moment(found["created_at"])),
            ("id", name(found["id"])),
        ],
    )
    draw_lines(console, "Why", [found["reason"]])
    draw_part(console, "Reference apps", found["reference_apps"], REFERENCES)
    draw_lines(console, "Tips", (each["text"] for each in found["tips"]))
    draw_part(console, "Ways to market it", found["methods"], METHODS)
    for debate in found["debates"]:
        draw_lines(console, "Debate", [debate["summary"]])
        draw_lines(console, "The debate", (f"{each['agent']}: {each['text']}" for each in debate["messages"]))
    for playbook in found["playbooks"]:
        draw_lines(console, "Playbook", playbook["body"].splitlines())
    draw_lines(console, "What could be built", (f"{each['title']}: {each['body']}" for each in found["concepts"]))
    if len(found["evaluations"]) > 1:
        draw_part(console, "Evaluations of this market", found["evaluations"], EARLIER)
