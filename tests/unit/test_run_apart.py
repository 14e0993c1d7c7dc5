"""`penstock run --apart` with real processes: each service has a database and a port, and both survive a kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.sockets import free_port

SECONDS = 60.0
NEWSROOM = """
import penstock as ps

app = ps.App("newsroom")
desk = app.service("desk", tables="desk_", uses=["gatherfeed"], migrations="migrations")
gather = app.service("gatherfeed", tables="gf_", migrations="none")


class Wanted(ps.Command, type="wanted"):
    keyword: str


class Found(ps.Event, type="found"):
    keyword: str


commands = gather.queue("gatherfeed-commands", Wanted)
events = desk.queue("desk-events", Found)


@commands.handler
async def research(wanted: Wanted) -> None:
    events.send(Found(keyword=wanted.keyword))


@events.handler
async def note(found: Found) -> None:
    about = await desk.bindings["gatherfeed"].get(f"/v1/about/{found.keyword}")
    desk.db.write("insert into desk_notes (keyword, about) values (:keyword, :about)", keyword=found.keyword, about=about)


@gather.get("/v1/about/{word}", auth=ps.ServiceKey())
async def about(word: str) -> str:
    return f"about {word}"


@desk.post("/v1/orders", auth=None)
async def order(keyword: str) -> str:
    return commands.send(Wanted(keyword=keyword))


@desk.get("/v1/notes", auth=None)
async def notes() -> list[str]:
    return await desk.db.column("select about from desk_notes order by keyword limit 100")
"""


def until_notes(url: str, expected: list[str]) -> None:
    until, told = time.monotonic() + SECONDS, None
    while time.monotonic() < until:
        try:
            told = httpx2.get(f"{url}/v1/notes", timeout=SECONDS).json()["result"]
        except httpx2.HTTPError:
            told = None  # its worker is being started
        if told == expected:
            return
        time.sleep(0.1)
    raise AssertionError(f"{told} instead of {expected}")


@pytest.mark.slow
def test_services_apart_work_together_and_go_on_after_a_kill(tmp_path: Path) -> None:
    ports = {"desk": free_port(), "gatherfeed": free_port()}
    (tmp_path / "newsroom.py").write_text(NEWSROOM)
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_desk.sql").write_text(
        "create table desk_notes (keyword text primary key, about text not null);"
    )
    (tmp_path / "penstock.toml").write_text(
        "".join(f"[services.{name}]\nport = {port}\n" for name, port in ports.items())
    )
    url = f"http://127.0.0.1:{ports['desk']}"
    command = [sys.executable, "-m", "penstock", "run", "newsroom.py", "--apart"]
    for keyword, before in (("a", []), ("b", ["about a"])):
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            until_notes(url, before)
            assert httpx2.post(f"{url}/v1/orders?keyword={keyword}", timeout=SECONDS).status_code == 200
            if keyword == "b":
                until_notes(url, ["about a", "about b"])
                refused = httpx2.get(f"http://127.0.0.1:{ports['gatherfeed']}/v1/about/x", timeout=SECONDS)
                assert refused.status_code == 401
                process.send_signal(signal.SIGTERM)
                assert process.wait(SECONDS) == 0
            else:
                until_notes(url, ["about a"])
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert {path.name for path in tmp_path.glob("*.db")} == {"desk.db", "gatherfeed.db"}


def test_a_port_that_is_taken_is_reported_with_the_service_that_needs_it(tmp_path: Path) -> None:
    (tmp_path / "newsroom.py").write_text(NEWSROOM)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "penstock.toml").write_text(
            f"[services.desk]\nport = {free_port()}\n[services.gatherfeed]\nport = {port}\n"
        )
        command = [sys.executable, "-m", "penstock", "run", "newsroom.py", "--apart"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)

    assert ended.returncode != 0
    assert f"port {port}: Address already in use" in ended.stderr
    assert "`[services.gatherfeed]` with `port`" in ended.stderr
