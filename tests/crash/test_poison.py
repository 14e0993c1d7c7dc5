"""Messages that kill their worker, or never let it go: each is found out and put away, and takes nobody with it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from penstock.runtime.supervisor import OVERRUN_SECONDS, SILENCE_SECONDS
from penstock.runtime.worker import BEAT_SECONDS
from tests.crash.harness import Site
from tests.crash.journal import Entry
from tests.crash.oracle import Buried, Oracle
from tests.crash.victim import HANG_WALL_SECONDS, RETRY_SECONDS, Task
from tests.extent import EVERYTHING, patient

POISON = 666
EARLY_SECONDS = 0.1  # a handler's time runs from just before it can write to the journal
LATE_SECONDS = 3.0  # one look a second, and a machine that may be busy
# A worker gives a sign of life every second: a stall has to be a little longer than that, and an overrun than a stall.
QUICK = {"overrun_seconds": 1.2, "stall_seconds": 1.4, "silence_seconds": 5.0, "watch_seconds": 0.1}
PROMPT = {"restart_seconds_longest": 0.05}  # where the rest before a start is of no interest
# As users have them, or half as long.
SHARE = 1.0 if EVERYTHING else 0.5
OVERRUN, SILENCE = SHARE * OVERRUN_SECONDS, SHARE * SILENCE_SECONDS


def quick(numbers: Iterable[int], seconds: float = 0.001) -> list[dict[str, Any]]:
    return [{"number": number, "way": "wait", "seconds": seconds} for number in numbers]


# -- F06 ------------------------------------------------------------------------------------------------


@pytest.mark.fault("F06")
@pytest.mark.parametrize(
    "way, code",
    [
        ("kill", -signal.SIGKILL),
        pytest.param("segfault", -signal.SIGSEGV, marks=pytest.mark.slow),
        pytest.param("exit", 1, marks=pytest.mark.slow),
    ],
)
def test_a_message_that_kills_its_worker_is_put_away_after_three_deaths(
    way: str, code: int, site: Site, oracle: Oracle
) -> None:
    side_by_side = range(100, 106)
    others = [*range(60), *side_by_side, *range(200, 260)]
    poison = {"number": POISON, "way": way, "seconds": 0.1}
    site.send("deadly", *quick(range(60)), *quick(side_by_side, 0.4), poison, *quick(range(200, 260)))

    site.supervisor(waits=PROMPT)
    oracle.wait_until_empty("deadly")

    assert dead_letters(oracle) == [(POISON, "worker_died", 0, 3)]
    assert [death.exit_code for death in site.journal.all("worker.died")] == [code] * 3
    deliveries = site.journal.all("began", number=POISON)
    assert [(entry.attempt, entry.crashes) for entry in deliveries] == [(1, 0), (1, 1), (1, 2)]
    assert oracle.effects()["deadly"] == dict.fromkeys(others, 1)
    neighbours = [entry for entry in site.journal.all("began") if entry.number != POISON]
    assert {(entry.attempt, entry.crashes) for entry in neighbours} == {(1, 0)}
    assert len(beside(site, deliveries[0])) > 1, "nothing ran beside the poison: this proves little"
    for again in deliveries[1:]:
        assert beside(site, again) == []
    assert oracle.unbalanced() == []
    assert oracle.damage() == []


@pytest.mark.slow("postgres")
@pytest.mark.fault("F06")
def test_a_death_without_a_culprit_makes_suspects_of_all_and_convicts_only_one(site: Site, oracle: Oracle) -> None:
    others = range(7)
    site.send("deadly", {"number": POISON, "way": "kill-from-a-thread", "seconds": 0.1}, *quick(others, 0.3))

    site.supervisor(waits=PROMPT)
    oracle.wait_until_empty("deadly")

    assert dead_letters(oracle) == [(POISON, "worker_died", 0, 3)]
    assert oracle.effects()["deadly"] == dict.fromkeys(others, 1)
    again = [entry for entry in site.journal.all("began") if entry.crashes]
    assert len(again) >= 1 + len(others)
    for entry in again:
        assert beside(site, entry) == []


@pytest.mark.slow("postgres")
@pytest.mark.fault("F06")
def test_a_suspect_is_not_starved_by_a_queue_that_runs_one_at_a_time(site: Site, oracle: Oracle) -> None:
    others = range(300)
    site.send("narrow", {"number": POISON, "way": "kill", "seconds": 0.0}, *quick(others, 0.002))

    site.supervisor(waits=PROMPT)
    oracle.wait_until_empty("narrow")

    assert dead_letters(oracle) == [(POISON, "worker_died", 0, 3)]
    assert oracle.effects()["narrow"] == dict.fromkeys(others, 1)


@pytest.mark.fault("F06")
@pytest.mark.parametrize(
    "way, error",
    [
        ("sys.exit", "HandlerExit"),
        ("sys.exit after a wait", "HandlerExit"),
        ("interrupt", "HandlerExit"),
        ("generator exit", "HandlerExit"),
        ("base exception", "HandlerExit"),
        ("cancel itself", "HandlerExit"),
        ("fork", "ValueError"),
    ],
)
def test_an_exit_in_a_handler_is_its_failure_and_its_worker_goes_on(
    way: str, error: str, site: Site, oracle: Oracle
) -> None:
    others = range(20)
    site.send("hanging", {"number": POISON, "way": way, "seconds": 0.05}, *quick(others, 0.1))

    site.supervisor()
    oracle.wait_until_empty("hanging")

    assert dead_letters(oracle) == [(POISON, "exhausted", 2, 0)]
    assert oracle.dead()[0].error_class == error
    assert site.journal.all("worker.died") == []
    assert oracle.effects()["hanging"] == dict.fromkeys(others, 1)
    neighbours = [entry for entry in site.journal.all("began") if entry.number != POISON]
    assert {(entry.attempt, entry.crashes) for entry in neighbours} == {(1, 0)}
    assert oracle.unbalanced() == []


@pytest.mark.fault("F06")
def test_a_child_that_a_lone_handler_forked_ends_at_once_and_says_why(site: Site, oracle: Oracle) -> None:
    site.send("hanging", {"number": POISON, "way": "fork", "seconds": 0.0})

    site.supervisor()
    oracle.wait_until_empty("hanging")

    assert dead_letters(oracle) == [(POISON, "exhausted", 2, 0)]
    assert site.said().count("A handler forked and its child returned") == 2
    assert site.tracebacks() == []


@pytest.mark.fault("F06")
@pytest.mark.parametrize("way", ["sys.exit in a task", "cancel all", "close all"])
def test_what_breaks_the_event_loop_is_blamed_and_put_away_after_three_deaths(
    way: str, site: Site, oracle: Oracle
) -> None:
    others = range(20)
    site.send("deadly", {"number": POISON, "way": way, "seconds": 0.05}, *quick(others, 0.1))

    site.supervisor(waits=PROMPT)
    oracle.wait_until_empty("deadly")

    # Without its descriptors a commit can fail before the process does, which charges an attempt besides the crashes.
    [(number, reason, _, crashes)] = dead_letters(oracle)
    assert (number, reason, crashes) == (POISON, "worker_died", 3)
    assert len(site.journal.all("worker.died")) >= 3
    assert oracle.effects()["deadly"] == dict.fromkeys(others, 1)
    assert oracle.damage() == []


# -- F07 ------------------------------------------------------------------------------------------------


@pytest.mark.slow("postgres")
@pytest.mark.spec("A1-18")
def test_a_handler_that_sleeps_past_its_wall_limit_is_cancelled_and_retried(site: Site, oracle: Oracle) -> None:
    others = range(5)
    site.send("hanging", *quick(others, 0.2), {"number": POISON, "way": "wait", "seconds": 600.0})

    worker = site.worker()
    oracle.wait_until_empty("hanging")

    assert dead_letters(oracle) == [(POISON, "exhausted", 2, 0)]
    began = site.journal.all("began", number=POISON)
    cancelled = site.journal.all("cancelled")
    assert [entry.number for entry in cancelled] == [POISON, POISON]
    assert all(
        end.at - start.at >= HANG_WALL_SECONDS - EARLY_SECONDS for start, end in zip(began, cancelled, strict=True)
    )
    assert oracle.effects()["hanging"] == dict.fromkeys(others, 1)
    site.stop(worker)


@pytest.mark.fault("F07")
@pytest.mark.slow("postgres")
def test_a_handler_that_never_returns_is_charged_alone(sites: Callable[[str], Site]) -> None:
    # These wait beside it when the event loop stops turning: their time runs out as well, and it is not their fault.
    others = range(5)
    ways = {"spin": 0.0, "block": 1e9, "stubborn": 600.0}
    for way, seconds in ways.items():
        sites(way).send("hanging", *quick(others, 0.2), {"number": POISON, "way": way, "seconds": seconds})
        sites(way).supervisor(waits=QUICK)

    for way in ways:
        site, oracle = sites(way), Oracle(sites(way).database)
        oracle.wait_until_empty("hanging")
        assert dead_letters(oracle) == [(POISON, "exhausted", 2, 0)], way
        assert oracle.dead()[0].error_class == "HandlerTimeout"
        first, second = site.journal.all("began", number=POISON)
        assert (first.attempt, second.attempt) == (1, 2)
        killed = site.journal.all("worker.killed")
        assert len(killed) == 2
        assert second.at - killed[0].at >= RETRY_SECONDS
        assert killed[0].at - first.at >= HANG_WALL_SECONDS + QUICK["overrun_seconds"] - EARLY_SECONDS
        assert oracle.effects()["hanging"] == dict.fromkeys(others, 1)
        neighbours = [entry for entry in site.journal.all("began") if entry.number != POISON]
        assert {(entry.attempt, entry.crashes) for entry in neighbours} == {(1, 0)}, way
        assert oracle.unbalanced() == []


@pytest.mark.slow("postgres")
@pytest.mark.fault("F07", "F08")
@pytest.mark.slow("postgres")
def test_a_stuck_worker_is_killed_in_time_and_a_slow_one_left_alone(
    sites: Callable[[str], Site], note: Callable[[str], None]
) -> None:
    """The three cases wait side by side."""
    overdue, silent, slow = sites("overdue"), sites("silent"), sites("slow")
    others = range(3)
    overdue.send("hopeless", {"number": POISON, "way": "spin"})
    silent.send("stuck", {"number": POISON, "way": "block", "seconds": 1e9})
    slow.send("patient", *quick(others, 1.0), {"number": POISON, "way": "block", "seconds": SILENCE / 2})
    for site in (overdue, silent, slow):
        site.supervisor(waits={"overrun_seconds": OVERRUN, "silence_seconds": SILENCE})

    past_its_limit = killed_after(overdue) - HANG_WALL_SECONDS
    without_a_sign = killed_after(silent)
    note(
        f"a handler past its wall limit was killed after {past_its_limit:.1f} s, a silent one after {without_a_sign:.1f} s"
    )
    assert OVERRUN - EARLY_SECONDS <= past_its_limit <= OVERRUN + patient(LATE_SECONDS)
    assert SILENCE - BEAT_SECONDS - EARLY_SECONDS <= without_a_sign <= SILENCE + patient(LATE_SECONDS)
    for site in (overdue, silent):
        oracle = Oracle(site.database)
        oracle.wait_until_empty()
        assert dead_letters(oracle) == [(POISON, "exhausted", 1, 0)]

    oracle = Oracle(slow.database)
    oracle.wait_until_empty()
    assert oracle.effects()["patient"] == dict.fromkeys([*others, POISON], 1)
    assert len(slow.journal.all("began")) == len(others) + 1, "something was delivered again"
    assert slow.journal.all("worker.died") == []


def killed_after(site: Site) -> float:
    """Seconds from the beginning of the bad handler to the death of its worker."""
    began = site.journal.wait("began", number=POISON)
    return site.journal.wait("worker.killed", seconds=40).at - began.at


# -- looking at what happened -----------------------------------------------------------------------------


def dead_letters(oracle: Oracle) -> list[tuple[int, str, int, int]]:
    return [(number_of(each), each.reason, each.attempts, each.crashes) for each in oracle.dead()]


def number_of(buried: Buried) -> int:
    return msgspec.json.decode(buried.body, type=Task).number


def beside(site: Site, delivery: Entry) -> list[int]:
    """The numbers of other handlers that were under way in the same process at any time during this delivery."""
    ended = [entry.at for entry in site.journal.all("ended", pid=delivery.pid, number=delivery.number)]
    until = min((at for at in ended if at > delivery.at), default=float("inf"))
    found = []
    for other in site.journal.all("began", pid=delivery.pid):
        ends = [entry.at for entry in site.journal.all("ended", pid=delivery.pid, number=other.number)]
        over = min((at for at in ends if at > other.at), default=float("inf"))
        if other.number != delivery.number and other.at < until and over > delivery.at:
            found.append(other.number)
    return found
