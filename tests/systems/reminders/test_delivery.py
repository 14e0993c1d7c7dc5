"""What is due is sent once through each channel, and recorded."""

from __future__ import annotations

import pytest

from tests.systems.reminders.conftest import HOOK, Opened


@pytest.mark.spec("C-21")
async def test_a_reminder_that_is_due_is_sent_in_its_minute_and_recorded(office: Opened) -> None:
    async with office() as it:
        await it.call("PUT", "/people/ann", json={"email": "ann@example.org", "zone": "Europe/Berlin"})
        made = await it.add(
            user="ann", at="2026-03-02T09:30", channels=["email", "webhook"], webhook=f"{HOOK}/good/ann"
        )

        assert made["upcoming"] == [{"local": "2026-03-02T09:30+01:00", "utc": "2026-03-02T08:30Z"}]
        await it.running.advance(minutes=29)
        assert not it.arrivals.all
        await it.running.advance(minutes=2)

        assert [(each["to"], each["subject"]) for each in it.mails] == [("ann@example.org", "Pay the rent")]
        assert [each["name"] for each in it.hooks] == ["ann"]
        assert await it.statuses(made["id"]) == [(1, "email", "sent"), (1, "webhook", "sent")]
        assert (await it.call("GET", f"/{made['id']}"))["state"] == "done"
        assert (await it.call("GET", "/counts")) == {"pending": 0, "due": 0, "retrying": 0, "parked": 0, "unknown": 0}
