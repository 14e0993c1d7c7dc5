"""Every statement of the crawl and of the daily run finds its rows through an index: nothing is scanned and nothing sorted,
on an empty database and on a full and lopsided one that knows its own statistics."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.contracts.store import PROBE
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import crawl, daily
from tests.insert_lint import lint_inserts
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import THEN, analyze, crawling, insert, insert_apps, insert_keywords

INSERT = re.compile(r"\s*insert into\b")
SQL_TEXT = re.compile(r"\s*(select|insert|update|delete)\b")
PARAMETER = re.compile(r"(?<!:):([a-z_]+\d*)")
NUMBERS = re.compile(
    r"(id\d+|track_id|most|size|count|attempts|found|more|known|priority|velocity|score|ratings)"  # what is bound as a number
)

# What walks over something small by nature, and why that is enough.
SMALL = (
    "scraped_apps",  # the ten thousand rows that the query inside gave
    "oldest",  # a thousand
    "tracked_keywords",  # as many as a person named
    "penstock_seen",  # a thousand of them, from its beginning
)
# A list of work is an index that holds nothing else: to walk along it is to take what waits, in its order.
LISTS = re.compile(
    r"SCAN \w+ USING (COVERING )?INDEX (app_registry_(unranked|no_purchases|scraped|fresh)|crawl_seeds_unplanted)$"
)
WALKS_SQLITE = re.compile(r"^(SCAN (?P<what>\w+)|USE TEMP B-TREE|.*AUTOMATIC)")
WALKS_POSTGRES = re.compile(r"^[ >-]*((Parallel )?Seq Scan on (?P<what>\w+)|(Incremental )?Sort\b)")


def modules() -> Iterator[ModuleType]:
    for package in (crawl, daily):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


STATEMENTS = {
    f"{module.__name__.rpartition('appstore.')[2]}.{name}": text
    for module in modules()
    for name, text in vars(module).items()
    if name.isupper() and isinstance(text, str) and SQL_TEXT.match(text)
}


def bindings(name: str, sql: str) -> dict[str, Any]:
    numbers = {"after": "keyword" not in sql, "id": name.startswith("crawl.charts")}
    return {
        each: 1 if numbers.get(each, bool(NUMBERS.fullmatch(each))) else "2026-01-01 00:00:00"
        for each in PARAMETER.findall(sql)
    }


async def walks(name: str) -> list[str]:
    sql = STATEMENTS[name] + (" limit 501" if name.endswith("APPS_WITHOUT_PURCHASES") else "")
    if await shared.db.dialect() == "sqlite":
        plan, walk = await shared.db.rows(f"explain query plan {sql}", bindings(name, sql)), WALKS_SQLITE
    else:
        # As the engine asks for its probes: an index is taken wherever there is one, however small the table is today.
        plan, walk = await shared.db.rows(f"{PROBE}explain (costs off) {sql}", bindings(name, sql)), WALKS_POSTGRES
    steps = [str(row[-1]) for row in plan]
    return [
        step
        for step in steps
        if (found := walk.match(step)) and not (found["what"] or "").startswith(SMALL) and not LISTS.match(step)
    ]


async def fill_lopsidedly(it: Pipeline) -> None:
    """Nearly everything is done already: what an optimizer with statistics may be misled by."""
    await insert_apps(
        it,
        *(
            {
                "track_id": number,
                "rating_count": 0 if number % 2 else number,
                "enrichment_source": "scraper",
                "enriched_at": THEN,
                "ranked_at": THEN,
                "iap_scraped_at": THEN,
            }
            for number in range(1, 3_001)
        ),
    )
    await insert_keywords(
        it, *({"keyword": f"k{n}", "status": "searched", "next_search_at": "2027"} for n in range(3_000))
    )
    ranks = [{"keyword": f"k{n}", "track_id": n % 3_000 + 1, "rank": 1, "crawled_at": THEN} for n in range(3_000)]
    await insert(it, "crawl_rankings", *ranks)
    days = [f"2026-01-{day:02d}" for day in range(1, 4)]
    shots = [
        {"track_id": n, "day": day, "rating_count": n, "snapshot_at": f"{day} 06:00:00"}
        for day in days
        for n in range(1_000)
    ]
    await insert(it, "app_snapshots", *shots)
    await insert(it, "keyword_cache", *({"key": f"k{n}", "value": "[]", "expires_at": THEN} for n in range(1_000)))
    await insert(it, "app_cache", *({"key": f"k{n}", "value": "{}", "expires_at": THEN} for n in range(1_000)))
    await insert(it, "cluster_apps", *({"cluster_id": n % 9, "track_id": n, "weight": 1} for n in range(1, 1_000)))
    await insert(
        it, "cluster_keywords", *({"cluster_id": n % 9, "keyword": f"k{n}", "weight": 1} for n in range(1_000))
    )
    await insert(it, "app_stars", *({"user_id": "a", "track_id": n, "created_at": THEN} for n in range(1, 1_000)))
    await insert(
        it,
        "chart_positions",
        *(
            {"track_id": n, "collection": "c", "category": f"{n % 9}", "rank": 1, "snapshot_at": THEN}
            for n in range(1_000)
        ),
    )
    await insert(
        it, "crawl_seeds", *({"keyword": f"k{n}", "created_at": THEN, "planted_at": THEN} for n in range(1_000))
    )


@pytest.mark.spec("A8-15", "G2-22")
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "full"])
async def test_nothing_is_scanned_and_nothing_is_sorted(pipeline: Opened, filled: bool) -> None:
    async with crawling(pipeline) as it:
        if filled:
            await fill_lopsidedly(it)
            await analyze()
        found = {name: problems for name in STATEMENTS if (problems := await walks(name))}
        assert found == {}


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-11", "G2-10")
def test_every_insert_says_what_happens_when_the_row_is_there() -> None:
    folder = Path(shared.__file__).parent
    inside = {path.name: path.read_text("utf-8") for path in folder.rglob("*.sql")}
    constants = {
        f"{path.name}:{node.lineno}": node.value
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and INSERT.match(node.value)
    }
    assert len(inside) >= 9
    assert len(constants) > 20
    del inside[
        "0005_opportunity.sql"
    ]  # it was applied with plain inserts of seeds, and an applied file does not change
    texts = {**STATEMENTS, **inside, **constants}
    assert {name: problems for name, text in texts.items() if (problems := lint_inserts(text))} == {}


@pytest.mark.only_on("sqlite")
def test_the_statements_are_all_there() -> None:
    assert {"crawl.gaps.CHART_DUE", "crawl.keyword_list.PENDING", "daily.velocity.OF_A_DAY"} <= set(STATEMENTS)
    assert len(STATEMENTS) > 40
