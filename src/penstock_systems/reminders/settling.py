"""What becomes of a reminder after a fire: pure rules, from the result of each channel to the columns of its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

Status = Literal["sent", "failed", "unknown", "held", "given_up", "suppressed", "missed", "digest", "replayed"]
DELIVERED = {"sent", "digest", "replayed"}
FAILED = {"failed", "unknown"}  # retried
LOST = {"given_up", "missed"}  # not retried
THROTTLED_MS_MAX = 86_400_000  # for how long a throttled fire is retried without a charge
ERROR_CHARACTERS_MAX = 500
MINUTE_MS = 60_000


class Result(NamedTuple):
    """How one channel of a fire stands."""

    status: Status
    error: str = ""
    attempt: int = 1
    is_permanent: bool = False
    is_throttled: bool = False
    retry_after_ms: int = 0


class Policy(NamedTuple):
    retries: int
    backoff_ms: Sequence[int]


class Standing(NamedTuple):
    """The row of a reminder, as far as the decision needs it."""

    is_recurring: bool
    error_count: int
    occurrence_at: int
    nag_every_ms: int | None = None
    nag_left: int = 0
    is_acked: bool = False
    extra: str | None = None


class Regular(NamedTuple):
    """The next regular occurrence."""

    at: int
    number: int


class Settlement(NamedTuple):
    """The next state of a row. `advances` means that the fire has ended and the next one has a new number."""

    next_fire_at: int | None
    error_count: int
    last_error: str | None
    advances: bool = False
    is_delivered: bool = False
    occurrence: Regular | None = None  # the new one, where it changes
    extra: str | None = None
    nag_left: int = 0
    dead: str | None = None  # the error of a fire that is given up
    parks: bool = False
    is_done: bool = False
    gives_up: tuple[str, ...] = ()  # channels whose failure is now final


def backoff_ms(error_count: int, delays: Sequence[int]) -> int:
    """How long to wait after a failure, by the number of failures before it."""
    return delays[min(error_count, len(delays) - 1)]


def is_dead(error_count: int, retries: int) -> bool:
    """Whether this many full failures are too many."""
    return error_count >= retries


def settle(
    row: Standing,
    results: Mapping[str, Result],
    *,
    now: int,
    policy: Policy,
    next_regular: Callable[[], Regular | None],
) -> Settlement:
    """Decide what becomes of a row once all channels of its fire have a result."""
    failing = {name: each for name, each in results.items() if each.status in FAILED}
    lost = [name for name, each in results.items() if each.status in LOST]
    delivered = [name for name, each in results.items() if each.status in DELIVERED]
    if not failing and not lost:
        return _ended(row, results, delivered, now, next_regular)
    if delivered:
        return _partial(row, results, failing, lost, now, policy, next_regular)
    error = _errors(results, [*failing, *lost])
    if all(each.is_permanent for each in failing.values()):
        return _dead(row, error, tuple(failing), now, next_regular)
    if _is_throttled(row, failing, now):
        wait = max(MINUTE_MS, *(each.retry_after_ms for each in failing.values()))
        return _retry(row, now + wait, row.error_count, error, now, next_regular, failing)
    count = row.error_count + 1
    if is_dead(count, policy.retries):
        return _dead(row, error, tuple(failing), now, next_regular, count)
    return _retry(row, now + backoff_ms(row.error_count, policy.backoff_ms), count, error, now, next_regular, failing)


def _ended(
    row: Standing,
    results: Mapping[str, Result],
    delivered: Sequence[str],
    now: int,
    next_regular: Callable[[], Regular | None],
) -> Settlement:
    """Nothing failed. A channel on hold, or an address that gets no mail, is named in the error."""
    notes = [f"{each.status}: {name}" for name, each in results.items() if each.status in ("held", "suppressed")]
    ended = _advance(row, now, next_regular, error_count=0, error=", ".join(notes) or None, nags=bool(delivered))
    return ended._replace(is_delivered=bool(delivered))


def _partial(
    row: Standing,
    results: Mapping[str, Result],
    failing: Mapping[str, Result],
    lost: Sequence[str],
    now: int,
    policy: Policy,
    next_regular: Callable[[], Regular | None],
) -> Settlement:
    error = f"partial: {', '.join([*failing, *lost])}"
    if row.is_recurring:
        ended = _advance(row, now, next_regular, error_count=0, error=error, nags=True)
        return ended._replace(is_delivered=True, gives_up=tuple(failing))
    spent = [name for name, each in failing.items() if _is_spent(row, each, now, policy)]
    again = [each for name, each in failing.items() if name not in spent]
    if not again:
        dead = _dead(row, f"{error} ({_errors(results, [*failing, *lost])})", tuple(spent), now, next_regular)
        return dead._replace(is_delivered=True)
    waits = (max(each.retry_after_ms, backoff_ms(each.attempt - 1, policy.backoff_ms)) for each in again)
    return Settlement(
        now + min(waits), 0, error, is_delivered=True, extra=row.extra, nag_left=row.nag_left, gives_up=tuple(spent)
    )


def _retry(
    row: Standing,
    at: int,
    error_count: int,
    error: str,
    now: int,
    next_regular: Callable[[], Regular | None],
    failing: Mapping[str, Result],
) -> Settlement:
    """Retry this fire, unless the next regular occurrence comes first."""
    regular = _regular(row, now, next_regular)
    if regular is not None and regular.at <= at:
        return Settlement(
            regular.at, error_count, error, advances=True, occurrence=regular, gives_up=tuple(failing), nag_left=-1
        )
    return Settlement(at, error_count, error, extra=row.extra, nag_left=row.nag_left)


def _dead(
    row: Standing,
    error: str,
    gives_up: tuple[str, ...],
    now: int,
    next_regular: Callable[[], Regular | None],
    count: int | None = None,
) -> Settlement:
    """Give this fire up. A recurring row continues with its next occurrence, and a row that is due once is parked."""
    regular = _regular(row, now, next_regular)
    if regular is None:
        kept = row.error_count if count is None else count
        return Settlement(None, kept, error, dead=error, parks=True, gives_up=gives_up)
    return Settlement(
        regular.at, 0, error, advances=True, occurrence=regular, dead=error, gives_up=gives_up, nag_left=-1
    )


def _advance(
    row: Standing,
    now: int,
    next_regular: Callable[[], Regular | None],
    *,
    error_count: int,
    error: str | None,
    nags: bool,
) -> Settlement:
    regular = _regular(row, now, next_regular)
    nag_at = now + row.nag_every_ms if nags and row.nag_every_ms and row.nag_left > 0 and not row.is_acked else None
    if nag_at is not None and (regular is None or nag_at < regular.at):
        return Settlement(nag_at, error_count, error, advances=True, extra="nag", nag_left=row.nag_left - 1)
    if regular is None:
        return Settlement(None, error_count, error, is_done=True)
    return Settlement(regular.at, error_count, error, advances=True, occurrence=regular, nag_left=-1)


def _regular(row: Standing, now: int, next_regular: Callable[[], Regular | None]) -> Regular | None:
    return next_regular() if row.is_recurring else None


def _is_spent(row: Standing, result: Result, now: int, policy: Policy) -> bool:
    if result.is_throttled and now - row.occurrence_at < THROTTLED_MS_MAX:
        return False
    return result.is_permanent or is_dead(result.attempt, policy.retries)


def _is_throttled(row: Standing, failing: Mapping[str, Result], now: int) -> bool:
    patient = now - row.occurrence_at < THROTTLED_MS_MAX
    return patient and bool(failing) and all(each.is_throttled for each in failing.values())


def _errors(results: Mapping[str, Result], names: Sequence[str]) -> str:
    return "; ".join(f"{name}: {results[name].error or results[name].status}" for name in names)[:ERROR_CHARACTERS_MAX]
