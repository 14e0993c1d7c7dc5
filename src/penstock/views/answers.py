"""Everything that is known of one message or run: why it waits where it waits, and how it ended elsewhere."""

from __future__ import annotations

from penstock.contracts import running_handlers
from penstock.model.run import ENDED
from penstock.views import runs
from penstock.views import trace as tracing
from penstock.views.ended import ended
from penstock.views.observer import Observer
from penstock.views.why import NOT_BEGUN, MessageState, ended_run, waiting


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
