"""Upserts on a real database, and lists and texts cut to what fits."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import BadParameter, BadStatement
from penstock.model.limits import CLOUDFLARE
from penstock.model.parameters import bind
from penstock.model.statement import writable
from penstock.model.upsert import chunk_rows, chunks, cut, first_by, insert_ignore, numbered, upsert

COLUMNS = ["track_id", "name", "price", "discovered_at"]


@pytest.fixture
def db() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute("create table apps (track_id integer primary key, name text, price real, discovered_at text)")
    return db


def write(db: apsw.Connection, sql: str, **values: object) -> int:
    statement = writable(sql)
    db.execute(statement.text, bind(statement, None, values))
    return db.changes()


# -- upserts --------------------------------------------------------------------------------------------------


def test_an_upsert_reads_like_one_written_by_hand() -> None:
    assert upsert("apps", COLUMNS, "track_id", keep=["discovered_at"]) == (
        "insert into apps (track_id, name, price, discovered_at)\n"
        "values (:track_id, :name, :price, :discovered_at)\n"
        "on conflict (track_id) do update set\n"
        "    name = coalesce(excluded.name, apps.name),\n"
        "    price = coalesce(excluded.price, apps.price)"
    )


def test_knowledge_is_filled_in_and_never_overwritten_with_nothing(db: apsw.Connection) -> None:
    sql = upsert("apps", COLUMNS, "track_id", keep=["discovered_at"])

    write(db, sql, track_id=1, name="old", price=None, discovered_at="monday")
    write(db, sql, track_id=1, name=None, price=2.5, discovered_at="tuesday")
    write(db, sql, track_id=1, name="new", price=None, discovered_at=None)

    assert db.execute("select * from apps").fetchall() == [(1, "new", 2.5, "monday")]


def test_an_insert_that_is_there_already_is_left_alone(db: apsw.Connection) -> None:
    sql = insert_ignore("apps", COLUMNS)

    write(db, sql, track_id=1, name="old", price=1.0, discovered_at="monday")
    changed = write(db, sql, track_id=1, name="new", price=2.0, discovered_at="tuesday")

    assert changed == 0
    assert db.execute("select name from apps").get == "old"


def test_a_key_of_several_columns_and_nothing_else_to_write_leaves_the_row_alone(db: apsw.Connection) -> None:
    db.execute("create table ranks (keyword text, track_id integer, primary key (keyword, track_id))")
    sql = upsert("main.ranks", ["keyword", "track_id"], ["keyword", "track_id"])

    write(db, sql, keyword="chess", track_id=1)
    write(db, sql, keyword="chess", track_id=1)

    assert db.execute("select * from ranks").fetchall() == [("chess", 1)]


def test_every_word_that_sqlite_keeps_for_itself_can_be_a_column() -> None:
    db = apsw.Connection(":memory:")
    for word in sorted(keyword.lower() for keyword in apsw.keywords):
        db.execute(f'create table "{word}" (id integer primary key, "{word}" text)')
        for value in ("known", None):
            write(db, upsert(word, ["id", word], "id"), id=1, **{word: value})
        assert db.execute(f'select * from "{word}"').fetchall() == [(1, "known")]


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a;b", "a-b", 'a"b', "1a", "a.", "größe", "a" * 64, "penstock_runs", "main.Penstock_Runs", "a\n"],
)
def test_a_name_that_is_no_plain_identifier_is_refused(name: str) -> None:
    with pytest.raises(BadStatement, match=r"not a table or column name|reserved for the engine"):
        upsert(name, ["id"], "id")
    with pytest.raises(BadStatement, match=r"not a table or column name|reserved for the engine"):
        insert_ignore("apps", ["id", name])


@pytest.mark.parametrize(
    "columns, key, keep, message",
    [
        (["id", "a"], "b", [], "key of apps names b"),
        (["id", "a"], "id", ["b"], "keep of apps names b"),
        (["id", "a"], [], [], "needs a key"),
        (["id", "id"], "id", [], "each of them once"),
        ([], [], [], "needs"),
    ],
)
def test_an_upsert_that_makes_no_sense_is_refused(
    columns: list[str], key: str | list[str], keep: list[str], message: str
) -> None:
    with pytest.raises(BadStatement, match=message):
        upsert("apps", columns, key, keep=keep)


# -- lists ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A8-05", "G6-03", "A15-16")
def test_500_rows_of_5_columns_are_written_20_at_a_time_under_the_parameter_limit() -> None:
    db = apsw.Connection(":memory:")
    db.execute("create table items (a integer primary key, b, c, d, e)")
    columns = ["a", "b", "c", "d", "e"]
    rows = [dict.fromkeys(columns, i) for i in range(500)]

    sizes = []
    for chunk in chunks(rows, chunk_rows(len(columns), CLOUDFLARE.parameters_max)):
        statement = writable(insert_ignore("items", columns, rows=len(chunk)), CLOUDFLARE)
        db.execute(statement.text, bind(statement, numbered(columns, chunk), {}))
        sizes.append(len(chunk))

    assert sizes == [20] * 25
    assert db.execute("select count(*), sum(e) from items").fetchall() == [(500, sum(range(500)))]


@pytest.mark.parametrize(
    "columns, parameters, rows", [(5, 100, 20), (4, 100, 25), (100, 100, 1), (3, 100, 33), (2, 32_766, 500)]
)
def test_a_statement_takes_as_many_rows_as_its_parameters_allow(columns: int, parameters: int, rows: int) -> None:
    assert chunk_rows(columns, parameters) == rows


@pytest.mark.parametrize("columns", [0, 101])
def test_a_row_that_never_fits_is_refused(columns: int) -> None:
    with pytest.raises(BadParameter, match=f"{columns} columns"):
        chunk_rows(columns, 100)


@pytest.mark.spec("A8-04")
@pytest.mark.parametrize("count, sizes", [(250, [100, 100, 50]), (200, [100, 100]), (1, [1]), (0, [])])
def test_a_list_is_cut_into_chunks(count: int, sizes: list[int]) -> None:
    cut_up = list(chunks(iter(range(count)), 100))

    assert [len(chunk) for chunk in cut_up] == sizes
    assert [item for chunk in cut_up for item in chunk] == list(range(count))


def test_chunks_of_nothing_are_refused_at_once() -> None:
    with pytest.raises(BadParameter, match="chunks of 0"):
        chunks([1], 0)


@pytest.mark.spec("A8-07")
def test_200_apps_of_10_developers_make_10_developer_upserts() -> None:
    apps = [{"track_id": i, "developer_id": i * 7 % 10, "seen": i} for i in range(200)]

    developers = first_by(apps, lambda app: app["developer_id"])

    assert [app["seen"] for app in developers] == list(range(10))
    assert len({app["developer_id"] for app in developers}) == 10


# -- text -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A8-16", "A15-17")
def test_a_description_of_5000_characters_is_stored_with_2000(db: apsw.Connection) -> None:
    write(db, insert_ignore("apps", ["track_id", "name"]), track_id=1, name=cut("x" * 5_000))

    assert db.execute("select length(name) from apps").get == 2_000


@pytest.mark.parametrize(
    "text, most, kept",
    [
        ("short", 5, "short"),
        ("abcdef", 5, "abcde"),
        ("abcde\u0301f", 5, "abcd"),  # e and its accent stay together
        ("abcd\U0001f469\u200d\U0001f680f", 5, "abcd"),  # an astronaut is three characters
        ("abcd\U0001f469\u200d\U0001f680f", 6, "abcd"),
        ("abcd\U0001f469\u200d\U0001f680f", 7, "abcd\U0001f469\u200d\U0001f680"),
        ("abcd\U0001f44d\U0001f3fdf", 5, "abcd"),  # a thumb and its skin
        ("abcd\u2764\ufe0ff", 5, "abcd"),  # a heart and its colour
        ("ab\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 5, "ab\U0001f1e9\U0001f1ea"),  # two flags
        ("abc" + "\U0001f1e9\U0001f1ea" * 3, 6, "abc\U0001f1e9\U0001f1ea"),  # the cut falls into the second of three
        ("abcd\ud83d\ude00", 5, "abcd"),  # half a character from a broken decoder
        ("e" + "\u0301" * 100, 50, "e" + "\u0301" * 49),  # noise is cut through
        ("\u0301\u0301\u0301", 2, "\u0301\u0301"),
        ("abc", 0, ""),
    ],
)
def test_text_is_cut_between_characters_as_a_reader_sees_them(text: str, most: int, kept: str) -> None:
    assert cut(text, most) == kept


@given(st.text(), st.integers(1, 50))
def test_cut_text_is_the_beginning_and_never_longer_or_empty(text: str, most: int) -> None:
    kept = cut(text, most)

    assert text.startswith(kept)
    assert len(kept) <= most
    assert kept or not text
