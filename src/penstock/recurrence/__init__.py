"""Recurrence: when something that repeats happens next, by cron, by every N, or by an RRULE of RFC 5545."""

from penstock.recurrence.recurrence import Occurrence, Recurrence

__all__ = ["Occurrence", "Recurrence"]
