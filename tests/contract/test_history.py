"""A history keeps what happened, answers by chain, by message and by minute, and is never in the way of the engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import apsw
import pytest

from penstock.contracts.history import Entry, HistoryFile, MinuteCount, Processed
from penstock.model.errors import StoreCorrupt, StoreError
from penstock.model.ids import IdSource, derived
from penstock.storage.postgres.store import PostgresStore
from penstock.storage.sqlite.history import SQL, SqliteHistory, path_of
from tests.postgres import END_OTHERS, empty_database, look

MINUTE = 60_000_000
MIDNIGHT = 1_763_251_200_000_000  # 2025-11-16T00:00:00Z
NOW = MIDNIGHT - 10 * MINUTE
IDS = IdSource(lambda: NOW, Random(7))

Opened = Callable[[], HistoryFile]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "market.db"


@pytest.fixture(params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def url(kept_on: str) -> str:
    """Of a server's database; empty for a file."""
    return empty_database() if kept_on == "postgres" else ""


@pytest.fixture
def opened(url: str, database: Path) -> Iterator[Opened]:
    """Opens the same history as one more process would."""
    made: list[HistoryFile] = []

    def open_one() -> HistoryFile:
        made.append(PostgresStore(url).open_history() if url else SqliteHistory(database))
        return made[-1]

    yield open_one
    for file in made:
        file.close()


@pytest.fixture
def history(opened: Opened) -> HistoryFile:
    return opened()


def entry(
    id: bytes | None = None,
    *,
    chain: bytes | None = None,
    cause: bytes | None = None,
    at: int = NOW,
    status: str = "acked",
    name: str = "app.enriched",
    source: str = "market",
    kind: str = "message",
    attempt: int = 1,
    error: str | None = None,
) -> Entry:
    id = id or IDS.new()
    return Entry(
        at, chain or id, id, cause, kind, "market", "pipeline-events", name, source, attempt, status, at - 5_000, error
    )


# -- asking ---------------------------------------------------------------------------------------------------


def test_a_chain_comes_back_as_it_was_noted_and_nothing_else_with_it(history: HistoryFile) -> None:
    first = entry(attempt=1, status="retried", error="ValueError: no")
    again = entry(first.id, attempt=2)
    child = entry(derived(first.id, "a"), chain=first.id, cause=first.id)
    history.append([first, entry(), again])
    history.append([entry(), child])

    assert history.chain(first.id, 10) == [first, again, child]
    assert history.chain(first.id, 2) == [first, again]
    assert history.chain(IDS.new(), 10) == []


def test_the_deliveries_of_one_message_are_found_by_its_id_wherever_it_stands_in_its_chain(
    history: HistoryFile,
) -> None:
    first = entry()
    child = entry(derived(first.id, "a"), chain=first.id, cause=first.id, status="later")
    again = entry(child.id, chain=first.id, cause=first.id)
    history.append([first, child, again, entry()])

    assert history.of_message(first.id) == [first]
    assert history.of_message(child.id) == [child, again]
    assert history.of_message(IDS.new()) == []


@pytest.mark.parametrize("count", [1, 19, 20, 21, 419, 420, 421, 1_000])
def test_batches_of_any_size_are_saved_whole(history: HistoryFile, count: int) -> None:
    chain = IDS.new()
    entries = [entry(chain=chain, at=NOW + number) for number in range(count)]

    history.append(entries)

    assert history.chain(chain, count + 1) == entries


def test_nothing_to_add_is_fine(history: HistoryFile) -> None:
    assert history.append([]) is None


# -- counting -------------------------------------------------------------------------------------------------


@pytest.mark.spec("A12-03", "G4-42")
def test_messages_are_counted_by_full_minute_in_order_across_midnight(history: HistoryFile) -> None:
    history.append([entry(at=MIDNIGHT + MINUTE + 1), entry(at=MIDNIGHT - 1), entry(at=MIDNIGHT - MINUTE)])
    history.append([entry(at=MIDNIGHT), entry(at=MIDNIGHT + 59_999_999)])

    assert history.per_minute(MIDNIGHT - 30 * MINUTE, MIDNIGHT + 2 * MINUTE) == [
        MinuteCount(MIDNIGHT - MINUTE, 2),
        MinuteCount(MIDNIGHT, 2),
        MinuteCount(MIDNIGHT + MINUTE, 1),
    ]
    assert history.per_minute(MIDNIGHT, MIDNIGHT) == [MinuteCount(MIDNIGHT, 2)]


