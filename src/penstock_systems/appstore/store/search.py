"""Search: the apps for a term, the best rank first."""

from __future__ import annotations

from urllib.parse import urlencode

from penstock_systems.appstore.store.decoding import Read
from penstock_systems.appstore.store.facts import Found
from penstock_systems.appstore.store.records import apps_of

RESULTS_MAX = 200
TERM_CHARACTERS_MAX = 200  # a longer one is no keyword


def search_url(base: str, term: str, *, country: str, language: str, limit: int) -> str:
    """Without media and entity the results would hold films and books as well."""
    asked = {
        "term": term[:TERM_CHARACTERS_MAX],
        "country": country,
        "media": "software",
        "entity": "software",
        "limit": max(1, min(RESULTS_MAX, limit)),
        "lang": language.replace("-", "_").lower(),
    }
    return f"{base}/search?{urlencode(asked)}"


def parse_search(body: bytes, *, limit: int = RESULTS_MAX) -> Read[list[Found]]:
    """The apps in rank order, each once and in brief. No hit is an empty list."""
    apps, skipped = apps_of(body, "The answer to a search", ranked=True, brief=True)
    return Read(apps[:limit], skipped)
