"""Everything that is known of one message or run: why it waits where it waits, and how it ended elsewhere."""

from __future__ import annotations

from typing import Any

from penstock.contracts import running_handlers
from penstock.contracts.history import Entry
from penstock.data.reports import Asking
from penstock.data.usage import Reading
from penstock.model.envelope import replay_id
from penstock.model.errors import StoreError
from penstock.model.ids import as_text
from penstock.model.row import Row
from penstock.model.run import ENDED
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views import runs
from penstock.views import trace as tracing
from penstock.views.observer import Observer
from penstock.views.why import NOT_BEGUN, ROWS_MAX, Cause, MessageState, ended_run, error, waiting

SQL = load("penstock.views", "why.sql")


async def look(observer: Observer, text: str) -> list[MessageState]:
    now = observer.now()
    run = next(iter(await runs.find(observer, text, now=now)), None)
    id = tracing.parsed(text) if run is None else bytes(run.key)

    def began(worker: int, row: int) -> int | None:
        return _began(observer.lookout.cells(worker), row, now, observer.steady_micros())

    still = await waiting(observer, id, now=now, is_alive=observer.is_alive, began=began)
    # Where it waits, its past in that queue is in its row; a dead letter of another handler is not.
    there = {answer.queue for answer in still}
    past = await ended(observer, observer, id)
    if run is not None and run.state in ENDED:
        return [ended_run(run), *(answer for answer in past if answer.finding.state == "dead")]
    return still + [answer for answer in past if answer.finding.state == "dead" or answer.queue not in there]


def _began(cells: memoryview | None, row: int, now: int, steady: int) -> int | None:
    """Return when a worker on this host began a row, from its list of running handlers."""
    if cells is None or cells[0] != running_handlers.MARK:
        return None
    for handler in running_handlers.running(cells):
        if row in running_handlers.rows_of(cells, handler):
            return now - max(0, steady - handler.started_micros)
    return NOT_BEGUN


# -- how it ended: dead letters, deduplicated ids, and the history ---------------------------------------------


async def ended(reading: Reading, history: Asking, id: bytes) -> list[MessageState]:
    """Return each end of a message, dead letters first. Empty if nothing is known."""
    letters = [_dead(row) for row in await reading.rows(SQL["ended_dead"], id=id, most=ROWS_MAX)]
    known = {(answer.queue, answer.facts["handler"]) for answer in letters}
    queues = {queue for queue, _ in known}
    noted = {row.queue: row for row in await reading.rows(SQL["ended_processed"], id=id, most=ROWS_MAX)}
    past = [_past(entry) for entry in await _last_of_each(history, id) if entry.queue not in queues]
    known_queues = {answer.queue for answer in past} | queues
    kept = [
        MessageState(id, row.queue, row.type, Cause("done", "It is done.", row.processed_at))
        for row in noted.values()
        if row.queue not in known_queues
    ]
    return letters + past + kept


def _dead(row: Row) -> MessageState:
    facts: dict[str, Any] = {
        "handler": row.handler or None,
        "letter": row.seq,
        "letter_reason": row.reason,
        "attempt": row.attempts,
        "error": error(row),
        "resolution": row.resolution,
    }
    shown = "" if row.error_class is None else f": {error(row)}"
    died = f"It is dead letter {row.seq} ({row.reason}{shown})."
    if row.resolution is None:
        text = f"{died} Retry it with: penstock dead replay {row.seq}"
    elif row.replayed_at is not None:
        again = replay_id(bytes(row.replay_of or row.id), row.replay_count, row.seq)
        facts["replayed_as"] = as_text(again)
        text = f"{died} It was {row.resolution} as {as_text(again)}. Follow that with: penstock why {as_text(again)}"
    else:
        text = f"{died} It was {row.resolution}" + (f": {row.note}" if row.note else ".")
    return MessageState(bytes(row.id), row.queue, row.type, Cause("dead", text, row.failed_at), [], facts)


async def _last_of_each(history: Asking, id: bytes) -> list[Entry]:
    """Return the last delivery in each queue; none where the history cannot be read."""
    try:
        entries = await history.ask(lambda file: file.of_message(id))
    except StoreError:
        return []
    return list({entry.queue: entry for entry in entries}.values())


def _past(entry: Entry) -> MessageState:
    facts = {
        "attempt": entry.attempt,
        "service": entry.service,
        "since": iso_z(entry.started_at),
        "duration_ms": (entry.ended_at - entry.started_at) / 1_000,
        "error": entry.error,
    }
    match entry.status:
        case "acked":
            finding = Cause("done", f"It is done, on attempt {entry.attempt}.", entry.ended_at)
        case "dead":
            finding = Cause("dead", "It died, and its dead letter has been deleted.", entry.ended_at)
        case _:
            finding = Cause(
                "gone",
                f"Its last known delivery was {entry.status}, and it waits no more: it settled in the last second, was "
                "purged, or expired.",
                entry.ended_at,
            )
    return MessageState(entry.id, entry.queue, entry.name, finding, [], facts)
