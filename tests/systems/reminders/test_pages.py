"""The pages of the reminders in the dashboard: an operator adds, follows, snoozes and cancels a reminder there."""

from __future__ import annotations

from penstock_systems.reminders.app import app
from tests.systems.reminders.conftest import Opened
from tests.ui.test_pages import check
from tests.ui.visiting import visiting, whole_site


async def test_a_reminder_is_previewed_added_followed_and_cancelled_on_the_dashboard(office: Opened) -> None:
    async with office() as it, visiting(app, "operator", site=whole_site(app)) as visit:
        preview = await visit.get(
            "/forms/reminders/add?preview=1&rule=every+3+days&at=2026-03-05T09:00&zone=Europe/Berlin"
        )
        wrong = await visit.get("/forms/reminders/add?preview=1&rule=nonsense+here")
        fields = {"title": "<b>Pay</b> the rent", "email": "ann@example.org", "at": "2026-03-02T09:05", "zone": "UTC"}
        added = await visit.post("/do/pages/reminders/add", fields)
        path = added.headers["location"].removeprefix("/ui")
        before, pending = await visit.get(path), await visit.get("/pages/reminders")
        await it.running.advance(hours=2)
        after, done = await visit.get(path), await visit.get("/pages/reminders?state=done")

        assert "2026-03-08T09:00" in preview.text
        assert wrong.status == 200
        assert "notice" in wrong.html
        check(before.html, before.elements)
        assert "<b>Pay</b> the rent" in before.text
        assert path in [each.removeprefix("/ui") for each in pending.links()]
        shown = [given["name"] for tag, given in pending.elements if tag in ("input", "select") and "name" in given]
        assert {"state", "user"} <= {*shown}
        assert "cursor" not in shown
        assert len(it.mails) == 1
        assert "sent" in after.text
        assert path in [each.removeprefix("/ui") for each in done.links()]


async def test_a_reminder_that_waits_is_snoozed_and_cancelled_with_an_audit(office: Opened) -> None:
    async with office() as it, visiting(app, "operator", site=whole_site(app)) as visit:
        made = await it.add(email="ann@example.org", at="in 2h")
        form = await visit.get(f"/forms/reminders/snooze?id={made['id']}")
        bad = await visit.post("/do/pages/reminders/snooze", {"id": made["id"], "span": "soon"})
        began = it.ms()
        snoozed = await visit.post("/do/pages/reminders/snooze", {"id": made["id"], "span": "3h"})
        due = (await it.row(made["id"])).next_fire_at
        await it.running.advance(seconds=1)
        cancelled = await visit.post("/do/pages/reminders/cancel", {"id": made["id"]})
        audit = (await visit.json("/audit"))["audit"]

        assert made["id"] in form.text
        assert (bad.status, snoozed.status, cancelled.status) == (422, 303, 303)
        assert 0 <= due - 3 * 3_600_000 - began <= it.ms() - began
        assert (await it.row(made["id"])).cancelled_at is not None
        assert [row["verb"] for row in audit[:2]] == ["reminders cancel", "reminders snooze"]


async def test_a_viewer_sees_reminders_and_cannot_change_them(office: Opened) -> None:
    async with office() as it, visiting(app, "viewer", site=whole_site(app)) as visit:
        made = await it.add(email="ann@example.org", at="in 2h")
        seen = await visit.get(f"/pages/reminders/{made['id']}")
        refused = await visit.post("/do/pages/reminders/cancel", {"id": made["id"]})
        missing = await visit.get("/pages/reminders/none")

        assert "Cancel" not in seen.text
        assert (refused.status, missing.status) == (403, 404)
        assert (await it.row(made["id"])).cancelled_at is None
        assert (await visit.get("/pages/reminder-causes")).status == 200
