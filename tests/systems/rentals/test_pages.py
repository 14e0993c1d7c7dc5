"""The pages of the rentals in the dashboard: sources and their runs, homes, searches with a preview."""

from __future__ import annotations

from penstock.testing import virtual
from penstock_systems.rentals.app import app, db
from tests.systems.rentals.conftest import Portals, item
from tests.ui.test_pages import check
from tests.ui.visiting import visiting, whole_site


@virtual
async def test_sources_homes_and_searches_are_seen_and_operated_on_the_dashboard(portals: Portals) -> None:
    async with portals.running, visiting(app, "operator", site=whole_site(app)) as visit:
        portals.items["one"] = [item("a1", title="<i>flat</i>"), item("b22", price=5000)]
        await portals.collect()
        sources, one = await visit.get("/pages/sources"), await visit.get("/pages/sources/one")
        homes, cheap = await visit.get("/pages/homes"), await visit.json("/pages/homes?max_price=2000")
        [row] = cheap["sections"][0]["rows"]
        home = await visit.get(f"/pages/homes/{row['home_id']}")
        disabled = await visit.post("/do/pages/sources/disable", {"name": "one"})
        starred = await visit.post("/do/pages/homes/star", {"id": row["home_id"]})

        for each in (sources, one, homes, home):
            check(each.html, each.elements)
        assert "/ui/pages/sources/one" in sources.links()
        assert "ok" in one.text
        assert "<i>flat</i>" in homes.text
        assert "5,000 EUR" in homes.text
        assert (disabled.status, starred.status) == (303, 303)
        assert await db.value("select enabled from sources where name = 'one'") == 0
        assert await db.value("select count(*) from homes where starred = 1") == 1


@virtual
async def test_a_search_says_what_fits_before_it_is_saved(portals: Portals) -> None:
    async with portals.running, visiting(app, "operator", site=whole_site(app)) as visit:
        portals.items["one"] = [item("a1"), item("b22", price=5000)]
        await portals.collect()
        preview = await visit.get("/forms/searches/add-search?preview=1&max_price=2000")
        added = await visit.post("/do/pages/searches/add-search", {"name": "small", "max_price": "2000"})
        path = added.headers["location"].removeprefix("/ui")
        search, listed = await visit.get(path), await visit.get("/pages/searches")
        paused = await visit.post("/do/pages/searches/pause", {"id": path.rsplit("/", 1)[1]})

        assert "1 listing fits now." in preview.text
        assert "max price 2000" in search.text
        assert "small" in listed.text
        assert paused.status == 303
        assert await db.value("select paused from searches") == 1
        assert (await visit.post("/do/pages/searches/delete", {"id": path.rsplit("/", 1)[1]})).status == 303
        assert await db.value("select count(*) from searches") == 0


@virtual
async def test_a_broken_source_needs_attention_and_is_one_click_away(portals: Portals) -> None:
    async with portals.running, visiting(app, "operator", site=whole_site(app)) as visit:
        portals.items["one"] = [item("a1")]
        await portals.collect()
        assert "one has changed" not in (await visit.get("/")).text
        portals.items["one"] = {"moved": []}  # type: ignore[assignment]
        await portals.collect()
        overview = await visit.get("/")
        assert "one has changed" in overview.text
        assert "/ui/pages/sources/one" in overview.links()
        page = await visit.get("/pages/sources/one")
        assert "changed" in page.text
        assert "The answer has: moved." in page.text
