"""The benchmark of the App Store pipeline runs from end to end, and its arithmetic is right. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import apsw
import pytest

from bench.appstore import PARTS, QUICK
from bench.appstore_memory import fill as fill_memory
from bench.appstore_month import _long_enough
from bench.appstore_plans import ALL_DAY, statements, wrong
from bench.appstore_price import CLOCK, ENRICHED, SEARCHES, WHOLE, Part, dollars, driver_of, parts, total
from bench.appstore_pushback import fill as fill_pushback
from bench.appstore_rows import APP_COLUMNS, Calendar, Rows, Size
from bench.appstore_standin import kind_of
from bench.report import Report
from penstock.model.prices import Usage

PROGRAMME = Path(__file__).resolve().parents[2] / "bench" / "appstore.py"
ROW = {"subject", "store", "measure", "value", "unit", "reference", "ratio", "durability"}


# -- from end to end ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench")
    command = [sys.executable, str(PROGRAMME), "--smoke", "--seed", "7", "--out", str(made)]
    ended = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "appstore.json").read_text("utf-8"))
    return report


@pytest.mark.slow
def test_every_part_has_its_rows(found: dict[str, Any]) -> None:
    assert (found["name"], found["seed"]) == ("appstore", 7)
    assert all(row.keys() == ROW for row in found["rows"])
    begun = {row["measure"].split(",")[0].split(":")[0] for row in found["rows"]}
    assert begun == set(PARTS)
    assert found["skipped"] == [{"subject": "month: the bars", "reason": "1 days are no month"}]


@pytest.mark.slow
def test_an_idle_cycle_read_no_more_rows_than_it_has_probes(found: dict[str, Any]) -> None:
    (bar,) = (bar for bar in found["bars"] if "idle crawl cycle" in bar["measure"])
    assert bar["limit"] == 9
    assert bar["passed"]


@pytest.mark.slow
def test_the_price_stands_beside_what_was_paid_before(found: dict[str, Any]) -> None:
    prices = {row["measure"]: row for row in found["rows"] if row["unit"] == "USD"}
    ours = prices["month, 200 apps: price"]
    assert ours["value"] > 0
    assert ours["reference"] == 19.63
    assert [row["value"] for row in prices.values() if row["subject"] == "the articles"] == [19.63, 0.5]


@pytest.mark.slow
def test_the_bare_loop_asked_as_much_as_the_engine(found: dict[str, Any]) -> None:
    (requests,) = (row for row in found["rows"] if row["measure"] == "enrich: requests an app")
    assert requests["value"] > 3
    assert requests["reference"] > 3
    (pair,) = found["rounds"]
    assert len(pair["ratios"]) == 1


@pytest.mark.slow
def test_nothing_is_left_but_the_figures_and_the_plot(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["appstore.json", "appstore.svg"]
    assert ElementTree.parse(folder / "appstore.svg").getroot().tag.endswith("svg")


# -- the arithmetic of a month --------------------------------------------------------------------------------------


def test_what_was_used_grows_with_what_drives_it() -> None:
    used = {
        "controller.enrichment": Usage(rows_read=50, rows_written=400),
        "queue:pipeline-events": Usage(queue_operations=30),
        "calls:object.Controller": Usage(object_requests=20),
        "cron.crawl:crawl": Usage(rows_read=700),
        "somebody.new": Usage(rows_read=9),
    }
    counts = dict.fromkeys(WHOLE, 1.0) | {ENRICHED: 10, SEARCHES: 90_000, CLOCK: 15}
    divided = {part.driver: part for part in parts(used, counts)}
    assert divided[ENRICHED].used == Usage(rows_read=50, rows_written=400, queue_operations=30, object_requests=20)
    assert divided[ENRICHED].factor == 66_000
    assert divided[ENRICHED].each("rows_written") == 40
    assert divided[SEARCHES].extrapolated.rows_read == 1_400
    assert divided[CLOCK].extrapolated.rows_read == 18
    whole = total(list(divided.values()), extrapolated=True)
    assert whole.rows_written == 400 * 66_000
    assert total(list(divided.values()), extrapolated=False).rows_read == 759


def test_nothing_is_free() -> None:
    million = 1_000_000
    assert dollars(Usage(rows_read=million, rows_written=million)) == pytest.approx(0.011)
    assert dollars(Usage(queue_operations=million, object_requests=million)) == pytest.approx(12.9)


def test_of_what_there_was_nothing_nothing_is_extrapolated() -> None:
    assert Part(ENRICHED, Usage(), 0, 660_000).extrapolated == Usage()


@pytest.mark.parametrize(
    "name, driver",
    [
        ("pipeline-events:app_enriched", ENRICHED),
        ("pipeline-events:rankings_updated", SEARCHES),
        ("queue:cron.crawl", CLOCK),
        ("", CLOCK),
    ],
)
def test_a_task_is_driven_by_the_longest_name_that_fits(name: str, driver: str) -> None:
    assert driver_of(name) == driver


def test_a_rush_is_as_dense_as_on_the_whole_store_and_lasts_long_enough() -> None:
    dense = 3_000 / 1_100_000
    chosen = [every for every in (1, 2, 3, 5, 6, 10, 15, 30) if _long_enough(every, dense, 30)]
    assert chosen[0] == 6
    calendar = Calendar(quiet=0.0, enrich=50.0, every=6, dense=dense)
    due = sorted(calendar.enriched_again(number) for number in range(3_000))
    first = [each for each in due if each < calendar.at(6)]
    assert first[-1] <= calendar.at(calendar.rush_days)
    assert len(first) == pytest.approx(3_000 * 0.02 * 6, rel=0.05)


# -- the rows -------------------------------------------------------------------------------------------------------


def test_a_filled_store_has_its_share_of_keywords_and_rankings_and_nothing_is_due() -> None:
    rows = Rows(Size(2_200), 1, Calendar())
    apps = [dict(zip(APP_COLUMNS, each, strict=True)) for each in rows.apps()]
    ranked = rows.ranked()
    assert (len(apps), len(ranked)) == (2_200, 360)
    assert sum(len(ids) for _, ids in ranked) == pytest.approx(5_600, rel=0.15)
    assert {track_id for _, ids in ranked for track_id in ids} <= {each["track_id"] for each in apps}
    quiet = rows.calendar.at(2.0)
    assert all(str(each["next_enrich_at"]) >= quiet for each in apps)
    assert all(str(due) >= quiet for *_, due, _ in rows.keywords(ranked))
    assert len({len(str(each["description"])) for each in apps}) > 100


# -- the judgements -------------------------------------------------------------------------------------------------


def test_a_statement_that_scans_or_sorts_is_reported() -> None:
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute("create table t (a, b, c); create index t_a on t (a) where b is null;")
        asked = {
            "good": "select a from t where a = :a and b is null",
            "list": "select a from t where b is null order by a limit 1",
            "scan": "select a from t where b = :b",
            "sort": "select c from t where a = :a and b is null order by c",
        }
        assert [each.partition(":")[0] for each in wrong(connection, asked, may_sort=False)] == ["scan", "sort"]
        assert [each.partition(":")[0] for each in wrong(connection, asked, may_sort=True)] == ["scan"]


def test_the_statements_of_the_stages_are_found() -> None:
    assert {"crawl.gaps.CHART_DUE", "enrich.picking.DUE", "daily.velocity.OF_A_DAY"} <= set(statements(ALL_DAY))


def test_more_apps_may_need_a_quarter_more_memory() -> None:
    report = Report("appstore", 1)
    fill_memory(report, [{"apps": 20_000, "resident_mb": 100.0}, {"apps": 200_000, "resident_mb": 130.0}])
    assert [(row.value, row.ratio) for row in report.rows] == [(100.0, 1.0), (130.0, 1.3)]
    assert report.bars[0].passed is False


def test_a_request_without_an_answer_has_not_succeeded() -> None:
    report = Report("appstore", 1)
    fill_pushback(report, {"page": [100, 96, 2, 1], "search": [100, 100, 0, 0]}, lost=1, days=6)
    assert [(bar.value, bar.passed) for bar in report.bars] == [(98.0, True), (1, False)]


def test_a_path_tells_what_is_asked() -> None:
    asked = (
        "/lookup",
        "/us/app/id1",
        "/us/app/some-app/id1",
        "/us/customer-reviews/id1",
        "/us/rss/customerreviews/page=1/x",
    )
    assert [kind_of(path) for path in asked] == ["lookup", "redirect", "page", "ratings", "reviews"]


def test_another_number_of_apps_is_one_for_all_parts_that_can_have_as_many() -> None:
    plan = QUICK.of(50)
    assert (plan.scale_apps, plan.month_apps, plan.enrich_apps, plan.pushback_apps) == (50,) * 4
    assert plan.memory_apps == (50, 500)
    assert QUICK.of(1_100_000).enrich_apps == 1_000
