"""What a person should look at before an article is published. The step that checks is never the one that wrote.

A flag is a fact with its place, not an opinion. No flag means that every quotation is on the page that it cites, every number
in a source, and most sentences near the research.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock_systems.brand.rules.articles import Article
from penstock_systems.brand.rules.texts import numbers, sentences, shingles, words

QUOTED_SHARE = 0.8  # of the words of a quotation that are on the page in this order
SIMILAR_SHARE = 0.5  # of all runs of words that two articles have in common
NEAR_SHARE = 0.6  # of the sentences that rest on the research
NEAR_WORDS_SHARE = 0.5  # of the words of such a sentence that the research has
CONTENT_CHARACTERS_LEAST = 4  # shorter words say nothing about the topic
COUNT_MOST = 10  # a smaller number is a count of what the article lists
QUOTE_WORDS_MAX = 200
WINDOW = 2  # times the words of a quotation: what a page may hold between them


class Flag(msgspec.Struct, frozen=True):
    """One reason to look, such as `citation`, and what it is about."""

    kind: str
    text: str


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A page that the research read: its address, its title, and its text when it was fetched."""

    url: str
    title: str
    text: str
    fetched_at: str = ""


def check(
    article: Article, sources: Sequence[Source], *, existing: Mapping[str, str], banned: Iterable[str] = ()
) -> list[Flag]:
    """Return the flags of an article. `existing` has the texts of the brand's other articles, by title."""
    return [
        *_citations(article, sources),
        *_numbers(article, sources),
        *_distance(article, sources),
        *_similar(article, existing),
        *_banned(article, banned),
    ]


def is_quoted(quote: str, page: str) -> bool:
    """Return whether four of five words of the quotation are on the page, in order and near each other."""
    wanted = words(quote)[:QUOTE_WORDS_MAX]
    if not wanted:
        return False
    least, size = -(-len(wanted) * 4 // 5), WINDOW * len(wanted)
    assert least / len(wanted) >= QUOTED_SHARE
    places = Counter[str]()  # of each word in the quotation, one bit a place
    for place, word in enumerate(wanted):
        places[word] |= 1 << place
    # The words of the page that are in the quotation, with their positions: no others can be in order.
    found = [(at, places[word]) for at, word in enumerate(words(page)) if word in places]
    first, last = 0, least - 1
    while last < len(found):
        while found[last][0] - found[first][0] >= size:
            first += 1
        missing = least - _in_order(len(wanted), [mask for _, mask in found[first : last + 1]])
        if missing <= 0:
            return True
        last += missing  # each further word adds one at most
    return False


def _in_order(length: int, masks: Sequence[int]) -> int:
    """The length of the longest common subsequence, by the bits of whole rows."""
    full = (1 << length) - 1
    row = full
    for mask in masks:
        both = row & mask
        row = (row + both | row - both) & full
    return length - row.bit_count()


def _citations(article: Article, sources: Sequence[Source]) -> Iterable[Flag]:
    pages = {source.url: source.text for source in sources}
    for citation in article.citations:
        if citation.url not in pages:
            yield Flag("citation", f"{citation.url} is not a page of the research")
        elif not is_quoted(citation.quote, pages[citation.url]):
            yield Flag("citation", f"not on {citation.url}: {citation.quote}")


def _numbers(article: Article, sources: Sequence[Source]) -> Iterable[Flag]:
    known = {_plain(number) for source in sources for number in numbers(f"{source.title}. {source.text}")}
    said: set[str] = set()
    for sentence in sentences(article.text()):
        for number in numbers(sentence):
            plain = _plain(number)
            is_count = number == plain and plain.isdigit() and int(plain) <= COUNT_MOST
            if plain not in known and not is_count and plain not in said:
                said.add(plain)
                yield Flag("number", f"no source has {number}: {sentence}")


def _plain(number: str) -> str:
    return number.strip("$\u20ac\u00a3%")


def _distance(article: Article, sources: Sequence[Source]) -> Iterable[Flag]:
    researched = {word for source in sources for word in _content(f"{source.title} {source.text}")}
    judged = [content for sentence in sentences(article.text()) if (content := _content(sentence))]
    near = sum(sum(word in researched for word in content) >= NEAR_WORDS_SHARE * len(content) for content in judged)
    if judged and near < NEAR_SHARE * len(judged):
        yield Flag("distance", f"{near} of {len(judged)} sentences are near the research")


def _content(text: str) -> list[str]:
    return [word for word in words(text) if len(word) >= CONTENT_CHARACTERS_LEAST]


def _similar(article: Article, existing: Mapping[str, str]) -> Iterable[Flag]:
    own = shingles(article.text())
    for title, text in existing.items():
        other = shingles(text)
        if own and len(own & other) >= SIMILAR_SHARE * len(own | other):
            yield Flag("similar", f"like the article {title!r}")


def _banned(article: Article, banned: Iterable[str]) -> Iterable[Flag]:
    text = f" {' '.join(words(f'{article.title} {article.description} {article.text()}'))} "
    for phrase in banned:
        if (plain := " ".join(words(phrase))) and f" {plain} " in text:
            yield Flag("banned", phrase)