@pytest.mark.spec("A12-03")
def test_only_what_was_acknowledged_counts_as_processed(history: HistoryFile) -> None:
    statuses = ("acked", "retried", "later", "released", "dead", "split")
    history.append([entry(status=status) for status in statuses])
    history.append([entry(kind="step"), entry(name="app.scored", source="crawler"), entry()])

    assert history.processed(NOW - 60 * MINUTE, NOW) == [
        Processed("app.enriched", "market", 2),
        Processed("app.scored", "crawler", 1),
    ]
    assert history.processed(NOW + MINUTE, NOW + 2 * MINUTE) == []
    assert history.processed(NOW - 60 * MINUTE, NOW - MINUTE) == []


# -- pruning --------------------------------------------------------------------------------------------------


def test_old_entries_go_in_portions_oldest_first_and_young_ones_stay(history: HistoryFile) -> None:
    chain = IDS.new()
    entries = [entry(chain=chain, at=NOW + number * MINUTE) for number in range(5)]
    for each in entries:
        history.append([each])

    assert history.prune(NOW + 3 * MINUTE, 2) == 2
    assert history.chain(chain, 10) == entries[2:]
    assert history.prune(NOW + 3 * MINUTE, 2) == 1
    assert history.prune(NOW + 3 * MINUTE, 2) == 0
    assert history.chain(chain, 10) == entries[3:]


@pytest.mark.only_on("sqlite")
def test_an_entry_that_is_noted_late_is_not_pruned_early(history: HistoryFile) -> None:
    """It held back while the disk was full. What is noted behind it must be found by its own time."""
    chain = IDS.new()
    history.append([entry(chain=chain, at=NOW)])
    late = entry(chain=chain, at=NOW - 60 * MINUTE)
    history.append([late])

    assert history.prune(NOW - 30 * MINUTE, 10) == 0
    assert history.prune(NOW, 10) == 0
    assert history.prune(NOW + 1_000, 10) == 2


def test_reports_still_count_what_was_pruned(history: HistoryFile) -> None:
    history.append([entry()])
    assert history.prune(NOW + MINUTE, 10) == 1

    assert history.processed(NOW, NOW) == [Processed("app.enriched", "market", 1)]


@pytest.mark.only_on("sqlite")
def test_labels_that_nothing_uses_any_more_go_with_their_entries(history: HistoryFile, database: Path) -> None:
    """Types can come from outside, so there is no end to them."""
    month = 31 * 1_440 * MINUTE
    history.append([entry(name="old", at=NOW - 2 * month)])
    history.append([entry(name="kept"), entry(name="kept", status="dead")])

    history.prune(NOW - month, 10)
    history.prune(NOW - month, 10)

    labels = apsw.Connection(str(path_of(database))).execute("select name from labels order by label").fetchall()
    assert labels == [("kept",), ("kept",)]
    assert history.processed(NOW, NOW) == [Processed("kept", "market", 1)]


def test_what_failed_to_be_saved_leaves_nothing_half_known(history: HistoryFile) -> None:
    """The label of an entry that was rolled back is made again."""
    broken = entry(name="new", error="half \ud83d")
    with pytest.raises(UnicodeEncodeError):
        history.append([broken])
    sound = broken._replace(error=None)

    history.append([sound])

    assert history.chain(sound.id, 10) == [sound]


def test_minutes_are_kept_for_a_month(history: HistoryFile) -> None:
    month = 31 * 1_440 * MINUTE
    history.append([entry(at=NOW - month - MINUTE), entry(at=NOW - month), entry(at=NOW)])

    history.prune(0, 10)

    assert history.per_minute(0, NOW) == [MinuteCount(NOW - month, 1), MinuteCount(NOW, 1)]


