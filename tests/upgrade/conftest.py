"""Async tests of upgrades run in virtual time."""

from __future__ import annotations

from penstock.testing.plugin import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
