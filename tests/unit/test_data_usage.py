"""The meter as a user sees it: what each task has read and written, what a month costs, and how the database grows."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

import penstock as ps
from penstock.model.errors import BadParameter
from penstock.model.forecast import Level
from penstock.model.usage import Measure
from penstock.runtime.events import ScanWasSlow
from tests.unit.market import APPS, add, market, run

BOTH_STORES = True

ROWS = """
insert into apps (id)
with recursive n (i) as (select 1 union all select i + 1 from n where i < 10500)
select i from n;
"""


@pytest.mark.spec("A8-22")
def test_what_a_task_wrote_stands_in_the_months_usage_under_its_name(tmp_path: Path) -> None:
    app = market(tmp_path)

    class Found(ps.Event):
        id: int

    found = app.queue("found", Found)

    @found.handler
    async def keep(event: Found) -> None:
        app.db.write("insert into apps (id) values (:id)", event)

    async def work() -> None:
        async with app.unit():
            for id in range(30):
                found.send(Found(id=id))
        await app.run(until_idle=True)

    run(app, work())

    async def usage() -> None:
        used = await app.db.usage()
        assert used.month == datetime.now(UTC).strftime("%Y-%m")
        by_task = {task.task: task for task in used.tasks}
        assert by_task["found:keep"].rows_written == 30
        (statement,) = [each for each in used.statements if each.task == "found:keep"]
        assert statement.statement == "insert into apps (id) values (:id)"
        assert statement.executions == 30
        assert used.total.rows_written == 30
        assert used.bill.line("rows_written").usd == pytest.approx(30 / 1_000_000 * 0.01)
        assert used.usd == pytest.approx(used.bill.line("rows_written").usd)

    run(app, usage())


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-22")
def test_a_full_scan_is_warned_of_by_its_sql(tmp_path: Path) -> None:
    app = market(tmp_path, APPS + ROWS)
    told: list[ScanWasSlow] = []
    app.events.subscribe(told.append, to=ScanWasSlow)

    async def work() -> None:
        await app.db.value("select count(title) from apps")
        await app.db.value("select count(price) from apps where id < 100")

    run(app, work())

    assert [event.sql for event in told] == ["select count(title) from apps"]
    assert told[0].rows_read >= 10_500


@pytest.mark.spec("A4-14")
def test_a_month_that_is_over_is_billed_by_its_own_days(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> tuple[float, float]:
        engine = await app._opened()
        measure = Measure("select 1", 1, 160_000_000, 0, 0, 0, 0.0)
        for month in ("2026-02", "2026-03"):
            await engine.in_writer(partial(engine.writer.upkeep.add_usage, month, [("task", measure)], now=0))
        return (await app.db.usage("2026-02")).usd, (await app.db.usage("2026-03")).usd

    february, march = run(app, work())

    assert february == pytest.approx((160 - 28 * 5) * 0.001)  # 5 million a day are free
    assert march == pytest.approx((160 - 31 * 5) * 0.001)


@pytest.mark.spec("A4-14")
def test_the_month_that_runs_is_billed_by_the_days_that_have_begun(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> float:
        engine = await app._opened()
        engine.meter.add("task", Measure("select 1", 1, 200_000_000, 0, 0, 0, 0.0))
        return (await app.db.usage()).usd

    assert run(app, work()) == pytest.approx((200 - datetime.now(UTC).day * 5) * 0.001)


@pytest.mark.spec("A1-26")
def test_the_operations_of_each_queue_are_reported_by_month(tmp_path: Path) -> None:
    app = market(tmp_path)
    found = app.queue("found", str)
    app.queue("idle", str)
    large = app.queue("large", bytes)

    @found.handler(str)
    async def keep(_body: str) -> None: ...

    async def work() -> None:
        async with app.unit():
            found.send_all(["a", "b", "c"])
            large.send(b"x" * 64_001)
        await app.run(until_idle=True)

    run(app, work())

    async def usage() -> None:
        used = await app.db.usage()
        assert used.queues == {"found": 9, "large": 2}  # what waits was only written so far
        assert sum(used.queues.values()) == used.total.queue_operations
        assert (await app.db.usage("2026-01")).queues == {}

    run(app, usage())


def test_other_kinds_of_use_are_metered_by_a_mark_in_place_of_sql(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        engine = await app._opened()
        engine.meter.add("found:keep", Measure("penstock:queue_operations", 3_000_000, 0, 0, 0, 0, 0.0))
        used = await app.db.usage()
        assert used.total.queue_operations == 3_000_000
        assert used.usd == pytest.approx(0.80)
        assert used.tasks == used.statements == ()

    run(app, work())


@pytest.mark.parametrize("month", ["2026", "2026-13", "november", "2026-1"])
def test_a_month_that_is_none_is_refused(tmp_path: Path, month: str) -> None:
    app = market(tmp_path)

    async def work() -> None:
        with pytest.raises(BadParameter, match="Write it like 2026-11"):
            await app.db.usage(month)

    run(app, work())


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-17", "A15-15")
def test_the_size_is_watched_against_the_cap_with_the_days_that_are_left(tmp_path: Path) -> None:
    app = market(tmp_path, database_bytes_max=10_000_000)
    day = 86_400_000_000

    async def work() -> None:
        engine = await app._opened()
        now = engine.clock.now()
        for age in (3, 2, 1):
            await engine.in_writer(partial(engine.writer.upkeep.sample_size, now=now - age * day))
        await add(app, *[{"id": id, "icon": b"x" * 70_000} for id in range(50)])
        await add(app, *[{"id": id, "icon": b"x" * 70_000} for id in range(50, 100)])
        size = await app.db.size()
        assert size.level in (Level.WARN_60, Level.WARN_80, Level.OVER)
        assert size.cap_bytes == 10_000_000
        assert size.growth_bytes_per_day > 1_000_000
        assert size.days_left is not None

    run(app, work())
