"""A worker that is killed in real time, with real servers of mail and webhooks that count what arrives."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import penstock as ps
from penstock_systems.standins.notifications.arrivals import read_arrivals
from tests.extent import patient
from tests.postgres import empty_database

ROOT = Path(__file__).resolve().parents[3]
KILLS = int(os.environ.get("PENSTOCK_KILLS", "1000"))
CONFIG = """\
history = false
synchronous = "normal"

[systems.reminders]
allow = ["127.0.0.1:{http}"]
backoff = ["1s"]
retries = 20
mails_a_second = 500.0

[channels.email]
kind = "resend"
url = "http://127.0.0.1:{http}"
sender = "Reminders <r@example.org>"
secret_env = "TEST_RESEND_KEY"
timeout_seconds = 1

[channels.smtp]
kind = "smtp"
host = "127.0.0.1"
port = {smtp}
tls = "none"
sender = "Reminders <r@example.org>"
timeout_seconds = 1
"""
FAULTS = '{"rate": 100000, "lost": 0.02, "lost_seconds": 3, "failed": 0.02, "seconds": 0.02}'
SERVERS = {"email": "resend", "webhook": "webhook", "smtp": "smtp"}


@pytest.mark.spec("C-12", "G3-06", "G7-03")
@pytest.mark.parametrize("kills", [10, pytest.param(KILLS, marks=pytest.mark.slow)])
def test_kills_double_nothing_lose_nothing_and_hide_nothing(
    tmp_path: Path, seed: int, kept_on: str, kills: int
) -> None:
    count = tmp_path / "arrivals.jsonl"
    module = "penstock_systems.standins.notifications"
    command = [sys.executable, "-u", "-m", module, "--port", "0", "--smtp", "--count", str(count), "--faults", FAULTS]
    with subprocess.Popen(
        [*command, "--smtp-faults", '{"lost": 0.02, "failed": 0.02}'], stdout=subprocess.PIPE, text=True
    ) as servers:
        try:
            assert servers.stdout is not None
            http, smtp = re.findall(r"127\.0\.0\.1:(\d+)", servers.stdout.readline())
            (tmp_path / "penstock.toml").write_text(CONFIG.format(http=http, smtp=smtp), "utf-8")
            database = empty_database() if kept_on == "postgres" else str(tmp_path / "reminders.db")
            environment = {
                **os.environ,
                "PENSTOCK_DATABASE": database,
                "PYTHONPATH": str(ROOT),
                "TEST_RESEND_KEY": "re_fake",
            }
            environment["TEST_HOOK"] = f"http://127.0.0.1:{http}/hooks"
            worker = [
                sys.executable,
                "-m",
                "tests.systems.reminders.killed_worker",
                json.dumps({"kills": kills, "seed": seed}),
            ]
            seconds = patient(60 + 3 * kills)
            ran = subprocess.run(worker, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=seconds)
            assert ran.returncode == 0, ran.stderr[-3_000:]
        finally:
            servers.terminate()
    assert json.loads(ran.stdout)["killed"] == kills
    arrived = Counter((each["server"], each["about"]) for each in read_arrivals(count))
    recorded = asyncio.run(deliveries(database))

    assert max(arrived.values()) == 1, "nothing is delivered twice"
    sent = {about for about, status in recorded.items() if status == "sent"}
    held = {about for about, status in recorded.items() if status == "held"}
    assert sent <= set(arrived), "what is recorded as sent has arrived"
    assert set(arrived) <= sent | held, "what has arrived is recorded, or shown as unknown"
    assert set(recorded) == sent | held, "nothing is left over or given up"
    assert {server for server, _ in held} <= {"smtp"}, "with a key every outcome becomes known"
    assert len(recorded) >= kills * 2


async def deliveries(database: str) -> dict[tuple[str, str], str]:
    """The status of each delivery, by its server and fire."""
    app = ps.App("reminders", database=database, migrations=ROOT / "src/penstock_systems/reminders/migrations")
    async with app:
        sql = "select notification_id, fire_seq, status from notification_deliveries where channel = :channel"
        found = {}
        for channel, server in SERVERS.items():
            for row in await app.db.rows(sql, channel=channel):
                found[server, f"{row.notification_id} {row.fire_seq}"] = row.status
        return found
