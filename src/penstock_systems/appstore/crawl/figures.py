"""That figures changed by which markets are scored: then the clustering has work, also if no ranking changed."""

from __future__ import annotations

from penstock_systems.appstore.app import db

CHANGED_AT = "figures_changed_at"


def note_new_figures(now: str) -> None:
    """Joins the unit."""
    db.upsert("crawl_state", {"name": CHANGED_AT, "value": now, "updated_at": now}, key="name")
