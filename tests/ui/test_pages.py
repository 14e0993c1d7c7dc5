"""Pages: each opens on an empty and on a full database, is whole HTML without active content, and says what its JSON says."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from penstock.testing import TestApp
from penstock.web.ui.pages import PAGES
from tests.ui.planted import live
from tests.ui.visiting import visiting

LISTS = [page.path for page in PAGES if "{" not in page.path and not page.path.startswith(("/confirm/", "/compare"))]
THINGS = [
    "/queues/orders",
    "/queues/found",
    "/queues/workflow.research",
    "/dead/1",
    "/cron/crawl",
    "/runs/research/broken-0",
    "/runs/research/approve-0-0",
    "/objects/Cart/hat",
    "/compare?workflow=research&a=hats-0-0&b=broken-0",
    "/search?q=found",
    "/dead?queue=found&reason=permanent",
    "/runs?state=errored",
    "/runs?state=waiting&workflow=research",
    "/activity?status=failed",
    "/confirm/queues/purge?name=mails",
    "/confirm/dead/replay?scope=filter&queue=found",
    "/confirm/workflows/terminate?workflow=research&id=approve-0-0",
]


def check(html: str, elements: list[tuple[str, dict[str, str | None]]]) -> None:
    """Nothing on a page is active but the four files of the dashboard itself."""
    for tag, given in elements:
        assert tag not in ("iframe", "object", "embed", "base"), tag
        if tag == "script":
            assert re.fullmatch(r"/ui/static/[0-9a-f]{12}/[a-z]+(\.min)?\.js", given.get("src") or ""), given
        assert "style" not in given, f"the policy blocks style= of {tag}"
        assert not any(name.startswith("on") for name in given), given
        for name in ("href", "src", "action"):
            assert not (given.get(name) or "").lower().startswith(("javascript:", "data:text")), given
    ids = [given["id"] for _, given in elements if "id" in given]
    assert len(ids) == len(set(ids)), sorted(id for id in ids if id and ids.count(id) > 1)
    assert len(html) < 300_000


async def test_every_page_opens_on_an_empty_database_and_says_what_to_do(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        for path in LISTS:
            seen = await visit.get(path)
            assert (path, seen.status) == (path, 200), seen.text
            check(seen.html, seen.elements)
        assert (
            "No dead letter" in (await visit.get("/dead")).text or "no dead letters" in (await visit.get("/dead")).text
        )
        assert "penstock" in (await visit.get("/runs")).text
        missing = await visit.get("/queues/nowhere")

    assert missing.status == 404
    assert "There is no queue 'nowhere'" in missing.text


async def test_every_page_opens_on_a_full_database(shop: TestApp) -> None:
    await live(shop, hours=0.7)
    async with visiting(shop) as visit:
        for path in [*LISTS, *THINGS]:
            seen = await visit.get(path)
            wanted = 303 if path == "/search?q=found" else 200
            assert (path, seen.status) == (path, wanted), seen.text
            if wanted == 200:
                check(seen.html, seen.elements)
        overview = await visit.get("/")
        letters = await visit.json("/dead")
        message = letters["letters"][0]["event_id"]
        trace, why = await visit.get(f"/trace/{message}"), await visit.get(f"/why/{message}")
        waiting = (await visit.json("/queues/mails"))["waiting"][0]["id"]
        mail = await visit.get(f"/trace/{waiting}")

    assert "Queue orders is paused" in overview.text
    assert "waits for the signal approved" in overview.text
    assert trace.status == why.status == 200
    assert '"subject": "Your hat"' in mail.text
    assert letters["letters"][0]["error"] in trace.text
    assert "It is dead letter" in why.text


async def test_the_page_its_json_and_its_csv_say_the_same(shop: TestApp) -> None:
    await live(shop, hours=0.3)
    async with visiting(shop) as visit:
        facts = await visit.json("/queues")
        page = await visit.get("/queues")
        csv = await visit.get("/queues?format=csv")

    mails = next(row for row in facts["queues"] if row["name"] == "mails")
    assert mails["waiting"] > 100
    assert f"{mails['waiting']:,}" in page.text
    assert f"mails,waiting,{mails['waiting']}," in csv.html or f",{mails['waiting']}," in csv.html
    assert csv.headers["content-type"].startswith("text/csv")


async def test_what_waits_is_summed_by_reason_and_every_message_is_accounted_for(shop: TestApp) -> None:
    await live(shop, hours=0.2)
    async with visiting(shop) as visit:
        for name in ("orders", "mails", "imports", "workflow.research"):
            facts = await visit.json(f"/queues/{name}")
            row = facts["queue"]
            assert sum(each["messages"] for each in facts["reasons"]) == row["waiting"]
            accounted = sum(row[part] for part in ("acked", "leased", "waiting", "dead", "purged", "expired"))
            assert accounted == row["sent"]
        states = [each["state"] for each in (await visit.json("/queues/mails"))["reasons"]]

    assert states == ["rate_limited"]


async def test_runs_of_a_state_are_all_listed_over_several_pages(shop: TestApp) -> None:
    research = shop.app.workflows["research"]
    async with visiting(shop) as visit:
        for number in range(40):
            async with shop.unit():
                for place in range(3):
                    research[f"run-{number}-{place}"].start(f"approve {number}")
        await shop.advance(minutes=5)
        found, query = list[str](), "/runs?state=waiting"
        for _ in range(9):
            page = await visit.json(query)
            found += [run["id"] for run in page["runs"]]
            if page["next"] is None:
                break
            query = f"/runs?state=waiting&{urlencode(page['next'])}"

    assert set(found) == {f"run-{number}-{place}" for number in range(40) for place in range(3)}
    assert len(found) == 120


@pytest.mark.parametrize("prefix", ["/a/b"])
async def test_every_address_of_a_page_has_the_prefix_under_which_it_is_mounted(shop: TestApp, prefix: str) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from penstock.web import KnownToken, hashed
    from penstock.web.ui import make_dashboard

    dashboard = make_dashboard(shop.app, tokens=[KnownToken("admin", hashed("admin"))])
    site = Starlette(routes=[Mount(prefix, dashboard)])
    await live(shop, hours=0.4)
    async with visiting(shop, prefix=prefix, site=site) as visit:
        for path in [*LISTS, *THINGS]:
            seen = await visit.get(path)
            assert seen.status in (200, 303), (path, seen.text)
            for tag, given in seen.elements if seen.status == 200 else ():
                for name in ("href", "src", "action"):
                    target = given.get(name) or ""
                    assert not target.startswith("/") or target.startswith(f"{prefix}/"), (path, tag, target)
