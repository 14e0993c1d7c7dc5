"""Statements of every common shape with what they truly cost, against which the meter is held.

`truth` is the number of rows visited as `sqlite3_stmt_scanstatus_v2(NVISIT)` tells it in a SQLite that was built with
scan statistics, together with what that does not see: tables counted whole, and rows found by triggers, foreign keys
and unique keys. `d1` is what Cloudflare's counters said in the same SQLite, reads and writes. Both are written down here
because the SQLite we ship has neither. Rows of a subquery that SQLite keeps count each time they are read, as on D1.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from penstock.model.usage import Measure
from penstock.storage.sqlite.meter import SqliteMeter

TABLES = """
pragma foreign_keys = on;
create table t (id integer primary key, k text, v integer, x integer);
create index t_v on t (v);
create table u (id integer primary key, t_id integer, n text);
create table w (a integer, b integer, c integer, primary key (a, b)) without rowid;
create index w_c on w (c);
create table parent (id integer primary key, name text unique);
create table child (id integer primary key, parent_id integer references parent on delete cascade);
create index child_parent on child (parent_id);
create table watched (id integer primary key, n integer);
create table log (id integer primary key, watched_id integer);
create trigger watched_changed after update on watched begin
  insert into log (watched_id) values (new.id);
end;
with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < 10000)
insert into t select i, 'k' || (i % 100), i % 100, i * 7 % 1000 from numbers;
insert into u select id, id * 5, 'n' || id from t where id <= 2000;
insert into w select id % 10, id, id % 20 from t where id <= 1000;
insert into parent select id, 'p' || id from t where id <= 100;
insert into child select id, 1 + id % 100 from t where id <= 300;
insert into watched select id, id from t where id <= 100;
"""


class Shape(NamedTuple):
    name: str
    sql: str
    truth: int
    d1: tuple[int, int]
    written: int = 0


SHAPES = [
    Shape("row by rowid", "select k from t where id = 5", 1, (1, 0)),
    Shape("row by rowid, missing", "select k from t where id = 50000", 0, (1, 0)),
    Shape("row by unique key", "select id from parent where name = 'p7'", 1, (1, 0)),
    Shape("row by key, without rowid", "select c from w where a = 3 and b = 13", 1, (1, 0)),
    Shape("range of rowids", "select k from t where id between 100 and 199", 100, (101, 0)),
    Shape("equal keys of an index", "select k from t where v = 7", 100, (101, 0)),
    Shape("range of an index", "select k from t where v between 10 and 12", 300, (301, 0)),
    Shape("range of a key, without rowid", "select c from w where a = 3", 100, (101, 0)),
    Shape("covering index", "select v from t where v = 7", 100, (101, 0)),
    Shape("full scan", "select k from t", 10000, (10000, 0)),
    Shape("full scan with a filter", "select k from t where k = 'k77'", 10000, (10000, 0)),
    Shape("index range with a filter", "select k from t where v < 10 and x > 500", 1000, (1001, 0)),
    Shape(
        "index range, two filters",
        "select sum(x) from t where v < 10 and x > 500 and k like '%1'",
        1000,
        (1001, 0),
    ),
    Shape("limit", "select k from t limit 5", 5, (5, 0)),
    Shape("limit and offset", "select k from t where v < 50 limit 5 offset 20", 25, (25, 0)),
    Shape("probe that finds", "select 1 from t where v = 7 limit 1", 1, (1, 0)),
    Shape("probe that finds nothing", "select 1 from t where v = 500 limit 1", 0, (0, 0)),
    Shape("probe with exists", "select exists (select 1 from t where v = 7)", 1, (1, 0)),
    Shape("count(*)", "select count(*) from t", 10000, (10000, 0)),
    Shape("count(*) of a range", "select count(*) from t where v = 7", 100, (101, 0)),
    Shape("bounded count", "select count(*) from (select 1 from t where v < 50 limit 501)", 501, (501, 0)),
    Shape("max of an index", "select max(v) from t", 1, (1, 0)),
    Shape("max without an index", "select max(x) from t", 10000, (10000, 0)),
    Shape("order by an index, limit", "select k from t order by v limit 5", 5, (5, 0)),
    Shape("order by a column, limit", "select id from t order by k limit 5", 10000, (20000, 0)),
    Shape("order by a column", "select k from t where v < 3 order by x", 300, (601, 0)),
    Shape("join by rowid", "select u.n, t.k from u join t on t.id = u.t_id where u.id <= 50", 100, (101, 0)),
    Shape(
        "join by index",
        "select u.n, t.k from u cross join t on t.v = u.id where u.id <= 10",
        1010,
        (1021, 0),
    ),
    Shape(
        "join with a scan inside",
        "select a.n, b.n from u a cross join u b where a.id <= 3 and b.t_id < 50",
        6003,
        (6004, 0),
    ),
    Shape("join by an automatic index", "select a.n, b.n from u a join u b on b.n = a.n", 6000, (7999, 0)),
    Shape("left join, all missing", "select u.n, t.k from u left join t on t.id = u.id + 50000", 4000, (4000, 0)),
    Shape(
        "group by an index",
        "select v, count(*) from t where v between 10 and 20 group by v",
        1100,
        (1101, 0),
    ),
    Shape("group by a column", "select k, sum(x) from t where v < 10 group by k", 1000, (2001, 0)),
    Shape("group by after a join", "select t.k, count(*) from u join t on t.id = u.t_id group by t.k", 4000, (6000, 0)),
    Shape("distinct", "select distinct x from t where v < 5", 500, (501, 0)),
    Shape("in a list", "select k from t where v in (1, 2, 3)", 300, (306, 0)),
    Shape("in a subquery", "select k from t where id in (select t_id from u where id <= 100)", 200, (301, 0)),
    Shape("or over two indexes", "select k from t where v = 1 or id < 50", 149, (151, 0)),
    Shape(
        "exists for each row",
        "select n from u where id <= 50 and exists (select 1 from t where t.v = u.id)",
        100,
        (101, 0),
    ),
    Shape(
        "subquery for each row", "select n, (select k from t where t.id = u.t_id) from u where id <= 50", 100, (101, 0)
    ),
    Shape("union", "select k from t where v = 1 union select k from t where v = 2", 200, (402, 0)),
    Shape("union all", "select k from t where v = 1 union all select k from t where v = 2", 200, (202, 0)),
    Shape("window function", "select k, row_number() over (order by x) from t where v < 3", 300, (1202, 0)),
    Shape(
        "window with partitions",
        "select k, sum(x) over (partition by k order by id) from t where v < 3",
        300,
        (1205, 0),
    ),
    Shape(
        "recursive query",
        "with recursive c (i) as (select 1 union all select i + 1 from c where i < 100) select k from c join t on id = i",
        100,
        (201, 0),
    ),
    Shape(
        "subquery kept and read twice",
        "with m as materialized (select id from u where id <= 20) select 1 from m, m",
        440,
        (441, 0),
    ),
    Shape("json_each", "select t.k from json_each('[1, 2, 3]') j join t on t.id = j.value", 6, (6, 0)),
    Shape("insert", "insert into t (k, v, x) values ('a', 1, 2)", 0, (0, 2), written=1),
    Shape("insert of two rows", "insert into parent (name) values ('a'), ('b')", 0, (0, 4), written=2),
    Shape("insert or ignore, a duplicate", "insert or ignore into parent (name) values ('p7')", 1, (0, 0)),
    Shape(
        "insert or replace, a duplicate", "insert or replace into w (a, b, c) values (3, 13, 1)", 1, (0, 2), written=1
    ),
    Shape(
        "upsert, a duplicate",
        "insert into parent (name) values ('p7') on conflict (name) do update set name = 'p' || excluded.name",
        2,
        (1, 2),
        written=1,
    ),
    Shape(
        "insert from a select", "insert into u select id + 5000, id, k from t where v = 3", 100, (201, 100), written=100
    ),
    Shape("insert with a foreign key", "insert into child (parent_id) values (7)", 1, (1, 2), written=1),
    Shape("update by rowid", "update t set x = x + 1 where id = 7", 1, (1, 1), written=1),
    Shape("update by index", "update t set x = x + 1 where v = 7", 100, (101, 100), written=100),
    Shape("update of the index it uses", "update t set v = v + 1 where v = 7", 100, (301, 200), written=100),
    Shape("update of a whole table", "update t set x = 1", 10000, (10000, 10000), written=10000),
    Shape("update with a trigger", "update watched set n = n + 1 where id <= 10", 10, (31, 20), written=20),
    Shape("delete by rowid", "delete from u where id = 7", 1, (1, 1), written=1),
    Shape("delete by range", "delete from t where id between 5 and 8", 4, (5, 4), written=4),
    Shape("delete by index", "delete from t where v = 9", 100, (101, 100), written=100),
    Shape("delete of a whole table", "delete from u", 0, (0, 2000), written=2000),
    Shape("delete that cascades", "delete from parent where id = 7", 7, (15, 4), written=4),
]


def database() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    return connection


def measured(meter: SqliteMeter, connection: apsw.Connection, shape: Shape, *, finished: bool = True) -> Measure:
    """The shape's cost, in a transaction that is rolled back. Unless `finished`, the meter is not told it ran to its end."""
    connection.execute("begin")
    meter.begin(shape.sql)
    rows = len(connection.execute(shape.sql).fetchall())
    measure = meter.end(shape.sql, rows=rows if finished else None)
    connection.execute("rollback")
    return measure


def markdown() -> str:
    """The table of docs/explain/meter.md."""
    connection = database()
    meter = SqliteMeter(connection)
    lines = [
        "| statement | rows read | estimate | ratio | D1 reads | rows written | D1 writes |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    exact = 0
    for shape in SHAPES:
        estimate = measured(meter, connection, shape).rows_read
        ratio = f"{estimate / shape.truth:.2f}" if shape.truth else "1.00" if estimate == 0 else "-"
        exact += estimate == shape.truth
        cells = (shape.truth, estimate, ratio, shape.d1[0], shape.written, shape.d1[1])
        lines.append(f"| {shape.name} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, "", f"{exact} of {len(SHAPES)} shapes are exact."])
