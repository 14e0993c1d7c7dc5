"""The meter: rows written are exact; rows read are never too low, and exact for probes and full scans.

The truth of the shapes was read from a SQLite with scan statistics and is written down beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from bench.meter_shapes import SHAPES, Shape, database, markdown, measured
from penstock.storage.sqlite import meter as meter_module
from penstock.storage.sqlite.loops import Loops
from penstock.storage.sqlite.meter import SqliteMeter

pytestmark = pytest.mark.spec("A8-22")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explain" / "meter.md"
# Probes and full scans.
EXACT = ("row by", "probe that", "full scan", "max", "order by an index", "update by rowid", "delete by rowid")
FEW_ROWS = 20  # more than ten times too high where next to nothing is read, as by a check of unique keys
SHAPE_NAMES = [shape.name for shape in SHAPES]


@pytest.fixture(scope="module")
def shared() -> tuple[apsw.Connection, SqliteMeter]:
    """A database that every test leaves as it found it."""
    connection = database()
    return connection, SqliteMeter(connection)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = opened_file(tmp_path)
    opened.execute("create table t (id integer primary key, k text, v integer)")
    with opened:
        opened.executemany("insert into t (k, v) values (?, ?)", [(f"k{i}", i % 10) for i in range(1_000)])
    yield opened
    opened.close()


def opened_file(folder: Path) -> apsw.Connection:
    opened = apsw.Connection(str(folder / "a.db"))
    opened.execute("pragma journal_mode = wal").fetchall()
    return opened


def read(meter: SqliteMeter, connection: apsw.Connection, sql: str, *given: object) -> int:
    meter.begin(sql, given)
    rows = connection.execute(sql, given).fetchall()
    return meter.end(sql, rows=len(rows)).rows_read


# -- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_a_shape_is_never_measured_too_low(shape: Shape, shared: tuple[apsw.Connection, SqliteMeter]) -> None:
    connection, meter = shared

    measure = measured(meter, connection, shape)

    assert measure.rows_read >= shape.truth
    assert measure.rows_read == shape.truth or not shape.name.startswith(EXACT)
    assert measure.rows_written == shape.written
    assert measure.executions == 1
    assert measure.rows_read <= 10 * shape.truth + FEW_ROWS


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_nor_when_the_meter_does_not_know_that_it_ran_to_its_end(
    shape: Shape, shared: tuple[apsw.Connection, SqliteMeter]
) -> None:
    connection, meter = shared

    assert measured(meter, connection, shape, finished=False).rows_read >= shape.truth


def test_the_table_in_the_documentation_is_what_the_meter_says_today() -> None:
    found = re.search(r"<!-- shapes -->\n(.*?)\n<!-- end -->", PAGE.read_text("utf-8"), re.DOTALL)

    assert found is not None
    assert found[1] == markdown(), "run `python bench/meter.py --table` and put its output between the two comments"


# -- executions -------------------------------------------------------------------------------------------------------


def test_executions_add_up(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)
    sql = "select k from t where id <= ?"

    for _ in range(2):  # traced, then not traced
        meter.begin(sql, (3,), executions=3)
        rows = [row for last in (3, 5, 7) for row in connection.execute(sql, (last,))]
        measure = meter.end(sql, rows=len(rows))

        assert (measure.executions, measure.rows_written) == (3, 0)
        assert 15 <= measure.rows_read <= 18


def test_executions_that_visit_a_fixed_number_of_rows_are_not_traced(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)
    sql = "insert into t (k, v) values (?, 0)"
    read(meter, connection, sql, "a")

    meter.begin(sql, ("b",), executions=1_000)
    connection.executemany(sql, [(str(i),) for i in range(1_000)])
    measure = meter.end(sql, rows=0)

    assert (measure.executions, measure.rows_read, measure.rows_written, measure.steps) == (1_000, 0, 1_000, 0)
    assert measure.pages > 0


def test_executions_that_may_read_any_number_of_rows_are_traced(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)
    sql = "update t set k = 'a' where v = ?"
    read(meter, connection, sql, 0)

    meter.begin(sql, (0,), executions=16)
    connection.executemany(sql, [(i % 10,) for i in range(16)])
    measure = meter.end(sql, rows=0)

    assert measure.steps > 0
    assert measure.rows_read == 16 * 1_000


def test_a_query_that_is_not_read_to_its_end_counts_what_it_read(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)
    sql = "select k from t where v >= 0"
    for _ in range(2):
        meter.begin(sql)
        cursor = connection.execute(sql)
        fetched = [cursor.fetchone() for _ in range(3)]
        cursor.close()
        measure = meter.end(sql, rows_max=3)

        assert all(fetched)
        assert 3 <= measure.rows_read <= 30


def test_a_statement_that_fails_counts_what_it_read(connection: apsw.Connection) -> None:
    connection.execute("create table copy (k text unique); insert into copy values ('k500')")
    meter = SqliteMeter(connection)
    sql = "insert into copy select k from t"

    meter.begin(sql)
    with pytest.raises(apsw.ConstraintError):
        connection.execute(sql)
    measure = meter.end(sql)

    assert measure.rows_read >= 501
    assert measure.rows_written == 0


def test_a_statement_inside_a_function_is_not_counted_twice(connection: apsw.Connection) -> None:
    connection.create_scalar_function("size", lambda *_: int(connection.execute("select max(v) from t").get))
    meter = SqliteMeter(connection)

    assert 1 <= read(meter, connection, "select size() from t where id = 1") <= 10


# -- tables that are counted whole ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_table_that_is_counted_whole_counts_all_its_rows(connection: apsw.Connection, in_transaction: bool) -> None:
    meter = SqliteMeter(connection)
    if in_transaction:
        connection.execute("begin")

    assert read(meter, connection, "select count(*) from t") == 1_000
    assert connection.in_transaction is in_transaction


def test_rows_that_another_connection_deletes_meanwhile_are_counted(
    connection: apsw.Connection, tmp_path: Path
) -> None:
    meter = SqliteMeter(connection)
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
    meter = SqliteMeter(connection)
    connection.execute("begin")

    assert read(meter, connection, "delete from t where (select count(*) from t) > 5") >= 1_000 + 1_000


# -- when a program changes -------------------------------------------------------------------------------------------

BY_VALUE = "select k from t where v = 3"


def test_a_new_index_is_noticed(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)
    scanned = read(meter, connection, BY_VALUE)

    connection.execute("create index t_v on t (v)")

    assert (scanned, read(meter, connection, BY_VALUE)) == (1_000, 100)


def test_a_range_that_returns_each_row_is_exact_without_a_trace(connection: apsw.Connection) -> None:
    connection.execute("create index t_v on t (v)")
    meter = SqliteMeter(connection)

    assert [read(meter, connection, BY_VALUE) for _ in range(2)] == [100, 100]
    assert read(meter, connection, "select k from t where v = 77 limit 1") == 0


def test_an_index_made_by_another_connection_is_noticed(connection: apsw.Connection, tmp_path: Path) -> None:
    meter = SqliteMeter(connection)
    scanned = read(meter, connection, BY_VALUE)

    other = opened_file(tmp_path)
    other.execute("create index t_v on t (v)")
    other.close()

    assert scanned == 1_000
    assert 100 <= read(meter, connection, BY_VALUE) <= 1_000  # compiled again as it ran: steps of both are counted
    assert read(meter, connection, BY_VALUE) == 100


def test_a_trigger_made_by_another_connection_is_noticed_by_untraced_executions(
    connection: apsw.Connection, tmp_path: Path
) -> None:
    meter = SqliteMeter(connection)
    sql = "insert into t (k, v) values (?, 0)"
    given = [(str(i),) for i in range(16)]
    for _ in range(2):
        meter.begin(sql, given[0], executions=len(given))
        connection.executemany(sql, given)
        meter.end(sql, rows=0)

    meter.begin(sql, given[0], executions=len(given))
    other = opened_file(tmp_path)
    other.execute("create trigger a after insert on t begin select max(v) from t; end")
    other.close()
    connection.executemany(sql, given)
    measure = meter.end(sql, rows=0)

    assert measure.rows_read >= 16 * 1_000


def test_forget_makes_the_meter_look_again(connection: apsw.Connection) -> None:
    connection.execute("create table child (id integer primary key, t_id integer references t on delete cascade)")
    connection.execute("insert into child (t_id) select id from t")
    meter = SqliteMeter(connection)
    sql = "delete from t where id = ?"
    alone = [read(meter, connection, sql, number) for number in (1, 2)]

    connection.execute("pragma foreign_keys = on")
    meter.forget()

    assert alone == [1, 1]
    assert read(meter, connection, sql, 3) >= 2_000


def test_a_pattern_in_a_parameter_uses_an_index(connection: apsw.Connection) -> None:
    connection.execute("create index t_k on t (k collate nocase)")
    meter = SqliteMeter(connection)
    sql = "select v from t where k like ?"

    found = [read(meter, connection, sql, pattern) for pattern in ("k11%", "k%", "k12%", "%1")]

    assert 11 <= found[0] <= 110
    assert 1_000 <= found[1] <= 10_000
    assert 11 <= found[2] <= 110
    assert found[3] == 1_000


def test_a_plan_chosen_by_the_value_is_never_measured_too_low(connection: apsw.Connection) -> None:
    connection.execute("create index t_three on t (id) where v = 3")
    meter = SqliteMeter(connection)
    sql = "select id from t where v = ?"

    assert 100 <= read(meter, connection, sql, 3) <= 1_000
    assert read(meter, connection, sql, 4) == 1_000


# -- when nothing better is known -------------------------------------------------------------------------------------


def test_in_a_long_program_every_step_counts_as_a_row(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter_module, "LINES_MAX", 5)
    meter = SqliteMeter(connection)
    sql = "select k + 1 from t where v = 3 and k > -5"

    meter.begin(sql)
    rows = connection.execute(sql).fetchall()
    measure = meter.end(sql, rows=len(rows))

    assert measure.rows_read == measure.steps > 1_000


UNIONS = "select v from t where id = 1" + " union select id from t where id = 2" * 498 + " order by 1"
NUMBERS = f"select k from t where id in ({', '.join(map(str, range(20_000)))})"


@pytest.mark.parametrize("sql", [UNIONS, NUMBERS], ids=["499 unions", "20,000 numbers"])
def test_the_work_of_the_meter_grows_only_with_the_length_of_a_statement(
    connection: apsw.Connection, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def count(listing: Sequence[tuple[Any, ...]]) -> Loops:
        looked.append(len(listing))
        return Loops(listing)

    monkeypatch.setattr(meter_module, "Loops", count)
    meter = SqliteMeter(connection)

    assert read(meter, connection, sql) >= 499
    assert all(lines <= meter_module.LINES_MAX for lines in looked)


def test_a_counter_that_may_have_started_again_counts_too_high(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter_module, "COUNTER_SECONDS", 1e-9)
    meter = SqliteMeter(connection)

    assert read(meter, connection, BY_VALUE) > 2**32


def test_a_change_of_the_schema_is_measured_too(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)

    assert read(meter, connection, "create table other as select count(*) from t") >= 1_000


def test_each_statement_of_a_text_is_counted(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)

    assert read(meter, connection, "select k from t where id <= 10; select k from t where id <= 20") >= 30


def test_the_schema_can_be_counted(connection: apsw.Connection) -> None:
    assert read(SqliteMeter(connection), connection, "select count(*) from sqlite_schema") == 1


def test_several_statements_in_one_text_are_always_traced(connection: apsw.Connection) -> None:
    meter = SqliteMeter(connection)
    sql = "insert into t (v) values (1); update t set k = 'a' where v = 3"

    for _ in range(3):
        meter.begin(sql)
        connection.execute(sql)
        measure = meter.end(sql)

        assert measure.rows_read >= 1_000
        assert measure.rows_written == 101


def test_no_more_programs_are_kept_than_allowed(connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "TEXTS_MAX", 3)
    meter = SqliteMeter(connection)

    estimates = [read(meter, connection, f"select k from t where id <= {last}") for last in range(9)]

    assert all(last <= estimate <= last + 1 for last, estimate in enumerate(estimates))
    assert len(meter._known) <= 3
