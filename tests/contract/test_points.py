"""Data points are kept beside the history of each store: saved whole, added up, found by their times, pruned in portions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from penstock.contracts.history import Entry, HistoryFile
from penstock.metrics import saving
from penstock.metrics.asking import Names, named, question
from penstock.metrics.point import Noted, Sorts
from penstock.metrics.saving import DAY, KEPT_DAYS, RAW_DAYS, DatasetTally, Rolling, Used, prune, ready, save
from penstock.metrics.summary import datasets, groups
from penstock.model.errors import BadStatement, StatementFailed, StoreError
from penstock.model.sql_files import BOTH, load
from penstock.model.times import text_of_micros
from penstock.storage.postgres.store import PostgresStore
from penstock.storage.sqlite.history import CREATE, SQL, SqliteHistory, path_of
from tests.contract.conftest import Made
from tests.postgres import empty_database, look

HOUR = 3_600_000_000
NOON = 1_763_208_000_000_000  # 2025-11-15T12:00:00Z
HOSTILE = "\x1b[31m\u202eevil\u202c '; drop table penstock_points; -- =cmd|' 🙂 <script>"
SALES = named("sales", {"phase": "blob3", "apps": "double1"})


@pytest.fixture
def file(made: Made) -> Iterator[HistoryFile]:
    opened = made.store.open_history()
    yield opened
    opened.close()


def point(
    *doubles: Any, at: int = NOON, phase: str | None = "scan", dataset: str = "sales", index: Any = "pipeline"
) -> Noted:
    return Noted(dataset, at, ("pipeline", "cron", phase), doubles, index)


def add(
    file: HistoryFile,
    *points: Noted,
    now: int = NOON,
    writes_max: int | None = None,
    rolling: Rolling | None = None,
    **tallies: DatasetTally,
) -> tuple[Used, dict[str, DatasetTally]]:
    checked = ready(points, Sorts())
    return file.transact(lambda run: save(run, checked, tallies, rolling or Rolling(), now=now, writes_max=writes_max))


def ask(file: HistoryFile, sql: str, names: Names = SALES, **given: object) -> list[tuple[Any, ...]]:
    text, bound = question(names, sql, given)
    return file.points(text, bound, rows_max=1_000, seconds_max=5.0)[1]


# -- saving and asking ----------------------------------------------------------------------------------------


@pytest.mark.spec("A10-03", "G2-47")
def test_points_come_back_by_their_columns_and_by_their_names(file: HistoryFile) -> None:
    add(file, point(1.0, 2.0), point(0.5, 4.0, at=NOON + 1), point(7.0, phase="clean"), point(9.0, index="other"))

    by_phase = "select {0}, sum(double1), sum(double2) from points where index1 = 'pipeline' group by {0} order by {0}"
    expected = [("clean", 7.0, None), ("scan", 1.5, 6.0)]
    assert ask(file, by_phase.format("blob3")) == ask(file, by_phase.format("phase")) == expected
    assert ask(file, "select sum(apps) from points where phase = :phase", phase="scan") == [(10.5,)]
    assert ask(file, "select distinct at from points") == [("2025-11-15 12:00:00",)]


def test_a_point_may_have_twenty_of_each_and_may_lack_any(file: HistoryFile) -> None:
    full = Noted("sales", NOON, tuple(f"b{n}" for n in range(20)), tuple(float(n) for n in range(20)), "i")
    bare = Noted("sales", NOON, (), (), None)
    holes = Noted("sales", NOON, (None, "b", None), (None, 2.0), None)
    add(file, full, bare, holes)

    rows = ask(
        file, "select index1, blob1, blob2, blob20, double1, double2, double20 from points order by double20, blob2"
    )
    assert sorted(rows, key=str) == sorted(
        [("i", "b0", "b1", "b19", 0.0, 1.0, 19.0), (None,) * 7, (None, None, "b", None, None, 2.0, None)], key=str
    )


def test_numbers_come_back_exactly_as_they_were_written(file: HistoryFile, seed: int) -> None:
    chance = Random(seed)
    numbers = [chance.uniform(-1, 1) * 10.0 ** chance.randint(-280, 280) for _ in range(500)] + [
        0.1 + 0.2,
        -0.0,
        5e-324,
    ]
    add(file, *(point(number, phase=str(place)) for place, number in enumerate(numbers)))

    found = dict(ask(file, "select phase, double1 from points"))
    assert [found[str(place)] for place in range(len(numbers))] == numbers


def test_hostile_text_is_text(file: HistoryFile) -> None:
    add(file, point(1.0, phase=HOSTILE, index=HOSTILE[:90]), point(2.0, phase=""))

    assert ask(file, "select phase, index1 from points where double1 = 1") == [(HOSTILE, HOSTILE[:90])]
    assert ask(file, "select double1 from points where phase = :phase", phase=HOSTILE) == [(1.0,)]


def test_a_dataset_sees_its_own_points_alone(file: HistoryFile) -> None:
    add(file, point(1.0), point(2.0, dataset="other"))

    assert ask(file, "select double1 from points") == [(1.0,)]
    assert ask(file, "select sum(sum) from days where place = 1", named("other", None)) == [(2.0,)]


def test_several_processes_add_to_the_same_points(made: Made, file: HistoryFile) -> None:
    neighbour = made.another.open_history()
    try:
        add(file, point(1.0))
        add(neighbour, point(2.0))
        assert ask(file, "select double1 from points order by 1") == [(1.0,), (2.0,)]
        assert ask(file, "select count, sum, min, max from hours where name = 'apps'") == [(2, 3.0, 1.0, 2.0)]
    finally:
        neighbour.close()


# -- what points add up to ------------------------------------------------------------------------------------


@pytest.mark.spec("A10-07")
def test_points_are_added_up_by_hour_and_day_whatever_batch_they_came_in(file: HistoryFile, seed: int) -> None:
    chance = Random(seed)
    points = [
        point(
            *(chance.choice([None, round(chance.uniform(-9, 9), 3)]) for _ in range(chance.randrange(6))),
            at=NOON + chance.randrange(40 * HOUR),
            phase=chance.choice("abc"),
        )
        for _ in range(200)
    ]
    left = list(points)
    while left:
        size = chance.randint(1, 60)
        add(file, *left[:size])
        del left[:size]

    for span, digits in (("hours", 13), ("days", 10)):
        for place in range(6):
            expected: dict[tuple[str, str], list[float]] = {}
            for each in points:
                number = 1.0 if not place else each.doubles[place - 1] if len(each.doubles) >= place else None
                if number is not None:
                    at = text_of_micros(each.at)[:digits] + "0000-00-00 00:00:00"[digits:]
                    expected.setdefault((at, each.blobs[2]), []).append(number)
            sql = f"select at, phase, count, sum, min, max from {span} where place = :place"
            found = {row[:2]: row[2:] for row in ask(file, sql, place=place)}
            assert found.keys() == expected.keys()
            for key, numbers in expected.items():
                assert found[key][0] == len(numbers)
                if place:
                    assert found[key][1] == pytest.approx(sum(numbers))
                    assert found[key][2:] == (min(numbers), max(numbers))


def test_sums_of_the_largest_numbers_that_fit_can_still_be_added_up(file: HistoryFile) -> None:
    for _ in range(3):
        add(file, *[point(1e290)] * 10, point(-1e290))

    assert ask(file, "select sum, min, max from days where place = 1") == [(pytest.approx(2.7e291), -1e290, 1e290)]


# -- quotas ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("A10-02")
def test_over_the_days_quota_points_are_dropped_and_counted_in_all_processes_together(
    made: Made, file: HistoryFile
) -> None:
    neighbour = made.another.open_history()
    try:
        used, counted = add(file, *[point(1.0)] * 6, writes_max=10)
        assert (used.written, counted["sales"].dropped) == (6, 0)
        used, counted = add(neighbour, *[point(1.0)] * 6, writes_max=10)
        assert (used.written, counted["sales"].written, counted["sales"].dropped) == (10, 4, 2)
        used, counted = add(file, point(1.0), writes_max=10)
        assert (used.written, counted["sales"].dropped) == (10, 1)
        used, counted = add(file, point(1.0, at=NOON + DAY), now=NOON + DAY, writes_max=10)
        assert (used.day, used.written, counted["sales"].dropped) == ("2025-11-16", 1, 0)
    finally:
        neighbour.close()

    assert ask(file, "select count(*) from points") == [(11,)]
    assert [each[:4] for each in datasets(file, since=NOON)] == [("sales", 11, 3, 0)]


# -- pruning --------------------------------------------------------------------------------------------------


@pytest.mark.spec("A10-07")
def test_points_go_after_90_days_in_portions_and_what_they_add_up_to_stays_longer(file: HistoryFile) -> None:
    for _ in range(5):
        add(file, point(1.0, at=NOON))
    now = NOON + RAW_DAYS * DAY
    add(file, point(1.0, at=now), now=now)
    assert prune(file, now=now - 1_000_000, limit=100) is False
    assert ask(file, "select count(*) from points") == [(6,)]

    later = now + 1_000_000
    assert prune(file, now=later, limit=3) is True
    assert prune(file, now=later, limit=3) is False
    assert ask(file, "select at, double1 from points") == [(text_of_micros(now), 1.0)]
    assert ask(file, "select at, count from hours where place = 0 order by at") == [
        (text_of_micros(NOON), 5),
        (text_of_micros(now), 1),
    ]

    for _ in range(3):
        prune(file, now=NOON + (KEPT_DAYS["hour"] + 1) * DAY, limit=3)
    assert ask(file, "select count(*) from points") == ask(
        file, "select count(*) from hours where at < :at", at="2026-01-01"
    )
    assert ask(file, "select count(*) from days where place = 0") == [(2,)]
    for _ in range(9):
        prune(file, now=NOON + (KEPT_DAYS["day"] + 200) * DAY, limit=3)
    assert ask(file, "select count(*) from days") == [(0,)]
    assert file.transact(lambda run: run("prune_sorts", {"before": "9", "limit": 10})) == []


@pytest.mark.spec("A10-07")
def test_when_points_take_too_much_room_the_oldest_days_go_first(
    file: HistoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "ROLLED_SORTS_MAX", 10)
    for day in range(5):
        add(file, *(point(1.0, at=NOON + day * DAY, phase=f"{day} {n}") for n in range(50)), now=NOON + day * DAY)
    now = NOON + 4 * DAY
    sizes = file.transact(lambda run: run("sizes", {}))
    assert [day for day, _ in sizes] == ["2025-11-19", "2025-11-18", "2025-11-17", "2025-11-16", "2025-11-15"]
    assert all(50 * 60 < size < 50 * 300 for _, size in sizes)

    monkeypatch.setattr(saving, "RAW_BYTES_MAX", sum(size for _, size in sizes[:2]))
    while prune(file, now=now, limit=40):
        pass

    assert ask(file, "select min(at), count(*) from points") == [("2025-11-18 12:00:00", 100)]
    assert ask(file, "select count(distinct at) from days") == [(5,)]
    # Words that nothing needs any more go along: of each day that went ten were added up, and stay.
    assert file.transact(lambda run: len(run("prune_sorts", {"before": "9", "limit": 1_000}))) == 3 * 10 + 2 * 50

    monkeypatch.setattr(saving, "RAW_BYTES_MAX", 1)
    prune(file, now=now, limit=1_000)
    assert file.transact(lambda run: run("sizes", {})) == sizes
    assert file.points("select count(*) from penstock_points", {}, rows_max=1, seconds_max=1.0)[1] == [(50,)]  # today's


def test_of_endless_sorts_the_first_few_hundred_a_day_are_added_up_and_all_are_kept(
    file: HistoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "ROLLED_SORTS_MAX", 3)
    rolling = Rolling()
    for start in (0, 4):
        add(file, *(point(1.0, phase=str(number)) for number in range(start, start + 6)), rolling=rolling)
    add(file, point(1.0, dataset="other"), point(1.0, phase="0"), rolling=rolling)
    tomorrow = NOON + DAY
    add(file, *(point(1.0, at=tomorrow, phase=str(number)) for number in range(7, 9)), now=tomorrow, rolling=rolling)

    assert ask(file, "select count(*), count(distinct phase) from points") == [(15, 10)]
    assert ask(file, "select phase, count from days where place = 0 order by at, phase") == [
        ("0", 2),
        ("1", 1),
        ("2", 1),
        ("7", 1),
        ("8", 1),
    ]
    assert ask(file, "select count(*) from days where place = 0", named("other", None)) == [(1,)]


# -- only points ----------------------------------------------------------------------------------------------

FORBIDDEN = (
    "select name from sqlite_schema",
    "select seq from entries",
    "select count(*) from entries",
    "select count(*) from Entries",
    "select count(*) from sqlite_schema",
    "select count(*) from penstock_history",
    "select label from labels",
    "select relname from pg_class",
    "select relname from pg_catalog.pg_class",
    "select id from penstock.penstock_messages",
    "select id from penstock_messages",
    "select 'x' from \"penstock_points\"",
    "select 1 where exists (select 1 from penstock_tallies)",
    "select name from pragma_table_list",
    "select at from main.penstock_samples",
    "select table_name from information_schema.tables",
    "select query_to_xml('select 1', true, true, '')",
    "select pg_read_file('/etc/passwd')",
    'select "pg_sleep"(1)',
    "select load_extension('x')",
    "select value from json_each('[1]')",
    "delete from points",
    "with gone as (delete from penstock_points returning 1) select 1 from gone",
    "insert into points (at) values ('x')",
    "drop table points",
    "pragma user_version = 7",
    "attach 'x' as y",
    "explain select 1",
    "select at from points; select 1",
    "select :penstock_dataset",
    "",
)


@pytest.mark.spec("A10-03")
@pytest.mark.parametrize("sql", FORBIDDEN)
def test_nothing_but_points_can_be_read_and_nothing_written(file: HistoryFile, sql: str) -> None:
    file.append([Entry(NOON, b"a" * 16, b"a" * 16, None, "message", "s", "q", "n", "s", 1, "acked", NOON, None)])
    add(file, point(1.0))

    with pytest.raises((BadStatement, StatementFailed)):
        ask(file, sql, SALES, **({"penstock_dataset": "x"} if ":" in sql else {}))

    assert ask(file, "select double1 from points") == [(1.0,)]
    assert len(file.chain(b"a" * 16, 10)) == 1


@pytest.mark.parametrize("table", ["penstock_messages", "penstock_labels", "entries", "pg_class", "sqlite_schema"])
def test_the_store_itself_refuses_other_tables_even_after_a_check_of_the_text(file: HistoryFile, table: str) -> None:
    add(file, point(1.0))
    with pytest.raises(StatementFailed, match="refused"):
        file.points(f"select 1 from {table}", {}, rows_max=10, seconds_max=5.0)


@pytest.mark.parametrize(
    "sql, expected",
    [
        ("select count(*), avg(double1) from points", [(2, 1.5)]),
        ("with best as (select max(double1) as d from points) select d from best", [(2.0,)]),
        ("select double1, row_number() over (order by double1 desc) from points order by 2", [(2.0, 1), (1.0, 2)]),
        ("select a.double1 from points as a join points as b on a.double1 = b.double1 - 1", [(1.0,)]),
        ("select coalesce(sum(case when double1 > 1 then 1 else 0 end), 0) from points", [(1,)]),
        ("select substr(at, 1, 10), count(*) from points group by substr(at, 1, 10)", [("2025-11-15", 2)]),
        ("select double1 from points -- a comment\norder by double1 desc limit 1", [(2.0,)]),
        ("values (1)", [(1,)]),
    ],
)
def test_any_query_over_points_runs_on_both_stores(file: HistoryFile, sql: str, expected: list[Any]) -> None:
    add(file, point(1.0), point(2.0))

    assert ask(file, sql) == expected


def test_a_question_that_takes_too_long_is_given_up_and_the_next_one_answered(file: HistoryFile) -> None:
    add(file, point(1.0))
    text, bound = question(
        SALES, "with recursive n as (select 1 as i union all select i + 1 from n) select count(*) from n", {}
    )
    with pytest.raises(StatementFailed, match=r"longer than 0\.05 s"):
        file.points(text, bound, rows_max=10, seconds_max=0.05)

    assert ask(file, "select double1 from points") == [(1.0,)]


def test_a_query_that_makes_no_sense_says_what_the_database_said(file: HistoryFile) -> None:
    with pytest.raises(StatementFailed, match="no_such_column"):
        ask(file, "select no_such_column from points")


# -- files and databases of before there were points ------------------------------------------------------------


def old_history(database: Path) -> Entry:
    """A history as it was made before, with one entry in it."""
    entry = Entry(NOON, b"a" * 16, b"a" * 16, None, "message", "s", "q", "n", "s", 1, "acked", NOON, None)
    made = SqliteHistory(database)
    made.append([entry])
    made.close()
    connection = apsw.Connection(str(path_of(database)))
    for table in ("points", "sorts", "rolled", "tallies", "samples"):
        connection.execute(f"drop table penstock_{table}")
    assert not connection.execute(SQL["has_points"]).fetchall()
    assert int(connection.pragma("user_version")) == 1
    connection.close()
    return entry


def test_an_older_history_file_keeps_what_it_has_and_gets_tables_for_points(tmp_path: Path) -> None:
    database = tmp_path / "market.db"
    entry = old_history(database)

    looked = SqliteHistory(database, read_only=True)
    assert ask(looked, "select at from points") == []
    assert looked.chain(entry.id, 10) == [entry]
    looked.close()
    file = SqliteHistory(database)
    add(file, point(1.0))

    assert file.append([entry]) is None
    assert ask(file, "select double1 from points") == [(1.0,)]
    assert file.chain(entry.id, 10) == [entry, entry]
    file.close()


def test_looking_for_points_makes_no_file(tmp_path: Path) -> None:
    looked = SqliteHistory(tmp_path / "market.db", read_only=True)

    assert datasets(looked, since=NOON) == []
    assert groups(looked, SALES, ["phase"], since=NOON, now=NOON) == []
    assert list(tmp_path.iterdir()) == []


def test_an_older_server_database_gets_tables_for_points() -> None:
    url = empty_database()
    store = PostgresStore(url)
    for table in ("points", "sorts", "rolled", "tallies", "samples"):
        look(url, f"drop table penstock.penstock_{table}")
    looked = store.open_history(read_only=True)
    assert ask(looked, "select at from points") == []
    looked.close()
    file = store.open_history()

    add(file, point(1.0))

    assert ask(file, "select double1 from points") == [(1.0,)]
    file.close()


def test_a_disk_that_is_full_is_reported_and_nothing_is_half_saved(tmp_path: Path) -> None:
    file = SqliteHistory(tmp_path / "market.db")
    add(file, point(1.0))
    assert file._connection is not None
    file._connection.pragma("max_page_count", int(file._connection.pragma("page_count")) + 2)

    with pytest.raises(StoreError, match="full"):
        add(file, *(point(1.0, phase=f"{number:0200}") for number in range(2_000)))

    assert ask(file, "select count(*) from points") == [(1,)]
    file.close()


# -- how they are found ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, index",
    [
        ("select sum(double1) from points where at >= '2025'", "penstock_points_times"),
        ("select max(at) from points", "penstock_points_times"),
        ("select sum(sum) from days where at >= '2025' and place = 1", "USING PRIMARY KEY"),
    ],
)
def test_a_question_about_a_time_finds_its_points_through_an_index(tmp_path: Path, sql: str, index: str) -> None:
    plan = planned(tmp_path, *question(SALES, sql, {}))

    assert any(index in step for step in plan), plan
    assert not any(step.startswith(("SCAN noted", "SCAN rolled", "SCAN sorts")) for step in plan), plan


@pytest.mark.parametrize("name", ["prune_points", "prune_rolled", "prune_sorts", "used"])
def test_pruning_finds_what_is_old_through_an_index(tmp_path: Path, name: str) -> None:
    bound = {"before": "x", "limit": 1, "span": "hour", "day": "x"}
    plan = planned(tmp_path, load(BOTH, "points.sql")[name], bound)

    scanned = [step for step in plan if step.startswith("SCAN") and not step.startswith(("SCAN oldest", "SCAN (sub"))]
    assert scanned in ([], ["SCAN penstock_points"]), plan  # the oldest of them, in the table's own order
    assert "penstock_points" in load(BOTH, "points.sql")[name] or any("USING" in step for step in plan), plan


def planned(tmp_path: Path, sql: str, bound: dict[str, Any]) -> list[str]:
    connection = apsw.Connection(str(tmp_path / "plan.db"))
    for statement in CREATE:
        connection.execute(statement)
    return [row[3] for row in connection.execute(f"explain query plan {sql}", bound)]
