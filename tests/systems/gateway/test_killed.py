"""A gateway that is killed during calls: no reservation is lost, and the budget still holds."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import apsw
import httpx2
import pytest

READY_SECONDS = 60
CALLS = 6


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)\.", process.stderr.readline()):
            return int(found[1])
    raise AssertionError("the gateway did not say where it serves")


def start(folder: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "penstock", "run", "gateway", "--port", "0"]
    environ = os.environ | {"PENSTOCK_TOKEN": "token", "SLOW_KEY": "key"}
    environ.pop("PENSTOCK_STANDINS", None)
    process = subprocess.Popen(
        command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    return process, port_of(process)


def kill(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()


@pytest.mark.slow
def test_a_kill_during_calls_loses_no_reservation(tmp_path: Path) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # a provider that accepts calls and never answers
    port = silent.getsockname()[1]
    (tmp_path / "penstock.toml").write_text(
        f'[systems.gateway]\nallow = ["127.0.0.1:{port}"]\n'
        f'[systems.gateway.providers.slow]\nbase_url = "http://127.0.0.1:{port}"\nkey_env = "SLOW_KEY"\n'
        'operations.look = { path = "/look", usd = 0.002, as_of = 2026-01-01 }\n'
    )
    process, served = start(tmp_path)
    try:
        made = httpx2.post(
            f"http://127.0.0.1:{served}/v1/keys",
            json={"name": "caller", "allowed": {"day": 0.01}},
            headers={"Authorization": "Bearer token"},
            timeout=READY_SECONDS,
        )
        key = made.json()["result"]["key"]

        def call() -> None:
            try:
                httpx2.get(
                    f"http://127.0.0.1:{served}/v1/slow/look", headers={"X-Service-Key": key}, timeout=READY_SECONDS
                )
            except httpx2.HTTPError:
                pass  # its gateway was killed

        threads = [threading.Thread(target=call, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + READY_SECONDS
        while counted(tmp_path) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        assert counted(tmp_path) == 4
    finally:
        kill(process)

    silent.close()
    process, served = start(tmp_path)
    try:
        answers = [
            httpx2.get(
                f"http://127.0.0.1:{served}/v1/slow/look?q={number}",
                headers={"X-Service-Key": key},
                timeout=READY_SECONDS,
            )
            for number in range(2)
        ]
        codes = [json.loads(answer.text)["error"]["code"] for answer in answers]
        assert codes == ["provider_unavailable", "insufficient_quota"], (
            "the four lost calls and one more fill the budget"
        )
    finally:
        kill(process)
    with apsw.Connection(str(tmp_path / "gateway.db")) as store:
        states = [row[0] for row in store.execute("select state from api_calls_ledger order by created_at, id")]
    assert states[:4] == ["unknown"] * 4


def counted(folder: Path) -> int:
    connection = apsw.Connection(str(folder / "gateway.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(5_000)
        return len(connection.execute("select id from penstock_calls").fetchall())
    finally:
        connection.close()
