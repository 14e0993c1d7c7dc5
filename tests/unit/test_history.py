"""The keeper of the history: a list in memory, saved once a second, that no trouble of its file can carry to the engine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.contracts.faults import NoFaults
from penstock.contracts.history import Entry, HistoryFile
from penstock.model.errors import StorageFull
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, RELEASED, Again, Dead, Failure, Settlement, Split
from penstock.runtime import history as keeping
from penstock.runtime.events import EngineEvent, Events
from penstock.runtime.history import HistoryDropped, HistoryFailed, HistoryLog, HistoryRenewed
from penstock.storage.sqlite.history import SqliteHistory, path_of
from penstock.testing import virtual
from penstock.testing.surroundings import VirtualHost

CHAIN = b"c" * 16


class FullDisk(SqliteHistory):
    """A history on a disk that is full while `full` is set."""

    full = False

    def append(self, entries: Sequence[Entry]) -> str | None:
        if self.full:
            raise StorageFull("The disk is full.")
        return super().append(entries)


class Desk:
    """A keeper with its file, in a process of its own."""

    def __init__(self, folder: Path, keep_seconds: float = 90 * 86_400.0) -> None:
        host = VirtualHost()
        self.database = folder / "market.db"
        self.surroundings = host.surroundings(host.process("worker"), NoFaults())
        self.clock = self.surroundings.clock
        self.told: list[EngineEvent] = []
        events = Events()
        events.subscribe(self.told.append)
        self.file = FullDisk(self.database)
        self.opened = 0
        self.history = HistoryLog(
            self._open,
            self.surroundings.lane,
            self.clock,
            events,
            share=1.0,
            service="market",
            keep_seconds=keep_seconds,
        )

    def _open(self) -> HistoryFile:
        self.opened += 1
        return self.file

    def entry(self, **changes: Any) -> Entry:
        now = self.clock.now()
        made = Entry(now, CHAIN, b"i" * 16, None, "message", "market", "q", "t", "s", 1, "acked", now, None)
        return made._replace(**changes)

    def saved(self) -> list[Entry]:
        return SqliteHistory(self.database).chain(CHAIN, 1_000_000)

    @property
    def warnings(self) -> list[type[EngineEvent]]:
        return [type(event) for event in self.told]


def timers() -> int:
    return sum(not timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]


def delivery(**facts: Any) -> Delivery:
    known = {
        "correlation_id": CHAIN,
        "id": b"i" * 16,
        "causation_id": b"p" * 16,
        "queue": "q",
        "type": "t",
        "source": "s",
    }
    values: dict[str, Any] = {**dict.fromkeys(Delivery._fields, 0), **known, **facts}
    return Delivery(**values)


# -- once a second --------------------------------------------------------------------------------------------


@virtual
async def test_an_idle_keeper_has_no_timer_no_thread_and_no_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    assert timers() == 0
    await desk.history.close()

    assert desk.opened == 0
    assert os.listdir(tmp_path) == []


@virtual
async def test_entries_are_saved_together_a_second_after_the_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first = desk.entry()

    desk.history.note(first)
    await asyncio.sleep(0.9)
    second = desk.entry()
    desk.history.note(second)
    assert timers() == 1
    assert not path_of(desk.database).exists()
    await asyncio.sleep(0.2)

    assert desk.saved() == [first, second]
    assert timers() == 0


@virtual
async def test_the_timer_is_set_anew_by_what_comes_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for _ in range(3):
        desk.history.note(desk.entry())
        await asyncio.sleep(5)

    assert len(desk.saved()) == 3
    assert timers() == 0


@virtual
async def test_what_is_noted_while_the_history_is_being_saved_follows_a_second_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.history.note(desk.entry())
    asyncio.get_running_loop().call_later(1.0, lambda: desk.history.note(desk.entry()))

    await asyncio.sleep(3)

    assert len(desk.saved()) == 2
    assert timers() == 0


@virtual
async def test_closing_saves_what_is_noted_and_later_entries_are_ignored(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.history.note(desk.entry())

    await desk.history.close()
    await desk.history.close()
    desk.history.note(desk.entry())
    await asyncio.sleep(5)

    assert len(desk.saved()) == 1
    assert timers() == 0


@virtual
async def test_a_question_is_answered_with_what_was_just_noted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    noted = desk.entry()
    desk.history.note(noted)

    assert await desk.history.ask(lambda file: file.chain(CHAIN, 10)) == [noted]
    assert timers() == 0


@virtual
async def test_a_killed_process_saves_nothing_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.history.note(desk.entry())
    await asyncio.sleep(2)
    desk.history.note(desk.entry())

    desk.history.vanish()
    await desk.history.close()

    assert len(desk.saved()) == 1


@virtual
async def test_where_no_history_is_kept_none_is_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path, keep_seconds=0)

    desk.history.note(desk.entry())
    desk.history.settled(delivery(), DONE, 0.0, 0.0)
    await asyncio.sleep(5)

    assert timers() == 0
    assert os.listdir(tmp_path) == []


# -- what is noted --------------------------------------------------------------------------------------------

NO = Failure("ValueError", "no")


@pytest.mark.parametrize(
    "settlement, status, error",
    [
        (DONE, "acked", None),
        (Again(30.0, failure=NO), "retried", "ValueError: no"),
        (Again(5.0, charged=False), "later", None),
        (Again(5.0, charged=False, failure=NO), "later", "ValueError: no"),
        (RELEASED, "released", None),
        (Dead("exhausted", NO), "dead", "ValueError: no"),
        (Dead("discarded"), "dead", None),
        (Split(("a", "b")), "split", None),
    ],
)
def test_each_settlement_has_its_word(tmp_path: Path, settlement: Settlement, status: str, error: str | None) -> None:
    @virtual
    async def check() -> None:
        desk = Desk(tmp_path)
        began = asyncio.get_running_loop().time()
        at = desk.clock.now()
        await asyncio.sleep(0.25)

        desk.history.settled(delivery(attempts=2), settlement, began, asyncio.get_running_loop().time())
        await desk.history.close()

        (noted,) = desk.saved()
        assert abs(noted.started_at - at) <= 1
        assert abs(noted.ended_at - at - 250_000) <= 1
        expected = Entry(0, CHAIN, b"i" * 16, b"p" * 16, "message", "market", "q", "t", "s", 3, status, 0, error)
        assert noted._replace(ended_at=0, started_at=0) == expected

    check()


@virtual
async def test_what_never_ran_took_no_time(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.history.settled(delivery(), Dead("unknown_type"), 0.0, 0.0)
    await desk.history.close()

    (noted,) = desk.saved()

    assert noted.started_at == noted.ended_at


@virtual
async def test_errors_are_kept_short_without_secrets_and_whatever_characters_they_hold(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    hostile = "half \ud83d of it, https://ada:hunter2@shop.example/ " + "x" * 10_000
    desk.history.settled(delivery(), Dead("permanent", Failure("Refused", hostile)), 0.0, 0.0)
    await desk.history.close()

    (noted,) = desk.saved()

    assert noted.error is not None
    assert noted.error.startswith("Refused: half ? of it, https://ada:[redacted]@shop.example/ xx")
    assert len(noted.error) == keeping.ERROR_TEXT_MAX


# -- trouble --------------------------------------------------------------------------------------------------


@virtual
async def test_a_history_that_cannot_be_saved_is_tried_again_and_reported_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.file.full = True
    for _ in range(5):
        desk.history.note(desk.entry())
        await asyncio.sleep(40)
    assert desk.warnings == [HistoryFailed]

    desk.file.full = False
    await asyncio.sleep(60)

    assert len(desk.saved()) == 5
    assert desk.warnings == [HistoryFailed]
    assert timers() == 0


@virtual
async def test_closing_never_fails_for_the_history(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.file.full = True
    desk.history.note(desk.entry())

    await desk.history.close()

    assert desk.warnings == [HistoryFailed]
    assert timers() == 0


@virtual
async def test_more_than_memory_should_hold_is_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PENDING_MAX", 10)
    desk = Desk(tmp_path)
    desk.file.full = True
    for _ in range(8):
        desk.history.note(desk.entry())
    await asyncio.sleep(2)
    for _ in range(5):
        desk.history.settled(delivery(), DONE, 0.0, 0.0)
    desk.file.full = False
    await asyncio.sleep(40)

    assert len(desk.saved()) == 10
    assert [event for event in desk.told if isinstance(event, HistoryDropped)] == [HistoryDropped(3)]


@virtual
async def test_a_damaged_file_is_one_warning_and_no_entry_is_lost(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path_of(desk.database).write_bytes(b"scrambled" * 1_000)
    for _ in range(3):
        desk.history.note(desk.entry())
        await asyncio.sleep(5)

    assert desk.warnings == [HistoryRenewed]
    assert len(desk.saved()) == 3


@virtual
async def test_an_entry_that_cannot_be_saved_is_not_in_the_way_of_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.history.note(desk.entry(error="half \ud83d"))
    await asyncio.sleep(5)
    fine = desk.entry()
    desk.history.note(fine)
    await asyncio.sleep(5)

    assert desk.saved() == [fine]
    assert desk.warnings == [HistoryFailed, HistoryDropped]


# -- pruning --------------------------------------------------------------------------------------------------


async def noted_for(desk: Desk, seconds: int, every: int, stop: Callable[[], bool] = lambda: False) -> None:
    for _ in range(0, seconds, every):
        desk.history.note(desk.entry())
        await asyncio.sleep(every)
        if stop():
            return


@virtual
async def test_entries_older_than_they_are_kept_go(tmp_path: Path) -> None:
    desk = Desk(tmp_path, keep_seconds=3_600)

    await noted_for(desk, 7_200, every=60)

    assert 58 <= len(desk.saved()) <= 71  # a look every ten minutes
    assert min(each.ended_at for each in desk.saved()) > desk.clock.now() - 4_260 * 1_000_000


@virtual
async def test_a_history_that_grows_too_large_loses_its_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "BYTES_MAX", 100_000)
    monkeypatch.setattr(keeping, "PRUNED_LEAST", 50)
    desk = Desk(tmp_path)

    await noted_for(desk, 3_000, every=2)
    saved = desk.saved()

    assert 100 < len(saved) < 1_200
    assert saved[-1].ended_at > desk.clock.now() - 4_000_000
    assert desk.file.bytes() < 130_000
