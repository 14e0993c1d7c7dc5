"""What every test can ask for: the seed of this run, and a place to note a figure for the reader."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator

import pytest

pytest_plugins = ["tests.plugins.spec_report"]

SEED = pytest.StashKey[int]()
NOTES = pytest.StashKey[list[str]]()


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
