"""A lone small unit commits on the event loop's own thread, unless that thread would have to wait for anything."""

from __future__ import annotations

import asyncio
import fcntl
import threading
from pathlib import Path

import apsw
import pytest

import penstock as ps
from penstock.contracts.ledger import ClaimRequest
from penstock.model.errors import StoreUnavailable
from penstock.runtime import groups, scheduler
from penstock.runtime.events import StoreFailed
from penstock.runtime.groups import CommitGroup, GroupResult
from penstock.storage.sqlite.connection import disconnect
from penstock.storage.sqlite.session import SqliteSession

pytestmark = [pytest.mark.anyio, pytest.mark.only_on("sqlite")]


class Parcelled(ps.Event, type="parcelled"):
    number: int


class Watched:
    """Which threads commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[str] = []
        commit = groups.commit_group

        def watched(ledger: object, group: CommitGroup) -> GroupResult:
            self.threads.append("loop" if threading.current_thread() is threading.main_thread() else "lane")
            return commit(ledger, group)  # type: ignore[arg-type]

        monkeypatch.setattr(scheduler, "commit_group", watched)
        monkeypatch.setattr(scheduler, "HERE_SECONDS", 60.0)  # whatever the disk does meanwhile
        monkeypatch.setattr(scheduler, "HERE_SECONDS_MAX", 60.0)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


async def test_lone_sends_commit_on_the_event_loop_and_everything_else_in_the_thread(
    tmp_path: Path, watched: Watched
) -> None:
    app = ps.App("sender", database=tmp_path / "a.db")
    queue = app.queue("parcels", Parcelled)
    async with app:
        (await app._opened()).scheduler._usual_seconds = 0.0
        async with app.unit():
            queue.send(Parcelled(number=1))
        assert watched.threads == ["loop"]

        async with app.unit():
            queue.send_all([Parcelled(number=each) for each in range(scheduler.HERE_EFFECTS_MAX + 1)])
        async with app.unit():
            app.db.atomically(lambda tx: tx.value("select 1"))
        assert watched.threads == ["loop", "lane", "lane"]
        assert (await (await app.desk()).backlog("parcels")).count == scheduler.HERE_EFFECTS_MAX + 2


async def test_a_send_does_not_hold_up_the_event_loop_while_another_process_has_its_turn(
    tmp_path: Path, watched: Watched
) -> None:
    app = ps.App("sender", database=tmp_path / "a.db")
    queue = app.queue("parcels", Parcelled)
    async with app:
        (await app._opened()).scheduler._usual_seconds = 0.0
        with (tmp_path / "a.db-turn").open("r+b") as other:
            fcntl.flock(other, fcntl.LOCK_EX)

            async def send() -> None:
                async with app.unit():
                    queue.send(Parcelled(number=1))

            sending = asyncio.ensure_future(send())
            await asyncio.sleep(0.05)
            assert not sending.done()
            fcntl.flock(other, fcntl.LOCK_UN)
            await sending
        assert watched.threads == ["lane"]


async def test_a_disk_that_was_slow_gives_the_next_commits_to_the_thread(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "HERE_SECONDS_MAX", 0.0)
    monkeypatch.setattr(scheduler, "HERE_PAUSE_SECONDS", 60.0)
    app = ps.App("sender", database=tmp_path / "a.db")
    queue = app.queue("parcels", Parcelled)
    async with app:
        (await app._opened()).scheduler._usual_seconds = 0.0
        for number in range(3):
            async with app.unit():
                queue.send(Parcelled(number=number))
    assert watched.threads[:3] == ["loop", "lane", "lane"]


async def test_a_program_that_locks_the_file_for_a_moment_is_waited_for_in_the_thread(
    tmp_path: Path, watched: Watched
) -> None:
    app = ps.App("sender", database=tmp_path / "a.db")
    queue = app.queue("parcels", Parcelled)
    failures: list[object] = []
    app.events.subscribe(failures.append, StoreFailed)
    async with app:
        (await app._opened()).scheduler._usual_seconds = 0.0
        other = apsw.Connection(str(tmp_path / "a.db"))
        other.execute("begin immediate")

        async def send() -> None:
            async with app.unit():
                queue.send(Parcelled(number=1))

        sending = asyncio.ensure_future(send())
        await asyncio.sleep(0.02)
        other.execute("rollback")
        other.close()
        await asyncio.wait_for(sending, 10)
        assert (await (await app.desk()).backlog("parcels")).count == 1
    assert watched.threads == ["loop", "lane"]
    assert failures == []


async def test_a_sender_gets_an_error_when_the_file_cannot_be_opened_again_after_a_failure(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ps.App("sender", database=tmp_path / "a.db")
    queue = app.queue("parcels", Parcelled)

    def failing(session: SqliteSession) -> None:
        raise apsw.IOError("disk I/O error")

    def not_reopened(session: SqliteSession) -> None:
        disconnect(session.connection)
        raise StoreUnavailable("The file cannot be opened.")

    async with app:
        scheduler = (await app._opened()).scheduler
        scheduler._usual_seconds = 0.0
        with monkeypatch.context() as patched:
            patched.setattr(SqliteSession, "commit", failing)
            patched.setattr(SqliteSession, "reopen", not_reopened)

            async def send() -> None:
                async with app.unit():
                    queue.send(Parcelled(number=1))

            with pytest.raises(StoreUnavailable, match="cannot be opened"):
                await asyncio.wait_for(send(), 5)
        assert scheduler.broken is not None
        with (tmp_path / "a.db-turn").open("r+b") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_pull_whose_client_left_leases_nothing(tmp_path: Path) -> None:
    app = ps.App("sender", database=tmp_path / "a.db")
    queue = app.queue("parcels", Parcelled)
    async with app:
        async with app.unit():
            queue.send(Parcelled(number=1))
        engine = await app._opened()
        request = ClaimRequest("parcels", 1, 60_000_000, pull=True)
        given_up = asyncio.ensure_future(engine.scheduler.pull(request))
        await asyncio.sleep(0)
        given_up.cancel()
        assert len(await engine.scheduler.pull(request)) == 1
