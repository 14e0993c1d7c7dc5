"""What the zones show of themselves: a flat view for scripts and a rich one for people, both read from state alone."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.control.minutes import MINUTE_MS, minute_of, window
from penstock.control.zones import Rules
from penstock.control.zones_state import ZonesState, measured, success_rate
from penstock.model.times import iso_z

Confidence = Literal["none", "low", "medium", "high"]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    running: bool
    total_dispatched: int
    total_completed: int
    total_failed: int
    total_skipped: int
    in_flight: int
    completions_per_minute: float
    success_rate: float  # percent
    success_rate_pct: float  # the same
    current_batch_size: int
    current_interval_ms: int
    in_cooldown: bool
    cooldown_remaining_s: int
    last_tick_at: str | None
    last_work_at: str | None
    projected_per_day: int


class Params(msgspec.Struct, frozen=True):
    batch_size: int
    interval_ms: int
    interval_human: str


class Lifetime(msgspec.Struct, frozen=True):
    dispatched: int
    completed: int
    failed: int
    skipped: int
    success_rate_pct: float


class Rolling(msgspec.Struct, frozen=True):
    success_rate_pct: float
    sample_size: int
    confidence: Confidence
    completions_per_minute: float


class Details(msgspec.Struct, frozen=True):
    params: Params
    lifetime: Lifetime
    rolling: Rolling
    projected_per_hour: int
    projected_per_day: int
    seconds_since_last_tick: int | None


class RateReport(msgspec.Struct, frozen=True):
    rate: float
    sample_size: int
    confidence: Confidence


def rate_report(state: ZonesState, rules: Rules, *, now_ms: int) -> RateReport:
    """The success rate that the zones would judge by now, and how far to trust it."""
    sample = measured(state, rules, now_ms)
    return RateReport(success_rate(sample), sample.outcomes, confidence(sample.outcomes))


def confidence(sample_size: int) -> Confidence:
    if sample_size == 0:
        return "none"
    return "low" if sample_size < 5 else "medium" if sample_size < 20 else "high"


def status(state: ZonesState, rules: Rules, *, now_ms: int) -> Status:
    pace = _per_minute(state, rules, now_ms)
    percent = _percent(rate_report(state, rules, now_ms=now_ms).rate)
    return Status(
        running=state.running,
        total_dispatched=state.total_dispatched,
        total_completed=state.total_completed,
        total_failed=state.total_failed,
        total_skipped=state.total_skipped,
        in_flight=state.in_flight,
        completions_per_minute=round(pace, 1),
        success_rate=percent,
        success_rate_pct=percent,
        current_batch_size=state.current_batch_size,
        current_interval_ms=state.current_interval_ms,
        in_cooldown=state.cooldown.is_active(now_ms),
        cooldown_remaining_s=state.cooldown.remaining_seconds(now_ms),
        last_tick_at=_iso(state.last_tick_at),
        last_work_at=_iso(state.last_work_at),
        projected_per_day=round(pace * 60 * 24),
    )


def details(state: ZonesState, rules: Rules, *, now_ms: int) -> Details:
    pace = _per_minute(state, rules, now_ms)
    report = rate_report(state, rules, now_ms=now_ms)
    ended = state.total_completed + state.total_failed
    # Neither what is in flight nor what was skipped speaks against it.
    lifetime = state.total_completed / ended if ended else 1.0
    return Details(
        Params(state.current_batch_size, state.current_interval_ms, human(state.current_interval_ms)),
        Lifetime(
            state.total_dispatched, state.total_completed, state.total_failed, state.total_skipped, _percent(lifetime)
        ),
        Rolling(_percent(report.rate), report.sample_size, report.confidence, round(pace, 1)),
        projected_per_hour=round(pace * 60),
        projected_per_day=round(pace * 60 * 24),
        seconds_since_last_tick=max(0, now_ms - state.last_tick_at) // 1_000 if state.last_tick_at else None,
    )


def human(interval_ms: int) -> str:
    """`10s`, `1m 30s`, `2m`"""
    minutes, seconds = divmod(interval_ms / 1_000, 60)
    parts = [f"{minutes:.0f}m" if minutes else "", f"{seconds:.3f}".rstrip("0").rstrip(".") + "s" if seconds else ""]
    return " ".join(part for part in parts if part) or "0s"


def _per_minute(state: ZonesState, rules: Rules, now_ms: int) -> float:
    """Over the time the window covers, or since counting began, but a minute at least: no bucket is finer."""
    begin = max(minute_of(now_ms - rules.window_minutes * MINUTE_MS), state.counting_since)
    elapsed = max(now_ms - begin, MINUTE_MS)
    return window(state.metrics, now_ms, rules.window_minutes).completed / (elapsed / MINUTE_MS)


def _percent(rate: float) -> float:
    return round(rate * 100, 1)


def _iso(at_ms: int) -> str | None:
    return iso_z(at_ms * 1_000) if at_ms else None
