"""The plans of what the pipeline asks its database all day, on a filled one: no table is read through, nothing sorted.

    python -m bench.appstore_plans FOLDER '{}'

Asked are the queries that are declared hot and every statement of the stages that run by the clock or all the time. What
comes after them, by a message, may sort the few rows of one market or keyword, and reads no table through either.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import apsw

from bench.appstore_fill import FILE
from bench.appstore_process import given, tell
from penstock.readiness.autonomy import Hot, slow
from penstock_systems.appstore import cluster, crawl, daily, enrich, evaluate, opportunity
from penstock_systems.appstore.stages import app

ALL_DAY = (crawl, daily, enrich)
AFTERWARDS = (cluster, evaluate, opportunity)
SQL_TEXT = re.compile(r"\s*(select|insert|update|delete)\b")
SORTS = re.compile(r"USE TEMP B-TREE FOR (LAST .*)?ORDER BY")
# What is read through and is small by nature.
SMALL = re.compile(
    r"SCAN (scraped_apps|oldest)$"  # the bounded rows that the query inside gave
    r"|SCAN penstock_seen$"  # a thousand of them, from the beginning
)
PARTIAL = """
select indexes.name from sqlite_schema as tables, pragma_index_list(tables.name) as indexes
where tables.type = 'table' and indexes.partial
"""
STATISTICS = "select 1 from sqlite_schema where name = 'sqlite_stat1'"


class Nothing(dict[str, None]):
    """A value for every parameter: a plan does not depend on which."""

    def __missing__(self, name: str) -> None:
        return None


def hot() -> dict[str, str]:
    return {f"hot {number}": sql for number, (sql, _, _) in enumerate(app.db.hot_queries, 1)}


def statements(packages: Iterable[ModuleType]) -> dict[str, str]:
    """Those of some stages, by their names in the code."""
    found: dict[str, str] = {}
    for package in packages:
        for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, text in vars(importlib.import_module(each.name)).items():
                if name.isupper() and isinstance(text, str) and SQL_TEXT.match(text):
                    # Whoever counts up to a bound adds it to the text himself.
                    asked = f"{text} limit 501" if name == "APPS_WITHOUT_PURCHASES" else text
                    found[f"{each.name.removeprefix('penstock_systems.appstore.')}.{name}"] = asked
    return found


def wrong(connection: apsw.Connection, asked: dict[str, str], *, may_sort: bool) -> list[str]:
    lists = {str(name) for (name,) in connection.execute(PARTIAL)}

    def plan(sql: str) -> list[str]:
        steps = [str(row[-1]) for row in connection.execute(f"explain query plan {sql}", Nothing())]
        return [step for step in steps if not SMALL.match(step) and not (may_sort and SORTS.match(step))]

    told = slow([Hot(sql, name, 0) for name, sql in asked.items()], plan, lists)
    return [f"{finding.file}: {finding.message}" for finding in told]


def main() -> None:
    given()
    all_day, afterwards = hot() | statements(ALL_DAY), statements(AFTERWARDS)
    with closing(apsw.Connection(str(Path(FILE).resolve()), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        found = wrong(connection, all_day, may_sort=False) + wrong(connection, afterwards, may_sort=True)
        assert not list(connection.execute(STATISTICS)), "the planner is to know nothing about this file"
    tell({"all_day": len(all_day), "afterwards": len(afterwards), "hot": len(hot()), "wrong": found})


if __name__ == "__main__":
    main()
