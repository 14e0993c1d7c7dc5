"""Text that others chose is text on every page: in errors, payloads, names of objects and runs, the audit."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.config import Config, DashboardConfig
from penstock.runtime.audit import operated_by
from penstock.testing import TestApp, virtual
from tests.ui.test_pages import LISTS, check
from tests.ui.visiting import visiting

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "</textarea><svg onload=alert(1)>",
    '=HYPERLINK("http://evil.example")',
    "\u202eevil\u0000\u001b[31m",
    "' or 1=1 --",
    "../../etc/passwd?#%2f",
    "ü" * 300,
]
QUERIES = ("/search?q=", "/runs?workflow=", "/activity?queue=", "/dead?queue=", "/cost?month=", "/audit?actor=")
CANARY = ("<script>alert", "<img src=x", "<svg onload", "onerror=alert(1)>")


class Cart(ps.Object):
    note: str = ""

    async def write(self, text: str) -> None:
        self.note = text


def hostile_app() -> ps.App:
    app = ps.App("hostile", config=Config(dashboard=DashboardConfig(hosts=("shop.example",))), migrations="none")
    notes = app.queue("notes", retries=0)
    carts = app.object(Cart)

    @notes.handler
    async def fail(note: dict[str, str]) -> None:
        await carts[note["text"][:100] or "x"].write(note["text"])
        raise type(note["text"][:40] or "E", (Exception,), {})(note["text"])

    @app.workflow
    async def flow(run: ps.Run, text: str) -> str:
        await run.step(text[:100] or "x", _same, text)
        await run.wait_for(text[:60] or "x", str)
        return text

    return app


async def _same(text: str) -> str:
    return text


@pytest.mark.fault("F44")
@virtual
async def test_hostile_text_is_text_on_every_page() -> None:
    app = hostile_app()
    async with TestApp(app) as shop:
        for number, text in enumerate(HOSTILE):
            plain = text.replace("\u0000", "")
            await shop.send(app.queues["notes"], {"text": plain})
            async with shop.unit():
                named = "".join(each for each in f"{number} {plain}" if each.isprintable())[:150]
                app.workflows["flow"][named].start(plain)
        await shop.advance(minutes=5)
        with operated_by(HOSTILE[0], HOSTILE[1]):
            await app.dead.discard(1, HOSTILE[4])
        async with visiting(shop) as visit:
            letters = (await visit.json("/dead"))["letters"]
            runs = (await visit.json("/runs"))["runs"]
            objects = (await visit.json("/objects"))["objects"]
            paths = [*LISTS, "/queues/notes", "/queues/workflow.flow", "/search?q=alert"]
            paths += [f"/dead/{row['id']}" for row in letters] + [f"/trace/{row['event_id']}" for row in letters[:4]]
            paths += [link for page in ("/runs", "/objects") for link in links(await visit.get(page), page)]
            for path in paths:
                seen = await visit.get(path)
                assert seen.status in (200, 303, 404), (path, seen.text)
                check(seen.html, seen.elements)
                assert not any(canary in seen.html for canary in CANARY), path
                if path in ("/queues", "/dead", "/runs", "/objects", "/activity", "/audit"):
                    csv = await visit.get(f"{path}?format=csv")
                    assert not any(line.startswith(("=", "+", "@")) for line in csv.html.splitlines()), path
            for query in HOSTILE:
                for path in QUERIES:
                    seen = await visit.get(path + query.encode().hex() if "\u0000" in query else path + quoted(query))
                    assert not any(canary in seen.html for canary in CANARY), (path, query)

    assert len(letters) >= len(HOSTILE) - 2
    assert len(runs) == len(HOSTILE)
    assert objects


def links(seen: object, page: str) -> list[str]:
    found: list[str] = [each.removeprefix("/ui") for each in seen.links()]  # type: ignore[attr-defined]
    return [each for each in found if each.startswith(f"{page}/")][:20]


def quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


@pytest.mark.parametrize("role", ["viewer", "operator"])
@virtual
async def test_payloads_and_hidden_fields_are_for_those_whom_the_deployment_names(role: str) -> None:
    dashboard = DashboardConfig(hosts=("shop.example",), hide=("email",), payloads="operator")
    app = ps.App("quiet", config=Config(dashboard=dashboard), migrations="none")

    @app.workflow
    async def greet(run: ps.Run, email: str, token: str) -> None:
        await run.sleep(60)

    async with TestApp(app) as shop, visiting(shop, role) as visit:
        async with shop.unit():
            app.workflows["greet"]["ada"].start("ada@shop.example", "s3cret-value")
        await shop.advance(seconds=5)
        seen = await visit.get("/runs/greet/ada")
        facts = await visit.json("/runs/greet/ada")

    assert (facts["run"]["input"] is None) == (role == "viewer")
    assert "ada@shop.example" not in str(facts)
    assert "s3cret-value" not in str(facts)
    assert "s3cret-value" not in seen.html
    assert "ada@shop.example" not in seen.html
    assert ("only" in seen.text) == (role == "viewer") or "***" in seen.text
