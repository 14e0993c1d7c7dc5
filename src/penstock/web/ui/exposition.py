"""What Prometheus collects: queues, workers, paces, cron tasks, money and what needs attention, at `/metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.views import paces, queues
from penstock.views.view import Row
from penstock.web.ui import backlog
from penstock.web.ui.page import Facts, PageLook
from penstock.web.ui.pages_crons import crons
from penstock.web.ui.pages_operation import cost, disk_free
from penstock.web.ui.pages_overview import overview

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUEUES_MAX = 500
LIVES = ("alive", "gone", "elsewhere")
GOOD = ("done", "ok", "idle", "running", "queued", "skipped", "complete")  # of the last run of a task


async def measured(look: PageLook) -> Facts:
    """Return the facts that are exposed, read as pages read them."""
    return {
        "queues": await backlog.queues(look, most=QUEUES_MAX, internals=True),
        "overview": await overview(look),
        "paces": await paces.rows(look.reading),
        "crons": (await crons(look))["crons"],
        "cost": await cost(look),
        "workers": Counter(
            {True: "alive", False: "gone", None: "elsewhere"}[look.reading.is_alive(each)]
            for each in await queues.processes(look.reading)
            if each.runs_handlers
        ),
        "disk_free_bytes": disk_free(look),
    }


def exposition(facts: Facts) -> bytes:
    """Return facts in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(_families(facts)))
    return generate_latest(registry)


class _Given(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _gauge(
    name: str, help: str, labels: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], float | None]]
) -> Metric:
    family = GaugeMetricFamily(f"penstock_{name}", help, labels=labels)
    for values, value in rows:
        if value is not None:
            family.add_metric(values, float(value))
    return family


def _counter(name: str, help: str, labels: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = CounterMetricFamily(f"penstock_{name}", help, labels=labels)
    for values, value in rows:
        family.add_metric(values, float(value))
    return family


def _families(facts: Facts) -> Iterator[Metric]:
    yield from _queues(facts["queues"])
    yield from _paces(facts["paces"])
    yield from _crons(facts["crons"])
    yield from _money(facts["cost"])
    database = facts["overview"]["database"]
    workers = facts["workers"]
    yield _gauge("workers", "Processes that run handlers.", ("state",), [((each,), workers[each]) for each in LIVES])
    yield _gauge("database_bytes", "Size of the database.", (), [((), database["bytes"])])
    yield _gauge("database_days_left", "Days until the database reaches its cap.", (), [((), database["days_left"])])
    yield _gauge("disk_free_bytes", "Free space beside the database.", (), [((), facts["disk_free_bytes"])])
    kinds = Counter((each["kind"], each["level"]) for each in facts["overview"]["attention"])
    attention = [(key, count) for key, count in sorted(kinds.items())]
    yield _gauge(
        "attention", "Conditions that need an operator, as the overview lists them.", ("kind", "level"), attention
    )


def _queues(rows: list[Row]) -> Iterator[Metric]:
    states = [
        ((row["name"], state), row[field])
        for row in rows
        for state, field in (("waiting", "waiting"), ("leased", "leased"), ("dead", "dead"))
    ]
    yield _gauge("queue_messages", "Messages of a queue by state.", ("queue", "state"), states)
    ages = [((row["name"],), row["oldest_age_seconds"] or 0.0) for row in rows]
    yield _gauge("queue_oldest_seconds", "How long the first message has been due.", ("queue",), ages)
    yield _gauge(
        "queue_paused", "1 if the queue is paused.", ("queue",), [((row["name"],), row["paused"]) for row in rows]
    )
    for field, name, help in (
        ("sent", "messages_sent", "Messages that were sent."),
        ("acked", "messages_done", "Messages that were handled."),
        ("purged", "messages_purged", "Messages that an operator deleted."),
        ("expired", "messages_expired", "Messages that outlived their retention."),
    ):
        yield _counter(name, help, ("queue",), [((row["name"],), row[field]) for row in rows])


def _paces(rows: list[Row]) -> Iterator[Metric]:
    rates = [((row["name"],), row["rate_per_second"]) for row in rows]
    yield _gauge("pace_rate", "Requests a second that a pace starts.", ("pace",), rates)
    limits = [((row["name"],), row["limit_per_second"]) for row in rows]
    yield _gauge("pace_limit", "Requests a second that the service was found to take.", ("pace",), limits)
    closed = [((row["name"],), row["closed_until"] is not None) for row in rows]
    yield _gauge("pace_closed", "1 while the service refuses everything.", ("pace",), closed)
    yield _counter("pace_requests", "Requests.", ("pace",), [((row["name"],), row["requests"]) for row in rows])
    yield _counter(
        "pace_refused", "Requests that were refused.", ("pace",), [((row["name"],), row["refused"]) for row in rows]
    )


def _crons(rows: list[Row]) -> Iterator[Metric]:
    ended = [((row["name"],), row["last_status"] in GOOD) for row in rows if row["last_status"]]
    yield _gauge("cron_last_ok", "1 if the last run of a task that has ended did well.", ("task",), ended)
    yield _counter("cron_runs", "Runs of a task.", ("task",), [((row["name"],), row["fired"]) for row in rows])
    yield _gauge(
        "cron_paused", "1 if the task is paused.", ("task",), [((row["name"],), row["paused"]) for row in rows]
    )


def _money(facts: Facts) -> Iterator[Metric]:
    yield _gauge("month_usd", "Price of this month's usage on a platform.", (), [((), facts["usd"])])
    spent = facts["paid"]["spent"]
    used = [((row["service"], row["scope"]), row["used"]) for row in spent]
    yield _gauge("paid_usd", "Cost of paid calls in the day and the month.", ("service", "scope"), used)
    most = [((row["service"], row["scope"]), row["most"]) for row in spent]
    yield _gauge("paid_budget_usd", "Budget of paid calls.", ("service", "scope"), most)
    shares = [((row["task"] or "", row["unit"]), row["used"] / row["most"]) for row in facts["ceilings"] if row["most"]]
    yield _gauge("ceiling_share", "Used share of a ceiling of the month.", ("task", "unit"), shares)
