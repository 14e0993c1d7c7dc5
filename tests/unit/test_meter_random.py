"""The meter on random statements: their truth is known by how they are made, since each names the way to its rows."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import apsw
import pytest

from penstock.storage.sqlite.meter import SqliteMeter

pytestmark = pytest.mark.spec("A8-22")

QUERIES = 150  # for each seed
SEEDS = range(8)
FAR = 40  # times too high: windows, outer joins and products take many steps that visit nothing
FEW_ROWS = 20  # more than ten times too high where next to nothing is read
ROWS, INNER = 600, 200  # rows of `outer_t` and of `inner_t`


class Way(NamedTuple):
    """One way to reach rows: what to write after `from`, the condition, and the rows it reaches."""

    source: str
    condition: str
    ids: list[int]


def random_database(random: Random) -> tuple[apsw.Connection, list[int], list[int]]:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "create table outer_t (id integer primary key, v integer, a integer, b text);"
        "create index outer_v on outer_t (v);"
        "create table inner_t (id integer primary key, w integer, c integer);"
        "create index inner_w on inner_t (w);"
    )
    vs = [random.randrange(40) for _ in range(ROWS)]
    ws = [random.randrange(60) for _ in range(INNER)]
    connection.executemany(
        "insert into outer_t (v, a, b) values (?, ?, ?)",
        [(v, random.randrange(100), f"b{random.randrange(20)}") for v in vs],
    )
    connection.executemany("insert into inner_t (w, c) values (?, ?)", [(w, random.randrange(50)) for w in ws])
    return connection, vs, ws


def outer_way(random: Random, vs: list[int]) -> Way:
    low = random.randrange(45)
    high = low + random.randrange(12)
    first, last = sorted(random.sample(range(1, ROWS + 50), 2))
    keys = sorted({random.randrange(45) for _ in range(random.randrange(1, 6))})
    by_index = "outer_t o indexed by outer_v"
    return random.choice(
        [
            Way("outer_t o not indexed", "true", list(range(1, ROWS + 1))),
            Way(by_index, f"o.v = {low}", [i for i, v in enumerate(vs, 1) if v == low]),
            Way(by_index, f"o.v between {low} and {high}", [i for i, v in enumerate(vs, 1) if low <= v <= high]),
            Way(by_index, f"o.v in ({', '.join(map(str, keys))})", [i for i, v in enumerate(vs, 1) if v in keys]),
            Way("outer_t o", f"o.id between {first} and {last}", list(range(first, min(last, ROWS) + 1))),
        ]
    )


def inner_way(random: Random, vs: list[int], ws: list[int]) -> tuple[str, Callable[[int], int]]:
    """A join whose inner rows are reached in a known way, and how many each outer row reaches."""
    shift = random.randrange(-20, 20)
    kind = random.choice(["cross join", "left join"])
    matches = {w: ws.count(w) for w in set(ws)}

    def by_rowid(outer: int) -> int:
        return int(1 <= vs[outer - 1] + shift <= INNER)

    def by_index(outer: int) -> int:
        return matches.get(vs[outer - 1] + shift, 0)

    return random.choice(
        [
            ("", lambda _: 0),
            (f" {kind} inner_t i on i.id = o.v + {shift}", by_rowid),
            (f" {kind} inner_t i indexed by inner_w on i.w = o.v + {shift}", by_index),
            (f" {kind} inner_t i not indexed on i.c > {shift}", lambda _: INNER),
        ]
    )


def random_query(random: Random, vs: list[int], ws: list[int]) -> tuple[str, int]:
    """A query and the least number of rows it has to visit."""
    way = outer_way(random, vs)
    join, reached = inner_way(random, vs, ws)
    truth = sum(1 + reached(outer) for outer in way.ids)
    filters = [
        "o.a + 0 > 50",
        "o.b like 'b1%'",
        "o.a % 3 in (0, 1)",
        "case when o.a < 30 then o.b else 'b1' end > 'b12'",
    ]
    # A filter on the outer row would keep the inner rows from being visited, so with a join there is none.
    chosen = random.sample(filters, random.randrange(3)) if not join else []
    condition = " and ".join([way.condition, *chosen])
    # SQLite leaves out an outer join whose columns nobody asks for.
    value = "coalesce(i.c, o.a)" if join else "o.a"
    outputs = [
        "select {0}, o.b from {1}",
        "select o.b from {1} order by {0}, o.b",
        "select count(*), sum({0}) from {1}",
        "select o.b, count(*), max({0}) from {1} group by o.b",
        "select distinct {0} from {1}",
        "select {0}, row_number() over (partition by o.b order by o.a) from {1}",
        "select * from (select {0} as q from {1}) where q > 10",
        "with m as materialized (select {0} as q from {1}) select sum(q) from m",
        "select {0} from {1} union all select 1",
    ]
    return random.choice(outputs).format(value, f"{way.source}{join} where {condition}"), truth


@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_are_never_measured_too_low_nor_far_too_high(seed: int, note: Callable[[str], None]) -> None:
    random = Random(seed)
    connection, vs, ws = random_database(random)
    meter = SqliteMeter(connection)
    ratios = []
    for _ in range(QUERIES):
        sql, truth = random_query(random, vs, ws)
        finished = random.random() < 0.7
        meter.begin(sql)
        rows = connection.execute(sql).fetchall()
        estimate = meter.end(sql, rows=len(rows) if finished else None).rows_read
        assert estimate >= truth, sql
        if finished:
            times = FAR if " over (" in sql or " left join" in sql or "not indexed on" in sql else 10
            assert estimate <= times * truth + FEW_ROWS, (sql, truth, estimate)
            ratios.append((estimate + 1) / (truth + 1))
    ratios.sort()
    exact = sum(ratio == 1 for ratio in ratios)
    note(
        f"meter: {exact} of {len(ratios)} random queries exact, median {ratios[len(ratios) // 2]:.2f}, worst {ratios[-1]:.2f}"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_random_writes_are_never_measured_too_low_nor_ten_times_too_high(seed: int) -> None:
    random = Random(seed)
    connection = apsw.Connection(":memory:")
    connection.execute("create table t (id integer primary key, k text unique, v integer); create index t_v on t (v)")
    meter = SqliteMeter(connection)
    known: dict[int, str] = {}
    for _ in range(100):
        ids = [random.randrange(300) for _ in range(random.choice([1, 3, 16, 50]))]
        found = sum(id in known for id in ids)
        sql, truth, written = random.choice(
            [
                ("insert or ignore into t (id, k, v) values (?1, 'k' || ?1, 1)", None, None),
                ("update t set v = v + 1 where id = ?", found, found),
                ("delete from t where id = ? and v < 0", found, 0),
                (
                    "insert into t (id, k, v) values (?1, 'k' || ?1, 1) on conflict (id) do update set v = 0",
                    None,
                    len(ids),
                ),
            ]
        )
        if truth is None:
            fresh = set(ids) - known.keys()
            truth = len(ids) - len(fresh)  # every other one finds a row with its id
            written = len(fresh) if written is None else written
            known |= {id: f"k{id}" for id in fresh}
        meter.begin(sql, (ids[0],), executions=len(ids))
        connection.executemany(sql, [(id,) for id in ids])
        measure = meter.end(sql, rows=random.choice([None, 0]), rows_max=0)
        assert truth <= measure.rows_read <= 10 * (truth + len(ids)), sql
        assert measure.rows_written == written, sql
        assert measure.executions == len(ids)
