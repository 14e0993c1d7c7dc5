"""PENSTOCK_CRASH_AT plans faults for a real process; what it cannot mean is refused with a sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from penstock.contracts.faults import CRASH_POINTS, NoFaults
from penstock.model.errors import BadConfig, StoreError
from penstock.runtime.crashpoints import VARIABLE, Planned, faults_from_environment, parse
from tests.extent import patient

REACH = """
import os, sys
from penstock.runtime.crashpoints import faults_from_environment
faults = faults_from_environment(os.environ)
for number in range(1, 6):
    print(number, flush=True)
    faults.at("handler.before")
    faults.at("commit.before")
"""


def test_without_the_variable_nothing_is_planned() -> None:
    assert isinstance(faults_from_environment({}), NoFaults)
    assert isinstance(faults_from_environment({VARIABLE: " "}), NoFaults)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_every_crash_point_can_be_planned(point: str) -> None:
    assert parse(f"{point}=kill") == Planned(point, "kill", 1)
    assert parse(f"{point}=stop@12") == Planned(point, "stop", 12)


@pytest.mark.parametrize(
    "text", ["commit.before", "commit.before=die", "commit.before=kill@0", "=kill", "kill", "a=b,c"]
)
def test_what_cannot_be_planned_is_refused_with_its_value(text: str) -> None:
    with pytest.raises(BadConfig) as refused:
        faults_from_environment({VARIABLE: text})
    assert text.split(",")[0] in str(refused.value)


def test_an_unknown_point_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadConfig, match=r"commit\.before"):
        faults_from_environment({VARIABLE: "commit.perhaps=kill"})


def test_a_disk_fails_at_the_time_that_was_asked_for_and_only_then() -> None:
    faults = faults_from_environment({VARIABLE: "commit.before=eio@2, handler.after=eio"})
    faults.at("commit.before")
    with pytest.raises(StoreError, match=r"commit\.before"):
        faults.at("commit.before")
    faults.at("commit.before")
    with pytest.raises(StoreError, match=r"handler\.after"):
        faults.at("handler.after")
    faults.at("handler.after")


@pytest.mark.spec("A13-11")
def test_a_process_is_killed_at_the_time_that_was_asked_for() -> None:
    ran = reached("commit.before=kill@3")
    assert (ran.returncode, ran.stdout.split()) == (-signal.SIGKILL, ["1", "2", "3"])


def test_a_process_stops_and_continues_by_signal() -> None:
    command = [sys.executable, "-c", REACH]
    process = subprocess.Popen(command, env=os.environ | {VARIABLE: "handler.before=stop@2"}, stdout=subprocess.PIPE)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(process.pid, signal.SIGCONT)
    said, _ = process.communicate(timeout=patient(30))
    assert said.split() == [b"1", b"2", b"3", b"4", b"5"]


def reached(planned: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", REACH],
        env=os.environ | {VARIABLE: planned},
        capture_output=True,
        text=True,
        timeout=patient(30),
    )
