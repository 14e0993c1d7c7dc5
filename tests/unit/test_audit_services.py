"""`penstock audit-services` on services that call each other, and on services that need nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli import Terminal

BRAIN = """
import httpx

GATHERFEED_URL = "http://gatherfeed:8000"


@app.post("/v1/brands/{slug}/cycle")
async def cycle(slug: str) -> dict:
    async with httpx.AsyncClient() as client:
        research = (await client.post(f"{GATHERFEED_URL}/research", json={"slug": slug})).json()
        page = await client.post("http://pages-plus/publish", json=research)
    db.execute("insert into content (slug, html) values (?, ?)", slug, page.text)
    return {"ok": True}


def read_research(id: int) -> dict:
    return httpx.get(f"{GATHERFEED_URL}/research/{id}").json()
"""
GATHERFEED = """
@router.post("/research")
async def research(slug: str) -> dict:
    return {"slug": slug}
"""
MIGRATED = """
commands = app.queue("pages-plus-commands", Publish)


@commands.handler
async def publish(command: Publish) -> None:
    app.db.write("insert into pages (id) values (:id) on conflict (id) do nothing", id=command.id)


@commands.dead_letter_handler
async def report(letter) -> None:
    answer = httpx.get("http://gatherfeed/status", timeout=5)
    answer.raise_for_status()
"""


@pytest.fixture
def services(empty_folder: Path) -> Path:
    for name, text in (("brain", BRAIN), ("gatherfeed", GATHERFEED), ("pages-plus", MIGRATED)):
        folder = empty_folder / "services" / name
        folder.mkdir(parents=True)
        (folder / "main.py").write_text(text)
    pages = empty_folder / "services" / "pages-plus"
    (pages / "0001.sql").write_text("create table processed_events (event_id text primary key);")
    (pages / "test_publish.py").write_text(
        "async def test_a_page_that_is_ordered_twice_is_there_once(): deliver_twice()"
    )
    return empty_folder / "services"


@pytest.mark.spec("F-43")
def test_every_step_of_the_migration_reports_what_is_left(terminal: Terminal, services: Path) -> None:
    said = terminal("audit-services", "services", "--json")

    assert said.code == 1
    found = {(step["step"], each["service"], each["line"]) for step in said.told["steps"] for each in step["findings"]}
    assert {place for place in found if place[1] == "brain"} == {
        (1, "brain", 10),
        (1, "brain", 11),
        (1, "brain", 17),
        (2, "brain", 8),
        (3, "brain", 0),
        (4, "brain", 0),
        (5, "brain", 0),
        (6, "brain", 10),
        (6, "brain", 11),
        (7, "brain", 12),
        (8, "brain", 7),
        (9, "brain", 17),
        (10, "brain", 0),
    }
    assert len(said.told["steps"]) == 10
    assert {place for place in found if place[1] == "gatherfeed"} == {
        *((step, "gatherfeed", 0) for step in (3, 4, 5, 10)),
        (8, "gatherfeed", 2),
    }


@pytest.mark.spec("F-43")
def test_a_service_that_was_migrated_has_only_its_reads_listed(terminal: Terminal, services: Path) -> None:
    said = terminal("audit-services", "services", "--json")

    left = [each for step in said.told["steps"] for each in step["findings"] if each["service"] == "pages-plus"]
    assert [(each["step"], each["message"]) for each in left] == [(1, "report() calls GET of gatherfeed.")]


def test_people_get_the_place_and_the_way_out(terminal: Terminal, services: Path) -> None:
    words = terminal("audit-services", "services").words

    assert "brain/main.py:10: cycle() calls POST of gatherfeed, which is an action." in words
    assert "→ Send a command to the queue of gatherfeed." in words


def test_a_folder_without_services_is_refused(terminal: Terminal, empty_folder: Path) -> None:
    said = terminal("audit-services", ".")

    assert said.code == 2
    assert "has no services" in said.err
