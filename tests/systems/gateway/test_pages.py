"""The pages of the gateway in the dashboard: what was spent, and the keys."""

from __future__ import annotations

from penstock_systems.gateway.stages import app
from tests.systems.gateway.conftest import Opened
from tests.ui.test_pages import check
from tests.ui.visiting import visiting, whole_site


async def test_what_callers_spent_is_summed_as_the_filter_says_and_a_key_is_revoked(gateway: Opened) -> None:
    async with gateway() as shop:
        key = await shop.key("<b>writer</b>")
        assert (await shop.ask(key)).status_code == 200
        async with visiting(app, "operator", site=whole_site(app)) as visit:
            by_key, by_model = await visit.get("/pages/spend"), await visit.json("/pages/spend?by=model&days=1")
            wrong = await visit.get("/pages/spend?days=0")
            refused = await visit.post("/do/pages/keys/revoke", {"name": "<b>writer</b>"})
        async with visiting(app, "admin", site=whole_site(app)) as visit:
            listed = await visit.get("/pages/keys")
            revoked = await visit.post("/do/pages/keys/revoke", {"name": "<b>writer</b>"})
            after = await visit.get("/pages/keys")

        check(by_key.html, by_key.elements)
        assert "<b>writer</b>" in by_key.text
        [row] = by_model["sections"][0]["rows"]
        assert (row["calls"], row["usd"] > 0) == (1, True)
        assert (wrong.status, refused.status, revoked.status) == (400, 403, 303)
        assert "active" in listed.text
        assert "revoked" in after.text
        assert key not in listed.html
