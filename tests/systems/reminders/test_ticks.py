"""The cron task that sends what is due: what it claims, in which order, for how long, and what one bad row does to others."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from penstock_systems.reminders import deliver
from penstock_systems.reminders.app import app, channels, db
from penstock_systems.reminders.fires import run_fire
from tests.systems.reminders.conftest import HOOK, Office, Opened

NAMED = {"id", "next_fire_at", "error_count", "last_error", "last_fired_at", "updated_at"}
INSERT = """
insert into notifications (id, user_id, title, channels, endpoint_id, starts, occurrence_at, next_fire_at, created_at,
  updated_at)
values (:id, 'ann', :id, :channels, :endpoint, '', :at, :at, 0, 0)
"""


async def insert(it: Office, names: list[str], *, channels: str = '["webhook"]', endpoint: str | None = None) -> None:
    """Rows due one millisecond apart, the first first."""
    now = it.ms()
    rows = [
        {"id": name, "channels": channels, "endpoint": endpoint, "at": now - len(names) + place}
        for place, name in enumerate(names)
    ]
    async with it.running.unit():
        db.write_many(INSERT, rows)


async def endpoint(it: Office, character: str = "good", name: str = "ann") -> str:
    made = await it.post("/endpoints", url=f"{HOOK}/{character}/{name}", user="ann")
    found: str = made["id"]
    return found


@pytest.mark.spec("C-01")
async def test_the_table_is_the_queue_and_an_idle_tick_reads_one_row(office: Opened) -> None:
    task = app.crons.tasks["deliver"]
    assert task.rule.expression == "* * * * *"
    assert task.reason
    assert {name.partition(".")[0] for name in app.queues} <= {"cron", "object", "penstock"}, "no queue is declared"
    async with office() as it:
        await it.add(at="in 10h")
        await it.running.advance(minutes=30)
        ticks = await it.sql("select status, rows_read from pipeline_log where task = 'deliver'")
        assert {(tick.status, tick.rows_read <= 1) for tick in ticks} == {("idle", True)}
        assert len(ticks) == 30


@pytest.mark.spec("C-02")
async def test_due_rows_are_found_by_the_index_on_their_due_time(office: Opened, kept_on: str) -> None:
    async with office() as it:
        await insert(it, [f"r{number}" for number in range(3)])
        row = (await it.sql("select * from notifications limit 1"))[0]
        assert set(row.columns) >= NAMED
        if kept_on == "sqlite":
            for sql in (deliver.IS_DUE, deliver.DUE):
                named = {"now": 1, "most": 100} if "most" in sql else {"now": 1}
                plan = " ".join(str(each.detail) for each in await it.sql(f"explain query plan {sql}", **named))
                assert "SEARCH notifications USING" in plan
                assert "notifications_due" in plan
                assert "TEMP B-TREE" not in plan


@pytest.mark.spec("C-03", "A15-25")
async def test_due_rows_are_claimed_oldest_first_and_a_hundred_at_a_time(office: Opened) -> None:
    async with office() as it:
        names = [f"r{number:03}" for number in range(250)]
        await insert(it, names)
        claims = []
        while found := await deliver.claim():
            claims.append([row.id for row in found[1]])
        assert [len(claim) for claim in claims] == [100, 100, 50]
        assert [id for claim in claims for id in claim] == names


@pytest.mark.spec("C-04", "G3-05")
async def test_two_ticks_at_once_send_every_row_once(office: Opened) -> None:
    async with office() as it:
        await insert(it, [f"r{number}" for number in range(120)], endpoint=await endpoint(it))
        await asyncio.gather(deliver.deliver(), deliver.deliver())
        assert len(it.hooks) == 120
        assert len({each["about"] for each in it.hooks}) == 120
        assert it.servers.state.receivers.repeats == 0


@pytest.mark.spec("C-05", "G3-09")
async def test_a_row_that_cannot_be_read_fails_alone_and_is_parked(office: Opened) -> None:
    async with office() as it:
        await insert(it, [f"poison{number:03}" for number in range(100)], channels="no list")
        await insert(it, ["good"], endpoint=await endpoint(it))
        await it.running.advance(minutes=1)
        assert [each["about"] for each in it.hooks] == ["good 1"]
        (poison,) = await it.sql("select error_count, last_error from notifications where id = 'poison007'")
        assert poison.error_count == 1
        assert poison.last_error.startswith("internal: ")

        await it.running.advance(minutes=10)
        parked = await it.call("GET", "", params={"state": "parked", "limit": 500})
        assert len(parked["reminders"]) == 100


@pytest.mark.spec("C-06", "G3-10")
async def test_a_tick_starts_no_row_after_its_budget(office: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with office() as it:
        await insert(it, [f"r{number:03}" for number in range(300)], endpoint=await endpoint(it, "hangs"))
        began = it.running.now
        await it.running.advance(minutes=2)
        ticks = await it.sql(
            "select due_at, finished_at, status from pipeline_log where task = 'deliver' order by due_at"
        )
        assert ticks[0].status == "done"
        assert len(it.hooks) < 300, "some were not started"
        waiting = await it.sql(
            "select count(*) as n from notifications where next_fire_at is not null and error_count = 0"
        )
        assert waiting[0].n
        claimed = await it.sql("select count(*) as n from notifications where claim_token is not null")
        assert claimed[0].n <= 32 + 100
        ended = await it.sql("select finished_at from pipeline_log where task = 'deliver' order by due_at limit 1")
        assert str(ended[0].finished_at) <= f"{began + timedelta(seconds=30 + 50 + 11):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.spec("C-07", "G3-07")
async def test_a_hung_channel_times_out_and_does_not_stop_the_other(office: Opened) -> None:
    async with office() as it:
        await it.call("PUT", "/people/ann", json={"email": "ann@example.org"})
        made = await it.add(user="ann", channels=["email", "webhook"], webhook=f"{HOOK}/hangs/ann")
        await it.running.advance(minutes=1)
        assert len(it.mails) == 1
        (hook,) = [each for each in await it.call("GET", f"/{made['id']}/deliveries") if each["channel"] == "webhook"]
        assert "timed out" in hook["error"]
        assert 9_000 < hook["answered_at"] - hook["intent_at"] < 11_000


@pytest.mark.spec("C-08", "G3-08")
async def test_an_unknown_channel_is_a_failure_and_no_channel_is_a_permanent_one(office: Opened) -> None:
    async with office() as it:
        await insert(it, ["unknown"], channels='["sms"]')
        await insert(it, ["none"], channels="[]")
        await it.running.advance(minutes=1)
        for id, told in (("unknown", "there is no channel 'sms'"), ("none", "the reminder has no channel")):
            found = await it.call("GET", f"/{id}")
            assert found["state"] == "parked"
            assert told in found["last_error"]
        assert (await it.post("", expect=422, title="x", channels=["sms"]))["details"]["field"] == "channels"
        assert (await it.post("", expect=422, title="x", channels=[]))["details"]["field"] == "channels"


@pytest.mark.spec("C-04")
async def test_a_reminder_that_is_cancelled_after_its_claim_is_not_sent(office: Opened) -> None:
    async with office() as it:
        await insert(it, ["r1"], endpoint=await endpoint(it))
        claimed = await deliver.claim()
        assert claimed is not None
        await it.call("DELETE", "/r1")
        assert await run_fire("r1", claimed[0], b"x" * 32) is None
        assert not it.hooks


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("G3-12")
def test_what_the_source_leaves_out_is_there() -> None:
    tables = Path(app.migrations, "0001_reminders.sql").read_text("utf-8")
    for column in ("recurrence_rule", "last_error", "claim_token", "dead_lettered_at", "fire_seq"):
        assert column in tables
    assert set(channels) >= {"email", "slack", "discord", "telegram"}
    routes = {(route.method, route.path) for route in app.routes.ordered()}
    for method, path in (
        ("POST", ""),
        ("GET", ""),
        ("GET", "/{id}"),
        ("PATCH", "/{id}"),
        ("DELETE", "/{id}"),
        ("POST", "/{id}/requeue"),
    ):
        assert (method, f"/v1/reminders{path}") in routes
    assert app.crons.tasks["deliver"].when is not None


async def test_what_ended_long_ago_is_deleted_and_the_rest_stays(office: Opened) -> None:
    async with office() as it:
        await insert(it, ["ended"], endpoint=await endpoint(it))
        await it.running.advance(minutes=1)
        await it.add("Later", at="in 200d", email="ann@example.org")
        assert not await deliver.is_something_old()
        it.running.jump(91 * 86_400.0)
        assert await deliver.is_something_old()
        await deliver.prune()
        assert [row.title for row in await it.sql("select title from notifications")] == ["Later"]
        assert not await it.sql("select status from notification_deliveries")
        assert not await deliver.is_something_old()


async def test_a_full_minute_of_mail_holds_up_no_webhook(office: Opened) -> None:
    async with office() as it:
        await it.call("PUT", "/people/ann", json={"email": "ann@example.org"})
        await insert(it, [f"mail{number:03}" for number in range(150)], channels='["email"]')
        await insert(it, ["hook"], endpoint=await endpoint(it))
        await it.running.advance(seconds=35)
        assert [each["about"] for each in it.hooks] == ["hook 1"]
        await it.running.advance(minutes=3)
        assert len(it.mails) == 150
        assert it.arrivals.doubled() == []
        assert not await it.sql("select id from notifications where error_count > 0"), (
            "none was throttled into a failure"
        )


async def test_the_trial_follows_ten_reminders_through_every_stage(office: Opened) -> None:
    async with office() as it:
        for stage in app.trial.stages:
            if stage.push is not None:
                await stage.push([])
            await it.running.advance(minutes=1)
            rows = await it.sql("select id from notifications order by id")
            found = await stage.question([row.id for row in rows])
            assert len(found) == 10, stage.name
