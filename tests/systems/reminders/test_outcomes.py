"""What follows from each result: retries, dead letters, unknown outcomes, and crashes in between."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.channels import read_secret
from penstock_systems.standins.notifications import Faults, Times
from tests.systems.reminders.conftest import HOOK, Office, Opened

HOUR = 3_600.0
ALWAYS = (0.0, 1e9)


async def person(it: Office, **more: Any) -> None:
    await it.call("PUT", "/people/ann", json={"email": "ann@example.org", **more})


async def both(it: Office, character: str, **more: Any) -> str:
    """A reminder by mail and by a webhook of this character."""
    await person(it)
    made = await it.add(user="ann", channels=["email", "webhook"], webhook=f"{HOOK}/{character}/ann", **more)
    id: str = made["id"]
    return id


@pytest.mark.spec("C-14", "G3-03", "G3-04", "C-12", "F-41")
async def test_only_the_failed_channel_of_a_partial_success_is_retried(office: Opened) -> None:
    async with office(times=Times(broken=(0.0, 200.0))) as it:
        id = await both(it, "broken")
        await it.running.advance(minutes=1)
        found = await it.call("GET", f"/{id}")
        assert (found["state"], found["error_count"], found["last_error"]) == ("pending", 0, "partial: webhook")

        await it.running.advance(minutes=15)
        assert len(it.mails) == 1
        assert [each["name"] for each in it.hooks] == ["ann"]
        assert await it.statuses(id) == [(1, "email", "sent"), (1, "webhook", "sent")]
        assert (await it.call("GET", f"/{id}"))["state"] == "done"


@pytest.mark.spec("C-14", "G3-16")
async def test_a_failed_channel_of_a_partial_success_ends_as_a_dead_letter(office: Opened) -> None:
    async with office(times=Times(broken=ALWAYS)) as it:
        id = await both(it, "broken")
        await it.running.advance(minutes=20)
        found = await it.call("GET", f"/{id}")
        assert found["state"] == "parked"
        assert found["last_error"].startswith("partial: webhook")
        assert len(it.mails) == 1
        assert await it.statuses(id) == [(1, "email", "sent"), (1, "webhook", "given_up")]


@pytest.mark.spec("C-15", "C-16", "C-17", "G3-01", "G3-16")
async def test_a_dead_reminder_is_parked_listed_and_can_be_requeued(office: Opened) -> None:
    async with office(faults=Faults(failed=1.0, rate=100)) as it:
        await person(it)
        made = await it.add(user="ann")
        id = made["id"]
        attempts = []
        for _ in range(15):
            await it.running.advance(minutes=1)
            row = await it.row(id)
            if row.last_attempt_at and row.last_attempt_at not in attempts:
                attempts.append(row.last_attempt_at)
        waits = [round((later - earlier) / 60_000) for earlier, later in itertools.pairwise(attempts)]
        assert waits == [1, 5]
        assert (row.error_count, row.next_fire_at, row.last_fired_at) == (3, None, None)

        (parked,) = (await it.call("GET", "", params={"state": "parked"}))["reminders"]
        assert (parked["id"], parked["dead_lettered_at"] is not None) == (id, True)
        assert "email answered 500" in parked["last_error"]
        (cause,) = await it.call("GET", "/causes")
        assert (cause["reminders"], "email" in cause["cause"]) == (1, True)
        it.servers.state.resend.faults = Faults(rate=100)
        await it.running.advance(minutes=10)
        assert not it.mails, "a parked row is never selected"
        await it.post(f"/{id}/requeue")
        assert (await it.row(id)).error_count == 0
        await it.running.advance(minutes=2)
        assert len(it.mails) == 1
        assert (await it.call("GET", f"/{id}"))["state"] == "done"
        assert await it.call("GET", "/causes") == []
        await it.post(f"/{id}/requeue", expect=409)


@pytest.mark.spec("C-17")
async def test_reminders_of_one_cause_are_requeued_together(office: Opened) -> None:
    async with office(faults=Faults(failed=1.0, rate=100)) as it:
        await person(it)
        for number in range(3):
            await it.add(f"Number {number}", user="ann")
        await it.running.advance(minutes=20)
        (cause,) = await it.call("GET", "/causes")
        it.servers.state.resend.faults = Faults(rate=100)
        assert (await it.post("/requeue", cause=cause["cause"]))["requeued"] == 3
        last = await it.add("Number 3", user="ann", at="in 1h")
        await it.post(f"/{last['id']}/fire")
        await it.running.advance(minutes=2)
        assert sorted(each["subject"] for each in it.mails) == ["Number 0", "Number 1", "Number 2", "Number 3"]


@pytest.mark.spec("C-18", "G3-02")
async def test_a_recurring_reminder_that_is_given_up_is_delivered_at_its_next_occurrence(office: Opened) -> None:
    async with office(times=Times(broken=(0.0, 1_200.0))) as it:
        made = await it.add(user="ann", webhook=f"{HOOK}/broken/ann", rule={"every": "30 minutes"}, at="in 1m")
        await it.running.advance(minutes=15)
        found = await it.call("GET", f"/{made['id']}")
        assert (found["state"], found["error_count"], found["fire"]) == ("pending", 0, 2)
        (dead,) = await it.sql("select notification_id, fire_seq, error from notification_dead_letters")
        assert (dead.notification_id, dead.fire_seq) == (made["id"], 1)

        await it.running.advance(minutes=20)
        assert [each["about"] for each in it.hooks] == [f"{made['id']} 2"]


@pytest.mark.spec("C-20", "G3-13")
async def test_a_reminder_of_every_minute_never_waits_for_a_longer_retry(office: Opened) -> None:
    async with office(times=Times(broken=(0.0, 150.0))) as it:
        made = await it.add(user="ann", webhook=f"{HOOK}/broken/ann", rule={"every": "1 minute"})
        await it.running.advance(minutes=6)
        fires = await it.sql(
            "select fire_seq, status from notification_deliveries where notification_id = :id order by fire_seq",
            id=made["id"],
        )
        assert [each.status for each in fires][:2] == ["given_up", "given_up"]
        assert len(it.hooks) >= 2


@pytest.mark.spec("C-09", "G3-07")
async def test_a_slow_provider_that_delivers_after_the_timeout_delivers_one_mail(office: Opened) -> None:
    async with office(faults=Faults(lost=1.0, lost_seconds=11.0, rate=100)) as it:
        await person(it)
        made = await it.add(user="ann")
        await it.running.advance(seconds=75)
        (delivery,) = await it.call("GET", f"/{made['id']}/deliveries")
        assert delivery["status"] == "unknown"
        (listed,) = (await it.call("GET", "", params={"state": "unknown"}))["reminders"]
        assert listed["id"] == made["id"]

        await it.running.advance(minutes=3)
        assert len(it.mails) == 1
        assert it.mails[0]["key"] == f"{made['id']}.1.email"
        assert await it.statuses(made["id"]) == [(1, "email", "sent")]


@pytest.mark.spec("C-10", "G3-14")
async def test_a_webhook_is_signed_and_verified_by_the_library(office: Opened) -> None:
    from standardwebhooks import Webhook

    seen: list[Any] = []

    def verify(name: str, body: bytes, headers: Any) -> None:
        seen.append((body, dict(headers)))

    async with office(verify=verify) as it:
        made = await it.add(user="ann", channels=["webhook"], webhook=f"{HOOK}/verifies/ann")
        await it.running.advance(minutes=1)
        secret, ((body, headers),) = made["webhook_secret"], seen
        at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        judge = Webhook(secret)
        assert judge.sign(headers["webhook-id"], at, body.decode()) in headers["webhook-signature"].split()
        assert judge.sign(headers["webhook-id"], at, body.decode() + " ") not in headers["webhook-signature"].split()
        assert headers["webhook-id"] == f"{made['id']}.1.webhook"
        assert read_secret(secret)
        data = json.loads(body)["data"]
        assert data["channels"] == ["webhook"]
        assert abs(data["fired_at"] - it.ms()) < 60_000


@pytest.mark.spec("C-12", "G3-06", "G7-03")
async def test_a_crash_after_the_mail_was_sent_leaves_only_the_webhook_to_be_sent(office: Opened) -> None:
    async with office(times=Times(slow=9.0)) as it:
        id = await both(it, "slow")
        await it.running.advance(seconds=35)
        assert (len(it.mails), len(it.hooks)) == (1, 0)
        await it.running.kill()

        await it.running.advance(minutes=5)
        assert (len(it.mails), len(it.hooks)) == (1, 1)
        assert await it.statuses(id) == [(1, "email", "sent"), (1, "webhook", "sent")]


@pytest.mark.spec("C-12", "G3-06", "G7-03")
@pytest.mark.parametrize(
    "point", ["unit.sealed", "commit.begun", "commit.written", "commit.before", "commit.after", "commit.known"]
)
async def test_wherever_the_worker_dies_every_notice_arrives_once(office: Opened, point: str) -> None:
    async with office(faults=Faults(rate=100)) as it:
        id = await both(it, "good", rule={"every": "5 minutes"}, at="in 1m")
        for nth in range(1, 7):
            await it.running.crash(at=point, nth=nth)
            await it.running.advance(minutes=5)
        assert it.running.workers_started > 3
        expected = sorted(f"{id} {fire}" for fire in range(1, 7))
        assert sorted(each["about"] for each in it.hooks) == expected
        assert sorted(each["about"] for each in it.mails) == expected


@pytest.mark.spec("G7-03")
async def test_a_mail_of_unknown_outcome_is_held_once_its_key_has_lapsed_and_settled_by_hand(office: Opened) -> None:
    async with office(faults=Faults(lost=1.0, lost_seconds=11.0, rate=100)) as it:
        await person(it)
        made = await it.add(user="ann")
        await it.running.advance(seconds=75)
        it.arrivals.all.clear()  # the provider knows nothing of it, and its list does not have it
        it.servers.state.resend._mails.clear()
        it.running.jump(30 * HOUR)
        await it.running.advance(minutes=3)
        assert not it.mails, "a second copy would be possible"
        assert await it.statuses(made["id"]) == [(1, "email", "held")]
        assert "held: email" in (await it.call("GET", f"/{made['id']}"))["last_error"]
        assert (await it.call("GET", "/counts"))["unknown"] == 1

        await it.call("POST", f"/{made['id']}/deliveries/1/email?status=sent")
        assert (await it.call("GET", "/counts"))["unknown"] == 0
