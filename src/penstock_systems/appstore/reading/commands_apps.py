"""`penstock appstore apps`, `app`, `keywords`, `keyword`: what the crawl found and the enrichment told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.commands import NotFound, Output, database_option, refuse
from penstock_systems.appstore.keywords import normal
from penstock_systems.appstore.reading import answers
from penstock_systems.appstore.reading.commands_shared import listing, look, show_list
from penstock_systems.appstore.reading.drawing import (
    APPS,
    KEYWORDS,
    RANKED,
    TEXT_MOST,
    Column,
    draw_facts,
    draw_lines,
    draw_part,
    moment,
    name,
    one,
    short,
)
from penstock_systems.appstore.reading.shown import calm, chart_shown, number

if TYPE_CHECKING:
    from rich.console import Console

NO_APPS = "No app matches. `penstock appstore apps` lists the best known."
NO_KEYWORDS = "No keyword matches. `penstock appstore keywords --status pending` lists the pending ones."
RANKED_FOR = (
    Column("keyword", "keyword", name),
    Column("rank", "rank", number, right=True),
    Column("demand", "demand", one, right=True),
)
CHARTED = (
    Column("chart", "collection", chart_shown),
    Column("category", "category_name", short),
    Column("rank", "rank", number, right=True),
    Column("at", "snapshot_at", moment),
)
PLACES = (
    Column("day", "day", str),
    Column("rank", "rank", number, right=True),
    Column("id", "track_id", str),
    Column("app", "track_name", name),
)
IN_MARKETS = (
    Column("id", "id", str),
    Column("market", "name", name),
    Column("score", "opportunity_score", one, right=True),
    Column("weight", "weight", one, right=True),
)


@click.command()
@click.option("--by", type=click.Choice(answers.ORDERS), help="The order. Default: by ratings.")
@click.option("--genre", metavar="NAME", help="The best known of a category, such as 'Health & Fitness'.")
@click.option("--market", type=int, metavar="ID", help="Apps of a market, its strongest members first.")
@click.option("--keyword", metavar="WORDS", help="Apps that rank for a keyword.")
@click.option("--developer", type=int, metavar="ID", help="Apps of a developer.")
@listing
@click.pass_obj
def apps(output: Output, /, most: int, as_csv: bool, database: str | None, **wanted: Any) -> None:
    """Apps: the best known, rising, strongest, newest.

    Or those of a category, a market, a keyword or a developer, each in an order of its own. `a day` is how many ratings an
    app wins a day; `strength` is the competitiveness agent's score, 0 to 100.

    \b
    Example:
      penstock appstore apps --by velocity
      penstock appstore apps --keyword 'habit tracker' --csv > rivals.csv
    """
    given = {option: value for option, value in wanted.items() if value is not None}
    if len(given) > 1:
        raise refuse(f"--{' and --'.join(sorted(given))} cannot be combined: each has its own order.")
    found = look(database, lambda reading: answers.apps(reading, most=most, **given))
    columns = RANKED if "keyword" in given else APPS
    show_list(output, "apps", found, columns, as_csv=as_csv, none=NO_APPS)


@click.command()
@click.argument("id", type=int, metavar="ID")
@database_option
@click.pass_obj
def app(output: Output, id: int, database: str | None) -> None:
    """One app in depth.

    What it is, where it ranks, which markets it is in, what is said about it.

    \b
    Example:
      penstock appstore app 101002
      penstock appstore app 101002 --json
    """
    found = look(database, lambda reading: answers.app(reading, id))
    if found is None:
        raise NotFound(f"No app {id} is known here.", hint="`penstock appstore apps` lists the known ones.")
    output.show({"app": found}, lambda console: _draw_app(console, found))


@click.command()
@click.option("--status", type=click.Choice(answers.STATUSES), help="In the order in which the crawl processes them.")
@click.option("--market", type=int, metavar="ID", help="Keywords of a market.")
@click.option("--app", type=int, metavar="ID", help="Keywords that an app ranks for.")
@click.option("--tracked", is_flag=True, default=None, help="Keywords that a user tracks.")
@listing
@click.pass_obj
def keywords(output: Output, /, most: int, as_csv: bool, database: str | None, **wanted: Any) -> None:
    """Keywords by demand, or the ones of something.

    Of a status, a market or an app, or those that are tracked.

    \b
    Example:
      penstock appstore keywords
      penstock appstore keywords --market 101 --json
    """
    given = {option: value for option, value in wanted.items() if value is not None}
    if len(given) > 1:
        raise refuse(f"--{' and --'.join(sorted(given))} cannot be combined: each has its own order.")
    found = look(database, lambda reading: answers.keywords(reading, most=most, **given))
    show_list(output, "keywords", found, KEYWORDS, as_csv=as_csv, none=NO_KEYWORDS)


@click.command()
@click.argument("words", metavar="WORDS")
@database_option
@click.pass_obj
def keyword(output: Output, words: str, database: str | None) -> None:
    """One keyword in depth: who ranks for it.

    \b
    Example:
      penstock appstore keyword 'habit tracker'
    """
    usual = normal(words) or words  # as the crawl writes it
    found = look(database, lambda reading: answers.keyword(reading, words)) or look(
        database, lambda reading: answers.keyword(reading, usual)
    )
    if found is None:
        raise NotFound(
            f"No keyword {calm(words, 100)!r} is known here.", hint="`penstock appstore keywords` lists the known ones."
        )
    output.show({"keyword": found}, lambda console: _draw_keyword(console, found))


def _draw_app(console: Console, found: dict[str, Any]) -> None:
    draw_facts(
        console,
        found["track_name"],
        [
            ("id", str(found["track_id"])),
            ("subtitle", name(found["subtitle"])),
            ("seller", name(found["seller_name"])),
            ("genre", name(found["primary_genre"])),
            ("price", name(found["formatted_price"])),
            ("ratings", f"{number(found['rating_count'])}, {one(found['average_rating'])} stars"),
            ("ratings a day", one(found["rating_velocity_7d"])),
            ("strength", one(found["competitiveness_score"])),
            ("version", name(found["version"])),
            ("enriched", f"{moment(found['enriched_at'])} from {name(found['enrichment_source'])}"),
            ("last error", name(found["enrich_error"])),
            ("seen", f"{moment(found['first_seen_at'])} to {moment(found['last_seen_at'])}"),
            ("page", calm(found["track_view_url"] or "-", 200)),
        ],
    )
    if found["description"]:
        draw_lines(console, "Description", [calm(found["description"], TEXT_MOST)])
    draw_part(console, "Markets", found["markets"], IN_MARKETS)
    draw_part(console, "Ranks for", found["keywords"], RANKED_FOR)
    draw_part(console, "Charts", found["charts"], CHARTED)
    draw_lines(console, "Reviews", map(_review, found["reviews"]))
    _draw_findings(console, found)


def _review(each: dict[str, Any]) -> str:
    return f"{each['rating']}★ {each['reviewed_at'][:10]} {each['title'] or ''}: {each['body'] or ''}"


def _draw_keyword(console: Console, found: dict[str, Any]) -> None:
    draw_facts(
        console,
        found["keyword"],
        [
            ("status", found["status"]),
            ("demand", one(found["demand"])),
            ("apps", number(found["app_count"])),
            ("source", " from ".join(name(each) for each in (found["source"], found["source_keyword"]) if each)),
            ("searched", moment(found["last_searched_at"])),
            ("last error", name(found["last_error"])),
        ],
    )
    draw_part(console, "Apps that rank for it", found["ranked"], RANKED)
    draw_part(console, "Markets", found["markets"], IN_MARKETS)
    draw_part(console, "Apps that ranked for it", found["places"], PLACES)
    _draw_findings(console, found)


def _draw_findings(console: Console, found: dict[str, Any]) -> None:
    draw_lines(
        console,
        "Agents",
        (f"{each['agent']} {one(each['score'])}: {each['explanation']}" for each in found["findings"]),
    )
