"""The HTTP server: queues, objects, runs and the database for other programs, in the shapes of Cloudflare's API."""

from __future__ import annotations

from penstock.config import KnownToken
from penstock.web.site import make_site
from penstock.web.tokens import hashed
from penstock.web.ui import make_dashboard

__all__ = ["KnownToken", "hashed", "make_dashboard", "make_site"]
