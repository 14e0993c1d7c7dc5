"""Messages that kill their worker, or never let it go: each is found out and put away, and takes nobody with it."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.crash.harness import Site
from tests.crash.journal import Entry, wait_until
from tests.crash.oracle import Buried, Oracle
from tests.crash.victim import HANG_WALL_SECONDS, RETRY_SECONDS, Task

POISON = 666
QUICK = {"overrun_seconds": 0.5, "silence_seconds": 3.0, "watch_seconds": 0.1}


def quick(numbers: Iterable[int], seconds: float = 0.001) -> list[dict[str, Any]]:
    return [{"number": number, "way": "wait", "seconds": seconds} for number in numbers]


# -- F06 ------------------------------------------------------------------------------------------------


@pytest.mark.fault("F06")
@pytest.mark.parametrize("way, code", [("kill", -signal.SIGKILL), ("segfault", -signal.SIGSEGV), ("exit", 1)])
def test_a_message_that_kills_its_worker_is_put_away_after_three_deaths(
    way: str, code: int, site: Site, oracle: Oracle
) -> None:
    side_by_side = range(100, 106)
    others = [*range(60), *side_by_side, *range(200, 260)]
    poison = {"number": POISON, "way": way, "seconds": 0.1}
    site.send("deadly", *quick(range(60)), *quick(side_by_side, 0.4), poison, *quick(range(200, 260)))

    site.supervisor()
    wait_until(lambda: oracle.left("deadly") == 0, "empty queue", 15)

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


@pytest.mark.fault("F06")
def test_a_death_without_a_culprit_makes_suspects_of_all_and_convicts_only_one(site: Site, oracle: Oracle) -> None:
    others = range(7)
    site.send("deadly", {"number": POISON, "way": "kill-from-a-thread", "seconds": 0.1}, *quick(others, 0.3))

    site.supervisor()
    wait_until(lambda: oracle.left("deadly") == 0, "empty queue", 15)

    assert dead_letters(oracle) == [(POISON, "worker_died", 0, 3)]
    assert oracle.effects()["deadly"] == dict.fromkeys(others, 1)
    again = [entry for entry in site.journal.all("began") if entry.crashes]
    assert len(again) >= 1 + len(others)
    for entry in again:
        assert beside(site, entry) == []


@pytest.mark.fault("F06")
def test_a_suspect_is_not_starved_by_a_queue_that_runs_one_at_a_time(site: Site, oracle: Oracle) -> None:
    others = range(300)
    site.send("narrow", {"number": POISON, "way": "kill", "seconds": 0.0}, *quick(others, 0.002))

    site.supervisor()
    wait_until(lambda: oracle.left("narrow") == 0, "empty queue", 15)

    assert dead_letters(oracle) == [(POISON, "worker_died", 0, 3)]
    assert oracle.effects()["narrow"] == dict.fromkeys(others, 1)


# -- F07 ------------------------------------------------------------------------------------------------


@pytest.mark.fault("F07")
@pytest.mark.spec("A1-18")
@pytest.mark.parametrize("way, seconds", [("spin", 0.0), ("block", 1e9), ("stubborn", 600.0)])
def test_a_handler_that_never_returns_is_charged_alone(way: str, seconds: float, site: Site, oracle: Oracle) -> None:
    # These wait beside it when the event loop stops turning: their time runs out as well, and it is not their fault.
    others = range(5)
    site.send("hanging", *quick(others, 0.2), {"number": POISON, "way": way, "seconds": seconds})

    site.supervisor(**QUICK)
    wait_until(lambda: oracle.left("hanging") == 0, "empty queue", 15)

    assert dead_letters(oracle) == [(POISON, "exhausted", 2, 0)]
    assert oracle.dead()[0].error_class == "WallLimit"
    first, second = site.journal.all("began", number=POISON)
    assert (first.attempt, second.attempt) == (1, 2)
    killed = site.journal.all("worker.killed")
    assert len(killed) == 2
    assert second.at - killed[0].at >= RETRY_SECONDS
    assert killed[0].at - first.at >= HANG_WALL_SECONDS + QUICK["overrun_seconds"]
    assert oracle.effects()["hanging"] == dict.fromkeys(others, 1)
    neighbours = [entry for entry in site.journal.all("began") if entry.number != POISON]
    assert {(entry.attempt, entry.crashes) for entry in neighbours} == {(1, 0)}
    assert oracle.unbalanced() == []


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
