"""How a schedule is written into its row, read back, and which id each of its fires has."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from penstock.model.ids import derived
from penstock.model.schedule import CatchUp, Overlap, Schedule


class FiringRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a row holds of a schedule."""

    expression: str
    zone: str = "UTC"
    jitter_seconds: int = 0
    catch_up: CatchUp = "once"
    overlap: Overlap = "skip"
    catch_up_max: int = 100

    @staticmethod
    @lru_cache(maxsize=1_000)
    def parse(text: str) -> FiringRule:
        return msgspec.json.decode(text, type=FiringRule)

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def schedule(self) -> Schedule:
        return _schedule(self)


@lru_cache(maxsize=1_000)
def _schedule(rule: FiringRule) -> Schedule:
    return Schedule(**msgspec.structs.asdict(rule))


def fired_id(kind: str, name: str, number: int, *, at: int) -> bytes:
    """The id of what a timer sends: it follows from the timer and its number, and sorts by its time."""
    parent = (at // 1000 & 0xFFFFFFFFFFFF).to_bytes(6, "big") + bytes(10)
    return derived(parent, kind, name, str(number))


def idle_phase(task: str) -> str:
    """How far a run of a cron task came that found nothing to do."""
    return f"{task}_idle"
