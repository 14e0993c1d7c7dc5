"""The meter: what is written is exact, what is read is never too low, and is exact wherever the table says so.

The truth of the shapes was read from a SQLite with scan statistics and is written down beside them. The truth of random
queries is known by how they are made: each names the way it reaches its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import apsw
import pytest

from bench.meter_shapes import SHAPES, Shape, database, markdown, measured
from penstock.storage.sqlite import meter as meter_module
from penstock.storage.sqlite import program as program_module
from penstock.storage.sqlite.cost import Cost
from penstock.storage.sqlite.meter import UNTRACED_FROM, Meter

pytestmark = pytest.mark.spec("A8-22")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explain" / "meter.md"
QUERIES = 300  # random ones in a run; each run has another seed
SHAPE_NAMES = [shape.name for shape in SHAPES]


@pytest.fixture(scope="module")
def shared() -> tuple[apsw.Connection, Meter]:
    """A database that every test leaves as it found it."""
    connection = database()
    return connection, Meter(connection)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = opened_file(tmp_path)
    opened.execute("create table t (id integer primary key, k text, v integer)")
    opened.executemany("insert into t (k, v) values (?, ?)", [(f"k{i}", i % 10) for i in range(1_000)])
    yield opened
    opened.close()


def opened_file(folder: Path) -> apsw.Connection:
    opened = apsw.Connection(str(folder / "a.db"))
    opened.execute("pragma journal_mode = wal").fetchall()
    return opened


def read(meter: Meter, connection: apsw.Connection, sql: str, *given: object) -> int:
    meter.begin(sql)
    rows = connection.execute(sql, given).fetchall()
    return meter.end(sql, rows=len(rows)).rows_read


# -- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_a_shape_is_never_measured_too_low(shape: Shape, shared: tuple[apsw.Connection, Meter]) -> None:
    connection, meter = shared

    measure = measured(meter, connection, shape)

    assert measure.rows_read >= shape.truth
    assert not shape.exact or measure.rows_read == shape.truth
    assert measure.rows_written == shape.written
    assert measure.executions == 1
    assert measure.steps > 0


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_nor_when_the_meter_does_not_know_that_it_ran_to_its_end(
    shape: Shape, shared: tuple[apsw.Connection, Meter]
) -> None:
    connection, meter = shared

    assert measured(meter, connection, shape, finished=False).rows_read >= shape.truth


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_every_shape_has_a_program_the_meter_can_read(shape: Shape, shared: tuple[apsw.Connection, Meter]) -> None:
    listing = shared[0].execute(shape.sql, explain=1).fetchall()

    assert Cost(listing)._program is not None


def test_most_shapes_are_exact_and_none_is_far_off(shared: tuple[apsw.Connection, Meter]) -> None:
    connection, meter = shared
    ratios = [(measured(meter, connection, shape).rows_read + 1) / (shape.truth + 1) for shape in SHAPES]

    assert sum(ratio == 1 for ratio in ratios) >= 50
    assert max(ratios) <= 3


def test_the_table_in_the_documentation_is_what_the_meter_says_today() -> None:
    found = re.search(r"<!-- shapes -->\n(.*?)\n<!-- end -->", PAGE.read_text("utf-8"), re.DOTALL)

    assert found is not None
    assert found[1] == markdown(), "run `python bench/meter.py --table` and put its output between the two comments"


# -- random queries whose truth is known by how they are made -----------------------------------------------------------

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


def test_random_queries_are_never_measured_too_low(seed: int, note: Callable[[str], None]) -> None:
    random = Random(seed)
    connection, vs, ws = random_database(random)
    meter = Meter(connection)
    ratios = []
    for _ in range(QUERIES):
        sql, truth = random_query(random, vs, ws)
        finished = random.random() < 0.7
        meter.begin(sql)
        rows = connection.execute(sql).fetchall()
        estimate = meter.end(sql, rows=len(rows) if finished else None).rows_read
        assert estimate >= truth, sql
        if finished:
            ratios.append((estimate + 1) / (truth + 1))
    ratios.sort()
    exact = sum(ratio == 1 for ratio in ratios)
    note(
        f"meter: {exact} of {len(ratios)} random queries exact, median {ratios[len(ratios) // 2]:.2f}, worst {ratios[-1]:.2f}"
    )


def test_random_writes_are_never_measured_too_low(seed: int) -> None:
    random = Random(seed)
    connection = apsw.Connection(":memory:")
    connection.execute("create table t (id integer primary key, k text unique, v integer); create index t_v on t (v)")
    meter = Meter(connection)
    known: dict[int, str] = {}
    for _ in range(100):
        ids = [random.randrange(300) for _ in range(random.choice([1, 3, UNTRACED_FROM, 50]))]
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
        meter.begin(sql, executions=random.choice([None, len(ids)]))
        connection.executemany(sql, [(id,) for id in ids])
        measure = meter.end(sql, rows=random.choice([None, 0]))
        assert measure.rows_read >= truth, sql
        assert measure.rows_written == written, sql
        assert measure.executions == len(ids)


# -- executions -------------------------------------------------------------------------------------------------------


def test_executions_add_up(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    sql = "select k from t where id <= ?"

    meter.begin(sql)
    rows = [row for last in (3, 5, 7) for row in connection.execute(sql, (last,))]
    measure = meter.end(sql, rows=len(rows))

    assert (measure.executions, measure.rows_read, measure.rows_written) == (3, 15, 0)


def test_many_cheap_executions_are_measured_without_a_trace(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    sql = "insert into t (k, v) values (?, 0)"

    meter.begin(sql, executions=1_000)
    connection.executemany(sql, [(str(i),) for i in range(1_000)])
    measure = meter.end(sql, rows=0)

    assert (measure.executions, measure.rows_read, measure.rows_written, measure.steps) == (1_000, 0, 1_000, 0)
    assert measure.pages > 0


def test_executions_that_may_read_any_number_of_rows_are_traced(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    sql = "update t set k = 'a' where v = ?"

    meter.begin(sql, executions=UNTRACED_FROM)
    connection.executemany(sql, [(i % 10,) for i in range(UNTRACED_FROM)])
    measure = meter.end(sql, rows=0)

    assert measure.steps > 0
    assert measure.rows_read == UNTRACED_FROM * 1_000


def test_a_query_that_is_not_read_to_its_end_counts_what_it_read(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    sql = "select k from t where v >= 0"

    meter.begin(sql)
    cursor = connection.execute(sql)
    fetched = [cursor.fetchone() for _ in range(3)]
    cursor.close()
    measure = meter.end(sql)

    assert all(fetched)
    assert 3 <= measure.rows_read <= 5


def test_a_statement_that_fails_counts_what_it_read(connection: apsw.Connection) -> None:
    connection.execute("create table copy (k text unique); insert into copy values ('k500')")
    meter = Meter(connection)
    sql = "insert into copy select k from t"

    meter.begin(sql)
    with pytest.raises(apsw.ConstraintError):
        connection.execute(sql)
    measure = meter.end(sql)

    assert measure.rows_read >= 501
    assert measure.rows_written == 0


def test_a_statement_inside_a_function_is_not_counted_twice(connection: apsw.Connection) -> None:
    connection.create_scalar_function("size", lambda *_: int(connection.execute("select max(v) from t").get))
    meter = Meter(connection)

    assert 1 <= read(meter, connection, "select size() from t where id = 1") <= 3


# -- tables that are counted whole ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_table_that_is_counted_whole_counts_all_its_rows(connection: apsw.Connection, in_transaction: bool) -> None:
    meter = Meter(connection)
    if in_transaction:
        connection.execute("begin")

    assert read(meter, connection, "select count(*) from t") == 1_000
    assert connection.in_transaction is in_transaction


def test_rows_that_another_connection_deletes_meanwhile_are_counted(
    connection: apsw.Connection, tmp_path: Path
) -> None:
    meter = Meter(connection)
    other = opened_file(tmp_path)
    sql = "select count(*) from t"

    meter.begin(sql)
    rows = connection.execute(sql).fetchall()
    other.execute("delete from t where id > 10")
    measure = meter.end(sql, rows=len(rows))
    other.close()

    assert measure.rows_read == 1_000
    assert read(meter, connection, sql) == 10


def test_a_statement_that_deletes_what_it_counts_counts_it(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    connection.execute("begin")

    assert read(meter, connection, "delete from t where (select count(*) from t) > 5") >= 1_000 + 1_000


# -- when a program changes -------------------------------------------------------------------------------------------

BY_VALUE = "select k from t where v = 3"


def test_a_new_index_is_noticed(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    scanned = read(meter, connection, BY_VALUE)

    connection.execute("create index t_v on t (v)")

    assert (scanned, read(meter, connection, BY_VALUE)) == (1_000, 100)


def test_an_index_made_by_another_connection_is_noticed(connection: apsw.Connection, tmp_path: Path) -> None:
    meter = Meter(connection)
    scanned = read(meter, connection, BY_VALUE)

    other = opened_file(tmp_path)
    other.execute("create index t_v on t (v)")
    other.close()

    assert scanned == 1_000
    assert 100 <= read(meter, connection, BY_VALUE) <= 105  # compiled again as it ran: steps of both are counted
    assert read(meter, connection, BY_VALUE) == 100


def test_a_trigger_made_by_another_connection_is_noticed_by_untraced_executions(
    connection: apsw.Connection, tmp_path: Path
) -> None:
    meter = Meter(connection)
    sql = "insert into t (k, v) values (?, 0)"
    given = [(str(i),) for i in range(UNTRACED_FROM)]
    for _ in range(2):
        meter.begin(sql, executions=len(given))
        connection.executemany(sql, given)
        meter.end(sql, rows=0)

    meter.begin(sql, executions=len(given))
    other = opened_file(tmp_path)
    other.execute("create trigger a after insert on t begin select max(v) from t; end")
    other.close()
    connection.executemany(sql, given)
    measure = meter.end(sql, rows=0)

    assert measure.rows_read >= UNTRACED_FROM * 1_000


def test_forget_makes_the_meter_look_again(connection: apsw.Connection) -> None:
    connection.execute("create table child (id integer primary key, t_id integer references t on delete cascade)")
    connection.execute("insert into child (t_id) select id from t")
    meter = Meter(connection)
    sql = "delete from t where id = ?"
    for switch in ("off", "on", "off"):  # prepared now, so that nothing is prepared later
        connection.execute(f"pragma foreign_keys = {switch}")
    alone = read(meter, connection, sql, 1)

    connection.execute("pragma foreign_keys = on")
    meter.forget()

    assert alone == 1
    assert read(meter, connection, sql, 2) >= 2_000


def test_a_plan_does_not_depend_on_the_values(connection: apsw.Connection) -> None:
    connection.execute("create index t_k on t (k collate nocase)")
    meter = Meter(connection)

    assert read(meter, connection, "select v from t where k like ? collate nocase", "k1%") >= 1_000


# -- when nothing better is known -------------------------------------------------------------------------------------


def test_where_a_program_is_too_long_every_step_counts_as_a_row(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_module, "PLACES_MAX", 5)
    meter = Meter(connection)

    meter.begin(BY_VALUE)
    rows = connection.execute(BY_VALUE).fetchall()
    measure = meter.end(BY_VALUE, rows=len(rows))

    assert measure.rows_read == measure.steps > 1_000


def test_a_counter_that_may_have_started_again_counts_too_high(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter_module, "COUNTER_SECONDS", 1e-9)
    meter = Meter(connection)

    assert read(meter, connection, BY_VALUE) > 2**32


def test_a_change_of_the_schema_is_measured_too(connection: apsw.Connection) -> None:
    meter = Meter(connection)

    assert read(meter, connection, "create table other as select count(*) from t") >= 1_000


def test_each_statement_of_a_text_is_counted(connection: apsw.Connection) -> None:
    meter = Meter(connection)

    assert read(meter, connection, "select k from t where id <= 10; select k from t where id <= 20") >= 30


def test_no_more_programs_are_kept_than_allowed(connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "TEXTS_MAX", 3)
    meter = Meter(connection)

    assert [read(meter, connection, f"select k from t where id <= {last}") for last in range(9)] == list(range(9))
    assert len(meter._costs) == 3
