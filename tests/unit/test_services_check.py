"""What `penstock check` and `penstock graph` say about services."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.unit.cli import Terminal

NEWSROOM = """
import penstock as ps

app = ps.App("newsroom")
desk = app.service("desk", tables="desk_", uses=["gatherfeed"])
gather = app.service("gatherfeed", tables="gf_", uses=["library"])
library = app.service("library", tables="lib_", infrastructure=True)


class Wanted(ps.Command, type="wanted"):
    keyword: str


class Found(ps.Event, type="found"):
    keyword: str


commands = gather.queue("gatherfeed-commands", Wanted)
events = desk.queue("desk-events", Found)


@commands.handler
async def research(wanted: Wanted) -> None:
    await gather.bindings["library"].post("/v1/pages")
    gather.db.write("insert into gf_research (keyword) values ('desk_notes')")
    events.send(Found(keyword=wanted.keyword))


@events.handler
async def note(found: Found) -> None:
    await desk.bindings["gatherfeed"].get("/v1/research")


@desk.cron("0 6 * * *", reason="a cycle a day")
async def order() -> None:
    commands.send(Wanted(keyword="llc"))


@gather.get("/v1/research", auth=ps.ServiceKey())
async def read() -> int:
    return 1
"""
BROKEN = {
    "an undeclared call": ('    await desk.bindings["library"].get("/v1/pages")', "does not declare it", "A11-03"),
    "a POST between business services": ('    await desk.bindings["gatherfeed"].post("/v1/x")', "is no GET", "A11-02"),
    "another service's table": ('    await desk.db.rows("select keyword from gf_research limit 1")', "gf_research", ""),
    "another service's table by a name": ("    await desk.db.rows(SQL)", "gf_research", ""),
    "a loose call": ("    await app.http().get(gather.url)", "the address of a service", "G4-36"),
}


def newsroom(folder: Path, text: str = NEWSROOM) -> None:
    (folder / "newsroom.py").write_text(text)


def services_of(terminal: Terminal, id: str = "services") -> list[str]:
    told = terminal("check", "newsroom.py", "--json").told
    return [each["message"] for each in told["checks"] if each["id"] == id and each["status"] == "fail"]


def test_services_that_keep_to_themselves_pass(terminal: Terminal, empty_folder: Path) -> None:
    newsroom(empty_folder)

    assert services_of(terminal) == []
    assert services_of(terminal, "command-queues") == []


@pytest.mark.spec("A11-02", "A11-03", "F-16", "G4-36")
@pytest.mark.parametrize("line, told", [each[:2] for each in BROKEN.values()], ids=list(BROKEN))
def test_what_a_service_may_not_do_is_found(terminal: Terminal, empty_folder: Path, line: str, told: str) -> None:
    sql = 'SQL = "update gf_research set keyword = keyword"\n'
    newsroom(empty_folder, f'{NEWSROOM}\n\n{sql}@desk.post("/v1/x")\nasync def broken() -> None:\n{line}\n')

    [found] = services_of(terminal)
    assert told in found


@pytest.mark.spec("A11-03", "G4-36")
def test_a_binding_that_is_removed_from_the_declaration_is_reported(terminal: Terminal, empty_folder: Path) -> None:
    newsroom(empty_folder, NEWSROOM.replace(', uses=["gatherfeed"]', ""))

    assert services_of(terminal) == ["Service 'desk' calls 'gatherfeed', and does not declare it."]


def test_a_declared_service_that_is_not_there_is_reported(terminal: Terminal, empty_folder: Path) -> None:
    newsroom(empty_folder, NEWSROOM.replace('uses=["library"]', 'uses=["library", "archive"]'))

    assert services_of(terminal) == ["Service 'gatherfeed' uses 'archive', and the app has no such service."]


@pytest.mark.spec("F-20")
def test_a_queue_of_commands_for_all_and_a_second_one_of_a_service_are_found(
    terminal: Terminal, empty_folder: Path
) -> None:
    more = 'class Archive(ps.Command, type="archive"):\n    id: int\n\n\n'
    shared = 'app.queue("commands", Archive)\n'
    newsroom(empty_folder, f"{NEWSROOM}\n\n{more}{shared}")
    assert services_of(terminal, "command-queues") == ["Queue 'commands' accepts commands, and belongs to no service."]

    newsroom(empty_folder, f'{NEWSROOM}\n\n{more}gather.queue("more", Archive)\n')
    [found] = services_of(terminal, "command-queues")
    assert "2 queues of commands: gatherfeed-commands, more" in found


@pytest.mark.spec("G4-21")
def test_a_command_that_another_service_carries_out_is_found_and_one_that_it_sends_is_not(
    terminal: Terminal, empty_folder: Path
) -> None:
    newsroom(empty_folder)
    assert services_of(terminal, "command-queues") == [], "desk sends the commands of gatherfeed"

    own, other = 'gather.db.write("insert into gf_research', 'desk.db.write("insert into desk_research'
    newsroom(empty_folder, NEWSROOM.replace(own, other))
    [found] = services_of(terminal, "command-queues")
    assert found == "A handler of queue 'gatherfeed-commands' of 'gatherfeed' uses the database of 'desk'."


def test_the_graph_shows_which_service_each_part_belongs_to(terminal: Terminal, empty_folder: Path) -> None:
    newsroom(empty_folder)

    told = terminal("graph", "newsroom.py", "--json").told
    [desk, gather, library] = told["services"]
    assert (desk["uses"], desk["crons"], desk["queues"]) == (["gatherfeed"], ["order"], ["desk-events"])
    assert (gather["queues"], gather["routes"]) == (["gatherfeed-commands"], ["GET /v1/research"])
    assert library["infrastructure"]
    edges = {(each["from"], each["to"]) for each in told["edges"]}
    assert ("queue:desk-events", "service:gatherfeed") in edges
    assert ("cron:order", "queue:gatherfeed-commands") in edges
    lines = terminal("graph", "newsroom.py").out.splitlines()
    assert '  subgraph service_gatherfeed["gatherfeed"]' in lines
    assert "  queue1 -.-> service_gatherfeed" in lines


def test_the_graph_is_drawn_as_svg(terminal: Terminal, empty_folder: Path) -> None:
    newsroom(empty_folder, NEWSROOM.replace('"/v1/research", auth', '"/v1/research", cache=1, auth'))

    assert terminal("graph", "newsroom.py", "--svg", "newsroom.svg").code == 0
    drawn = ElementTree.parse(empty_folder / "newsroom.svg").getroot()
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"newsroom", "desk", "gatherfeed", "gatherfeed-commands", "desk-events", "order"} <= set(texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) > 3
