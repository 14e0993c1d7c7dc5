"""Where a source stands after a run: its verdict, when it runs again, and which conditions are alerted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from penstock.connect.connector import Expect
from penstock.connect.page import Blocked, Changed, Tally, Verdict
from penstock.model.errors import Throttled

USUAL_RUNS = 20  # good runs whose median is the usual count
USUAL_RUNS_LEAST = 3
LOW_SHARE = 0.1  # of the usual count
LOW_RUNS = 3  # in a row
USUAL_LEAST = 5  # a source with fewer records has no usual count
FAILURES_ALERTED = 3
FAILURES_MAX = 5  # in a row: then the source rests
PROBE_SECONDS = 21_600.0  # until a resting source is tried once
BACKOFF_SECONDS, BACKOFF_MAX = 1_800.0, 86_400.0
FILLED, EMPTIED = 0.8, 0.2  # shares of records by which a field counts as filled, or as lost
SHAPE_LEAST = 10  # records on a page
ERROR_MAX = 500

Condition = tuple[str, str]  # title and text


class Memory(msgspec.Struct, omit_defaults=True):
    """What a source remembers from run to run, beside its cursor."""

    answer: dict[str, str] = {}  # by which an unchanged answer is recognised
    counts: list[int] = []  # records read by good runs
    last_read: int = 0
    low: int = 0  # runs in a row
    nothing: int = 0
    quiet: int = 0
    refusals: int = 0
    filled: list[str] = []  # fields that most records have
    has_missed: bool = False  # records were missing once, and the next run confirms it
    full_at: str = ""  # when everything was read last
    full_due: bool = False
    alerts: list[str] = []  # conditions that are open
    runs: int = 0  # good ones

    @property
    def usual(self) -> float | None:
        """The usual count of records, None while it is unknown."""
        if len(self.counts) < USUAL_RUNS_LEAST:
            return None
        from statistics import median  # takes long to load

        found = float(median(self.counts))
        return found if found >= USUAL_LEAST else None


class Standing(NamedTuple):
    """What a run leaves behind. `conditions` are those that are open, or None for those that are over."""

    memory: Memory
    failures: int
    wait_seconds: float  # beyond the cadence; 0 for none
    disabled_reason: str | None
    conditions: dict[str, Condition | None]


def verdict_of(error: BaseException | None, tally: Tally, read: int) -> Verdict:
    match error:
        case None:
            return "ok" if read else "empty"
        case Blocked():
            return "blocked"
        case Changed():
            return "changed"
        case _:
            return "failed"


def settle(
    name: str,
    memory: Memory,
    verdict: Verdict,
    tally: Tally,
    error: BaseException | None,
    expect: Expect,
    failures: int,
) -> Standing:
    """Return where the source stands after this run."""
    found = msgspec.structs.replace(memory)
    conditions: dict[str, Condition | None] = {"stale": None}
    if verdict in ("ok", "empty"):
        _count(name, found, tally, expect, conditions)
        conditions |= {"blocked": None, "changed": None, "errors": None, "resting": None}
        found.refusals, found.runs = 0, memory.runs + 1
        return Standing(found, 0, 0.0, None, conditions)
    failures += 1
    text = str(error)[:ERROR_MAX]
    wait, reason = 0.0, None
    if verdict == "blocked":
        conditions["blocked"] = (f"{name} blocks this program", f"{text} It rests; nothing tries to pass the block.")
    elif verdict == "changed":
        conditions["changed"] = (f"{name} has changed", f"{text} Its cursor stays; adapt the connector.")
    if failures >= FAILURES_ALERTED and not {"blocked", "changed"} & {*memory.alerts, *conditions}:
        conditions["errors"] = (f"{name} failed {FAILURES_ALERTED} times in a row", text)
    if verdict == "blocked" or isinstance(error, Throttled):
        asked = getattr(error, "retry_after", None)
        wait = min(BACKOFF_MAX, asked or BACKOFF_SECONDS * 2.0 ** min(found.refusals, 10))
        found.refusals += 1
    if failures >= FAILURES_MAX:
        reason = f"{failures} runs in a row: {verdict}"
        wait = max(wait, PROBE_SECONDS)
        shown = f"After {FAILURES_MAX} bad runs one run every {PROBE_SECONDS / 3_600:.0f} h tries it. The last: {text}"
        conditions["resting"] = (f"{name} rests after {FAILURES_MAX} bad runs", shown)
    return Standing(found, failures, wait, reason, conditions)


def _count(name: str, memory: Memory, tally: Tally, expect: Expect, conditions: dict[str, Condition | None]) -> None:
    """Compare a good run with the usual ones, and take it among them."""
    read = memory.last_read if tally.unchanged else tally.read
    usual = memory.usual
    is_low = usual is not None and read < LOW_SHARE * usual
    memory.last_read = read
    memory.low = memory.low + 1 if is_low else 0
    memory.nothing = memory.nothing + 1 if read == 0 else 0
    memory.quiet = 0 if tally.inserted or tally.changed else memory.quiet + 1
    if not is_low or memory.low > USUAL_RUNS:
        memory.counts = [*memory.counts, read][-USUAL_RUNS:]
    conditions["count"] = None
    if memory.low >= LOW_RUNS:
        text = (
            f"{read} records in each of the last runs, usually {usual:.0f}. The source may have changed its requests."
        )
        conditions["count"] = (f"{name} sends almost nothing", text)
    conditions["nothing"] = None
    if expect.fetched_within and memory.nothing >= expect.fetched_within and conditions["count"] is None:
        conditions["nothing"] = (f"{name} sends nothing", f"No record in {expect.fetched_within} runs.")
    conditions["quiet"] = None
    if expect.new_within and memory.quiet >= expect.new_within:
        text = f"Nothing new or changed in {expect.new_within} runs."
        conditions["quiet"] = (f"{name} has nothing new", text)
    if tally.shares and tally.read >= SHAPE_LEAST:
        _shape(name, memory, tally.shares, conditions)


def _shape(name: str, memory: Memory, shares: Mapping[str, float], conditions: dict[str, Condition | None]) -> None:
    lost = sorted(each for each in memory.filled if shares.get(each, 0.0) <= EMPTIED)
    kept = {each for each in memory.filled if shares.get(each, 0.0) > EMPTIED or each in lost}
    memory.filled = sorted(kept | {each for each, share in shares.items() if share >= FILLED})
    conditions["shape"] = None
    if lost:
        text = f"Most records had {', '.join(lost)}, and now have none. The source may have renamed fields."
        conditions["shape"] = (f"{name} lacks {', '.join(lost)}", text)
