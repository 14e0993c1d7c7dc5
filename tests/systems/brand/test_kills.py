"""Five processes apart, in real time, killed at random: nothing is posted twice, published twice or left without a reason."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from penstock_systems.standins.notifications.arrivals import Arrivals

KILLS = int(os.environ.get("PENSTOCK_KILLS", "60"))
BRANDS, KEYWORDS = 3, 8
SERVICES = ("scalable-media-api", "gatherfeed-api", "pages-plus", "social-good")
SECONDS = 600.0

SETTINGS = """
grace_seconds = 2

[systems.brand]
model = "gpt-4o-mini"

[systems.brand.networks.mastodon]
base_url = "https://mastodon.example"
secret_env = "MASTODON_TOKEN"

[systems.brand.networks.bluesky]
base_url = "https://bluesky.example"
secret_env = "BLUESKY_TOKEN"
account = "brands.example"

[systems.brand.networks.linkedin]
base_url = "https://linkedin.example"
secret_env = "LINKEDIN_TOKEN"
account = "urn:li:organization:1"
"""
BRAND = """
[systems.brand.brands.brand-{number}]
fqdn = "brand{number}.example"
review = "never"
articles_per_day = 100
social = {{ mastodon = "now", bluesky = "now", linkedin = "now" }}
"""


@pytest.fixture
def ports() -> dict[str, int]:
    return {name: free_port() for name in SERVICES}


@pytest.fixture
def place(tmp_path: Path, ports: dict[str, int]) -> Path:
    services = "".join(f"\n[services.{name}]\nport = {port}\n" for name, port in ports.items())
    brands = "".join(BRAND.format(number=number) for number in range(BRANDS))
    (tmp_path / "penstock.toml").write_text(SETTINGS + brands + services)
    return tmp_path


@pytest.fixture
def world(place: Path) -> Iterator[str]:
    """The fake servers. One post in eight is made and not answered in time."""
    faults = json.dumps({"lost": 0.12, "lost_seconds": 12.0, "unavailable": 0.05})
    command = [sys.executable, "-m", "penstock_systems.standins.publishing", "--port", "0", "--faults", faults]
    with subprocess.Popen([*command, "--count", str(place / "arrived")], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.terminate()


@pytest.mark.slow
@pytest.mark.spec("D-22", "D-20", "D-15")
def test_kills_of_all_services_double_no_post_and_no_page_and_leave_nothing_behind(
    place: Path, world: str, ports: dict[str, int], seed: int
) -> None:
    environment = {**os.environ, "PENSTOCK_STANDINS": world, "SERVICE_KEY": "of this test", "PENSTOCK_TOKEN": "secret"}
    run = [sys.executable, "-m", "penstock"]
    services = subprocess.Popen(
        [*run, "run", "brand", "--apart"], cwd=place, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: all(map(is_served, ports.values())), 60)
        for number in range(BRANDS):
            keywords = [f"topic {number} {place}" for place in range(KEYWORDS)]
            asked = [*run, "brand", "--apart", "research", f"brand-{number}", *keywords]
            subprocess.run(asked, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        chance = Random(seed)
        for _ in range(KILLS):
            service = chance.choice(SERVICES)
            wait_for(lambda service=service: is_served(ports[service]), 60)
            time.sleep(chance.uniform(0.0, 2.0))
            for worker in workers(service):
                os.kill(worker, signal.SIGKILL)
        wait_for(lambda: is_done(place), SECONDS)
    finally:
        services.send_signal(signal.SIGINT)
        services.wait(60)

    arrivals = Arrivals(place / "arrived")
    assert arrivals.doubled() == []
    contents = read(place, "scalable-media-api", "select keyword, status, reason from sm_content")
    assert Counter(status for _, status, _ in contents)["published"] >= BRANDS * KEYWORDS * 0.8, contents
    assert all(status == "published" or reason for _, status, reason in contents)
    published = sum(status == "published" for _, status, _ in contents)
    assert len([page for page in place.glob("sites/*/blog/*.html") if page.name != "index.html"]) == published
    assert len(arrivals.all) == 3 * published


def is_served(port: int) -> bool:
    """Whether the worker behind a port has started."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def workers(service: str) -> list[int]:
    """The process ids of the workers of a service."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"penstock.cli.worker" in words and service.encode() in words:
            found.append(int(entry.name))
    return found


def is_done(place: Path) -> bool:
    """Whether every keyword came to an end, and every post."""
    contents = read(place, "scalable-media-api", "select id from sm_content where status in ('published', 'failed')")
    failures = read(place, "scalable-media-api", "select id from sm_failures where kind = 'research'")
    posts = read(place, "social-good", "select state from sg_posts where state <> 'posted'")
    made = read(place, "social-good", "select id from sg_posts")
    published = read(place, "scalable-media-api", "select id from sm_content where status = 'published'")
    return len(contents) + len(failures) >= BRANDS * KEYWORDS and not posts and len(made) == 3 * len(published)


def read(place: Path, service: str, sql: str) -> list[tuple[str, ...]]:
    with sqlite3.connect(f"file:{place / service}.db?mode=ro", uri=True) as connection:
        return connection.execute(sql).fetchall()


def wait_for(condition: object, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.25)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
