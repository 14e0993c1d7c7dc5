"""Cron tasks and status routes that count a whole table: each run reads every row of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from types import FunctionType

from penstock.readiness.finding import Finding
from penstock.readiness.source import written

COUNT = re.compile(r"\bselect\b[^()]*\bcount\s*\(", re.IGNORECASE)
BOUNDED = re.compile(
    r"\bfrom\s*\(.*\blimit\b.*\)", re.IGNORECASE | re.DOTALL
)  # it counts what an inner limit let through
FIX = "Ask `db.count(table)`, which keeps a counter, `db.exists(...)`, or give the route `cache=`."


def counts(functions: Iterable[object]) -> Iterator[Finding]:
    """Find statements in these functions, written there or named, that count rows without a bound."""
    for source in (written(each) for each in functions if isinstance(each, FunctionType)):
        if source is None:
            continue
        for node in ast.walk(source.tree):
            text = node.value if isinstance(node, ast.Constant) else source.meaning(node)
            if isinstance(text, str) and COUNT.search(text) and not BOUNDED.search(text):
                told = f"`{' '.join(text.split())[:80]}` reads every row of the table at each run."
                yield Finding(source.file, source.line_of(node), told, FIX)
