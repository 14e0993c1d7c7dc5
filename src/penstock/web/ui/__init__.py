"""The dashboard: what the command line shows and does, as pages in any ASGI app."""

from __future__ import annotations

from penstock.web.ui.dashboard import make_dashboard

__all__ = ["make_dashboard"]
