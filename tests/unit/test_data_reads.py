"""Reads of the user: rows by name, pages of any number, one time format, JSON that can be queried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.data import from_text
from penstock.model.errors import BadParameter, BadStatement, StatementFailed, TooManyRows
from tests.unit.market import add, market, run

BOTH_STORES = True


@pytest.mark.spec("A8-01")
def test_the_four_ways_to_read_and_none_where_there_is_no_row(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        db = app.db
        await add(app, {"id": 1, "title": "Lamp"}, {"id": 2, "title": "Chair"})

        rows = await db.rows("select id, title from apps order by id")
        assert [(row.id, row["title"], row[1]) for row in rows] == [(1, "Lamp", "Lamp"), (2, "Chair", "Chair")]
        assert await db.column("select title from apps order by id") == ["Lamp", "Chair"]
        assert await db.value("select title from apps where id = :id", id=2) == "Chair"
        first = await db.first("select id, title from apps where title = :title", {"title": "Chair"})
        assert first is not None
        assert first.asdict() == {"id": 2, "title": "Chair"}

        assert await db.rows("select id from apps where id = 9") == []
        assert await db.first("select id from apps where id = 9") is None
        assert await db.value("select id from apps where id = 9") is None

    run(app, work())


@pytest.mark.spec("A8-01")
@pytest.mark.parametrize(
    "sql, refusal, why",
    [
        ("delete from apps", BadStatement, "is not a query"),
        ("select 1; select 2", BadStatement, "2 statements"),
        ("select * from nowhere", StatementFailed, 'no such table: nowhere|relation "nowhere" does not exist'),
        ("select :id", BadParameter, "missing: id"),
        ("select ?", BadStatement, "Use :name"),
        ("pragma journal_mode", BadStatement, "is not allowed"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, sql: str, refusal: type[Exception], why: str
) -> None:
    app = market(tmp_path)

    async def work() -> None:
        with pytest.raises(refusal, match=why):
            await app.db.rows(sql)

    run(app, work())


def test_a_read_brings_at_most_10_000_rows_and_pages_bring_the_rest(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        db = app.db
        await add(app, *[{"id": id} for id in range(10_001)])
        with pytest.raises(TooManyRows, match=r"db\.pages"):
            await db.rows("select id from apps")

        sizes, seen = [], []
        async for page in db.pages(
            "select id from apps where id > :after order by id limit :size", key="id", size=4_000
        ):
            sizes.append(len(page))
            seen += [row.id for row in page]
        assert sizes == [4_000, 4_000, 2_001]
        assert seen == list(range(10_001))

    run(app, work())


@pytest.mark.only_on("sqlite")
def test_pages_neither_skip_nor_repeat_rows_while_others_write(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        db = app.db
        await add(app, *[{"id": id} for id in range(0, 100, 2)])
        seen = []
        async for page in db.pages("select id from apps where id > :after order by id limit :size", key="id", size=10):
            seen += [row.id for row in page]
            async with app.unit():  # what was read goes, and something new comes before what is next
                db.write("delete from apps where id <= :last", last=page[-1].id)
                db.write("insert or ignore into apps (id) values (:id)", id=page[-1].id - 1)
        return seen

    assert run(app, work()) == list(range(0, 100, 2))


def test_pages_take_other_parameters_and_a_place_to_begin(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        db = app.db
        await add(app, *[{"id": id, "title": "ab"[id % 2]} for id in range(20)])
        sql = "select id from apps where title = :title and id > :after order by id limit :size"
        return [row.id async for page in db.pages(sql, key="id", size=3, title="a", after=9) for row in page]

    assert run(app, work()) == [10, 12, 14, 16, 18]


@pytest.mark.parametrize(
    "sql, size, why",
    [
        ("select id from apps limit :size", 10, "where id > :after order by id limit :size"),
        ("select id from apps where id > :after limit :size", 0, "1 to 10,000"),
        ("select id from apps where id > :after limit :size", 10_001, "1 to 10,000"),
    ],
)
def test_a_query_that_cannot_be_paged_is_refused(tmp_path: Path, sql: str, size: int, why: str) -> None:
    app = market(tmp_path)

    async def work() -> None:
        with pytest.raises(BadStatement, match=why):
            async for _ in app.db.pages(sql, key="id", size=size):
                pass

    run(app, work())


@pytest.mark.spec("A8-12")
def test_one_column_of_times_answers_never_and_stale(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        db = app.db
        seen = {1: None, 2: await db.ago("15d"), 3: await db.ago("13d"), 4: await db.now()}
        await add(app, *[{"id": id, "seen_at": at} for id, at in seen.items()])
        sql = "select id from apps where seen_at is null or seen_at < :stale order by id"
        return await db.column(sql, stale=await db.ago("14d"))

    assert run(app, work()) == [1, 2]


@pytest.mark.spec("A8-13", "G7-04")
def test_a_row_written_three_hours_ago_today_is_found_as_older_than_two(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        db = app.db
        three_hours_ago = datetime.now(UTC) - timedelta(hours=3)
        await add(app, {"id": 1, "seen_at": three_hours_ago}, {"id": 2, "seen_at": datetime.now(UTC)})
        stored = await db.value("select seen_at from apps where id = 1")
        assert stored == three_hours_ago.strftime("%Y-%m-%d %H:%M:%S")
        assert from_text(stored) == three_hours_ago.replace(microsecond=0)
        assert await db.column("select id from apps where seen_at < :bound", bound=await db.ago("2h")) == [1]

    run(app, work())


@pytest.mark.parametrize("span", ["two hours", "", "-1h", "3x"])
def test_a_span_that_is_none_is_refused(tmp_path: Path, span: str) -> None:
    app = market(tmp_path)

    async def work() -> None:
        with pytest.raises(Exception, match="is not a duration"):
            await app.db.ago(span)

    run(app, work())


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-14")
def test_json_in_a_column_can_be_queried(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        db = app.db
        purchases = {1: [{"price": 12.99}, {"price": 1.99}], 2: [{"price": 4.99}], 3: []}
        await add(app, *[{"id": id, "facts": db.json({"iaps": found})} for id, found in purchases.items()])
        return await db.column("select id from apps where json_extract(facts, '$.iaps[0].price') > 9.99")

    assert run(app, work()) == [1]
