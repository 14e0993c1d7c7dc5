"""What an operator does on a page has its effect and its audit in one commit, and is done once."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from penstock.testing import TestApp
from penstock.web.ui.bulk import JOBS_MAX, Jobs
from tests.ui.planted import MailDue, OrderPlaced, live
from tests.ui.visiting import Visit, visiting


async def audits(visit: Visit) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await visit.json("/audit"))["audit"]
    return found


async def test_pause_resume_and_tune_have_their_effect_and_a_row_of_the_audit(shop: TestApp) -> None:
    async with visiting(shop, "operator") as visit:
        for path, fields in (
            ("/do/queues/pause", {"name": "orders"}),
            ("/do/queues/tune", {"name": "found", "parallel": "3", "rate": "2.5"}),
            ("/do/cron/pause", {"name": "crawl"}),
        ):
            done = await visit.post(path, {**fields, "back": "/ui/queues"})
            assert (done.status, done.headers["location"]) == (303, "/ui/queues")
            await shop.advance(seconds=1)
        assert "Paused cron task crawl" in (await visit.get("/queues")).text
        assert "Paused cron task crawl" not in (await visit.get("/queues")).text
        orders, found = await visit.json("/queues/orders"), await visit.json("/queues/found")
        rows = await audits(visit)

    assert orders["queue"]["paused"]
    assert found["tuned"] == {"parallel": 3, "rate": 2.5}
    assert [row["verb"] for row in rows] == ["cron pause", "queues tune", "queues pause"]
    assert {(row["actor"], row["origin"]) for row in rows} == {("operator", "dashboard 127.0.0.1")}
    assert rows[2]["command"] == "penstock queues pause orders"


async def test_a_purge_asks_for_the_name_and_for_about_the_number_that_was_shown(shop: TestApp) -> None:
    mails = shop.app.queues["mails"]
    async with visiting(shop) as visit:
        await visit.post("/do/queues/pause", {"name": "mails"})
        for number in range(20):
            await shop.send(mails, MailDue(to=f"{number}@shop.example", subject="hat"))
        page = await visit.get("/confirm/queues/purge?name=mails")
        assert "20 waiting messages are deleted" in page.text
        form = {"name": "mails", "planned": 20, "back": "/ui/queues/mails"}
        wrong = await visit.post("/do/queues/purge", {**form, "typed": "mail"})
        assert (wrong.status, "Type the name of the queue" in wrong.text) == (422, True)
        for number in range(40):
            await shop.send(mails, MailDue(to=f"{number}@shop.example", subject="scarf"))
        stale = await visit.post("/do/queues/purge", {**form, "typed": "mails"})
        assert "60 messages wait now; the page said 20" in stale.text
        right = await visit.post("/do/queues/purge", {**form, "planned": 60, "typed": "mails"})
        assert right.status == 303
        row = (await visit.json("/queues/mails"))["queue"]

    assert (row["waiting"], row["purged"]) == (0, 60)


async def test_a_double_click_runs_a_task_once(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        page = await visit.get("/cron")
        (key, *_) = re.findall(r'name="key" value="([^"]+)"', page.html)
        for _ in range(2):
            await visit.post("/do/cron/trigger", {"name": "compact", "key": key, "back": "/ui/cron"})
        assert "This was done already" in (await visit.get("/cron")).text
        await shop.advance(seconds=5)
        task = (await visit.json("/cron/compact"))["ticks"]

    assert len(task) == 1


async def test_a_cause_is_told_from_another_of_the_same_error_class(shop: TestApp) -> None:
    orders = shop.app.queues["orders"]
    async with visiting(shop) as visit:
        for item, number in (("hat", 3), ("scarf", 60)):
            for count in range(number):
                await shop.send(orders, OrderPlaced(item=item, count=91 + count))
            await shop.advance(minutes=5)
        scarves, hats = (await visit.json("/dead"))["causes"]
        query = f"queue=orders&type=order.placed&reason=exhausted&error_class=ValueError&cause={hats['cause']}"
        chosen = await visit.json(f"/dead?{query}")
        form = await visit.get(f"/confirm/dead/replay?scope=filter&{query}")
        whole = await visit.get("/confirm/dead/replay?scope=filter&queue=orders&reason=exhausted")
        first = await visit.json("/dead?queue=orders&cause=" + scarves["cause"])
        rest = await visit.json(f"/dead?queue=orders&cause={scarves['cause']}&{urlencode(first['next'])}")

    assert (scarves["letters"], hats["letters"]) == (60, 3)
    assert hats["error"] == "ValueError: 93 of hat are more than there are"
    assert re.fullmatch(r"planted\.py:\d+", hats["place"])
    assert [each["id"] for each in chosen["letters"]] == [3, 2, 1]
    assert "Replay 3 dead letters" in form.text
    assert "penstock dead replay 1 2 3 --canary" in form.text
    assert "--queue orders --died-of exhausted --limit 63 --canary" in whole.text
    listed = [each["id"] for each in [*first["letters"], *rest["letters"]]]
    assert sorted(set(listed)) == list(range(4, 64))


async def test_a_letter_is_edited_against_its_type_and_replayed(shop: TestApp) -> None:
    orders = shop.app.queues["orders"]
    async with visiting(shop) as visit:
        await shop.send(orders, OrderPlaced(item="hat", count=95))
        await shop.advance(minutes=10)
        (letter,) = (await visit.json("/dead"))["letters"]
        form = {"id": letter["id"], "back": f"/ui/dead/{letter['id']}"}
        no_json = await visit.post("/do/dead/edit", {**form, "body": '{"item": '})
        assert (no_json.status, "This is not JSON" in no_json.text) == (422, True)
        assert "{&#34;item&#34;: </textarea>" in no_json.html  # what was typed is not lost
        unfit = await visit.post("/do/dead/edit", {**form, "body": '{"item": "hat", "count": "many"}'})
        assert (unfit.status, "not a valid order.placed" in unfit.text) == (422, True)
        fits = await visit.post("/do/dead/edit", {**form, "body": '{"item": "hat", "count": 5}'})
        assert fits.status == 303
        assert (await visit.post("/do/dead/replay", form)).status == 303
        again = await visit.post("/do/dead/replay", form)
        assert "was replayed meanwhile by another operator" in again.text
        await shop.advance(seconds=5)
        row = (await visit.json("/queues/orders"))["queue"]

    assert (row["acked"], row["dead"]) == (1, 0)


async def test_a_signal_from_the_page_completes_a_run_and_a_restart_begins_at_a_step(shop: TestApp) -> None:
    research = shop.app.workflows["research"]
    run = {"workflow": "research", "id": "hats", "back": "/ui/runs/research/hats"}
    async with visiting(shop) as visit:
        async with shop.unit():
            research["hats"].start("approve hats")
        await shop.advance(minutes=3)
        page = await visit.get("/runs/research/hats")
        assert "Waits for the signal approved" in page.text
        wrong = await visit.post("/do/workflows/signal", {**run, "signal": "approved", "payload": '"maybe"'})
        assert wrong.status == 422, wrong.text
        sent = await visit.post("/do/workflows/signal", {**run, "signal": "approved", "payload": "true"})
        assert sent.status == 303
        await shop.advance(seconds=5)
        assert (await visit.json("/runs/research/hats"))["run"]["state"] == "complete"
        assert (await visit.post("/do/workflows/restart", {**run, "step": "write summary"})).status == 303
        await shop.advance(minutes=3)
        facts = await visit.json("/runs/research/hats")
        verbs = [row["verb"] for row in await audits(visit)]

    assert [step["name"] for step in facts["steps"]][:2] == ["collect pages", "sleep 1"] or facts["steps"]
    assert "workflows restart" in verbs


async def test_a_replay_in_stages_stops_where_letters_die_again(shop: TestApp) -> None:
    await live(shop, hours=0.7)
    async with visiting(shop) as visit:
        page = await visit.get("/confirm/dead/replay?scope=filter&queue=found&reason=permanent")
        numbers = re.findall(r'name="id" value="(\d+)"', page.html)
        assert len(numbers) > 5
        done = await visit.post("/do/dead/bulk", {"id": numbers, "canary": "1"})
        assert (done.status, done.headers["location"]) == (303, "/ui/bulk")
        await shop.advance(minutes=2)
        (job,) = (await visit.json("/bulk"))["jobs"]

    assert (job["state"], job["replayed"], job["died"]) == ("stopped", 1, 1)
    assert "died again" in job["says"]


async def test_a_replay_in_stages_goes_on_while_letters_succeed(shop: TestApp) -> None:
    orders = shop.app.queues["orders"]
    async with visiting(shop) as visit:
        for number in range(40):
            await shop.send(orders, OrderPlaced(item="hat", count=91 + number))
        await shop.advance(minutes=10)
        letters = [row["id"] for row in (await visit.json("/dead"))["letters"]]
        for number in letters:
            body = '{"item": "hat", "count": 1}'
            assert (await visit.post("/do/dead/edit", {"id": number, "body": body})).status == 303
        await visit.post("/do/dead/bulk", {"id": letters, "canary": "1"})
        await shop.advance(minutes=3)
        (job,) = (await visit.json("/bulk"))["jobs"]
        row = (await visit.json("/queues/orders"))["queue"]

    assert (job["state"], job["replayed"], job["died"]) == ("done", 40, 0)
    assert (row["acked"], row["dead"]) == (40, 0)


async def test_a_replay_is_known_by_a_number_of_its_own_however_many_there_were(shop: TestApp) -> None:
    jobs = Jobs(shop.app)
    given = {"actor": "a", "origin": "test", "rate": None, "staged": False, "now": 0}
    numbers = [jobs.begin([], **given).id for _ in range(JOBS_MAX + 3)]  # type: ignore[arg-type]

    assert numbers == [*range(1, JOBS_MAX + 4)]
    assert [row["id"] for row in jobs.rows()] == numbers[:2:-1]
    assert len(jobs.known) == JOBS_MAX
