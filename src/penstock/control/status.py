"""What a controller says about itself, from its saved state alone: nobody waits for a tick to know."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.control.outcome import Outcome
from penstock.model.times import iso_z

MINUTE = 60_000_000
WINDOW_MINUTES = 5
COUNTED = ("dispatched", "completed", "failed", "skipped", "throttled")  # items, since the controller was made


class Minute(NamedTuple):
    """What ended in the minute that began then."""

    at: int
    completed: int
    failed: int


def noted(minutes: list[Minute], now: int, outcome: Outcome) -> None:
    """Only what says something about the service counts: a missing item does not."""
    good = outcome is Outcome.OK
    bad = outcome in (Outcome.THROTTLED, Outcome.UNAVAILABLE, Outcome.FAILED)
    if not good and not bad:
        return
    at = now // MINUTE * MINUTE
    if not minutes or minutes[-1].at != at:
        minutes.append(Minute(at, 0, 0))
    last = minutes[-1]
    minutes[-1] = Minute(at, last.completed + good, last.failed + bad)


def prune(minutes: list[Minute], now: int) -> None:
    """Drop what the window has left behind."""
    minutes[:] = [each for each in minutes if each.at > now - (WINDOW_MINUTES + 1) * MINUTE]


def confidence(samples: int) -> str:
    return "none" if samples == 0 else "low" if samples < 5 else "medium" if samples < 20 else "high"


def human(interval_ms: int) -> str:
    """`10s`, `1m 30s`, `2m`"""
    minutes, seconds = divmod(interval_ms / 1_000, 60)
    parts = [f"{minutes:.0f}m" if minutes else "", f"{seconds:.3f}".rstrip("0").rstrip(".") + "s" if seconds else ""]
    return " ".join(part for part in parts if part) or "0s"


def status(name: str, mode: str, state: dict[str, Any], pace: Any, *, alarm: int | None, now: int) -> dict[str, Any]:
    """The fields that scripts rely on, and those that people read."""
    minutes = [Minute(*each) for each in state.get("minutes", [])]
    recent = [each for each in minutes if each.at + MINUTE > now - WINDOW_MINUTES * MINUTE]
    completed = sum(each.completed for each in recent)
    failed = sum(each.failed for each in recent)
    samples = completed + failed
    # Over what the window covers, or since counting began, but a minute at least: no bucket is finer.
    begin = max((now - WINDOW_MINUTES * MINUTE) // MINUTE * MINUTE, state.get("counting_since", 0))
    per_minute = completed / max(1.0, (now - begin) / MINUTE)
    success = 100.0 if samples == 0 else 100.0 * completed / samples
    tally = dict.fromkeys(COUNTED, 0) | state.get("tally", {})
    last, worked = state.get("last_tick_at", 0), state.get("last_work_at", 0)
    batch, interval = pace.batch_size, pace.interval_ms
    cooldown = max(0.0, pace.closed_until - now / 1_000_000) if pace.closed_until else 0.0
    ended = tally["completed"] + tally["failed"]
    return {
        "name": name,
        "mode": mode,
        "running": state.get("running", True),
        **{f"total_{name}": tally[name] for name in COUNTED},
        "completions_per_minute": round(per_minute, 1),
        "success_rate": round(success, 1),
        "success_rate_pct": round(success, 1),
        "current_batch_size": batch,
        "current_interval_ms": interval,
        "in_cooldown": cooldown > 0,
        "cooldown_remaining_s": round(cooldown),
        "last_tick_at": iso_z(last) if last else None,
        "last_work_at": iso_z(worked) if worked else None,
        "next_tick_at": iso_z(alarm) if alarm else None,
        "projected_per_hour": round(per_minute * 60),
        "projected_per_day": round(per_minute * 60 * 24),
        "seconds_since_last_tick": round((now - last) / 1_000_000) if last else None,
        "rate_per_second": round(pace.rate_per_second, 4),
        "params": {"batch_size": batch, "interval_ms": interval, "interval_human": human(interval)},
        "lifetime": {
            **{name: tally[name] for name in COUNTED[:3]},
            "success_rate_pct": round(100.0 * tally["completed"] / ended, 1) if ended else 100.0,
        },
        "rolling": {
            "success_rate_pct": round(success, 1),
            "sample_size": samples,
            "confidence": confidence(samples),
            "completions_per_minute": round(per_minute, 1),
        },
        "explanation": pace.explain(now / 1_000_000),
        "ticks": [{"at": iso_z(at), "text": text} for at, text in state.get("said", [])],
    }
