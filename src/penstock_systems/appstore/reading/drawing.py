"""How readings look in a terminal: tables that fit into 80 columns, and parts with a heading for one thing in depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.commands import fill, plain, printable, table
from penstock_systems.appstore.reading.shown import NAME_MOST, calm, number, signed

if TYPE_CHECKING:
    from rich.console import Console

Rows = Sequence[dict[str, Any]]
TEXT_MOST = 2_000  # characters of a body: a playbook, a description


class Column(NamedTuple):
    """One column: where its cell comes from, and from which width of the terminal on it is shown."""

    title: str
    key: str
    shown: Callable[[Any], str]
    right: bool = False
    least_width: int = 0


def name(value: Any) -> str:
    return "-" if value is None else calm(value, NAME_MOST)


def short(value: Any) -> str:
    return "-" if value is None else calm(value, 24)


def reason(value: Any) -> str:
    return calm(value, 140)


def one(value: Any) -> str:
    return number(value, 1)


def moment(value: Any) -> str:
    return "-" if value is None else str(value)[:16]


APPS = (
    Column("id", "track_id", str),
    Column("app", "track_name", name),
    Column("seller", "seller_name", short, least_width=110),
    Column("genre", "primary_genre", short, least_width=110),
    Column("ratings", "rating_count", number, right=True),
    Column("stars", "average_rating", one, right=True),
    Column("a day", "rating_velocity_7d", one, right=True),
    Column("strength", "competitiveness_score", one, right=True),
    Column("price", "formatted_price", short, right=True, least_width=100),
)
RANKED = (Column("rank", "rank", number, right=True), *APPS)
KEYWORDS = (
    Column("keyword", "keyword", name),
    Column("demand", "demand", one, right=True),
    Column("apps", "app_count", number, right=True),
    Column("status", "status", short),
    Column("source", "source", short),
    Column("priority", "priority", number, right=True, least_width=90),
    Column("searched", "last_searched_at", moment, least_width=100),
)
CLUSTERS = (
    Column("id", "id", str),
    Column("market", "name", name),
    Column("score", "opportunity_score", one, right=True),
    Column("change", "change", signed, right=True),
    Column("demand", "demand", one, right=True),
    Column("rivals", "competitiveness", one, right=True),
    Column("spread", "fragmentation", one, right=True),
    Column("apps", "apps", number, right=True),
    Column("keywords", "keywords", number, right=True, least_width=90),
)
OPPORTUNITIES = (
    Column("#", "rank", str),
    Column("market", "cluster_id", str),
    Column("name", "name", short),
    Column("score", "score", one, right=True),
    Column("verdict", "verdict", short),
    Column("why", "reason", reason),
)
RISING_APPS = (
    Column("id", "track_id", str),
    Column("app", "track_name", name),
    Column("ratings a day", "rating_velocity_7d", one, right=True),
    Column("ratings", "rating_count", number, right=True),
)
CLIMBERS = (
    Column("id", "track_id", str),
    Column("app", "track_name", name),
    Column("chart", "chart", name),
    Column("rank", "rank", number, right=True),
    Column("was", "was", number, right=True),
    Column("climbed", "climbed", number, right=True),
)
RISING_CLUSTERS = (
    Column("id", "id", str),
    Column("market", "name", name),
    Column("score", "opportunity_score", one, right=True),
    Column("was", "was", one, right=True),
    Column("change", "change", signed, right=True),
)
SHARES = (
    Column("token", "token", str),
    Column("title", "title", short),
    Column("shared", "created_at", moment, least_width=100),
    Column("until", "expires_at", moment),
    Column("opened", "opened", number, right=True),
)
PUBLISHERS = (
    Column("id", "developer_id", str),
    Column("publisher", "name", name),
    Column("starred", "created_at", moment),
)
LISTS = (
    Column("list", "name", name),
    Column("apps", "apps", number, right=True),
    Column("changed", "changed_at", moment),
)


def draw_rows(console: Console, rows: Rows, columns: Iterable[Column], *, none: str) -> None:
    """A table, or a sentence where there is nothing to show."""
    if not rows:
        console.print(plain(none), soft_wrap=True)
        return
    wanted = [column for column in columns if console.width >= column.least_width]
    drawn = table(*((column.title, "right" if column.right else "left") for column in wanted))
    console.print(fill(drawn, ([column.shown(row.get(column.key)) for column in wanted] for row in rows)))


def draw_part(console: Console, title: str, rows: Rows, columns: Iterable[Column]) -> None:
    """A heading and a table; nothing at all where there is nothing."""
    if rows:
        console.print(f"\n[bold]{plain(title)}[/]")
        draw_rows(console, rows, columns, none="")


def draw_lines(console: Console, title: str, lines: Iterable[str]) -> None:
    """A heading and sentences, each on a line of its own."""
    from rich.padding import Padding
    from rich.text import Text

    kept = [calm(line, TEXT_MOST) for line in lines]
    if kept:
        console.print(f"\n[bold]{plain(title)}[/]")
    for line in kept:
        console.print(Padding(Text(printable(line)), (0, 0, 0, 2)))


def draw_facts(console: Console, title: str, facts: Iterable[tuple[str, str]]) -> None:
    """What a thing is called, and its facts one below the other."""
    console.print(f"[bold]{plain(calm(title, TEXT_MOST))}[/]")
    drawn = table(("", "left"), ("", "left"))
    drawn.show_header = False
    console.print(fill(drawn, [(label, value) for label, value in facts if value not in ("", "-")]))
