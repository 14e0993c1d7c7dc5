"""When reminders are due: time zones, daylight saving, outages, and what a person does in between."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import penstock as ps
from penstock_systems.reminders.app import app
from penstock_systems.reminders.operations import snooze
from penstock_systems.reminders.reminders import Change, change
from tests.systems.reminders.conftest import HOOK, Office, Opened

BERLIN = "Europe/Berlin"
BEFORE_LEAP = datetime(2026, 3, 28, 7, 30, 30, tzinfo=UTC)  # clocks leap on the 29th
GOOD = f"{HOOK}/good/ann"


def shown(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%d %H:%M}"


def times(it: Office) -> list[str]:
    return [shown(each["at"]) for each in it.arrivals.all]


async def person(it: Office, **more: Any) -> None:
    await it.call("PUT", "/people/ann", json={"email": "ann@example.org", **more})


@pytest.mark.spec("C-19", "G3-11")
async def test_nine_in_the_morning_stays_nine_when_clocks_change(office: Opened) -> None:
    async with office(start=BEFORE_LEAP) as it:
        rule = {"every": "1 day"}
        await it.add(user="ann", webhook=GOOD, zone=BERLIN, rule=rule, at="2026-03-28T09:00")
        await it.running.advance(minutes=31)
        it.running.jump(22.5 * 3_600.0)
        await it.running.advance(minutes=31)
        assert times(it) == ["28 08:00", "29 07:00"]


@pytest.mark.spec("C-19", "G3-11")
async def test_an_outage_of_three_days_is_one_fire_and_the_schedule_stays(office: Opened) -> None:
    async with office(start=BEFORE_LEAP) as it:
        rule = {"rrule": "FREQ=DAILY"}
        made = await it.add(user="ann", webhook=GOOD, zone=BERLIN, rule=rule, at="2026-03-28T10:00")
        it.running.jump(3 * 86_400.0)
        await it.running.advance(minutes=2)
        assert len(it.hooks) == 1
        found = await it.call("GET", f"/{made['id']}")
        assert found["upcoming"][0] == {"local": "2026-03-31T10:00+02:00", "utc": "2026-03-31T08:00Z"}


@pytest.mark.spec("C-19")
async def test_a_rule_with_a_count_ends_after_that_number_of_occurrences(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=GOOD, rule={"every": "2 minutes"}, count=3, at="in 1m")
        await it.running.advance(minutes=10)
        assert len(it.hooks) == 3
        assert (await it.call("GET", f"/{made['id']}"))["state"] == "done"


async def test_quiet_hours_hold_a_mail_until_they_end_and_urgent_ones_pass(office: Opened) -> None:
    async with office(start=datetime(2026, 3, 28, 21, 30, 30, tzinfo=UTC)) as it:  # 22:30 in Berlin
        await person(it, zone=BERLIN, quiet_from="22:00", quiet_to="00:00")
        await it.add("First", user="ann")
        await it.add("Second", user="ann")
        await it.add("Now", user="ann", urgent=True)
        await it.add("Program", user="ann", webhook=GOOD)
        await it.running.advance(minutes=3)
        assert [each["subject"] for each in it.mails] == ["Now"]
        assert len(it.hooks) == 1

        await it.running.advance(minutes=95)
        assert [shown(each["at"]) for each in it.mails[1:]] == ["28 23:00"]
        assert it.mails[1]["subject"].startswith("2 notices: ")
        assert sorted(it.mails[1]["text"].splitlines()[:2]) == ["- First", "- Second"]


async def test_a_digest_collects_a_day(office: Opened) -> None:
    async with office(start=datetime(2026, 3, 28, 6, 0, 30, tzinfo=UTC)) as it:
        await person(it, zone=BERLIN, digest_at="08:00")
        made = [(await it.add(f"Number {number}", user="ann", at=f"in {number}m"))["id"] for number in (1, 20, 40)]
        await it.running.advance(minutes=70)
        assert [(each["subject"], shown(each["at"])) for each in it.mails] == [("3 notices: Number 1", "28 07:00")]
        assert await it.statuses(made[0]) == [(1, "email", "digest")]
        assert (await it.call("GET", f"/{made[0]}"))["state"] == "done"


async def test_a_snooze_moves_one_fire_and_leaves_the_schedule(office: Opened) -> None:
    async with office() as it:  # 08:00:30
        made = await it.add(user="ann", webhook=GOOD, rule={"every": "1 hour"}, at="2026-03-02T08:10")
        await it.running.advance(minutes=15)
        await it.snooze(made["id"], "20m")
        assert (await it.call("GET", f"/{made['id']}"))["upcoming"][1]["utc"] == "2026-03-02T09:10Z"
        await it.running.advance(minutes=70)
        assert times(it) == ["02 08:10", "02 08:36", "02 09:10"]
        late = await it.snooze(made["id"], "2h")
        assert "before the end of the snooze" in late["note"]
        await it.snooze(made["id"], "2 years", expect=422)


async def test_a_snooze_of_one_that_is_done_sends_it_again(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=GOOD)
        await it.running.advance(minutes=1)
        await it.snooze(made["id"], "5m")
        await it.running.advance(minutes=7)
        assert [each["about"] for each in it.hooks] == [f"{made['id']} 1", f"{made['id']} 2"]


async def test_nagging_goes_on_until_it_is_acknowledged(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=GOOD, nag_every="5m", nag_times=5)
        await it.running.advance(minutes=12)
        assert len(it.hooks) == 3
        await it.post(f"/{made['id']}/ack")
        await it.running.advance(minutes=20)
        assert len(it.hooks) == 3
        assert (await it.call("GET", f"/{made['id']}"))["state"] == "done"


async def test_nagging_ends_by_itself(office: Opened) -> None:
    async with office() as it:
        await it.add(user="ann", webhook=GOOD, nag_every="1m", nag_times=2)
        await it.running.advance(minutes=10)
        assert len(it.hooks) == 3


@pytest.mark.spec("C-21")
async def test_a_reminder_is_changed_and_cancelled(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=GOOD, at="in 5m")
        changed = await it.call("PATCH", f"/{made['id']}", json={"title": "Changed", "at": "in 2m"})
        assert (changed["title"], changed["state"]) == ("Changed", "pending")
        await it.running.advance(minutes=4)
        assert len(it.hooks) == 1
        again = await it.call("PATCH", f"/{made['id']}", json={"at": "in 2m", "rule": {"every": "1 hour"}})
        assert len(again["upcoming"]) == 5
        assert (await it.call("DELETE", f"/{made['id']}"))["state"] == "cancelled"
        await it.running.advance(minutes=10)
        assert len(it.hooks) == 1
        assert (await it.call("PATCH", f"/{made['id']}", json={"title": "x"}, expect=409))["name"] == "cancelled"
        await it.post(f"/{made['id']}/fire", expect=409)
        assert (await it.call("GET", "/nothing", expect=404))["name"] == "not_found"


@pytest.mark.spec("C-21")
async def test_a_reminder_with_a_key_is_added_once(office: Opened) -> None:
    async with office() as it:
        first = await it.add(user="ann", at="in 1h", key="rent", email="ann@example.org")
        second = await it.add("Other", user="ann", at="in 2h", key="rent", email="ann@example.org")
        assert (second["id"], second["is_new"], second["title"]) == (first["id"], False, "Pay the rent")
        headers = {"Idempotency-Key": "rent-2"}
        body = {"title": "x", "email": "ann@example.org", "at": "in 1h"}
        answers = [await it.call("POST", "", json=body, headers=headers) for _ in range(2)]
        assert answers[0]["id"] == answers[1]["id"]
        assert (await it.call("GET", "/counts"))["pending"] == 2


@pytest.mark.spec("C-22", "G3-16")
async def test_counts_by_plain_sql_and_over_http_agree(office: Opened) -> None:
    from penstock_systems.reminders.listing import COUNTS

    async with office() as it:
        await it.add(at="in 10h", email="a@example.org")
        await it.add(at="in 9h", email="a@example.org")
        await it.add(webhook=f"{HOOK}/redirects/x")  # fails and is retried
        async with it.running.unit():
            app.db.write(
                "insert into notifications (id, user_id, title, channels, starts, occurrence_at, next_fire_at, created_at, "
                "updated_at) values ('none', 'ann', 'x', '[]', '', 0, 0, 0, 0)"
            )
        due = await it.add(email="a@example.org", at="in 1m")
        await it.running.advance(seconds=45)
        it.running.jump(40.0)
        now = it.ms()
        assert due
        by_sql = {}
        for name, sql in COUNTS.items():
            rows = await it.sql(sql, now=now) if ":now" in sql else await it.sql(sql)
            by_sql[name] = rows[0][0]
        assert by_sql == {"pending": 2, "due": 1, "retrying": 1, "parked": 1, "unknown": 0}
        assert await it.call("GET", "/counts") == by_sql
        for state in by_sql:
            found = await it.call("GET", "", params={"state": state})
            expected = by_sql[state]
            assert len(found["reminders"]) == expected, state
        (parked,) = (await it.call("GET", "", params={"state": "parked"}))["reminders"]
        assert parked["last_error"]
        assert parked["dead_lettered_at"]
        page = await it.call("GET", "", params={"state": "pending", "limit": 1})
        rest = await it.call("GET", "", params={"state": "pending", "cursor": page["cursor"]})
        assert len(page["reminders"]) == len(rest["reminders"]) == 1


@pytest.mark.parametrize(
    "body, told",
    [
        ({"title": "x", "at": "tomorrow"}, "at cannot be 'tomorrow'. Write a local time"),
        ({"title": "x", "zone": "Europe/Berln"}, "Did you mean Europe/Berlin?"),
        ({"title": "x", "rule": {"rrule": "FREQ=SECONDLY"}}, "SECONDLY"),
        ({"title": "x", "rule": {"every": "1 day"}, "until": "2020-01-01", "at": "2019-12-01T09:00"}, "in the past"),
        ({"title": "x", "count": 3}, "belong to a rule"),
        ({"title": "x", "email": "a@example.org\r\nBcc: b@example.org"}, "is no mail address"),
        ({"title": "x", "webhook": "http://127.0.0.1/hooks"}, "Write a public address"),
        ({"title": "x", "webhook": "http://169.254.169.254/"}, "Write a public address"),
        ({"title": "x", "user": "a\nb"}, "user cannot be"),
        ({"title": "x", "nag_every": "1s"}, "The minimum is a minute"),
        ({"title": ""}, "title"),
        ({"title": "x", "surprise": 1}, "surprise"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:20],
)
async def test_hostile_or_wrong_input_is_refused_with_the_field(
    office: Opened, body: dict[str, Any], told: str
) -> None:
    async with office() as it:
        error = await it.call("POST", "", json=body, expect=422)
        assert told in str(error)
        assert not await it.sql("select id from notifications")


async def test_a_rule_without_a_time_begins_now(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=GOOD, rule={"every": "1 day"})
        assert made["upcoming"][0]["utc"] == "2026-03-02T08:00Z"
        await it.running.advance(minutes=1)
        assert len(it.hooks) == 1


@pytest.mark.spec("C-21")
async def test_what_was_decided_for_one_fire_is_not_applied_to_the_next(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=GOOD, rule={"every": "2 minutes"}, at="in 1m")
        with pytest.raises(ps.errors.LostUpdate):
            async with app.unit():
                await change(made["id"], Change(title="Late"))
                await it.running.advance(minutes=2)
        with pytest.raises(ps.errors.LostUpdate):
            async with app.unit():
                await snooze(made["id"], "10s")
                await it.running.advance(minutes=2)
        assert [each["about"] for each in it.hooks] == [f"{made['id']} {fire}" for fire in (1, 2)]
