"""`penstock appstore clusters`, `cluster`, `trends`: the markets, one of them in depth, and what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.commands import NotFound, Output, database_option
from penstock_systems.appstore.reading import answers
from penstock_systems.appstore.reading.commands_shared import listing, look, show_list, write_csv
from penstock_systems.appstore.reading.drawing import (
    APPS,
    CLIMBERS,
    CLUSTERS,
    KEYWORDS,
    RISING_APPS,
    RISING_CLUSTERS,
    Column,
    draw_facts,
    draw_lines,
    draw_part,
    moment,
    name,
    one,
    short,
)
from penstock_systems.appstore.reading.shown import chart_shown, number

if TYPE_CHECKING:
    from rich.console import Console

NO_MARKETS = "No market is known yet. They are computed every six hours, once keywords have been searched."
HISTORY = (
    Column("at", "snapshot_at", moment),
    Column("score", "opportunity_score", one, right=True),
    Column("demand", "demand", one, right=True),
    Column("rivals", "competitiveness", one, right=True),
    Column("spread", "fragmentation", one, right=True),
    Column("apps", "apps", number, right=True),
    Column("keywords", "keywords", number, right=True),
)
NEAR = (
    Column("id", "id", str),
    Column("market", "name", name),
    Column("kind", "kind", short),
    Column("weight", "weight", lambda value: number(value, 2), right=True),
    Column("score", "opportunity_score", one, right=True),
)
TREND_COLUMNS = ("kind", "track_id", "track_name", "id", "name", "collection", "category", "rank", "was", "change")

days_option = click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=answers.WINDOW_DAYS,
    show_default=True,
    help="How far back to look for changes, from the newest time in the data.",
)


@click.command()
@days_option
@listing
@click.pass_obj
def clusters(output: Output, days: int, most: int, as_csv: bool, database: str | None) -> None:
    """Markets by their opportunity score, and how far it moved.

    `rivals` is how strong the apps in it are on average, `spread` how evenly they share the ratings, both 0 to 100.

    \b
    Example:
      penstock appstore clusters
      penstock appstore clusters --days 30 --csv > markets.csv
    """
    found = look(database, lambda reading: answers.clusters(reading, days=days, most=most))
    show_list(output, "clusters", found, CLUSTERS, as_csv=as_csv, none=NO_MARKETS)


@click.command()
@click.argument("id", type=int, metavar="ID")
@database_option
@click.pass_obj
def cluster(output: Output, id: int, database: str | None) -> None:
    """One market in depth.

    Its apps and keywords, its past, its neighbours, what could be built.

    \b
    Example:
      penstock appstore cluster 101
    """
    found = look(database, lambda reading: answers.cluster(reading, id))
    if found is None:
        raise NotFound(f"There is no market {id}.", hint="`penstock appstore clusters` lists all markets.")
    output.show({"cluster": found}, lambda console: _draw_cluster(console, found))


@click.command()
@days_option
@listing
@click.pass_obj
def trends(output: Output, days: int, most: int, as_csv: bool, database: str | None) -> None:
    """What moved: rising apps, climbers, rising markets.

    Apps that win ratings, apps that climb the charts, and markets whose score rose.

    \b
    Example:
      penstock appstore trends
      penstock appstore trends --days 30 --most 50 --json
    """
    found = look(database, lambda reading: answers.trends(reading, days=days, most=most))
    if as_csv:
        kinds = (("rising app", "rising_apps"), ("climber", "climbers"), ("rising market", "rising_clusters"))
        write_csv(output, [{"kind": kind, **row} for kind, key in kinds for row in found[key]], TREND_COLUMNS)
    else:
        output.show({"trends": found}, lambda console: _draw_trends(console, found))


def _draw_cluster(console: Console, found: dict[str, Any]) -> None:
    evaluation = found["evaluation"]
    draw_facts(
        console,
        found["name"],
        [
            ("id", str(found["id"])),
            ("score", one(found["opportunity_score"])),
            ("demand", one(found["demand"])),
            ("rivals", one(found["competitiveness"])),
            ("spread", one(found["fragmentation"])),
            ("size", f"{number(found['apps'])} apps, {number(found['keywords'])} keywords"),
            ("since", moment(found["first_seen_at"])),
            ("ended", moment(found["ended_at"])),
            ("verdict", "-" if evaluation is None else f"{name(evaluation['verdict'])} ({one(evaluation['score'])})"),
        ],
    )
    if evaluation is not None:
        draw_lines(console, "Why", [evaluation["reason"]])
    draw_part(console, "Apps", found["members"], APPS)
    draw_part(console, "Keywords", found["words"], KEYWORDS)
    draw_part(console, "Neighbours", found["neighbours"], NEAR)
    draw_part(console, "History", found["history"], HISTORY)
    draw_lines(console, "What could be built", (f"{each['title']}: {each['body']}" for each in found["concepts"]))
    draw_lines(console, "Tips", (each["text"] for each in found["tips"]))
    draw_lines(
        console,
        "Agents",
        (f"{each['agent']} {one(each['score'])}: {each['explanation']}" for each in found["findings"]),
    )


def _draw_trends(console: Console, found: dict[str, Any]) -> None:
    climbers = [
        {**row, "chart": f"{chart_shown(row['collection'])} {row['category_name'] or row['category']}"}
        for row in found["climbers"]
    ]
    console.print(f"Since {moment(found['since'])}" if found["since"] else "No data yet.")
    draw_part(console, "Apps that win ratings", found["rising_apps"], RISING_APPS)
    draw_part(console, "Apps that climb the charts", climbers, CLIMBERS)
    draw_part(console, "Markets that rise", found["rising_clusters"], RISING_CLUSTERS)