@pytest.mark.only_on("sqlite")
def test_space_that_was_pruned_is_not_counted_and_is_used_again(history: HistoryFile) -> None:
    entries = [entry(at=NOW + number) for number in range(4_000)]
    history.append(entries)
    full = history.bytes()

    history.prune(NOW + MINUTE, 10_000)
    pruned = history.bytes()
    history.append(entries)

    assert pruned < full / 4
    assert history.bytes() <= full * 1.1


# -- several processes ----------------------------------------------------------------------------------------


def test_several_processes_add_to_one_history(opened: Opened) -> None:
    one, other = opened(), opened()
    first = entry()
    child = entry(derived(first.id, "a"), chain=first.id, cause=first.id)

    one.append([first])
    other.append([child])

    assert one.chain(first.id, 10) == other.chain(first.id, 10) == [first, child]
    assert one.processed(NOW, NOW) == [Processed("app.enriched", "market", 2)]


@pytest.mark.only_on("postgres")
def test_a_history_connects_again_once_the_server_has_ended_its_connection(history: HistoryFile, url: str) -> None:
    first, second = entry(), entry()
    history.append([first])

    look(url, END_OTHERS)
    history.append([second])

    assert history.chain(second.id, 10) == [second]
    assert history.processed(NOW, NOW) == [Processed("app.enriched", "market", 2)]


@pytest.mark.only_on("postgres")
def test_an_error_that_no_new_connection_mends_is_reported_at_once(history: HistoryFile, url: str) -> None:
    history.append([entry()])
    look(url, "alter table penstock.penstock_history rename to elsewhere")
    try:
        with pytest.raises(StoreError, match="cannot be written now"):
            history.append([entry()])
    finally:
        look(url, "alter table penstock.elsewhere rename to penstock_history")


@pytest.mark.only_on("sqlite")
def test_processes_that_begin_a_history_at_the_same_moment_lose_nothing(database: Path) -> None:
    chain = IDS.new()
    failures: list[BaseException] = []

    def add() -> None:
        file = SqliteHistory(database)
        try:
            for _ in range(20):
                file.append([entry(chain=chain)])
        except BaseException as error:
            failures.append(error)
        finally:
            file.close()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(SqliteHistory(database).chain(chain, 1_000)) == 80


# -- a file that cannot be used -------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite")
def test_a_history_that_is_no_database_is_set_aside_and_begun_anew(history: HistoryFile, database: Path) -> None:
    path_of(database).write_bytes(b"this is no database, it is a letter to my aunt\n" * 100)
    noted = entry()

    said = history.append([noted])

    assert said is not None
    assert "market.db-history-aside" in said
    assert path_of(database).with_name("market.db-history-aside").read_bytes().startswith(b"this is no")
    assert history.chain(noted.id, 10) == [noted]
    assert history.append([entry()]) is None


