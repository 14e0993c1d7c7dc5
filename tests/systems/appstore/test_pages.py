"""The pages of the App Store system in the dashboard: its report, an opportunity, a market."""

from __future__ import annotations

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.stages import app
from tests.systems.appstore import market_rows
from tests.systems.appstore.conftest import Opened
from tests.ui.test_pages import check
from tests.ui.visiting import visiting, whole_site


async def test_the_report_leads_to_its_opportunities_and_markets(pipeline: Opened) -> None:
    async with pipeline(), visiting(app, "viewer", site=whole_site(app)) as visit:
        empty = await visit.get("/pages/report")
        await market_rows.fill(shared.app)
        report, facts = await visit.get("/pages/report"), await visit.json("/pages/report")
        opportunities, markets, _ = (section["rows"] for section in facts["sections"])
        opportunity = await visit.get(f"/pages/opportunities/{opportunities[0]['id']}")
        market = await visit.get(f"/pages/markets/{markets[0]['id']}")
        missing = [(await visit.get(f"/pages/{path}")).status for path in ("opportunities/none", "markets/999999")]

        assert "No market has been evaluated yet." in empty.text
        for each in (report, opportunity, market):
            check(each.html, each.elements)
        assert [each["verdict"] for each in opportunities] == ["build", "build", "explore", "avoid"]
        assert f"/ui/pages/markets/{opportunities[0]['cluster_id']}" in opportunity.links()
        assert "Week 1: one page." in opportunity.text
        assert "Apps" in market.text
        assert missing == [404, 404]
