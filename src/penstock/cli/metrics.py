"""`penstock metrics`: which data points there are, and what they add up to."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import target as targets
from penstock.cli.output import NotFound, Output, fill, plain, table
from penstock.metrics import summary
from penstock.metrics.asking import DOUBLES, PLATFORM, Names, named
from penstock.metrics.summary import Group, Held
from penstock.model.times import MICROS, parse_span, text_of_micros

if TYPE_CHECKING:
    from rich.console import Console

GROUPS_SHOWN = 50


@click.command()
@targets.target_argument
@targets.database_option
@click.option("--since", default="24h", show_default=True, metavar="SPAN", help="How far back: 30m, 24h, 7d, 52w.")
@click.option("--by", multiple=True, metavar="COLUMN", help="What to group by: a name, index1, blob1 ... Repeatable.")
@click.option("--dataset", metavar="NAME", help=f"Which one to add up; {PLATFORM}, or the only one.")
@click.pass_obj
def metrics(
    output: Output, target: str | None, database: str | None, since: str, by: tuple[str, ...], dataset: str | None
) -> None:
    """Datasets, and sums of their data points.

    Reads only. Over more than a week whole hours are added up, over more than 90 days whole days. Names of columns are
    known where APP is named, like market.py or package.module:app.

    \b
    Example:
      penstock metrics market.py
      penstock metrics market.py --since 7d --by phase
      penstock metrics --database market.db --dataset sales --by blob1 --json
    """
    span = parse_span(since)
    found = targets.find(target, database)
    with targets.reading(found) as reading, closing(found.store().open_history(read_only=True)) as file:
        now = reading.now()
        begins = now - round(span * MICROS)
        held = summary.datasets(file, since=begins)
        names = _names(found, held, dataset)
        wanted = by or (("trigger", "phase") if names.dataset == PLATFORM else ("index1",))
        groups = summary.groups(file, names, wanted, since=begins, now=now)
    told = {
        "since": text_of_micros(begins),
        "datasets": [each._asdict() for each in held],
        "dataset": names.dataset,
        "by": list(wanted),
        "groups": [_told(group, wanted, names) for group in groups],
    }
    output.show(told, lambda console: _draw(console, since, held, names, wanted, groups))


def _names(found: targets.Target, held: list[Held], dataset: str | None) -> Names:
    known = [each.name for each in held]
    if dataset is not None and dataset not in known:
        raise NotFound(
            f"Nothing was written to a dataset {dataset!r} in {found.database} in this time.",
            hint=f"There are: {', '.join(known) or 'none'}. Look further back with `--since 7d`.",
        )
    name = dataset or (PLATFORM if PLATFORM in known or not known else known[0])
    declared = None if found.app is None else found.app.metrics.declared.get(name)
    return named(name, None) if declared is None else declared.names


def _titles(names: Names) -> list[str]:
    """What each double is called."""
    called = {column: name for name, column in names.columns.items()}
    return [called.get(double, double) for double in DOUBLES]


def _told(group: Group, by: tuple[str, ...], names: Names) -> dict[str, Any]:
    sums = {title: total for title, total in zip(_titles(names), group.sums, strict=True) if total is not None}
    return {**dict(zip(by, group.words, strict=True)), "points": group.points, "sums": sums}


def _draw(
    console: Console, since: str, held: list[Held], names: Names, by: tuple[str, ...], groups: list[Group]
) -> None:
    if not held:
        console.print(
            f"No data points in the last {plain(since)}. `app.metrics(...).write(...)` writes some, as does a worker."
        )
        return
    titles = (("dataset", "left"), ("written", "right"), ("dropped", "right"), ("refused", "right"), ("last", "left"))
    rows = [
        (each.name, f"{each.written:,}", f"{each.dropped:,}", f"{each.refused:,}", each.last_at or "-") for each in held
    ]
    console.print(fill(table(*titles), rows))
    console.print(f"\n[bold]{plain(names.dataset)}[/] in the last {plain(since)}")
    used = [place for place in range(len(DOUBLES)) if any(group.sums[place] is not None for group in groups)]
    called = _titles(names)
    columns = [*((column, "left") for column in by), ("points", "right"), *((called[place], "right") for place in used)]
    shown = [
        (*(word or "-" for word in group.words), f"{group.points:,}", *(_number(group.sums[place]) for place in used))
        for group in groups[:GROUPS_SHOWN]
    ]
    console.print(fill(table(*columns), shown))
    if len(groups) > GROUPS_SHOWN:
        console.print(f"... and {len(groups) - GROUPS_SHOWN:,} more; `--json` has them.")


def _number(total: float | None) -> str:
    if total is None:
        return "-"
    return f"{total:,.0f}" if float(total).is_integer() else f"{total:,.3f}"
