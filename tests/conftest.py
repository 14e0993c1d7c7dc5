"""What every test can ask for: the seed of this run, and a place to note a figure for the reader."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.bytecode import compile_all
from tests.extent import EVERYTHING
from tests.long_runs import RECORDING, LongRun

pytest_plugins = ["tests.plugins.spec_report"]

SEED = pytest.StashKey[int]()
NOTES = pytest.StashKey[list[str]]()
FAILED = pytest.StashKey[bool]()
MEMORY = pytest.StashKey[tempfile.TemporaryDirectory[str]]()

FIXED_SEED = 1  # of every run but those of `make test-all`
# A test on PostgreSQL takes ten times as long as on SQLite. Where a test only shows that an app behaves the same on both
# stores, the PostgreSQL case is slow for all but one in this many, chosen by the name of the case. `tests/contract`,
# `tests/crash` and `tests/upgrade` always run on both stores.
POSTGRES_ONE_IN = 12
ON_BOTH = {"contract", "crash", "upgrade"}
DISORDER = {"shuffled", "duplicated", "both"}
SHARED_MEMORY = Path("/dev/shm")
SHARED_MEMORY_BYTES = 2_000_000_000  # that have to be free

sys.dont_write_bytecode = False  # until the tests are collected
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
compile_all()
# On a busy machine one example can take any time, and so can making it.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", PATIENT, derandomize=True, max_examples=50)
settings.register_profile("random", PATIENT, print_blob=True, max_examples=300)
settings.load_profile("random" if EVERYTHING else "fixed")
# A shell lets what it starts in the background ignore Ctrl-C, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The number that all randomness of a test comes from. Repeat a failure with `--seed N`."""
    return pytestconfig.stash[SEED]


@pytest.fixture(scope="session")
def note(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line that is printed at the end of the run, whether the test passes or not."""
    return pytestconfig.stash[NOTES].append


@pytest.fixture
def long_run(request: pytest.FixtureRequest) -> Iterator[LongRun]:
    """Counts what `make crash` and `make simulate` keep of this test, passed or failed."""
    run = LongRun(request.node.name)
    yield run
    if RECORDING:
        run.record(failed=request.node.stash.get(FAILED, False))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        type=int,
        help=f"repeat a run's randomness (or PENSTOCK_SEED; default: {FIXED_SEED}, in `make test-all` a new seed each run)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed, also for Hypothesis. The workers of a parallel run receive the options that are set here."""
    given = config.option.seed
    if given is None:
        drawn = random.SystemRandom().randrange(2**32) if EVERYTHING else FIXED_SEED
        given = int(os.environ.get("PENSTOCK_SEED") or drawn)
    config.stash[SEED] = config.option.seed = given
    config.stash[NOTES] = []
    if EVERYTHING and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(given)
    if config.option.numprocesses and not is_worker(config):
        _keep_files_in_memory(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if MEMORY in config.stash:
        config.stash[MEMORY].cleanup()


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.stash[SEED]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the PostgreSQL cases that are slow, and leave slow tests to `make test-all` and to `pytest -m`."""
    left_out = set[pytest.Item]()
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        store, only = given.get("kept_on", given.get("store")), item.get_closest_marker("only_on")
        if store is not None and only is not None and only.args[0] != store:
            left_out.add(item)
        elif _is_slow(item, store, given, sampled=only is None):
            item.add_marker("slow")
            left_out |= set() if EVERYTHING or config.option.markexpr else {item}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Thousands of tests stay as they are until the end: the garbage collector need not look through them over and over."""
    gc.collect()
    gc.freeze()
    sys.dont_write_bytecode = True


def _is_slow(item: pytest.Item, store: object, given: dict[str, object], *, sampled: bool) -> bool:
    marks = list(item.iter_markers("slow"))
    if any(not mark.args or store in mark.args for mark in marks):
        return True
    if not sampled or store != "postgres" or not ON_BOTH.isdisjoint(item.path.parts):
        return False
    disorderly = any(value in DISORDER for value in given.values() if isinstance(value, str))
    return disorderly or bool(crc32(item.nodeid.encode()) % POSTGRES_ONE_IN)


def _keep_files_in_memory(config: pytest.Config) -> None:
    """Where there is room: a disk makes thousands of small databases wait."""
    if os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free >= SHARED_MEMORY_BYTES:
        config.stash[MEMORY] = tempfile.TemporaryDirectory(prefix="p", dir=SHARED_MEMORY, ignore_cleanup_errors=True)
        Path(config.stash[MEMORY].name).chmod(0o711)  # PostgreSQL refuses to run as root and enters as another user
        os.environ["TMPDIR"] = config.stash[MEMORY].name
        tempfile.tempdir = None  # so that it is read anew


def _encodable(text: str) -> str:
    """Without the lone surrogates that a test may have logged: a worker cannot send them with its report."""
    return text.encode(errors="backslashreplace").decode()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests for another one."""
    return hasattr(config, "workerinput")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if is_worker(session.config):
        session.config.workeroutput["notes"] = session.config.stash[NOTES]  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the notes of a worker that ended."""
    node.config.stash[NOTES].extend(getattr(node, "workeroutput", {}).get("notes", []))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.sections = [(name, _encodable(text)) for name, text in report.sections]
    if report.failed:
        item.stash[FAILED] = True
        if (text := str(report.longrepr)) != _encodable(text):
            report.longrepr = _encodable(text)
        report.sections.append(("seed", f"repeat with: --seed {item.config.stash[SEED]}"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[NOTES]:
        terminalreporter.write_sep("=", "notes")
        for line in config.stash[NOTES]:
            terminalreporter.write_line(line)
