"""The pages of the brands in the dashboard: a person approves, edits or rejects an article there."""

from __future__ import annotations

import pytest

from penstock_systems.standins.publishing.writer import FALSE
from tests.systems.brand.conftest import Opened
from tests.systems.brand.test_reviews import waiting
from tests.ui.test_pages import check
from tests.ui.visiting import visiting, whole_site


@pytest.mark.parametrize("action, status", [("approve", "published"), ("edit", "published"), ("reject", "archived")])
async def test_an_article_is_decided_on_the_dashboard_by_the_person_who_is_logged_in(
    brands: Opened, action: str, status: str
) -> None:
    async with (
        brands(false_citations=(1,)) as at_work,
        visiting(at_work.brain.keeper, "operator", site=whole_site(at_work.brain.keeper)) as visit,
    ):
        content = await waiting(at_work)
        queue, article = await visit.get("/pages/reviews"), await visit.get(f"/pages/articles/{content}")
        form = await visit.get(f"/forms/articles/edit?id={content}")
        whole = (await at_work.http.get(f"/v1/content/{content}")).json()["result"]
        body = whole["body"].replace("Here is what the sources say", "Three sources speak")
        fields = {"id": content} | ({"title": whole["title"], "body": body} if action == "edit" else {})
        done = await visit.post(f"/do/pages/articles/{action}", fields)
        again = await visit.post("/do/pages/articles/approve", {"id": content})
        await at_work.advance(hours=3)
        empty = await visit.get("/pages/reviews")
        listed = await visit.get(f"/pages/articles?status={status}")

        check(article.html, article.elements)
        assert f"/ui/pages/articles/{content}" in queue.links()
        assert FALSE in article.text
        assert "Here is what the sources say" in form.text
        assert (done.status, again.status) == (303, 422)
        assert "operator decided" in again.text
        assert content not in empty.html
        [row] = await at_work.contents()
        assert row.status == status
        [kept] = await at_work.brain.db.rows("select decision, reviewer from sm_reviews")
        assert (kept.decision, kept.reviewer) == (action, "operator")
        assert f"/ui/pages/articles/{content}" in listed.links()
        assert (await visit.get("/pages/posts?state=posted")).status == 200