@pytest.mark.parametrize("damage", ["truncated", "zeroed", "folder", "another program's", "newer"])
@pytest.mark.only_on("sqlite")
def test_whatever_lies_there_the_history_goes_on(opened: Opened, database: Path, damage: str) -> None:
    path = path_of(database)
    before = opened()
    before.append([entry(at=NOW + number) for number in range(2_000)])
    before.close()
    match damage:
        case "truncated":
            os.truncate(path, path.stat().st_size // 2 // 4_096 * 4_096 + 100)
        case "zeroed":
            with path.open("r+b") as file:
                file.seek(4_096)
                file.write(bytes(path.stat().st_size - 4_096))
        case "folder":
            path.unlink()
            path.mkdir()
        case "another program's":
            path.unlink()
            apsw.Connection(str(path)).execute("create table notes (text); pragma user_version = 3")
        case "newer":
            apsw.Connection(str(path)).pragma("user_version", 99)
    history = opened()
    noted = entry()

    history.append([noted])

    assert history.chain(noted.id, 10) == [noted]


@pytest.mark.only_on("sqlite")
def test_a_history_set_aside_by_one_process_is_begun_anew_by_all(opened: Opened, database: Path) -> None:
    one, other = opened(), opened()
    one.append([entry()])
    other.append([entry()])
    os.replace(path_of(database), path_of(database).with_name("elsewhere"))
    first = entry()
    child = entry(derived(first.id, "a"), chain=first.id)

    one.append([first])
    other.append([child])

    assert one.chain(first.id, 10) == [first, child]


@pytest.mark.only_on("sqlite")
def test_two_that_find_the_same_damage_set_it_aside_once(opened: Opened, database: Path) -> None:
    one, other = opened(), opened()
    one.append([entry()])
    other.append([entry()])
    one.close()
    other.close()
    path_of(database).write_bytes(b"scrambled" * 1_000)
    first = entry()
    child = entry(derived(first.id, "a"), chain=first.id)

    assert one.append([first]) is not None
    other.append([child])

    assert one.chain(first.id, 10) == [first, child]


@pytest.mark.only_on("sqlite")
def test_a_full_or_failing_disk_is_reported_and_nothing_is_half_saved(history: HistoryFile, database: Path) -> None:
    chain = IDS.new()
    history.append([entry(chain=chain)])
    assert isinstance(history, SqliteHistory)
    assert history._connection is not None
    history._connection.pragma("max_page_count", int(history._connection.pragma("page_count")) + 2)

    with pytest.raises(StoreError, match="full"):
        history.append([entry(chain=chain) for _ in range(5_000)])

    assert len(history.chain(chain, 10_000)) == 1
    history._connection.pragma("max_page_count", 1_000_000)
    assert history.append([entry(chain=chain)]) is None


# -- only looking ---------------------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite")
def test_looking_for_a_history_makes_none(database: Path) -> None:
    looked = SqliteHistory(database, read_only=True)

    assert looked.chain(IDS.new(), 10) == []
    assert looked.of_message(IDS.new()) == []
    assert looked.per_minute(0, NOW) == []
    assert looked.bytes() == 0
    looked.close()
    assert list(database.parent.iterdir()) == []


@pytest.mark.only_on("sqlite")
def test_a_reader_sees_what_is_added_and_leaves_a_damaged_one_alone(opened: Opened, database: Path) -> None:
    looked = SqliteHistory(database, read_only=True)
    writer = opened()
    noted = entry()
    writer.append([noted])
    assert looked.chain(noted.id, 10) == [noted]
    looked.close()
    writer.close()

    path_of(database).write_bytes(b"scrambled" * 1_000)
    with pytest.raises(StoreCorrupt, match="renames it"):
        SqliteHistory(database, read_only=True).chain(noted.id, 10)
    assert path_of(database).read_bytes().startswith(b"scrambled")


# -- how it is found ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, index",
    [
        ("chain", "USING INDEX entries_chains"),
        ("of_later_message", "USING INDEX entries_ids"),
        ("of_first_message", "USING INDEX entries_chains"),
        ("processed", "USING PRIMARY KEY"),
        ("per_minute", "USING PRIMARY KEY"),
        ("prune", "USING INTEGER PRIMARY KEY"),
        ("count_minutes", "USING INTEGER PRIMARY KEY"),
    ],
)
@pytest.mark.only_on("sqlite")
def test_every_question_finds_its_rows_through_an_index(opened: Opened, database: Path, name: str, index: str) -> None:
    opened().append([entry()])
    bound = dict.fromkeys(re.findall(r":([a-z_]+)", SQL[name]))

    plan = [row[3] for row in apsw.Connection(str(path_of(database))).execute(f"explain query plan {SQL[name]}", bound)]

    assert any(index in step for step in plan), plan
    assert not any(step.startswith(("SCAN entries", "SCAN minutes")) for step in plan), plan


@pytest.mark.only_on("sqlite")
def test_a_process_that_is_killed_loses_no_history_that_was_saved(database: Path, opened: Opened) -> None:
    program = (
        "import os, signal, sys\n"
        "from penstock.contracts.history import Entry\n"
        "from penstock.storage.sqlite.history import SqliteHistory\n"
        "file = SqliteHistory(sys.argv[1])\n"
        "file.append([Entry(1, b'a' * 16, b'a' * 16, None, 'message', 's', 'q', 'n', 's', 1, 'acked', 0, None)])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(database)], check=False, timeout=60)

    assert [each.id for each in opened().chain(b"a" * 16, 10)] == [b"a" * 16]
