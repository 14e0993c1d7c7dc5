"""`penstock check`: what is wrong is named with its file, its line and the way out; what is right passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli import Terminal

START = """
import asyncio
import urllib.request

import penstock as ps

app = ps.App("shop")
web = app.http()
store = app.pace("store.example")
SHAPE = ["a", "b"]
"""
LOOPS = {
    "a client in a loop": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    for item in SHAPE:
        await web.get(f"https://store.example/{item}")  # here
""",
    "a library in a loop": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    while SHAPE:
        urllib.request.urlopen("https://store.example/")  # here
""",
    "all at once": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    await asyncio.gather(*(web.get(f"https://store.example/{item}") for item in SHAPE))  # here
""",
    "in a function that is called in the loop": """
async def fetch(item: str) -> None:
    await web.get(f"https://store.example/{item}")  # here


@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    for item in SHAPE:
        await fetch(item)
""",
    "a client made on the spot": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    async with app.http() as client:
        for item in SHAPE:
            await client.get(f"https://store.example/{item}")  # here
""",
}
FINE = {
    "one call whose answer is gone through": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    for item in (await web.get("https://store.example/")).json():
        print(item)
""",
    "one call": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    await web.get("https://store.example/chart")
""",
    "a permit around each call": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    for item in SHAPE:
        async with store.permit():
            await web.get(f"https://store.example/{item}")
""",
    "a loop over the database": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    for item in SHAPE:
        app.db.write("insert into items (name) values (:name)", name=item)
        print(item, {}.get(item))
""",
    "meant as it is": """
@app.cron("*/5 * * * *", reason="charts move slowly")
async def crawl() -> None:
    for item in SHAPE:
        await web.get(f"https://store.example/{item}")  # penstock: fixed batch
""",
    "a handler": """
class Found(ps.Event, type="found"):
    name: str


found = app.queue("found")


@found.handler(Found)
async def keep(_found: Found) -> None:
    for item in SHAPE:
        await web.get(f"https://store.example/{item}")
""",
}
BRAIN = """
class Brain(ps.Object, singleton=True):
    async def think(self) -> None: ...


class Counter(ps.Object):
    async def add(self) -> None: ...


brains, counters = app.object(Brain), app.object(Counter)


async def main(name: str) -> None:
    await counters[name].add()
    await brains["main"].think()
    await brains.get("main", hint="enam").think()
"""
RAW = '    await brains["0198c1d2f3a47b5c8d9e0f1a2b3c4d5e"].think()  # here\n'
LATE = "    await brains.get(name).think()  # here\n"


def line_of_the_mark(file: Path) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if "# here" in line)


@pytest.mark.spec("A4-16", "F-05")
@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
def test_a_cron_task_that_calls_a_service_for_each_of_a_batch_is_named(
    terminal: Terminal, empty_folder: Path, code: str
) -> None:
    file = empty_folder / "shop.py"
    file.write_text(START + code)

    said = terminal("check", "shop.py", "--json")

    assert (said.code, said.told["passed"]) == (1, False)
    [failed] = [each for each in said.told["checks"] if each["status"] == "fail"]
    assert list(failed) == ["id", "name", "status", "file", "line", "message", "fix"]
    assert (failed["id"], failed["line"]) == ("fixed-batch", line_of_the_mark(file))
    assert Path(failed["file"]).name == "shop.py"
    assert "'crawl'" in failed["message"]
    assert "controller" in failed["fix"]


@pytest.mark.spec("A4-16")
@pytest.mark.parametrize("code", FINE.values(), ids=FINE)
def test_what_makes_no_fixed_batch_passes(terminal: Terminal, empty_folder: Path, code: str) -> None:
    (empty_folder / "shop.py").write_text(START + code)

    said = terminal("check", "shop.py", "--json")

    assert (said.code, said.told["passed"]) == (0, True), said.told
    assert [each["id"] for each in said.told["checks"] if each["status"] == "pass"] == [
        "fixed-batch",
        "singleton-name",
        "hot-queries",
        "undeclared-queues",
        "services",
        "command-queues",
        "rationale",
        "concurrency",
        "open-routes",
    ]


@pytest.mark.spec("A5-02", "F-15")
@pytest.mark.parametrize("code", [RAW, LATE], ids=["a raw id", "a name that comes late"])
def test_a_singleton_that_is_addressed_by_another_name_is_named(
    terminal: Terminal, empty_folder: Path, code: str
) -> None:
    file = empty_folder / "shop.py"
    file.write_text(START + BRAIN + code)

    said = terminal("check", "shop.py", "--json")

    [failed] = [each for each in said.told["checks"] if each["status"] == "fail"]
    assert (said.code, failed["id"], failed["line"]) == (1, "singleton-name", line_of_the_mark(file))
    assert failed["message"].startswith("Brain is a singleton")
    assert failed["fix"] == 'Write `brains["main"]`.'
    assert "Brain is a singleton" in terminal("check", "shop.py").words


@pytest.mark.spec("A5-02")
def test_a_singleton_by_its_name_and_others_by_any_pass(terminal: Terminal, empty_folder: Path) -> None:
    (empty_folder / "shop.py").write_text(START + BRAIN)

    assert terminal("check", "shop.py").code == 0
