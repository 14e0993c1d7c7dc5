"""Complaints: the terms that unhappy reviews use and happy ones do not, by log-odds over whole texts, each with a quote."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from penstock_systems.appstore.sentiment import UNHAPPY

COMPLAINTS = 4  # that are named
UNHAPPY_STARS = 2  # where no tone is known
HEARD_LEAST = 3  # unhappy reviews that share a term
ODDS_LEAST = 1.0  # the z-score of a term's log-odds
RECENT_YEARS = 2  # before the newest review of the market: an older one is quoted only where there is no other
SAME_SHARE = 0.5  # of the reviews of one: two terms that share more are one complaint
PRIOR = 0.5  # added to each count: a term that happy reviews never use is no certainty
LETTERS_LEAST = 3
QUOTE_CHARACTERS_MAX = 160
TEXT_CHARACTERS_MAX = 2_000
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")

# Words that say nothing about what is wrong: those of any text, and those of any unhappy one.
_PEOPLE = [f"{which}{who}" for which in ("any", "every", "no", "some") for who in ("body", "one")]
STOP_WORDS = frozenset(
    [
        *_PEOPLE,
        *"""
        a about after again all almost also always am an and another answers any anything app application apps are around
        as ask at away back be because been before being best better but by came can can't cannot come could couldn't day
        did didn't do does doesn't doing don't done down each easy else even ever every everything fact far few find first
        for from full get gets getting give go goes going good got great had half has hasn't have haven't having he help
        her here him his how i i'd i'll i'm i've if in into is isn't it it's its just keep know last least less let like
        little long look lot love made make many matter may maybe me might more most much must my need needs never new no
        none not nothing now of off often ok old on once one only open opens or other our out over own people phone please
        pretty problem problems put quite really same say says see seem seems sends several she should show shows since so
        some something soon star stars still stop such take takes tap than thank thanks that that's the their them then
        there these they thing things think this those thought three through time times to today too took tried try trying
        two under until up us use used user users uses using usually very want wanted was wasn't way we week weeks well
        went were what when where which while who whole why will wish with won't work worked working works would year
        years yes yet you you're your
        """.split(),
    ]
)


class Complaint(msgspec.Struct, frozen=True):
    """A term that `reviews` unhappy reviews share, and one of them."""

    term: str
    reviews: int
    quote: str
    review_id: str
    track_id: int
    app: str
    at: str


class Said(msgspec.Struct, frozen=True):
    """A review as it is judged here."""

    review_id: str
    track_id: int
    app: str
    rating: int
    title: str | None
    body: str | None
    sentiment: float | None
    at: str

    @property
    def is_unhappy(self) -> bool:
        return self.rating <= UNHAPPY_STARS if self.sentiment is None else self.sentiment <= UNHAPPY

    @property
    def text(self) -> str:
        return f"{self.title or ''}. {self.body or ''}"[:TEXT_CHARACTERS_MAX]


def complaints(reviews: Sequence[Said], *, without: Iterable[str] = ()) -> list[Complaint]:
    """The most telling first. `without` are words that the market is about."""
    own = set(without)
    unhappy = [(each, _terms(each.text, own)) for each in reviews if each.is_unhappy]
    happy = Counter(term for each in reviews if not each.is_unhappy for term in _terms(each.text, own))
    heard = Counter(term for _, terms in unhappy for term in terms)
    many, few = len(unhappy), len(reviews) - len(unhappy)
    odds = {
        term: score
        for term, count in heard.items()
        if count >= HEARD_LEAST and (score := _log_odds(count, many, happy[term], few)) >= ODDS_LEAST
    }
    found: list[Complaint] = []
    told: list[set[str]] = []  # the reviews that each of them is in
    quoted: set[int] = set()  # apps: one complaint each, as long as there are others
    newest = max((each.at for each in reviews), default="0000")
    recent = f"{int(newest[:4]) - RECENT_YEARS:04}{newest[4:]}"
    for term in sorted(odds, key=lambda term: (-odds[term] * math.log1p(heard[term]), -len(term), term)):
        if len(found) == COMPLAINTS:
            break
        saying = [each for each, terms in unhappy if term in terms]
        ids = {each.review_id for each in saying}
        if not any(len(ids & other) > SAME_SHARE * min(len(ids), len(other)) for other in told):
            fresh = [each for each in saying if each.at >= recent] or saying
            others = [each for each in fresh if each.track_id not in quoted]
            found.append(_quoted(term, heard[term], others or fresh))
            quoted.add(found[-1].track_id)
            told.append(ids)
    return found


def _terms(text: str, own: set[str]) -> set[str]:
    """Its words, and the pairs of words in a sentence that say something together."""
    sentences = [_WORD.findall(sentence) for sentence in _SENTENCE.findall(_plain(text))]
    words = {word for sentence in sentences for word in sentence}
    plain = {word for word in words if len(word) >= LETTERS_LEAST and word not in STOP_WORDS and word not in own}
    pairs = {pair for sentence in sentences for pair in pairwise(sentence)}
    return plain | {f"{first} {second}" for first, second in pairs if first in plain and second in plain}


def _plain(text: str) -> str:
    return text.casefold().replace("\u2019", "'")


def _log_odds(heard: int, many: int, other: int, few: int) -> float:
    """How many standard deviations a term is more frequent in unhappy reviews than in happy ones."""
    first, second = heard + PRIOR, other + PRIOR
    odds = math.log(first / (many - heard + PRIOR)) - math.log(second / (few - other + PRIOR))
    return odds / math.sqrt(1 / first + 1 / second)


def _quoted(term: str, count: int, reviews: Sequence[Said]) -> Complaint:
    """The shortest sentence that says it, of the newest reviews."""
    first = term.split()[0]
    best: tuple[int, Said, str] | None = None
    for each in sorted(reviews, key=lambda each: (each.at, each.review_id), reverse=True)[:10]:
        for match in _SENTENCE.finditer(each.text):
            said = " ".join(match[0].split())
            if first in _plain(said) and (best is None or _distance(said) < best[0]):
                best = (_distance(said), each, said)
    assert best is not None, term  # a word lies within one sentence
    _, review, text = best
    quote = text if len(text) <= QUOTE_CHARACTERS_MAX else text[: QUOTE_CHARACTERS_MAX - 1].rstrip() + "…"
    return Complaint(term, count, quote, review.review_id, review.track_id, review.app, review.at[:10])


def _distance(sentence: str) -> int:
    """From the length of a sentence that is worth quoting."""
    return abs(len(sentence) - 70)
