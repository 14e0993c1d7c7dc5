"""The queues' benchmark: its report, its judgements and its talk with the peers' processes. No figure is judged here."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.peers.contract import Arrived, Contestant, Job, Settings
from bench.peers.session import Session
from bench.queues import PEERS
from bench.queues_environment import REQUIREMENTS
from bench.queues_processes import PeerFailed, Process
from bench.queues_report import DRAIN, OURS, PENSTOCK, PENSTOCK_POSTGRES, RAW, RAW_POSTGRES, Taken, build
from bench.queues_servers import SERVERS, NoServer, found
from bench.queues_shown import HEAD, Shown, verdict
from bench.queues_turns import Figures, Plan, Reference, settings_of
from bench.report import Report

ROOT = Path(__file__).resolve().parents[2]
ROW = {"subject", "store", "measure", "value", "unit", "reference", "ratio", "durability"}
SETTINGS = {name: settings_of(module) for name, module in PEERS.items()}
GOOD_DISK_MS, BAD_DISK_MS = 0.2, 4.0
WHOLE = 10_000


# -- from end to end, without the peers: they are not installed for a test ------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench")
    chosen = ("--smoke", "--only", "penstock,penstock-postgres", "--seed", "7", "--out", str(made))
    command = [sys.executable, str(ROOT / "bench" / "queues.py"), *chosen]
    ended = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "round 1 of 1, 2 of 2: penstock" in ended.stdout
    return made


@pytest.fixture(scope="module")
def written(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "queues.json").read_text("utf-8"))
    return report


@pytest.mark.slow
def test_the_report_has_the_promised_shape(written: dict[str, Any]) -> None:
    assert {"name", "commit", "seed", "versions", "machine", "rows", "skipped"} <= written.keys()
    assert (written["name"], written["seed"]) == ("queues", 7)
    assert written["machine"]["fdatasync_p50_ms"] > 0
    assert all(row.keys() == ROW and row["value"] > 0 for row in written["rows"])
    assert [each["subject"] for each in written["skipped"]] == list(PEERS)


@pytest.mark.slow
@pytest.mark.parametrize("subject", OURS)
def test_penstock_has_every_measure_beside_its_reference(written: dict[str, Any], subject: str) -> None:
    rows = [row for row in written["rows"] if row["subject"] == subject]
    assert [row["measure"] for row in rows] == [
        "enqueue one by one",
        "enqueue, batches of 100",
        "drain",
        "idle send to handler, p50",
        "idle send to handler, p99",
    ]
    assert all(row["reference"] > 0 and row["ratio"] > 0 for row in rows)
    durability = {"sqlite": "full", "postgres": "fsync=on, synchronous_commit=on"}[OURS[subject]]
    assert {(row["store"], row["durability"]) for row in rows} == {(OURS[subject], durability)}


@pytest.mark.slow
def test_the_raw_loop_on_postgres_has_its_turn_on_the_same_server(written: dict[str, Any]) -> None:
    rows = [row for row in written["rows"] if row["subject"] == RAW_POSTGRES]
    assert [(row["measure"], row["store"]) for row in rows] == [
        ("enqueue, batches of 100", "postgres"),
        ("drain", "postgres"),
    ]


@pytest.mark.slow
def test_nothing_is_left_but_the_figures_and_the_plot(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["queues.json", "queues.svg"]
    assert ElementTree.parse(folder / "queues.svg").getroot().tag.endswith("svg")


# -- the judgements -------------------------------------------------------------------------------------------------


def turn(
    subject: str, drain: float, *, round_number: int = 1, p50_ms: float = 1.0, disk: float = GOOD_DISK_MS
) -> Taken:
    figures = Figures(one_by_one=1_000, batched=None, drain=drain, p50_ms=p50_ms, p99_ms=2 * p50_ms)
    return Taken(round_number, subject, figures, Reference(200_000, 100_000, disk, 0.4, 0.5), disk)


def judged(*turns: Taken, messages: int = WHOLE) -> Report:
    report = Report("queues", 1)
    build(report, turns, SETTINGS, messages=messages, best_ms=GOOD_DISK_MS)
    return report


def test_a_peer_below_half_of_what_it_is_known_to_reach_is_suspect() -> None:
    report = judged(turn("huey", 1_600), turn("dbos", 100))
    assert [each["subject"] for each in report.suspects] == ["huey"]
    assert "SUSPECT" in Shown(report, SETTINGS).lines()[0]


def test_no_peer_is_suspect_where_the_disk_was_slow_or_the_drain_short() -> None:
    assert judged(turn("huey", 400, disk=BAD_DISK_MS)).suspects == []
    assert judged(turn("huey", 400), messages=1_000).suspects == []


def test_the_drain_is_compared_with_hueys_of_the_same_round() -> None:
    report = judged(
        turn(PENSTOCK, 60_000, round_number=1),
        turn("huey", 5_000, round_number=1),
        turn("huey", 1_000, round_number=2),
        turn(PENSTOCK, 9_000, round_number=2),
        turn(PENSTOCK, 100_000, round_number=3),
    )
    beside = report.bars[0]
    assert (beside.value, beside.passed) == (10.5, True)
    assert verdict(beside).startswith("met")


def test_on_postgres_the_drain_is_compared_with_pgqueuers() -> None:
    report = judged(turn(PENSTOCK_POSTGRES, 30_000), turn("pgqueuer", 10_000), turn("huey", 1_000))
    (beside,) = report.bars
    assert (beside.value, beside.limit, beside.passed) == (3.0, 2.5, True)
    assert "pgqueuer" in verdict(beside)


def test_a_comparison_on_a_slow_disk_proves_nothing() -> None:
    report = judged(turn(PENSTOCK, 90_000), turn("huey", 1_000, disk=BAD_DISK_MS))
    assert verdict(report.bars[0]).startswith("unsure")


def test_a_latency_above_five_syncs_misses_the_bar() -> None:
    missed, met = judged(turn(PENSTOCK, 1, p50_ms=2.1)), judged(turn(PENSTOCK, 1, p50_ms=1.9))
    assert verdict(missed.bars[0]).startswith("missed")
    assert verdict(met.bars[0]).startswith("met")


def test_the_table_has_our_line_first_and_the_fastest_peer_next() -> None:
    report = judged(turn("dbos", 200), turn("huey", 4_000), turn(PENSTOCK, 50_000))
    lines = Shown(report, SETTINGS).lines()
    assert [line[0] for line in lines] == ["penstock", "huey", "dbos", "raw loop, fdatasync"]
    assert all(len(line) == len(HEAD) for line in lines)
    assert {row.subject for row in report.rows if row.measure == DRAIN} == {PENSTOCK, "huey", "dbos", RAW}


def test_the_plot_shows_each_bar_of_ours_with_its_limit() -> None:
    drain, *_, latency = Shown(judged(turn("huey", 4_000), turn(PENSTOCK, 50_000)), SETTINGS).panels()
    assert [line.limit for line in drain.lines] == [None, 40_000, None]
    assert [line.limit for line in latency.lines if line.label == PENSTOCK] == [pytest.approx(2.0)]


# -- the peers' settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_peer_says_how_durable_it_is_and_where_its_settings_come_from(settings: Settings) -> None:
    assert settings.durability
    assert settings.share_percent > 0
    assert settings.store in SERVERS
    assert all(page.startswith("https://") for page in settings.documentation)


def test_only_the_peers_on_sqlite_must_run() -> None:
    assert [name for name, settings in SETTINGS.items() if settings.must_run] == ["huey", "dbos"]


def test_every_peer_is_pinned_to_one_version() -> None:
    lines = REQUIREMENTS.read_text("utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+(\[[a-z,]+\])?==[0-9][0-9.]*", line) for line in pinned)
    assert {settings.package for settings in SETTINGS.values()} <= {re.split(r"[\[=]", line)[0] for line in pinned}


def test_a_peer_without_batches_gets_all_its_messages_one_by_one() -> None:
    plan = Plan(messages=10_000, one_by_one=2_000, latencies=120, rounds=3, again_max=0)
    assert plan.split(SETTINGS["huey"]) == (10_000, 0)
    assert plan.split(SETTINGS["pgqueuer"]) == (2_000, 8_000)
    assert plan.split(SETTINGS["dbos"]) == (1_000, 0)


def test_a_server_that_is_missing_is_named_with_its_package() -> None:
    with pytest.raises(NoServer, match=r"no-such-server is not installed .*apt install such-package"):
        found("no-such-server", "such-package")


# -- the talk with a peer's process ---------------------------------------------------------------------------------


class InMemory(Contestant):
    """A queue that delivers what it was sent as often as it is told to."""

    def __init__(self, times: int = 1) -> None:
        self._times = times
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()

    async def send(self, job: Job) -> None:
        self._jobs.put_nowait(job)

    async def work(self, arrived: Arrived) -> None:
        while True:
            job = await self._jobs.get()
            for _ in range(self._times):
                arrived(job["number"], job["sent_at"])


async def answers(contestant: Contestant) -> list[float]:
    session = Session(contestant)
    await session.send(one_by_one=20, batched=0)
    await session.work(count=20)
    await session.expect(count=3)
    await session.pace(pauses=[0.0, 0.0, 0.0])
    latencies: list[float] = (await session.latencies())["seconds"]
    return latencies


def test_a_session_drains_and_then_takes_latencies_with_the_same_worker() -> None:
    assert len(asyncio.run(answers(InMemory()))) == 3


def test_a_job_that_is_delivered_twice_spoils_the_turn() -> None:
    with pytest.raises(AssertionError, match="40 deliveries of 20 jobs"):
        asyncio.run(answers(InMemory(times=2)))


@pytest.mark.parametrize(
    "program, said",
    [
        ('print(\'{"error": "no such table"}\')', "no such table"),
        ("import sys; sys.exit('could not connect')", "could not connect"),
    ],
    ids=["answers with an error", "ends"],
)
def test_a_process_that_fails_says_why(tmp_path: Path, program: str, said: str) -> None:
    command = [sys.executable, "-c", program]
    with Process(command, tmp_path / "log") as process, pytest.raises(PeerFailed, match=said):
        process.answer()


def test_a_process_that_never_answers_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with Process(command, tmp_path / "log") as process, pytest.raises(PeerFailed, match="no answer in 0 s"):
        process.answer(seconds=0.01)
