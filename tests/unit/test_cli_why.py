"""`penstock why`: each thing that can hold a message back is named, with the time it ends where that is known."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.cli.reference import load
from penstock.contracts.workers import WorkerRow
from penstock.model.pacing import interval_micros
from penstock.model.row import Row, row_type
from penstock.views.queues import LiveWorkers, QueueRow
from penstock.views.why import COUNTED_MAX, NOT_BEGUN, PULLED, Cause, Crowd, held, obstacles
from tests.extent import patient
from tests.unit.cli import Terminal, shop_in
from tests.unit.test_cli_dead import a_worker, listed
from tests.unit.test_cli_queues import worked

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
STALLED = """
import asyncio
from pathlib import Path

import penstock as ps

BOTH_STORES = True

app = ps.App("shop")


class Sale(ps.Event, type="sale"):
    item: str


sales = app.queue("sales", Sale, retries=2, parallel=1)
notes = app.queue("notes", Sale)


@sales.handler
async def sell(sale: Sale) -> None:
    Path("began").touch()
    while sale.item == "slow" and not Path("go").exists():
        await asyncio.sleep(0.01)
    if sale.item == "flaky":
        raise ValueError("no [bold]answer[/]\\n\\x1b[31m, token=hunter2hunter2")
"""


def sent(item: str, queue: str = "sales", **options: Any) -> str:
    """The id of a message in the app of `shop.py`."""
    app = load("shop.py")
    module: Any = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]

    async def send() -> str:
        async with app, app.unit():
            return app.queues[queue].send(module.Sale(item=item), **options)

    return asyncio.run(send())


def why(terminal: Terminal, id: str) -> dict[str, Any]:
    said = terminal("why", id, "shop.db", "--json")
    assert said.code == 0, said
    told: dict[str, Any] = said.told
    assert list(told)[:5] == ["id", "state", "reason", "when", "queue"]
    assert told["id"] == id
    return told


@pytest.fixture
def stalled(empty_folder: Path) -> Path:
    shop_in(empty_folder, STALLED)
    return empty_folder


# -- messages that wait -----------------------------------------------------------------------------------


def test_a_message_without_a_worker_says_so(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp")

    told = why(terminal, id)
    assert (told["state"], told["when"], told["queue"], told["ahead"]) == ("unserved", None, "sales", 0)
    assert told["besides"] == told["others"] == []

    said = terminal("why", id.replace("-", "")).words
    assert "No process serves queue sales. Start one with: penstock run APP" in said
    assert "not known" in said


@pytest.mark.spec("A1-29")
def test_a_delay_has_an_end_and_its_next_obstacle_is_reported_too(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp", delay=600)
    terminal("queues", "pause", "sales")

    told = why(terminal, id)

    assert (told["state"], told["when"], told["ahead"]) == ("delayed", told["due"], None)
    assert [each["state"] for each in told["besides"]] == ["paused", "unserved"]
    assert "in 9 min" in terminal("why", id).out
    assert "Also paused: Queue sales is paused. Resume with: penstock queues resume sales" in terminal("why", id).words


def test_a_failure_is_reported_with_its_attempt_and_its_error(terminal: Terminal, stalled: Path) -> None:
    id = sent("flaky")
    worked_once()

    told = why(terminal, id)

    assert (told["state"], told["attempt"], told["attempts_max"]) == ("backing_off", 2, 3)
    assert told["when"] == told["due"]
    assert "waits for attempt 2 of 3. The last error: ValueError: no [bold]answer[/]" in told["reason"]
    said = terminal("why", id)
    assert "hunter2" not in said.out + told["reason"]
    assert "\x1b" not in said.out


def worked_once() -> None:
    asyncio.run(load("shop.py").run(until_idle=True))


def test_a_message_that_runs_and_the_one_behind_it_are_distinguished(terminal: Terminal, stalled: Path) -> None:
    slow = sent("slow")
    behind = sent("lamp")
    with a_worker():
        until = time.monotonic() + patient(30)
        while not Path("began").exists() and time.monotonic() < until:
            time.sleep(0.01)

        runs, waits = why(terminal, slow), why(terminal, behind)
        shown = terminal("why", slow).words
        Path("go").touch()

    assert (runs["state"], runs["when"]) == ("running", None)
    assert runs["worker"]["pid"] > 0
    assert runs["since"] >= runs["sent_at"]
    assert "It is cancelled after 900 s." in shown
    assert waits["state"] == "busy"
    assert waits["reason"] == "All slots of queue sales are busy: 1."


def test_a_worker_that_is_gone_is_named(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp")
    changed("update penstock_messages set worker = 77, due = due + 1000000000")

    told = why(terminal, id)

    assert told["state"] == "worker_died"
    assert told["reason"].startswith("Worker 77 had claimed it and died")


def test_a_message_that_a_client_pulled_says_until_when(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp")
    app = load("shop.py")

    async def pull() -> None:
        async with app:
            await (await app.desk()).pull("sales", limit=1, lease_seconds=60)

    asyncio.run(pull())

    told = why(terminal, id)
    assert told["state"] == "pulled"
    assert told["when"] > told["sent_at"]


def changed(sql: str) -> None:
    with closing(apsw.Connection("shop.db")) as connection:
        connection.execute(sql)


# -- messages that have ended -----------------------------------------------------------------------------


def test_what_is_done_is_known_from_the_history(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp")
    worked_once()

    told = why(terminal, id)

    assert (told["state"], told["attempt"], told["service"]) == ("done", 1, "shop")
    assert told["when"] >= told["since"]


def test_what_was_sent_under_a_key_is_known_without_a_history(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp", unique="monday")
    worked_once()
    for part in shop.glob("shop.db-history*"):
        part.unlink()

    assert why(terminal, id)["state"] == "done"


def test_a_dead_letter_is_named_with_its_reason_and_what_was_done_about_it(terminal: Terminal, shop: Path) -> None:
    worked("cursed", "cursed")
    first, second = listed(terminal)

    told = why(terminal, first["event_id"])
    assert (told["state"], told["letter"], told["letter_reason"]) == ("dead", 1, "permanent")
    assert told["reason"] == (
        "It is dead letter 1 (permanent: Gone: nobody sells that at shop.py:17). Retry it with: penstock dead replay 1"
    )

    terminal("dead", "discard", "2", "--reason", "test data")
    assert why(terminal, second["event_id"])["reason"].endswith("It was discarded: test data")


def test_a_letter_that_went_back_leads_to_its_replay(terminal: Terminal, shop: Path) -> None:
    worked("cursed")
    (letter,) = listed(terminal)
    terminal("dead", "replay", "1")

    told = why(terminal, letter["event_id"])
    assert (told["state"], told["resolution"]) == ("dead", "replayed")
    assert why(terminal, told["replayed_as"])["state"] == "unserved"


def test_one_id_in_two_queues_has_two_answers(terminal: Terminal, stalled: Path) -> None:
    id = "019a8c3e-7f00-7abc-8def-0123456789ab"
    sent("lamp", id=id)
    worked_once()
    sent("lamp", "notes", id=id)

    told = why(terminal, id)

    assert (told["queue"], told["state"]) == ("notes", "unserved")
    assert [(other["queue"], other["state"]) for other in told["others"]] == [("sales", "done")]
    assert terminal("why", id).out.count(f"sale {id} in queue") == 2


def test_what_is_not_known_ends_with_4_and_what_is_no_id_with_2(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp")
    terminal("queues", "purge", "sales", "--yes")

    said = terminal("why", id, "--json")
    assert (said.code, said.out, said.error["code"]) == (4, "", "not_found")
    assert "purged" in said.error["hint"]
    assert terminal("why", "12").code == 2


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_terminal(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    id = sent("lamp", delay=60)
    monkeypatch.setenv("COLUMNS", str(width))

    assert max(map(len, terminal("why", id).out.splitlines())) <= width


def test_looking_changes_nothing(terminal: Terminal, shop: Path) -> None:
    id = sent("lamp")
    before = (shop / "shop.db").read_bytes()

    assert why(terminal, id)

    assert (shop / "shop.db").read_bytes() == before


# -- the decisions ----------------------------------------------------------------------------------------

WORKER = WorkerRow(7, "here", 4_711, NOW)
ONE, TWO, NONE = LiveWorkers([WORKER]), LiveWorkers([WORKER, WORKER]), LiveWorkers()
ALONE = Crowd(ahead=0, ready=1, first_due=NOW - SECOND, leased=0, suspects=0)


def a_row(**facts: Any) -> Row:
    usual = {
        "seq": 1,
        "queue": "sales",
        "type": "sale",
        "due": NOW - SECOND,
        "worker": None,
        "attempts": 0,
        "rounds": 0,
        "error_class": None,
        "traceback": None,
        "error_message": None,
    }
    values = usual | facts
    return row_type(tuple(values))(values.values())


def a_queue(**facts: Any) -> QueueRow:
    usual = QueueRow(
        "sales", 0, 2, 30.0, 600.0, 900.0, 3, 1, 0.0, 4, None, None, None, 0, None, None, None, None, None, None, 0
    )
    return usual._replace(**facts)


def states(row: Row, queue: QueueRow, crowd: Crowd = ALONE, able: LiveWorkers = ONE) -> list[str]:
    return [finding.state for finding in obstacles(row, queue, crowd, ONE, able, NOW)]


@pytest.mark.parametrize(
    "facts, queue, crowd, expected",
    [
        ({}, {}, {}, ["ready"]),
        ({}, {}, {"ahead": 3}, ["behind"]),
        ({}, {"paused": 1}, {"ahead": 3, "leased": 4}, ["paused"]),
        ({}, {}, {"leased": 3}, ["ready"]),
        ({}, {}, {"leased": 4, "ahead": 3}, ["busy"]),
        ({}, {"parallel_tuned": 8}, {"leased": 4}, ["ready"]),
        ({}, {"batch": 10}, {"leased": 39}, ["ready"]),
        ({}, {"batch": 10}, {"leased": 40}, ["busy"]),
        ({}, {}, {"suspects": 1, "leased": 1}, ["waiting_for_suspect"]),
        ({}, {"rate": 2.0, "next_start": NOW + SECOND}, {}, ["rate_limited"]),
        ({}, {"rate": 2.0, "rate_tuned": 0.0, "next_start": NOW + SECOND}, {}, ["ready"]),
        ({}, {"rate_tuned": 2.0}, {}, ["ready"]),
        ({}, {"rate_tuned": 2.0, "next_start": NOW + SECOND}, {"leased": 4}, ["rate_limited", "busy"]),
        ({}, {"batch": 10, "batch_wait_seconds": 5.0}, {}, ["batching"]),
        ({}, {"batch": 10, "batch_wait_seconds": 0.5}, {}, ["ready"]),
        ({}, {"batch": 10, "batch_wait_seconds": 5.0}, {"ahead": 3, "ready": 10}, ["behind"]),
        ({}, {"batch": 10, "batch_wait_seconds": 5.0}, {"ahead": 10, "ready": 12}, ["batching"]),
        ({"due": NOW + SECOND}, {}, {"leased": 4}, ["delayed"]),
        ({"due": NOW + SECOND, "rounds": 1}, {}, {}, ["delayed"]),
        (
            {"due": NOW + SECOND, "error_class": "ValueError", "attempts": 1},
            {"paused": 1},
            {},
            ["backing_off", "paused"],
        ),
    ],
)
def test_what_holds_a_message_back_is_found(
    facts: dict[str, Any], queue: dict[str, Any], crowd: dict[str, Any], expected: list[str]
) -> None:
    assert states(a_row(**facts), a_queue(**queue), ALONE._replace(**crowd)) == expected


def test_more_processes_have_more_slots() -> None:
    crowd = ALONE._replace(leased=7)

    assert states(a_row(), a_queue(), crowd, able=ONE) == ["busy"]
    assert states(a_row(), a_queue(), crowd, able=TWO) == ["ready"]


def test_an_unknown_type_is_reported() -> None:
    assert states(a_row(), a_queue(), able=NONE) == ["unknown_type"]


def test_a_rate_says_when_one_at_this_place_begins() -> None:
    crowd = ALONE._replace(ahead=3)
    (finding,) = obstacles(a_row(), a_queue(rate=2.0, next_start=NOW + SECOND), crowd, ONE, ONE, NOW)

    assert finding.when == NOW + SECOND + 3 * interval_micros(2.0)
    assert finding.reason == "Queue sales starts at most 2 a second, and 3 messages are claimed first."


def test_a_batch_says_when_it_goes_without_more() -> None:
    (finding,) = obstacles(a_row(), a_queue(batch=10, batch_wait_seconds=5.0), ALONE, ONE, ONE, NOW)

    assert finding == Cause("batching", "Its batch has 1 of 10 messages and waits for more.", NOW + 4 * SECOND)


def test_a_count_that_was_cut_says_so() -> None:
    (finding,) = obstacles(a_row(), a_queue(), ALONE._replace(ahead=COUNTED_MAX), ONE, ONE, NOW)

    assert finding.reason == "10,000 or more messages of queue sales are claimed first."


def test_a_push_back_without_a_charge_is_no_failure() -> None:
    row = a_row(due=NOW + SECOND, error_class="Throttled", error_message="slow down")
    (finding,) = obstacles(row, a_queue(), ALONE, ONE, ONE, NOW)

    assert finding.reason.startswith("It was released uncharged and waits for attempt 1 of 3.")


@pytest.mark.parametrize(
    "worker, alive, started, expected",
    [
        (7, True, NOW - SECOND, "running"),
        (7, True, NOT_BEGUN, "claimed"),
        (7, None, None, "running"),
        (7, False, NOW - SECOND, "worker_died"),
        (PULLED, False, None, "pulled"),
    ],
)
def test_the_owner_is_named(worker: int, alive: bool | None, started: int | None, expected: str) -> None:
    row = a_row(worker=worker, due=NOW + SECOND)

    assert held(row, WORKER if worker else None, alive, started, a_queue(), NOW).state == expected


def test_a_lapsed_pull_has_no_end_to_wait_for() -> None:
    assert held(a_row(worker=PULLED), None, False, None, a_queue(), NOW).when is None
