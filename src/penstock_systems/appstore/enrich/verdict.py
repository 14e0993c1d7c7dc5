"""What becomes of an app that was asked about: from where it counts as enriched, when it is looked at again, and what the
pace of the pages is told. Pure."""

from __future__ import annotations

import msgspec

from penstock.data import cut
from penstock_systems.appstore import moments
from penstock_systems.appstore.enrich.parts import Known, Lack, Part, Parts
from penstock_systems.appstore.settings import Refresh

ATTEMPTS_MAX = 5
# After the first failure, the second and so on. A store that is down for an evening costs no app its place.
RETRY_SECONDS = (300, 1_800, 7_200, 28_800)
THROTTLED_SECONDS = 120  # a refused one lets others go first
ASKED_SECONDS_MAX = 86_400  # a service that asks for more patience than that is asked again tomorrow
ERROR_CHARACTERS_MAX = 300
WISHED = 1_000  # added to the priority of an app that somebody asked for


class Verdict(msgspec.Struct, frozen=True):
    """`source` is None where nothing was learnt and the app waits as it is."""

    source: str | None
    attempts: int
    next_enrich_at: str
    error: str | None = None
    told: Exception | None = None

    @property
    def is_enriched(self) -> bool:
        return self.source in ("scraper", "itunes")


def judged(parts: Parts, known: Known, now: str, refresh: Refresh) -> Verdict:
    """Keeps what succeeded. What may still come is fetched soon, at most five times; what cannot come is left alone."""
    wanting = [part for part in (parts.page, parts.lookup) if part.lack not in (None, Lack.GONE)]
    charged = any(part.lack is not Lack.THROTTLED for part in wanting)
    attempts = known.enrich_attempts + charged
    given_up = attempts >= ATTEMPTS_MAX
    source = _source(parts, given_up=given_up)
    if not wanting or given_up or source == "failed":
        seconds = 86_400.0 * {"scraper": refresh.scraper, "itunes": refresh.itunes}.get(source or "", refresh.failed)
        attempts = 0
    elif charged:
        seconds = RETRY_SECONDS[attempts - 1]
    else:
        seconds = max(THROTTLED_SECONDS, *map(_asked_seconds, wanting))
    return Verdict(source, attempts, moments.after(now, seconds=seconds), _words(parts), _told(parts, source))


def is_wished(known: Known) -> bool:
    return known.enrich_priority >= WISHED


def is_refresh(known: Known, a_day_ago: str) -> bool:
    """Whether a page that is kept is too old on principle, or none can be there. Who only tries again takes the page that
    there is."""
    if known.enriched_at is None:
        return not known.enrich_attempts
    return is_wished(known) or (not known.enrich_attempts and known.enriched_at < a_day_ago)


def _source(parts: Parts, *, given_up: bool) -> str | None:
    if parts.page.value is not None:
        return "scraper"
    if parts.lookup.value is not None:
        return "itunes"
    return "failed" if given_up or _is_hopeless(parts) else None


def _is_hopeless(parts: Parts) -> bool:
    """The page is gone, or cannot be read while the look-up has nothing to say either."""
    if parts.page.lack is Lack.UNREADABLE:
        return parts.lookup.lack in (None, Lack.GONE, Lack.UNREADABLE)
    return parts.page.lack is Lack.GONE


def _asked_seconds(part: Part[object]) -> float:
    after = getattr(part.error, "retry_after", None)
    return min(float(after), ASKED_SECONDS_MAX) if isinstance(after, int | float) else 0.0


def _words(parts: Parts) -> str | None:
    named = (("page", parts.page), ("lookup", parts.lookup))  # the page has the ratings too
    told = [f"{name} {part.lack}: {part.error}" for name, part in named if part.lack is not None]
    return cut("; ".join(told), ERROR_CHARACTERS_MAX) or None


def _told(parts: Parts, source: str | None) -> Exception | None:
    """Pages and ratings are fetched at this pace, so it hears of their refusals. Look-ups and reviews have their own."""
    for part in (parts.page, parts.ratings):
        if part.lack is Lack.THROTTLED:
            return part.error
    if parts.page.lack is Lack.UNAVAILABLE or source == "failed":
        return parts.page.error
    return None
