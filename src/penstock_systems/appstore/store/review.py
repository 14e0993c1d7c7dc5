"""One review, whichever of three places it comes from."""

from __future__ import annotations

import re

from penstock_systems.appstore.store.facts import Review
from penstock_systems.appstore.store.text import cleaned, prose
from penstock_systems.appstore.store.values import moment, whole

_REVIEW_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def review(
    review_id: object,
    rating: object,
    *,
    title: object = None,
    body: object = None,
    author: object = None,
    version: object = None,
    updated: object = None,
) -> Review | None:
    """None without an id and one to five stars: an entry about the app itself has neither."""
    name = str(review_id).strip() if isinstance(review_id, int | str) and not isinstance(review_id, bool) else ""
    given = whole(rating, low=1, high=5)
    if given is None or not _REVIEW_ID.fullmatch(name):
        return None
    return Review(
        review_id=name,
        rating=given,
        title=cleaned(title) or "",
        body=prose(body) or "",
        author=cleaned(author),
        version=cleaned(version, characters_max=50),
        updated=moment(updated),
    )
