"""The report page."""

from __future__ import annotations

from typing import Any


async def render(figures: Any, truth: Any, alerts: Any) -> str:
    return "<html></html>"
