"""What every test can ask for: the seed of this run, and a place to note a figure for the reader."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Generator
from zlib import crc32

import pytest
from hypothesis import settings

from tests.bytecode import compile_all
from tests.extent import EVERYTHING, examples

pytest_plugins = ["tests.plugins.spec_report"]

SEED = pytest.StashKey[int]()

# On PostgreSQL a test costs ten times as much. Of those that only say that a program does the same on both, a sample, always
# the same, runs in `make test`, and all in `make both`. The stores' own contract always runs whole. What is marked `alike`
# takes seconds there and is in no sample.
ONE_IN = 25
SYSTEMS_ONE_IN = 6  # of what is left of the systems' tests, others on every run
DISORDER = {"shuffled", "duplicated", "both"}
NOTES = pytest.StashKey[list[str]]()

sys.dont_write_bytecode = False  # until the tests are collected
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
compile_all()
# A busy machine stands still for longer than any deadline of one example.
settings.register_profile("penstock", deadline=None, max_examples=examples(100))
settings.load_profile("penstock")
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed", type=int, help="repeat a run's randomness (or PENSTOCK_SEED; default: a new seed each run)"
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--seed")
    if given is None:
        given = os.environ.get("PENSTOCK_SEED") or random.SystemRandom().randrange(2**32)
    config.stash[SEED] = int(given)
    config.stash[NOTES] = []


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.stash[SEED]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {item for item in items if isinstance(item, pytest.Function) and _is_left_out(item)}
    rest = [item for item in items if isinstance(item, pytest.Function) and item not in left_out]
    left_out |= _not_their_turn(rest, config.stash[SEED])
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Thousands of tests stay as they are until the end: the garbage collector need not look through them over and over."""
    gc.collect()
    gc.freeze()
    sys.dont_write_bytecode = True


def _is_left_out(item: pytest.Function) -> bool:
    if not EVERYTHING and item.get_closest_marker("thorough"):
        return True
    given = item.callspec.params if hasattr(item, "callspec") else {}
    kept, only = given.get("kept_on", given.get("store")), item.get_closest_marker("only_on")
    if kept is not None and only is not None:
        return bool(only.args[0] != kept)
    if EVERYTHING or kept != "postgres":
        return False
    if item.get_closest_marker("alike"):
        return True
    if item.get_closest_marker("on_both") or "crash" in item.path.parts:
        return False
    disorderly = any(value in DISORDER for value in given.values() if isinstance(value, str))
    return disorderly or bool(crc32(item.nodeid.encode()) % ONE_IN)


def _not_their_turn(tests: list[pytest.Function], seed: int) -> set[pytest.Function]:
    """Of tests with many cases those that this run, by its seed, does not try. It is the same for one file alone."""
    alike: defaultdict[tuple[str, int], list[pytest.Function]] = defaultdict(list)
    left_out = set[pytest.Function]()
    for item in () if EVERYTHING else tests:
        given = item.callspec.params if hasattr(item, "callspec") else {}
        kept_on = given.get("kept_on", given.get("store"))
        asked = item.get_closest_marker("one_in")
        if asked is not None:
            alike[f"{item.nodeid.partition('[')[0]} {kept_on}", asked.args[0]].append(item)
        elif kept_on == "postgres" and "systems" in item.path.parts and not item.get_closest_marker("only_on"):
            left_out |= {item} if random.Random(f"{seed} {item.nodeid}").randrange(SYSTEMS_ONE_IN) else set()
    for (name, share), cases in alike.items():
        left_out.update(random.Random(f"{seed} {name}").sample(cases, len(cases) + len(cases) // -share))
    return left_out


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.append(("seed", f"repeat with: --seed {item.config.stash[SEED]}"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[NOTES]:
        terminalreporter.write_sep("=", "notes")
        for line in config.stash[NOTES]:
            terminalreporter.write_line(line)
