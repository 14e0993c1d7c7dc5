"""The meter: what is written is exact, what is read is never too low, and is exact wherever the table says so.

The truth of the shapes was read from a SQLite with scan statistics and is written down beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from bench.meter_shapes import SHAPES, Shape, database, markdown, measured
from penstock.storage.sqlite import meter as meter_module
from penstock.storage.sqlite import program as program_module
from penstock.storage.sqlite.cost import Cost
from penstock.storage.sqlite.meter import UNTRACED_FROM, Meter

pytestmark = pytest.mark.spec("A8-22")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explain" / "meter.md"
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
    with opened:
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
    asked_nowhere_else = "select k + 1 from t where v = 3 and k > -5"

    meter.begin(asked_nowhere_else)
    rows = connection.execute(asked_nowhere_else).fetchall()
    measure = meter.end(asked_nowhere_else, rows=len(rows))

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


def test_the_schema_can_be_counted(connection: apsw.Connection) -> None:
    assert read(Meter(connection), connection, "select count(*) from sqlite_schema") == 1


def test_several_statements_in_one_text_are_always_traced(connection: apsw.Connection) -> None:
    meter = Meter(connection)
    sql = "insert into t (v) values (1); update t set k = 'a' where v = 3"

    meter.begin(sql, executions=UNTRACED_FROM)
    for _ in range(UNTRACED_FROM):
        connection.execute(sql)
    measure = meter.end(sql)

    assert measure.rows_read >= UNTRACED_FROM * 1_000
    assert measure.rows_written == UNTRACED_FROM * 101


def test_no_more_programs_are_kept_than_allowed(connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "TEXTS_MAX", 3)
    meter = Meter(connection)

    assert [read(meter, connection, f"select k from t where id <= {last}") for last in range(9)] == list(range(9))
    assert len(meter._costs) == 3
