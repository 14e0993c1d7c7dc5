"""Questions to data points: SQL over `points`, `hours` and `days` of one dataset, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from penstock.metrics.point import BLOBS_MAX, DOUBLES_MAX
from penstock.model.errors import BadApp, BadStatement
from penstock.model.parameters import bind
from penstock.model.statement import ENGINE_PREFIX, SqlToken, one_line, pieces, readable

ROWS_MAX = 10_000  # of one answer, as for `db.rows`
SECONDS_MAX = 10.0  # what is written meanwhile waits in memory for so long

BLOBS = tuple(f"blob{number}" for number in range(1, BLOBS_MAX + 1))
DOUBLES = tuple(f"double{number}" for number in range(1, DOUBLES_MAX + 1))
WORDS = ("index1", *BLOBS)
ROLLED = ("place", "count", "sum", "min", "max")
PLATFORM = "platform_metrics"
PLATFORM_NAMES = {"service": "blob1", "trigger": "blob2", "phase": "blob3"}

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_DATASET = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# Functions that look at nothing but their arguments. Others could reach other tables, or files, on some database.
_FUNCTIONS = frozenset(
    "abs avg cast ceil ceiling coalesce concat count cume_dist date datetime date_trunc dense_rank exp extract "
    "first_value floor format greatest group_concat hour iif instr julianday lag last_value lead least left length ln "
    "log log10 lower ltrim max median min mod nth_value ntile nullif percent_rank percentile_cont percentile_disc "
    "position pow power rank replace right round row_number rtrim sign sqrt stddev stddev_pop stddev_samp strftime "
    "string_agg strpos substr substring sum time to_char total trim trunc unixepoch upper var_pop var_samp variance".split()
)
_BEFORE_BRACKETS = frozenset(
    "all and any as between by case distinct else except exists filter from group having in intersect is join like "
    "limit materialized not offset on or order over partition recursive select some then union using values when where "
    "with within".split()
)


class Names(NamedTuple):
    """A dataset and what its columns are called besides `blob1`, `double1` and so on."""

    dataset: str
    columns: Mapping[str, str]

    def relations(self) -> str:
        """The tables that a question is asked of. Of the caller's text it contains only names that were checked."""
        words = [f"sorts.{word}" for word in WORDS]
        words += [f'sorts.{column} as "{name}"' for name, column in self.columns.items() if column in WORDS]
        doubles = [f"noted.{double}" for double in DOUBLES]
        doubles += [f'noted.{column} as "{name}"' for name, column in self.columns.items() if column in DOUBLES]
        parts = [_points(words + doubles)]
        places = [(DOUBLES.index(column) + 1, name) for name, column in self.columns.items() if column in DOUBLES]
        cases = "".join(f" when {place} then '{name}'" for place, name in sorted(places))
        usual = "'double' || cast(rolled.place as text)"
        name = f"case rolled.place when 0 then 'points'{cases} else {usual} end as name"
        parts += [_rolled(span, [*words, name]) for span in ("hour", "day")]
        return "with " + ",\n".join(parts)


def named(dataset: str, names: Mapping[str, str] | None) -> Names:
    """Refuses what could not be asked for later, where the dataset is declared."""
    if not _DATASET.fullmatch(dataset):
        raise BadApp(f"{dataset!r} cannot name a dataset: 1 to 64 letters, digits, points, dashes and underscores.")
    columns = {**(PLATFORM_NAMES if dataset == PLATFORM else {}), **(names or {})}
    for name, column in columns.items():
        if column not in WORDS and column not in DOUBLES:
            raise BadApp(
                f"Dataset {dataset!r}: {name!r} cannot stand for {column!r}; write blob1 to blob20, double1 to "
                "double20 or index1."
            )
        if not _NAME.fullmatch(name) or name in ("at", "name", *WORDS, *DOUBLES, *ROLLED):
            raise BadApp(
                f"Dataset {dataset!r}: a column cannot be called {name!r}. Write lower case words joined by `_`."
            )
    return Names(dataset, columns)


def question(names: Names, sql: str, given: Mapping[str, object]) -> tuple[str, dict[str, Any]]:
    """The text and the values as the store takes them. Raises what is wrong with either."""
    statement = readable(sql)
    if statement.verb not in ("select", "values"):
        raise BadStatement(
            f"`{one_line(sql, 80)}` is not a query. Query data points with `select`.", verb=statement.verb
        )
    _refuse_what_reaches_further(sql, pieces(sql)[0].tokens)
    bound = bind(statement, None, given)
    text = f"{names.relations()}\nselect * from (\n{statement.text}\n) as asked limit :penstock_most"
    return text, {**bound, "penstock_dataset": names.dataset, "penstock_most": ROWS_MAX + 1}


def _refuse_what_reaches_further(sql: str, held: tuple[SqlToken, ...]) -> None:
    for token in held:
        if token.name.startswith(ENGINE_PREFIX) or token.text.startswith(f":{ENGINE_PREFIX}"):
            raise BadStatement(f"`{one_line(sql, 80)}`: query `points`, `hours` or `days`, not {token.name}.")
    for token, following in pairwise(held):
        called = token.name if following.text == "(" and token.kind in ("word", "quoted", "bracketed") else ""
        if called and called not in _FUNCTIONS and called not in _BEFORE_BRACKETS:
            raise BadStatement(
                f"`{one_line(sql, 80)}`: {called}(...) cannot be used on data points. Use functions such as sum, count, min, "
                "max and avg; name the columns of a `with` inside it.",
                function=called,
            )


def _points(columns: list[str]) -> str:
    return f"""points as not materialized (
  select noted.at, {", ".join(columns)}
  from penstock_points as noted
  join penstock_sorts as sorts on sorts.sort = noted.sort
  where noted.dataset = :penstock_dataset
)"""


def _rolled(span: str, columns: list[str]) -> str:
    return f"""{span}s as not materialized (
  select rolled.at, {", ".join(columns)}, {", ".join(f"rolled.{column}" for column in ROLLED)}
  from penstock_rolled as rolled
  join penstock_sorts as sorts on sorts.sort = rolled.sort
  where rolled.span = '{span}'
  and rolled.dataset = :penstock_dataset
)"""
