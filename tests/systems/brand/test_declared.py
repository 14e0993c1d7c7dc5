"""What the brand system declares: messages, bindings, routes, and what its agents may not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock.cli.readiness import CHECKS
from tests.systems.brand.conftest import BRAIN, EYES, HANDS, MOUTH, Opened

PAYLOADS = {
    "research.requested": {"brand_slug", "keyword", "priority"},
    "research.completed": {"brand_slug", "research_id", "keyword"},
    "content.generated": {"brand_slug", "content_id", "keyword", "word_count"},
    "content.publish": {"brand_slug", "content_id", "target"},
    "content.published": {"brand_slug", "content_id", "published_url", "target"},
    "social.create": {"brand_slug", "content_id", "article_context", "published_url"},
    "social.posted": {"brand_slug", "content_id", "platform", "post_url"},
    "research.failed": {"brand_slug", "keyword", "reason"},
    "content.failed": {"brand_slug", "content_id", "keyword", "reason"},
}


@pytest.mark.spec("D-05", "A9-08")
async def test_messages_have_the_fields_of_the_specification_and_stay_small(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(hours=1)

        queues = (at_work.researches, at_work.publications, at_work.postings, at_work.events)
        sent: list[Any] = [attempt.payload for queue in queues for attempt in at_work.town.of(queue).delivered(queue)]
        seen = {type(payload).__message_type__: set(payload.__struct_fields__) for payload in sent}
        assert seen == {name: PAYLOADS[name] for name in seen}
        assert len(seen) == 7
        assert max(len(msgspec.json.encode(payload)) for payload in sent) < 10_000


@pytest.mark.spec("D-01", "D-04", "A11-03")
async def test_services_call_only_what_they_declare(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        assert {name: service.uses for name, service in at_work.app.services.items()} == {
            BRAIN: (EYES,),
            EYES: (),
            MOUTH: (BRAIN,),
            HANDS: (BRAIN,),
        }
        with pytest.raises(ps.errors.BadApp, match=r"uses=\[\.\.\., 'gatherfeed-api'\]"):
            await at_work.mouth.bindings[EYES].get("/api/v1/research", id="1")


@pytest.mark.spec("A9-06", "D-04")
async def test_each_service_has_a_bucket_with_what_was_read_and_what_was_written(brands: Opened, apart: bool) -> None:
    async with brands(false_citations=(1,)) as at_work:
        assert at_work.fetched_pages.expiries == (ps.Expiry("pages/", days=90),)
        await at_work.research("garden", "garden tools")
        await at_work.advance(minutes=10)
        [row] = await at_work.contents()
        edit = {"by": "Ada", "title": "A title by Ada"}
        assert (await at_work.http.post(f"/v1/content/{row.id}/edit", json=edit)).status_code == 200
        await at_work.advance(hours=1)

        pages = [await at_work.fetched_pages.read(key) for key in await at_work.fetched_pages.list()]
        content = json.loads(await at_work.eyes.db.value("select content from gf_research"))
        assert {page.metadata["url"] for page in pages} == {source["url"] for source in content["sources"]}
        assert all(b"track()" in page.content for page in pages)
        [key] = await at_work.written_articles.list()
        written = json.loads(await at_work.written_articles.get(key))
        assert (key, written["article"]["title"]) == (f"articles/{row.id}.json", "Garden tools: what to know")
        assert {each.name for each in Path.cwd().glob("*-data")} == {"gatherfeed-data", "scalable-media-data"}
        at_work.town[EYES].jump(91 * 86_400)
        await at_work.fetched_pages.expire()
        assert (await at_work.fetched_pages.list(), await at_work.written_articles.list()) == ([], [key])


CHECKED = ("topology", "services", "command-queues", "undeclared-queues", "hot-queries", "concurrency", "rationale")


@pytest.mark.spec("D-02", "D-04", "G4-24", "G4-36", "F-22")
@pytest.mark.parametrize("check", CHECKED)
def test_the_checks_of_an_app_find_nothing_in_the_brand_system(
    brands: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    app = brands.args[0]["penstock_systems.brand.app"].app  # type: ignore[attr-defined]
    monkeypatch.setattr(app, "database", str(tmp_path / "check.db"))

    assert list(CHECKS[check].look(app)) == []


@pytest.mark.spec("A14-10", "G4-36")
async def test_research_is_read_by_id_or_by_topic(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(minutes=5)
        asked, headers = {"topic": "llc receipts", "project": "llc-tax"}, {"X-Service-Key": "service-key"}
        found = (await at_work.http.get("/api/v1/research", params=asked, headers=headers)).json()["result"]

        assert found["title"] == "Research: llc receipts"
        assert all(source["text"] for source in found["sources"])
        again = await at_work.http.get("/api/v1/research", params={"id": found["id"]}, headers=headers)
        assert again.json()["result"] == found
        assert (await at_work.http.get("/api/v1/research", params={"id": "x"}, headers=headers)).status_code == 404
        assert (await at_work.http.get("/api/v1/research", headers=headers)).status_code == 422
        assert (await at_work.http.get("/api/v1/research", params=asked)).status_code == 401


@pytest.mark.spec("D-25")
async def test_a_command_that_is_pushed_over_http_is_carried_out(brands: Opened) -> None:
    async with brands() as at_work, at_work.town[BRAIN].client("queues:write") as http:
        body = {"type": "brand.research", "payload": {"brand_slug": "llc-tax", "keywords": ["llc receipts"]}}
        path = "/client/v4/accounts/local/queues/sm-commands/messages"
        assert (await http.post(path, json={"body": body})).status_code == 200
        await at_work.advance(hours=1)

        assert [row.status for row in await at_work.contents()] == ["published"]


@pytest.mark.spec("F-27")
async def test_agents_call_nothing_outside(brands: Opened) -> None:
    async with brands() as at_work:
        calls: list[str] = []

        async def refuse(scope: Any, receive: Any, send: Any) -> None:
            calls.append(scope["path"])
            raise AssertionError("an agent called outside")

        for host in ("apimom-router.example", "social.example"):
            at_work.web.mount(f"https://{host}", refuse)
        at_work.reader.mount("https://web.example", refuse)
        agents, messages = at_work.module("scalable_media.agent").agents, at_work.module("messages")
        event = messages.ResearchCompleted(brand_slug="llc-tax", research_id="r", keyword="k")
        async with at_work.brain.unit():
            await agents["llc-tax"].request_research("llc-tax", "1", ["a", "b"], "normal")
            await agents["llc-tax"].decide("e", event)
            await agents["llc-tax"].audit("llc-tax", "today")

        assert calls == []


@pytest.mark.spec("D-12")
async def test_research_keeps_the_text_of_the_pages_without_their_scripts(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(minutes=5)
        content = json.loads(await at_work.eyes.db.value("select content from gf_research"))

        assert content["summary"]
        assert len(content["sources"]) == 4
        for source in content["sources"]:
            number = int(source["url"].rsplit("/", 1)[1])
            assert all(line in source["text"] for line in at_work.pages.lines("llc-receipts", number)[:1])
            assert "track()" not in source["text"]
            assert "Home" not in source["text"]


async def test_without_a_model_articles_are_composed_of_quotations_and_say_so(
    brands: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brands() as at_work:
        for name in ("app", "gateway", "scalable_media.writing", "gatherfeed.research"):
            settings = msgspec.structs.replace(at_work.module("app").settings, model="")
            monkeypatch.setattr(at_work.module(name), "settings", settings)
        await at_work.research("garden", "garden tools")
        await at_work.advance(hours=1)

        [row] = await at_work.contents()
        assert (row.status, row.flags) == ("published", "[]")
        [page] = [path.read_text() for path in at_work.sites.glob("*/blog/*.html") if path.name != "index.html"]
        assert "Composed from its sources without a language model" in page
        assert not at_work.chat.book.asked
