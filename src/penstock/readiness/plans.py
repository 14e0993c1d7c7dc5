"""Hot queries: those that run all day go by an index, without reading a table through and without sorting."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from penstock.model.errors import BadStatement
from penstock.readiness.lints import Finding

# As SQLite tells it.
_SCAN = re.compile(r"^SCAN (?!CONSTANT|\d+ CONSTANT)\w+( USING (COVERING )?INDEX (?P<index>\w+))?", re.IGNORECASE)
_SORT = re.compile(r"TEMP B-TREE", re.IGNORECASE)
_CHOOSES = re.compile(r"\bwhere\b", re.IGNORECASE)


class Hot(NamedTuple):
    sql: str
    file: str
    line: int


def slow(queries: Iterable[Hot], explain: Callable[[str], list[str]], lists: Collection[str]) -> Iterator[Finding]:
    """`explain` gives the plan of a statement, a line each, or raises BadStatement; `lists` are the indexes that hold only
    some of the rows: to go through one of those from its beginning is to go through a work list. Who chooses none of the
    rows may take them in the order of any index."""

    def is_bad(line: str, sql: str) -> bool:
        scan = _SCAN.search(line)
        index = None if scan is None else scan["index"]
        read_through = scan is not None and (index is None or (index not in lists and bool(_CHOOSES.search(sql))))
        return read_through or bool(_SORT.search(line))

    for hot in queries:
        try:
            plan = explain(hot.sql)
        except BadStatement as error:
            yield Finding(hot.file, hot.line, str(error), "Write it for the tables that the migrations make.")
            continue
        bad = [line for line in plan if is_bad(line, hot.sql)]
        if bad:
            told = f"A hot query does not go by an index alone: {'; '.join(bad)}: {' '.join(hot.sql.split())[:120]}"
            yield Finding(hot.file, hot.line, told, "Add an index that has its conditions first and its order next.")
