"""What Prometheus collects is valid by its parser, says what pages say, and is what Grafana and the alerts use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.testing import TestApp
from tests.ui.planted import live
from tests.ui.visiting import visiting

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
USED = re.compile(r"\bpenstock_[a-z_]+")


async def scraped(shop: TestApp) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    async with visiting(shop, token=None, prefix="") as visit:
        answer = await visit.get("/metrics", authorization="Bearer viewer")
    assert answer.status == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name: {
            tuple(sorted(each.labels.items())): each.value for each in family.samples if each.name == sample.name
        }
        for family in text_string_to_metric_families(answer.html)
        for sample in family.samples
    }


async def test_the_numbers_of_a_scrape_are_those_of_the_pages(shop: TestApp) -> None:
    await live(shop, hours=0.3)
    found = await scraped(shop)
    async with visiting(shop) as visit:
        mails = (await visit.json("/queues/mails"))["queue"]

    assert found["penstock_queue_messages"][("queue", "mails"), ("state", "waiting")] == mails["waiting"]
    assert found["penstock_messages_done_total"][(("queue", "mails"),)] == mails["acked"]
    assert found["penstock_queue_paused"][(("queue", "orders"),)] == 1
    assert found["penstock_workers"][(("state", "alive"),)] == 1
    assert found["penstock_attention"][("kind", "paused"), ("level", "warn")] == 1


async def test_a_scrape_without_a_token_is_refused(shop: TestApp) -> None:
    async with visiting(shop, token=None, prefix="") as visit:
        assert (await visit.get("/metrics", accept="text/plain")).status == 401
        assert (await visit.get("/metrics", authorization="Bearer other", accept="text/plain")).status == 401


async def test_the_grafana_file_and_the_alerts_use_metrics_that_there_are(shop: TestApp) -> None:
    await live(shop, hours=0.3)
    known = set(await scraped(shop)) | {"penstock_database_days_left", "penstock_paid_budget_usd", "penstock_paid_usd"}
    known |= {"penstock_ceiling_share", "penstock_disk_free_bytes"}
    board = (DEPLOY / "grafana" / "penstock.json").read_text("utf-8")
    alerts = (DEPLOY / "prometheus" / "alerts.yml").read_text("utf-8")

    assert len(json.loads(board)["panels"]) >= 8
    assert set(USED.findall(board)) <= known
    assert set(USED.findall(alerts)) <= known
    assert alerts.count("- alert:") >= 8


@pytest.mark.parametrize("name", ['a"b\\c', "line\nbreak", "{}", "<b>"])
def test_a_label_of_any_text_is_escaped(name: str) -> None:
    from prometheus_client import CollectorRegistry, generate_latest

    from penstock.web.ui.exposition import _gauge, _Given

    registry = CollectorRegistry()
    registry.register(_Given([_gauge("x", "help", ("queue",), [((name,), 1.0)])]))
    (family,) = text_string_to_metric_families(generate_latest(registry).decode())

    assert family.samples[0].labels == {"queue": name}
