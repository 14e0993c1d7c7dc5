"""What was heard about one app from each of the places that know something about it: an answer, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

import penstock as ps
from penstock_systems.appstore.enrich.mentions import Mention
from penstock_systems.appstore.store.facts import Found, PageFacts, Ratings, Review

Answer = TypeVar("Answer", covariant=True)


class Lack(StrEnum):
    """Why a part is missing."""

    THROTTLED = "throttled"  # the service refused for now: nobody's fault
    UNAVAILABLE = "unavailable"  # it failed or did not answer, or we failed
    GONE = "gone"  # it answered that there is none
    UNREADABLE = "unreadable"  # it answered something that cannot be read


@dataclass(frozen=True, slots=True)
class Part(Generic[Answer]):
    value: Answer | None = None
    error: Exception | None = None

    @property
    def lack(self) -> Lack | None:
        """By the type of the error, never by its text."""
        match self.error:
            case None:
                return None
            case ps.Throttled():
                return Lack.THROTTLED
            case ps.Unparsable():
                return Lack.UNREADABLE
            case ps.Permanent():
                return Lack.GONE
            case _:
                return Lack.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Parts:
    """All that was heard. The purchases stand on the page; a look-up of None says that the app is not in this store;
    reviews of None, that an empty answer is not believed."""

    lookup: Part[Found]
    page: Part[PageFacts]
    ratings: Part[Ratings]
    reviews: Part[tuple[Review, ...]]


class Known(msgspec.Struct, frozen=True):
    """What the registry knew about an app before it was enriched."""

    track_id: int
    enriched_at: str | None = None
    enrich_attempts: int = 0
    enrich_priority: int = 0
    portfolio_at: str | None = None
    mentions: tuple[Mention, ...] = ()
