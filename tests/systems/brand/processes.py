"""The brand system as five processes with a supervisor each, real databases and ports, and fakes of everything outside."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from penstock_systems.standins.notifications.arrivals import Arrivals
from penstock_systems.standins.publishing import GHOST_KEY
from tests.extent import patient
from tests.postgres import empty_database, look
from tests.sockets import free_port

BRAIN, EYES, MOUTH, HANDS, GATEWAY = "scalable-media-api", "gatherfeed-api", "pages-plus", "social-good", "gateway"
SERVICES = (BRAIN, EYES, MOUTH, HANDS, GATEWAY)
READY_SECONDS, STOP_SECONDS, CALL_SECONDS, POLL_SECONDS = 90.0, 60.0, 20.0, 0.1
SERVICE_KEY, TOKEN, NO_SECRET = "of this test", "secret", "sk-stand-in"
NETWORKS = {"mastodon": "", "bluesky": "brands.example", "x": "", "linkedin": "urn:li:organization:1"}
ENDED = ("published", "failed", "archived")

# One brand for each way through the system: a static site, Ghost beside it, and a person who reads every article.
BRANDS = {
    "static": {"review": "never", "targets": ["pages-plus"], "social": ["mastodon", "x"]},
    "ghostly": {"review": "never", "targets": ["pages-plus", "ghost"], "social": ["bluesky", "linkedin"]},
    "reviewed": {"review": "always", "targets": ["pages-plus"], "social": ["linkedin"]},
}


class Town:
    """The processes, and what the test asks of them over HTTP and reads in their databases."""

    def __init__(self, folder: Path, stack: ExitStack, *, on_postgres: bool, lost: float) -> None:
        self._folder = folder
        self.ports = {name: free_port() for name in SERVICES}
        self.databases = {
            name: empty_database(name) if on_postgres else str(folder / f"{name}.db") for name in SERVICES
        }
        self._environment = {
            **os.environ,
            "SERVICE_KEY": SERVICE_KEY,
            "PENSTOCK_TOKEN": TOKEN,
            "OPENAI_API_KEY": NO_SECRET,
            "BRAVE_API_KEY": NO_SECRET,
            "NETWORK_TOKEN": NO_SECRET,
            "GHOST_ADMIN_KEY": GHOST_KEY,
        }
        self._environment.pop("PENSTOCK_STANDINS", None)
        world = stack.enter_context(self._world(lost))
        (folder / "penstock.toml").write_text(self._settings(world))
        self._http = stack.enter_context(httpx2.Client(timeout=CALL_SECONDS))
        self._supervisors = [stack.enter_context(self._running("gateway", "--port", str(self.ports[GATEWAY])))]
        wait_for(partial(self.is_served, GATEWAY), READY_SECONDS)
        self._environment["BRAND_GATEWAY_KEY"] = self._gateway_key()
        self._supervisors.append(stack.enter_context(self._running("brand", "--apart")))
        for service in SERVICES:
            wait_for(partial(self.is_served, service), READY_SECONDS)

    # -- the processes

    def kill(self, service: str) -> bool:
        """Kill the worker of a service as it is. Return whether there was one."""
        found = [pid for pid in self._workers() if _is_worker_of(pid, service)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return bool(found)

    def is_served(self, service: str) -> bool:
        try:
            return self._http.get(f"http://127.0.0.1:{self.ports[service]}/health", timeout=2).status_code == 200
        except httpx2.HTTPError:
            return False

    def _workers(self) -> Iterator[int]:
        """The children of our supervisors, and of no other program on this machine."""
        for supervisor in self._supervisors:
            for path in Path(f"/proc/{supervisor.pid}/task").glob("*/children"):
                yield from map(int, path.read_text().split())

    @contextmanager
    def _running(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        environment = self._environment
        if words[0] == GATEWAY:
            environment = environment | {"PENSTOCK_DATABASE": self.databases[GATEWAY]}
        with (self._folder / f"{words[0]}.log").open("wb") as log:
            command = [sys.executable, "-m", "penstock", "run", *words]
            process = subprocess.Popen(command, cwd=self._folder, env=environment, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(STOP_SECONDS)

    @contextmanager
    def _world(self, lost: float) -> Iterator[str]:
        """The fake servers: a search, a model, pages, four networks and Ghost. A lost answer comes after callers gave up."""
        faults = json.dumps({"lost": lost, "lost_seconds": 20.0, "unavailable": 0.05, "slow": 0.1})
        command = [sys.executable, "-m", "penstock_systems.standins.publishing", "--port", "0", "--own-pages"]
        command += ["--faults", faults, "--count", str(self._folder / "arrived")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                yield server.stdout.readline().split()[-1]
            finally:
                server.terminate()

    def _gateway_key(self) -> str:
        url, headers = f"http://127.0.0.1:{self.ports[GATEWAY]}/v1/keys", {"Authorization": f"Bearer {TOKEN}"}
        made = self._http.post(url, json={"name": "brand", "allowed": {}}, headers=headers)
        return str(made.json()["result"]["key"])

    def _settings(self, world: str) -> str:
        gateway = f"127.0.0.1:{self.ports[GATEWAY]}"
        outside = world.removeprefix("http://")
        lines = [
            "grace_seconds = 2",
            "[systems.brand]",
            f'model = "gpt-4o-mini"\ngateway = "http://{gateway}"\nallow = ["{gateway}", "{outside}"]',
            f'allow_pages = ["{outside}"]',
            "[systems.gateway]",
            f'allow = ["{outside}"]\nbudgets = {{ day = 1000.0, month = 1000.0 }}',
            f'[systems.gateway.providers.openai]\nbase_url = "{world}"\nkey_env = "OPENAI_API_KEY"',
            f'[systems.gateway.providers.brave]\nbase_url = "{world}"\nkey_env = "BRAVE_API_KEY"',
            'key_header = "X-Subscription-Token"\noperations.web_search = '
            '{ path = "/res/v1/web/search", usd = 0.005, as_of = 2025-01-01, cache_seconds = 3600.0 }',
        ]
        for network, account in NETWORKS.items():
            lines.append(f'[systems.brand.networks.{network}]\nbase_url = "{world}"\nsecret_env = "NETWORK_TOKEN"')
            lines.append(f'account = "{account}"')
        for slug, brand in BRANDS.items():
            social = ", ".join(f'{network} = "now"' for network in brand["social"])
            lines.append(f'[systems.brand.brands.{slug}]\nfqdn = "{slug}.example"\narticles_per_day = 1000')
            lines.append(f'review = "{brand["review"]}"\ntargets = {brand["targets"]}\nsocial = {{ {social} }}')
            lines.append(f'ghost = {{ base_url = "{world}" }}')
        services = [
            f'[services.{name}]\nport = {self.ports[name]}\ndatabase = "{self.databases[name]}"'
            for name in SERVICES
            if name != GATEWAY
        ]
        return "\n".join([*lines, *services, ""])

    # -- what the test does and reads

    def research(self, slug: str, keyword: str) -> bool:
        """Ask for an article. The request may be repeated: its keyword is its id."""
        body = {"keywords": [keyword], "request_id": keyword.replace(" ", "-")}
        return self._post(BRAIN, f"/v1/brands/{slug}/research", body, {"X-Service-Key": SERVICE_KEY}) == 202

    def review(self) -> None:
        """Approve what waits for a person, where the service answers."""
        for (content,) in self.rows(BRAIN, "select id from sm_content where stage = 'review'"):
            code = self._post(BRAIN, f"/v1/content/{content}/approve", {"by": "Ada"}, {})
            assert code in (0, 200, 409, 503), code  # an answer that a kill took, a repeat, or a service that starts

    def _post(self, service: str, path: str, body: dict[str, Any], headers: dict[str, str]) -> int:
        headers = {"Authorization": f"Bearer {TOKEN}"} | headers
        try:
            answer = self._http.post(f"http://127.0.0.1:{self.ports[service]}{path}", json=body, headers=headers)
        except httpx2.HTTPError:
            return 0
        return answer.status_code

    def rows(self, service: str, sql: str) -> list[tuple[Any, ...]]:
        if self.databases[service].startswith("postgres"):
            return look(self.databases[service], sql)
        connection = sqlite3.connect(f"file:{self.databases[service]}?mode=ro", uri=True, timeout=CALL_SECONDS)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def unfinished(self) -> int:
        """How many keywords have come to no end yet."""
        requests = self.rows(BRAIN, "select count(*) from sm_requests")[0][0]
        ended = self.rows(BRAIN, f"select count(*) from sm_content where status in {ENDED}")[0][0]
        failed = self.rows(BRAIN, "select count(*) from sm_failures where kind = 'research'")[0][0]
        return int(requests - ended - failed - len(self.errored()))

    def errored(self) -> list[tuple[str, str]]:
        """The articles whose run ended with an error, each with the error. The next audit of the brand ends their drafts."""
        found = self.rows(BRAIN, "select id, error from penstock_runs where state = 'errored'")
        return [(str(id), str(error)) for id, error in found]

    def backlog(self) -> list[tuple[str, str, str]]:
        """The messages that are not settled: service, queue and id."""
        found = []
        for service in SERVICES:
            rows = self.rows(service, "select queue, id from penstock_messages")
            found += [(service, queue, bytes(id).hex()) for queue, id in rows if not queue.startswith("cron.")]
        return found

    def why(self, service: str, id: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "penstock", "--json", "why", id, "--database", self.databases[service]]
        said = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        answer: dict[str, Any] = json.loads(said.stdout or "{}")
        return answer

    @property
    def arrivals(self) -> Arrivals:
        return Arrivals(self._folder / "arrived")

    def pages(self) -> list[Path]:
        """The articles on the static sites."""
        return [page for page in self._folder.glob("sites/*/blog/*.html") if page.name != "index.html"]

    def errors(self) -> str:
        """What the services logged as an error."""
        logs = "".join((self._folder / f"{name}.log").read_text("utf-8", "replace") for name in ("brand", GATEWAY))
        return "\n".join(line for line in logs.splitlines() if re.search(r"\berror\b|Traceback", line))


@contextmanager
def running(folder: Path, *, on_postgres: bool, lost: float) -> Iterator[Town]:
    """Start the fakes, the gateway and the services, and stop them at the end."""
    with ExitStack() as stack:
        yield Town(folder, stack, on_postgres=on_postgres, lost=lost)


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    ends = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < ends, f"it takes more than {patient(seconds):.0f} s"
        time.sleep(POLL_SECONDS)


def _is_worker_of(pid: int, service: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False  # it has ended
    return b"penstock.cli.worker" in words and service.encode() in words
