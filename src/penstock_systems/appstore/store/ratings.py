"""The histogram of an app, from the small page that the store's own reviews once were."""

from __future__ import annotations

import penstock as ps
from penstock_systems.appstore.store.facts import Ratings
from penstock_systems.appstore.store.html import text_of, tree
from penstock_systems.appstore.store.values import count

CLIENT = "12"  # the kind of client to whom this page is shown


def ratings_url(base: str, track_id: int, *, country: str) -> str:
    return f"{base}/{country}/customer-reviews/id{track_id}?displayable-kind=11"


def parse_ratings(body: bytes) -> Ratings | None:
    """How many stars were given; None if the app is not known here or its stars are not shown."""
    if not body.strip():
        return None
    page = tree(body)
    told = text_of(page.css_first(".rating-count"))
    totals = [count(text_of(node) or "") for node in page.css(".vote .total")]
    if told is None and not totals:
        raise ps.Unparsable("The page of ratings has no ratings.", reason="no_data")
    total = count(told or "")
    counts = [number for number in totals if number is not None]
    if len(counts) != 5 or len(totals) != 5:
        return Ratings(0, (0, 0, 0, 0, 0)) if total == 0 else None
    five, four, three, two, one = counts
    return Ratings(sum(counts) if total is None else total, (one, two, three, four, five))
