"""What became of a message that does not wait any more: dead letters, ids that were kept, and the history."""

from __future__ import annotations

from typing import Any

from penstock.contracts.history import Entry
from penstock.data.reports import Asking
from penstock.data.usage import Reading
from penstock.data.why import ROWS_MAX, Answer, Finding, error
from penstock.model.envelope import replay_id
from penstock.model.errors import StoreError
from penstock.model.ids import as_text
from penstock.model.row import Row
from penstock.model.times import iso_z

DEAD = """
select seq, id, queue, handler, type, reason, error_class, error_message, traceback, attempts, failed_at,
  replay_of, replay_count, replayed_at, resolved_at, resolution, note
from penstock_dead
where id = :id
order by seq desc
limit :most
"""
PROCESSED = """
select queue, type, processed_at
from penstock_seen
where id = :id
and processed_at is not null
order by processed_at desc
limit :most
"""


async def ended(reading: Reading, history: Asking, id: bytes) -> list[Answer]:
    """Each end of it, dead letters first. Empty if nothing is known."""
    letters = [_dead(row) for row in await reading.rows(DEAD, id=id, most=ROWS_MAX)]
    known = {(answer.queue, answer.facts["handler"]) for answer in letters}
    queues = {queue for queue, _ in known}
    noted = {row.queue: row for row in await reading.rows(PROCESSED, id=id, most=ROWS_MAX)}
    past = [_past(entry) for entry in await _last_of_each(history, id) if entry.queue not in queues]
    told = {answer.queue for answer in past} | queues
    kept = [
        Answer(id, row.queue, row.type, Finding("done", "It is done.", row.processed_at))
        for row in noted.values()
        if row.queue not in told
    ]
    return letters + past + kept


def _dead(row: Row) -> Answer:
    facts: dict[str, Any] = {
        "handler": row.handler or None,
        "letter": row.seq,
        "letter_reason": row.reason,
        "attempt": row.attempts,
        "error": error(row),
        "resolution": row.resolution,
    }
    told = "" if row.error_class is None else f": {error(row)}"
    died = f"It is dead letter {row.seq} ({row.reason}{told})."
    if row.resolution is None:
        said = f"{died} `penstock dead replay {row.seq}` sends it back."
    elif row.replayed_at is not None:
        again = replay_id(bytes(row.replay_of or row.id), row.replay_count, row.seq)
        facts["replayed_as"] = as_text(again)
        said = f"{died} It was {row.resolution} and went back as {as_text(again)}: ask about that."
    else:
        said = f"{died} It was {row.resolution}" + (f": {row.note}" if row.note else ".")
    return Answer(bytes(row.id), row.queue, row.type, Finding("dead", said, row.failed_at), [], facts)


async def _last_of_each(history: Asking, id: bytes) -> list[Entry]:
    """The last delivery in each queue. A history that cannot be read is as one that knows nothing."""
    try:
        entries = await history.ask(lambda file: file.of_message(id))
    except StoreError:
        return []
    return list({entry.queue: entry for entry in entries}.values())


def _past(entry: Entry) -> Answer:
    facts = {
        "attempt": entry.attempt,
        "service": entry.service,
        "since": iso_z(entry.started_at),
        "duration_ms": (entry.ended_at - entry.started_at) / 1_000,
        "error": entry.error,
    }
    match entry.status:
        case "acked":
            finding = Finding("done", f"It is done, on attempt {entry.attempt}.", entry.ended_at)
        case "dead":
            finding = Finding("dead", "It died, and its dead letter is not kept any more.", entry.ended_at)
        case _:
            finding = Finding(
                "gone",
                f"It was last seen when it was {entry.status}, and does not wait any more: it settled in the last second, "
                "was purged, or expired.",
                entry.ended_at,
            )
    return Answer(entry.id, entry.queue, entry.name, finding, [], facts)
