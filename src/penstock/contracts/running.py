"""The list of running handlers: a few integers in shared memory that outlive the process that wrote them.

Cell 0 is a mark, 1 the slot whose handler is on the processor right now (plus one), 2 the last sign of life of the
event loop (monotonic microseconds), 3 the process id, 4 the row that made somebody kill the process. Four cells a slot
follow: kind, row, started, wall limit.
"""

from __future__ import annotations

from typing import NamedTuple

MARK = 0x50454E53544F434B  # "PENSTOCK"
CURRENT, BEAT, PID, BLAMED = 1, 2, 3, 4
HEADER_CELLS = 8
SLOT_CELLS = 4
SLOTS_MAX = 1024  # handlers that one worker runs at the same time
CELLS = HEADER_CELLS + SLOT_CELLS * SLOTS_MAX
BYTES = CELLS * 8

KIND_FREE, KIND_MESSAGE = 0, 1


class RunningHandler(NamedTuple):
    slot: int
    row: int
    started_micros: int
    wall_micros: int


def clear(cells: memoryview, pid: int) -> None:
    cells[0] = MARK
    cells[PID] = pid


def running(cells: memoryview) -> list[RunningHandler]:
    if cells[0] != MARK:
        return []
    found = []
    for slot in range(SLOTS_MAX):
        at = HEADER_CELLS + slot * SLOT_CELLS
        if cells[at] == KIND_MESSAGE:
            found.append(RunningHandler(slot, cells[at + 1], cells[at + 2], cells[at + 3]))
    return found


def blamed(cells: memoryview) -> list[int]:
    """The row whose handler could not be stopped and for which the process was killed."""
    return [cells[BLAMED]] if cells[0] == MARK and cells[BLAMED] else []


def on_processor(cells: memoryview) -> RunningHandler | None:
    for handler in running(cells):
        if handler.slot == cells[CURRENT] - 1:
            return handler
    return None


def may_have_started(cells: memoryview) -> list[int] | None:
    """The rows to suspect after a death: the one on the processor if there was one, else all that were under way."""
    if cells[0] != MARK:
        return None
    culprit = on_processor(cells)
    return [handler.row for handler in ([culprit] if culprit else running(cells))]
