"""`penstock cost`, `metrics` and `audit`: what a month has cost, sums of data points, and what operators changed."""

from __future__ import annotations

from collections.abc import Callable

import click

from penstock.cli.command import CliCommand, limit_option, looking
from penstock.cli.output import Answer, Listed, NotFound, Title, listed
from penstock.metrics import summary
from penstock.metrics.asking import DOUBLES, PLATFORM, Names, named
from penstock.metrics.summary import DatasetSummary, PointGroup
from penstock.model.limits import near
from penstock.model.times import MICROS, parse_span, text_of_micros
from penstock.views import audit as audits
from penstock.views import cost as costs
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, small_usd_text, usd_text


@click.command(cls=CliCommand)
@looking
@click.option("--month", metavar="YYYY-MM", help="Another month than this one.")
async def cost(observer: Observer, month: str | None) -> Answer:
    """Show what a month has used and cost, by task, queue and statement.

    Penstock charges nothing: the prices are those of a cloud platform, to compare with and to find a statement that reads too
    much. Rows read are an estimate that is never too low. Paid calls are real money: those that the app made through its
    gateway, with what is left of their budgets.

    Example:
      penstock cost market.py
      penstock cost --database market.db --month 2026-10 --json
    """
    facts = await costs.cost(observer, month)
    bill, statements, api = facts.pop("bill"), facts.pop("statements"), facts["api"]
    queues = [{"name": name, "used": used} for name, used in list(facts["queues"].items())[: costs.SHOWN]]
    statements = [each for each in statements if each["task"]]  # others are those of commands and of the engine
    parts: list[object] = [Title(f"{facts['month']}  {usd_text(facts['usd'])}"), "", Listed(costs.BILL, bill)]
    lists = (costs.QUEUES, queues), (costs.STATEMENTS, statements), (costs.CLASSES, facts["objects"])
    for shown, rows in (*lists, (costs.CEILINGS, facts["ceilings"])) if bill else ():
        parts += ["", Listed(shown, rows)] if rows else []
    if api["calls"] or api["budgets"]:
        parts += ["", Title(f"Paid calls  {small_usd_text(api['usd'])}"), ""]
        parts += [Listed(shown, api[shown.name]) for shown in (costs.KINDS, costs.BUDGETS) if api[shown.name]]
    if (stored := facts["blobs"]) and stored["blobs"]:
        size = f"{stored['blobs']:,} blobs of {stored['bytes']:,} bytes are stored"
        parts += ["", f"{size}: {small_usd_text(stored['usd'])} a month."]
    return Answer(facts, *parts)


# -- metrics -----------------------------------------------------------------------------------------------


GROUPS_SHOWN = 50

DATASETS = View(
    "datasets",
    (
        Column("name", "dataset"),
        Column("written", "written", "count"),
        Column("dropped", "dropped", "count"),
        Column("refused", "refused", "count"),
        Column("last_at", "last", rank=1),
    ),
)


@click.command(cls=CliCommand)
@looking
@click.option("--since", default="24h", show_default=True, metavar="SPAN", help="How far back: 30m, 24h, 7d, 52w.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Group by it: a name, index1, blob1 ... Repeatable.")
@click.option("--dataset", metavar="NAME", help=f"The dataset to sum; {PLATFORM}, or the only one.")
async def metrics(observer: Observer, since: str, by: tuple[str, ...], dataset: str | None) -> Answer:
    """List datasets of data points, and sum one of them.

    More than a week is summed by whole hours, more than 90 days by whole days. Names of columns are known where APP is named,
    like market.py or package.module:app.

    Example:
      penstock metrics market.py
      penstock metrics market.py --since 7d --by phase
      penstock metrics --database market.db --dataset sales --by blob1 --json
    """
    now = observer.now()
    begins = now - round(parse_span(since) * MICROS)
    held = await observer.ask(lambda file: summary.datasets(file, since=begins))
    names = _names(observer, held, dataset)
    wanted = by or (("trigger", "phase") if names.dataset == PLATFORM else ("index1",))
    groups = await observer.ask(lambda file: summary.groups(file, names, wanted, since=begins, now=now))
    called = {column: name for name, column in names.columns.items()}
    titles = [called.get(double, double) for double in DOUBLES]
    rows = [_row(group, wanted, titles) for group in groups]
    facts: Row = {
        "since": text_of_micros(begins),
        "datasets": [each._asdict() for each in held],
        "dataset": names.dataset,
        "by": list(wanted),
        "groups": rows,
    }
    if not held:
        return Answer(
            facts, f"No data points in the last {since}. `app.metrics(...).write(...)` and workers write them."
        )
    sums = [
        Column("", title, "number", of=_sum(title)) for title in titles if any(title in row["sums"] for row in rows)
    ]
    words = [Column(column, column) for column in wanted]
    shown = View("groups", (*words, Column("points", "points", "count"), *sums), empty="No points in this time.")
    more = [f"... and {len(rows) - GROUPS_SHOWN:,} more groups; --json has them."] if len(rows) > GROUPS_SHOWN else []
    title = Title(f"{names.dataset} in the last {since}")
    return Answer(facts, Listed(DATASETS, facts["datasets"]), "", title, Listed(shown, rows[:GROUPS_SHOWN]), *more)


def _names(observer: Observer, held: list[DatasetSummary], dataset: str | None) -> Names:
    known = [each.name for each in held]
    if dataset is not None and dataset not in known:
        raise NotFound(
            f"Nothing was written to a dataset {dataset!r} in {observer.target.database} in this time.",
            hint=f"{near(dataset, known)} Look further back with `--since 7d`.",
        )
    name = dataset or (PLATFORM if PLATFORM in known or not known else known[0])
    declared = None if observer.app is None else observer.app.metrics.declared.get(name)
    return named(name, None) if declared is None else declared.names


def _row(group: PointGroup, by: tuple[str, ...], titles: list[str]) -> Row:
    sums = {title: total for title, total in zip(titles, group.sums, strict=True) if total is not None}
    return {**dict(zip(by, group.words, strict=True)), "points": group.points, "sums": sums}


def _sum(title: str) -> Callable[[Row], float | None]:
    return lambda row: row["sums"].get(title)


# -- audit -------------------------------------------------------------------------------------------------


@click.command(cls=CliCommand)
@looking
@click.option("--object", "name", metavar="NAME", help="Of this queue, cron task, run, controller or dead letter.")
@click.option("--verb", metavar="VERB", help='Of this command, such as "queues pause", or this noun, such as dead.')
@limit_option(audits.LISTED_MAX, 50)
async def audit(observer: Observer, name: str | None, verb: str | None, limit: int) -> Answer:
    """List what operators changed, newest first.

    Each administrative command and HTTP call writes one entry in the commit of its effect: who (user and host, or the name of
    the token), from where, what, and the values before and after. A command that changes nothing writes none.

    Example:
      penstock audit market.py
      penstock audit market.py --object orders
      penstock audit market.db --verb "dead replay" --json
    """
    return listed(audits.AUDIT, await audits.AUDIT.read(observer, name, verb, limit=limit))
