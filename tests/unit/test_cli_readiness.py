"""What is asked of an app before it is let loose: `penstock check`, `smoke` and `trial`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli import PROGRAM, Terminal

LOOSE = """
import penstock as ps

app = ps.App("shop", require_trial=True)
db = app.db
PENDING = db.hot("select id from items where done_at is null order by rank desc limit :n")


class Found(ps.Event, type="found"):
    id: int


found = app.queue("found", Found, batch_wait=0)


async def something_to_do() -> bool:
    return not await db.exists("select 1 from sightings limit 1")


@app.cron("*/5 * * * *", reason="items come in slowly", when=something_to_do, ceiling=ps.Ceiling(rows_read=1_000))
async def look() -> None:
    for id in (1, 2, 3):
        db.write("insert into sightings (id) values (:id) on conflict do nothing", id=id)
        found.send(Found(id=id))


@found.handler
async def keep(event: Found) -> None:
    db.write("insert into items (id, rank) values (:id, :id) on conflict do nothing", id=event.id)


@found.dead_letter_handler
async def died(letter: ps.DeadLetter) -> None: ...


@app.trial.stage("look", within="10m", least=3)
async def looked(items: list[int]) -> list[int]:
    return await db.column("select id from sightings order by id limit 10")


@app.trial.stage("keep", within="10m", least=3)
async def kept(items: list[int]) -> list[int]:
    return await db.column("select id from items order by id limit 10")


@app.get("/v1/shop/status", cache=60)
async def status() -> dict[str, int]:
    return {"items": await db.count("items")}


async def site(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


web = app.http()
app.stand_in(web, "https://shop.example", make=lambda now: site, module="shop_standin")
"""
TABLES = """
create table sightings (id bigint primary key);
create table items (id bigint primary key, rank bigint not null, done_at text);
create index items_pending on items (rank desc) where done_at is null;
"""

DEPLOYMENT = """
[readiness]
owner = "shop team"
audience = "one buyer, weekly"
usd_expected = 0.5
"""


@pytest.fixture
def shop(empty_folder: Path) -> Path:
    (empty_folder / "migrations").mkdir()
    (empty_folder / "migrations" / "0001.sql").write_text(TABLES)
    (empty_folder / "penstock.toml").write_text(DEPLOYMENT)
    file = empty_folder / "shop.py"
    file.write_text(LOOSE)
    return file


@pytest.mark.spec("A13-01", "A13-02", "A13-06", "A4-08")
def test_an_app_that_is_ready_passes_every_check(terminal: Terminal, shop: Path) -> None:
    said = terminal("check", "shop.py", "--json")

    assert {each["id"]: each["status"] for each in said.told["checks"]} == dict.fromkeys(
        "fixed-batch singleton-name hot-queries undeclared-queues open-routes topology exit-condition ceiling "
        "rationale concurrency trial counting smoke owner expected-cost audience services command-queues".split(),
        "pass",
    ), said.told
    assert said.code == 0
    assert not (shop.parent / "shop.db").exists(), "checking touches no database of the app's"


@pytest.mark.spec("A2-03", "A13-01", "A13-02", "A3-10", "A13-06", "A1-28", "F-02", "F-03", "F-21", "F-22")
@pytest.mark.parametrize(
    "right, wrong, failed, told",
    [
        ("rank desc limit", "id desc limit", "hot-queries", "SCAN items"),
        (", when=something_to_do", "", "exit-condition", "'look'"),
        (", ceiling=ps.Ceiling(rows_read=1_000)", "", "ceiling", "'look'"),
        ("items come in slowly", "slow", "rationale", "'slow'"),
        ('reason="items come in slowly", ', "", "rationale", "'look' has no reason"),
        (
            '"found", Found, ',
            '"found", Found, parallel=2, ',
            "concurrency",
            "at most 2 handlers at once, and gives no reason",
        ),
        ("@found.dead_letter_handler", "", "topology", "'found-dlq' has no consumer"),
        (
            "@found.dead_letter_handler",
            'app.queue("plain")\n\n\n@found.dead_letter_handler',
            "topology",
            "'plain-dlq' has no consumer",
        ),
        ('"select 1 from sightings limit 1"', '"select count(*) from sightings"', "counting", "every row"),
        (
            """cache=60)
async def status() -> dict[str, int]:
    return {"items": await db.count("items")}""",
            """)
async def status() -> dict[str, int]:
    return {"items": await db.first(SIZE)}


