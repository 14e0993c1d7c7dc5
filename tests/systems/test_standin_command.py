"""The stand-in App Store as a command: another process serves the same store on loopback."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from click.testing import CliRunner

from penstock.testing import virtual
from penstock_systems.standins.appstore import Catalogue
from penstock_systems.standins.appstore.__main__ import main
from tests.systems.standin_visits import QUIET, visiting


def test_another_process_serves_the_same_store_on_loopback() -> None:
    path = "/search?term=daily+tracker&entity=software&limit=9"
    command = [
        sys.executable,
        "-m",
        "penstock_systems.standins.appstore",
        "--apps",
        "300",
        "--seed",
        "5",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            where = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert where is not None
            with urllib.request.urlopen(where[0] + path, timeout=30) as answer:
                outside = json.load(answer)
        finally:
            process.terminate()

    @virtual
    async def inside() -> None:
        async with visiting(QUIET, Catalogue(apps=300, seed=5)) as client:
            assert (await client.get(path)).json() == outside

    inside()
    assert outside["resultCount"] == 9


def test_the_truth_is_written_before_the_store_opens(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    names = [market.name for market in Catalogue(apps=300, seed=5).markets]
    options = ["--apps", "300", "--seed", "5", "--without", names[0], "--strict", "--truth", str(truth)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stopped = CliRunner().invoke(main, [*options, "--port", str(taken.getsockname()[1])])

    assert isinstance(stopped.exception, OSError)
    assert [market["name"] for market in json.loads(truth.read_text("utf-8"))["markets"]] == names[1:]


def test_a_market_that_is_not_there_cannot_be_left_out() -> None:
    result = CliRunner().invoke(main, ["--without", "sleeep"])

    assert result.exit_code == 2
    assert "sleeep" in result.output
