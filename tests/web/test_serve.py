"""`penstock serve`: it listens where it may, says where and with which token, and ends cleanly."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.extent import patient
from tests.unit.cli import environ

PROGRAM = Path(sys.executable).with_name("penstock")
SHOP = """
import penstock as ps

app = ps.App("shop")
jobs = app.queue("jobs")


@app.post("/v1/jobs/{number}")
async def start(number: int) -> str:
    return jobs.send({"number": number})
"""
PUSH = "/client/v4/accounts/local/queues/jobs/messages"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@contextmanager
def serving(
    folder: Path, *arguments: str, ends: signal.Signals = signal.SIGTERM, **settings: str
) -> Iterator[dict[str, Any]]:
    """A server with what it said at its start, and its exit code once it has ended."""
    command = [str(PROGRAM), "serve", *arguments, "--port", "0", "--json"]
    process = subprocess.Popen(
        command, cwd=folder, env=environ() | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line else {"failed": process.communicate()[1]}
        assert "failed" not in told, told
        yield told
        process.send_signal(ends)
        told["err"] = process.communicate(timeout=patient(30))[1]
        told["code"] = process.returncode
    finally:
        process.kill()
        process.wait()


def ended(folder: Path, *arguments: str, **settings: str) -> tuple[int, dict[str, Any]]:
    """How a server that cannot start ends, and what it says about it."""
    command = [str(PROGRAM), "serve", *arguments, "--json"]
    done = subprocess.run(
        command, cwd=folder, env=environ() | settings, capture_output=True, text=True, timeout=patient(60), check=False
    )
    assert done.stdout == ""
    return done.returncode, json.loads(done.stderr)["error"]


def test_a_token_made_for_this_run_is_printed_once_and_works(folder: Path) -> None:
    with serving(folder, "shop.py") as told, httpx2.Client(base_url=told["url"], trust_env=False) as client:
        health = client.get("/health")
        without = client.post(PUSH, json={"body": 1})
        pushed = client.post(PUSH, json={"body": 1}, headers={"authorization": f"Bearer {told['token']}"})

    assert health.json()["service"] == "shop"
    assert (without.status_code, pushed.status_code) == (401, 200)
    assert len(told["token"]) >= 40
    assert (told["code"], told["err"]) == (0, "")
    assert not list(folder.glob("*-worker-*"))


@pytest.mark.parametrize("ends, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_the_code_that_belongs_to_it(folder: Path, ends: signal.Signals, code: int) -> None:
    with serving(folder, "shop.py", ends=ends, PENSTOCK_TOKEN="secret") as told:
        assert "token" not in told

    assert (told["code"], told["err"]) == (code, "")


def test_a_database_is_served_without_its_code(folder: Path) -> None:
    subprocess.run(
        [PROGRAM, "run", "shop.py", "--until-idle"], cwd=folder, env=environ(), check=True, capture_output=True
    )
    headers = {"authorization": "Bearer secret"}
    with (
        serving(folder, PENSTOCK_TOKEN="secret") as told,
        httpx2.Client(base_url=told["url"], trust_env=False, headers=headers) as client,
    ):
        pushed = client.post(PUSH, json={"body": 1})

    assert pushed.status_code == 200, pushed.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_a_token_only_this_machine_is_served(folder: Path, host: str) -> None:
    code, error = ended(folder, "shop.py", "--host", host, "--port", "0")

    assert code == 2
    assert "PENSTOCK_TOKEN" in error["message"]


def test_a_port_that_is_taken_is_reported_with_the_way_out(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, error = ended(folder, "shop.py", PENSTOCK_PORT=port)

    assert code == 2
    assert port in error["message"]
    assert "--port" in error["message"]


def test_a_database_that_cannot_be_opened_ends_it_with_3(folder: Path) -> None:
    code, error = ended(folder, "shop.py", "--port", "0", PENSTOCK_DATABASE="nowhere/shop.db")

    assert (code, error["code"]) == (3, "store_unavailable")


def post(told: dict[str, Any], path: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
    authorized = {"Authorization": f"Bearer {told['token']}", **headers}
    return httpx2.post(f"{told['url']}{path}", json=body, headers=authorized, timeout=patient(30))


@pytest.mark.fault("F02")
def test_a_push_whose_answer_was_lost_with_the_server_is_one_message_when_it_is_sent_again(folder: Path) -> None:
    key = {"Idempotency-Key": "order 17"}
    with (
        serving(folder, "shop.py", PENSTOCK_CRASH_AT="send.after_commit=kill") as told,
        pytest.raises(httpx2.HTTPError),
    ):
        post(told, PUSH, {"body": {"n": 1}}, **key)

    with serving(folder, "shop.py") as told:
        answer = post(told, PUSH, {"body": {"n": 1}}, **key)
        waiting = post(told, f"{PUSH}/pull", {"batch_size": 10}).json()["result"]["messages"]

    assert answer.status_code == 200
    assert answer.json()["result"]["duplicate"] is True
    assert len(waiting) == 1


@pytest.mark.fault("F02")
def test_a_route_whose_answer_was_lost_with_the_server_has_one_effect_and_repeats_its_answer(folder: Path) -> None:
    key = {"Idempotency-Key": "job 17"}
    with (
        serving(folder, "shop.py", PENSTOCK_CRASH_AT="send.after_commit=kill") as told,
        pytest.raises(httpx2.HTTPError),
    ):
        post(told, "/v1/jobs/7", {}, **key)

    with serving(folder, "shop.py") as told:
        answers = [post(told, "/v1/jobs/7", {}, **key) for _ in range(2)]
        (waiting,) = post(told, f"{PUSH}/pull", {"batch_size": 10}).json()["result"]["messages"]

    assert [answer.json()["result"] for answer in answers] == [waiting["id"]] * 2
    assert {answer.headers.get("idempotent-replayed") for answer in answers} == {"true"}


@pytest.mark.fault("F30")
@pytest.mark.spec("A14-03")
def test_a_pull_whose_answer_was_lost_gives_the_same_leases_to_the_same_request(folder: Path) -> None:
    wanted = {"batch_size": 10, "visibility_timeout_ms": 600_000, "request_id": "client 3, request 8"}
    with serving(folder, "shop.py", PENSTOCK_CRASH_AT="pull.after_commit=kill") as told:
        post(told, PUSH, {"body": {"n": 1}})
        with pytest.raises(httpx2.HTTPError):
            post(told, f"{PUSH}/pull", wanted)

    with serving(folder, "shop.py") as told:
        nobody_elses = post(told, f"{PUSH}/pull", {"batch_size": 10}).json()["result"]["messages"]
        (mine,) = post(told, f"{PUSH}/pull", wanted).json()["result"]["messages"]
        acked = post(told, f"{PUSH}/ack", {"acks": [{"lease_id": mine["lease_id"]}]}).json()["result"]

    assert nobody_elses == []
    assert acked["ackCount"] == 1