SIZE = "select count(id) from items where rank > 0"
""",
            "counting",
            "select count(id) from items",
        ),
        ('@app.get("/v1/shop/status", cache=60)', "", "smoke", "no status route"),
        ("@found.handler", "", "topology", "has no handler for it"),
        ("found.send(Found(id=id))", "pass", "topology", "no code of the app sends one"),
        ("    id: int\n", "    id: int\n    html: str = ''\n", "topology", "found.html looks like a whole record"),
        ("@app.trial.stage", "@(lambda *_, **__: lambda f: f)", "trial", "declares none"),
    ],
)
def test_what_is_missing_is_named(
    terminal: Terminal, shop: Path, right: str, wrong: str, failed: str, told: str
) -> None:
    assert right in LOOSE
    shop.write_text(LOOSE.replace(right, wrong))

    said = terminal("check", "shop.py", "--json")

    found = [each for each in said.told["checks"] if each["status"] == "fail"]
    assert {each["id"] for each in found} == {failed}
    assert told in found[0]["message"]
    assert found[0]["fix"]
    assert said.code == 1
    assert told.strip("'") in terminal("check", "shop.py").words


@pytest.mark.spec("A13-02", "F-03")
@pytest.mark.parametrize(
    "line, failed", [("owner", "owner"), ("audience", "audience"), ("usd_expected", "expected-cost")]
)
def test_a_deployment_that_does_not_say_who_reads_pays_and_answers_is_not_ready(
    terminal: Terminal, shop: Path, line: str, failed: str
) -> None:
    (shop.parent / "penstock.toml").write_text("\n".join(x for x in DEPLOYMENT.splitlines() if not x.startswith(line)))

    said = terminal("check", "shop.py", "--json")

    (found,) = (each for each in said.told["checks"] if each["status"] == "fail")
    assert (said.code, found["id"]) == (1, failed)
    assert f"`{line} = " in found["fix"]


def test_routes_that_answer_anyone_are_listed_and_do_not_fail(terminal: Terminal, shop: Path) -> None:
    opened = '@app.post("/hooks/{id}", auth=None)\nasync def hook(id: int) -> None: ...\n\n\n@app.get("/v1/shop/status"'
    shop.write_text(LOOSE.replace('@app.get("/v1/shop/status"', opened))

    said = terminal("check", "shop.py", "--json")

    (found,) = (each for each in said.told["checks"] if each["status"] == "note")
    assert (said.code, found["id"]) == (0, "open-routes")
    assert found["message"].startswith("POST /hooks/{id} answers anyone")
    assert found["file"].endswith("shop.py")
    assert "POST /hooks/{id}" in terminal("check", "shop.py").words


def test_a_bounded_count_is_no_count_of_a_table(terminal: Terminal, shop: Path) -> None:
    bounded = '"select count(*) > 500 from (select 1 from sightings limit 501)"'
    shop.write_text(LOOSE.replace('"select 1 from sightings limit 1"', bounded))

    assert terminal("check", "shop.py").code == 0


@pytest.mark.spec("A13-02", "A1-28")
def test_a_start_logs_the_crons_their_expected_cost_and_dead_letter_queues_without_consumer(
    terminal: Terminal, shop: Path
) -> None:
    shop.write_text(LOOSE.replace("@found.dead_letter_handler", ""))
    assert terminal("trial", "shop.py", "--standins", "--items", "3").code == 0

    command = [str(PROGRAM), "run", "shop.py", "--until-idle"]
    said = subprocess.run(command, cwd=shop.parent, capture_output=True, text=True, check=True, timeout=60).stderr

    assert "Crons: look (*/5 * * * *). Expected: 0.5 USD a month." in said
    assert "No handler takes dead letters of found-dlq" in said


def test_an_app_that_is_not_let_loose_is_not_asked_for_a_ceiling(terminal: Terminal, shop: Path) -> None:
    shop.write_text(LOOSE.replace(", require_trial=True", "").replace(", ceiling=ps.Ceiling(rows_read=1_000)", ""))

    said = terminal("check", "shop.py", "--json")

    assert said.code == 0
    assert {each["status"] for each in said.told["checks"]} == {"pass", "skip"}


@pytest.mark.spec("A13-04", "A13-05")
def test_a_trial_follows_the_same_items_and_is_noted(terminal: Terminal, shop: Path) -> None:
    said = terminal("trial", "shop.py", "--standins", "--items", "3", "--json")

    assert said.told == {
        "passed": True,
        "stages": [
            {"stage": "look", "passed": True, "items": 3, "of": 3, "least": 3},
            {"stage": "keep", "passed": True, "items": 3, "of": 3, "least": 3},
        ],
    }
    assert said.code == 0
    assert terminal("run", "shop.py", "--until-idle").code == 0


@pytest.mark.spec("A13-04", "A13-05", "G2-40", "F-04")
def test_a_stage_that_lets_nothing_through_fails_by_its_name_and_the_app_is_not_let_loose(
    terminal: Terminal, shop: Path
) -> None:
    shop.write_text(LOOSE.replace("values (:id, :id)", "values (:id + 100, 1)"))

    said = terminal("trial", "shop.py", "--standins", "--items", "3")

    assert said.code == 1
    assert "Of 3 items 0 passed stage keep; it needs 3" in said.words
    refused = terminal("run", "shop.py", "--until-idle", "--standins")
    assert refused.code != 0


def test_an_app_without_a_trial_says_so(terminal: Terminal, empty_folder: Path) -> None:
    (empty_folder / "bare.py").write_text("import penstock as ps\napp = ps.App('bare')\n")

    said = terminal("trial", "bare.py")

    assert said.code == 4
    assert "declares no trial" in said.err


@pytest.mark.spec("A13-03", "A14-01", "A14-08")
def test_smoke_asks_every_status_route(terminal: Terminal, shop: Path) -> None:
    said = terminal("smoke", "shop.py", "--json")

    assert said.code == 0, said.told
    assert [each["route"] for each in said.told["routes"]] == ["/health", "/health/deep", "/v1/shop/status"]


@pytest.mark.spec("A13-03")
def test_a_route_that_is_down_fails_by_its_name(terminal: Terminal, shop: Path) -> None:
    shop.write_text(LOOSE.replace('await db.count("items")', 'await db.count("nothing")'))

    said = terminal("smoke", "shop.py")

    assert said.code == 1
    assert "fail /v1/shop/status" in said.words
    assert "pass /health" in said.words
