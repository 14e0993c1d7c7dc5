"""The guide keeps its word: the SQL it shows is the SQL that runs, and the stages it names are those of the app."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages
from penstock_systems.appstore.reading.commands import appstore
from penstock_systems.appstore.reading.queries import SQL
from penstock_systems.appstore.reading.stage_map import STAGES

pytestmark = pytest.mark.only_on("sqlite")

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "appstore.md").read_text("utf-8")
MIGRATIONS = Path(shared.__file__).parent / "migrations"
LISTED = ("apps_by_ratings", "keywords_by_demand", "clusters", "opportunities", "references", "tips")
MOVED = ("rising_apps", "climbers", "rising_clusters")


def test_the_sql_of_the_guide_is_the_sql_that_runs() -> None:
    shown = [text.strip() for text in re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)]

    assert set(shown) <= set(SQL.values())
    assert {SQL[name] for name in (*LISTED, *MOVED)} <= set(shown)


def test_every_verb_is_in_the_guide() -> None:
    for verb in appstore.commands:
        assert re.search(rf"`{verb}\b", GUIDE), verb


def test_every_table_is_in_the_guide() -> None:
    (drawn,) = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    tables = {
        name
        for path in MIGRATIONS.glob("*.sql")
        for name in re.findall(r"^create table (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }

    assert set(re.findall(r"\w+", drawn)) & tables >= {table for stage in STAGES for table in stage.storage}
    assert all(table in tables for stage in STAGES for table in stage.storage)


@pytest.mark.spec("B1-01")
def test_the_map_of_stages_names_what_starts_them_and_where_they_keep_their_work() -> None:
    rows = re.findall(r"^\| (\w+) \| [^|]*?`([\w-]+)`[^|]*\| ([^|]+) \| (\w+) \|$", GUIDE, re.MULTILINE)

    assert [(name, starts, tuple(re.findall(r"`(\w+)`", kept)), reached) for name, starts, kept, reached in rows] == [
        (stage.name, stage.started_by, stage.storage, stage.reached) for stage in STAGES
    ]
    started = {"cron": stages.app.crons.tasks, "alarm": stages.app.controllers.names(), "queue": stages.app.queues}
    for stage in STAGES:
        assert stage.started_by in started.get(stage.trigger, [stage.started_by]), stage
    assert [(stage.name, stage.trigger) for stage in STAGES] == [
        ("crawl", "cron"),
        ("enrich", "alarm"),
        ("evaluate", "queue"),
        ("cluster", "cron"),
        ("opportunity", "workflow"),
    ]
