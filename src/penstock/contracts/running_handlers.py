"""The list of running handlers: a few integers in shared memory that outlive the process that wrote them.

Cell 0 is a mark, 1 the slot whose handler is on the processor right now (plus one), 2 the last sign of life of the
event loop (monotonic microseconds), 3 the process id, 4 the row because of which the process was killed, 5 how many slots
were ever used. Four cells a slot follow: kind, row, started, wall limit. A handler that runs a batch has its first row in
its own slot, and each further row in a slot that names the first instead of a time.
"""

from __future__ import annotations

from typing import NamedTuple

MARK = 0x50454E53544F434B  # "PENSTOCK"
CURRENT, BEAT, PID, BLAMED, USED = 1, 2, 3, 4, 5
HEADER_CELLS = 8
SLOT_CELLS = 4
SLOTS_MAX = 4096  # rows that one worker runs at the same time
CELLS = HEADER_CELLS + SLOT_CELLS * SLOTS_MAX
BYTES = CELLS * 8

KIND_FREE, KIND_MESSAGE, KIND_MEMBER = 0, 1, 2


class RunningHandler(NamedTuple):
    slot: int
    row: int
    started_micros: int
    wall_micros: int


def clear(cells: memoryview, pid: int) -> None:
    cells[0] = MARK
    cells[PID] = pid


def running(cells: memoryview) -> list[RunningHandler]:
    return [
        RunningHandler(slot, cells[at + 1], cells[at + 2], cells[at + 3])
        for slot, at in _slots(cells)
        if cells[at] == KIND_MESSAGE
    ]


def _slots(cells: memoryview) -> list[tuple[int, int]]:
    used = min(cells[USED], SLOTS_MAX) if cells[0] == MARK else 0
    return [(slot, HEADER_CELLS + slot * SLOT_CELLS) for slot in range(used)]


def rows_of(cells: memoryview, handler: RunningHandler) -> list[int]:
    """The rows that a handler runs: one, or a batch."""
    members = (at for _, at in _slots(cells) if cells[at] == KIND_MEMBER and cells[at + 2] == handler.slot)
    rows = (handler.row, *(cells[at + 1] for at in members))
    return [row for row in rows if row]  # 0 where a row of the batch is done already


def blamed(cells: memoryview) -> list[int]:
    """The rows whose handler could not be stopped and for which the process was killed."""
    if cells[0] != MARK or not cells[BLAMED]:
        return []
    culprit = next((handler for handler in running(cells) if handler.row == cells[BLAMED]), None)
    return [cells[BLAMED]] if culprit is None else rows_of(cells, culprit)


def on_processor(cells: memoryview) -> RunningHandler | None:
    for handler in running(cells):
        if handler.slot == cells[CURRENT] - 1:
            return handler
    return None


def may_have_started(cells: memoryview) -> list[int] | None:
    """The rows to suspect after a death: those on the processor if there were any, else all that were under way."""
    if cells[0] != MARK:
        return None
    culprit = on_processor(cells)
    suspects = [culprit] if culprit else running(cells)
    return [row for handler in suspects for row in rows_of(cells, handler)]
