"""Why the messages of a queue wait, summed: each reason with how many it holds back, and what an operator can do about it."""

from __future__ import annotations

from penstock.model.pacing import interval_micros
from penstock.model.times import iso_z
from penstock.views.queues import QueueRow
from penstock.views.view import Row, rate_text
from penstock.web.ui.page import PageLook


async def reasons(look: PageLook, row: Row, queue: QueueRow, workers: int, failed: int) -> list[Row]:
    """Return reasons from counts alone; their numbers add up to what waits."""
    found = []
    ready, delayed = row["ready"], row["delayed"]
    if delayed:
        failed = min(failed, delayed)
        if failed:
            found.append(_reason("backing_off", failed, "They failed and wait for their next attempt.", "dead"))
        if delayed - failed:
            is_run = row["name"].startswith("workflow.")
            text = "Runs sleep, or wait for a signal, a child or a retry." if is_run else "They were sent with a delay."
            found.append(_reason("waiting" if is_run else "delayed", delayed - failed, text))
    if ready:
        found.append(_ready(row, queue, workers, ready, look.now))
    return found


def _ready(row: Row, queue: QueueRow, workers: int, ready: int, now: int) -> Row:
    if queue.paused:
        return _reason("paused", ready, "The queue is paused.", "resume")
    if not workers:
        return _reason("unserved", ready, "No live process has a handler for this queue.", "run")
    rate = queue.rate_now
    if rate is not None:
        ends = max(now, queue.next_start) + ready * interval_micros(rate)
        text = f"The queue starts at most {rate_text(rate)}."
        return _reason("rate_limited", ready, text, "tune", iso_z(ends))
    if row["leased"] >= queue.slots_most * workers:
        text = f"All {queue.slots_most * workers:,} slots of {workers:,} processes are busy."
        return _reason("busy", ready, text, "tune")
    return _reason("ready", ready, "Workers are claiming them now.")


def _reason(state: str, messages: int, text: str, action: str | None = None, until: str | None = None) -> Row:
    return {"state": state, "messages": messages, "text": text, "action": action, "until": until}
