"""An article: what a writer has to deliver, how it is read from a model's answer, and its HTML without active content."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import msgspec
import nh3
from markdown_it import MarkdownIt

import penstock as ps
from penstock_systems.brand.rules.texts import visible, words

WORDS_LEAST, WORDS_MAX = 120, 5_000
BODY_CHARACTERS_MAX = 60_000
TITLE_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX = 120, 300
KEY_POINTS_MAX, CITATIONS_MAX = 10, 40
KEY_POINT_CHARACTERS_MAX, QUOTE_CHARACTERS_MAX, URL_CHARACTERS_MAX = 500, 2_000, 2_000
TAGS = {"a", "blockquote", "code", "em", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "strong", "sup", "ul", "br"}
SCHEMES = {"http", "https"}

_MARKDOWN = MarkdownIt("commonmark", {"html": False})
_TAG = re.compile(r"<[^>]*>")
_ADDRESS = re.compile(r"https?://[^\s<>\"\\^`{|}]+", re.IGNORECASE)
_BLOCK_END = re.compile(r"</(?:p|h[1-6]|li|blockquote|pre)>|<br ?/?>")


class Citation(msgspec.Struct, frozen=True):
    """A sentence that a page is said to contain."""

    url: str
    quote: str


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """What a writer delivers. `body` is Markdown; HTML in it is text."""

    title: str
    description: str
    body: str
    key_points: list[str]
    citations: list[Citation]

    def html(self) -> str:
        """Return the body as HTML that no browser executes anything of."""
        return nh3.clean(
            _MARKDOWN.render(self.body),
            tags=TAGS,
            attributes={"a": {"href"}},
            url_schemes=SCHEMES,
            link_rel="noopener nofollow",
        )

    def text(self) -> str:
        """Return the body as plain text, one block a line."""
        return unescape(_TAG.sub("", _BLOCK_END.sub("\n", self.html()))).strip()

    def word_count(self) -> int:
        return len(self.text().split())


def read_article(value: Any, *, of: str = "The writer's answer") -> Article:
    """Return the article in a decoded answer, or raise `Unparsable` with what is missing or too long. `of` names the text
    in the error."""
    try:
        article = msgspec.convert(value, Article)
    except msgspec.ValidationError as error:
        raise ps.Unparsable(f"{of} is not an article: {error}.") from error
    article = Article(
        title=_line(article.title),
        description=_line(article.description),
        body=visible(article.body),
        key_points=[line for point in article.key_points if (line := _line(point))],
        citations=[Citation(_line(each.url), _line(each.quote)) for each in article.citations],
    )
    problem = _problem(article)
    if problem:
        raise ps.Unparsable(f"{of} is not an article: {problem}.")
    return article


def is_web(url: str) -> bool:
    """Return whether a page may link to this address: it is one of the web, not a script, and has no sign of markup."""
    return len(url) <= URL_CHARACTERS_MAX and _ADDRESS.fullmatch(url) is not None


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _problem(article: Article) -> str | None:
    if len(article.body) > BODY_CHARACTERS_MAX:  # before it is rendered
        return f"the body has {len(article.body)} characters, and at most {BODY_CHARACTERS_MAX} are allowed"
    count = article.word_count()
    limits = (
        (not words(article.title), "the title is empty"),
        (len(article.title) > TITLE_CHARACTERS_MAX, f"the title has more than {TITLE_CHARACTERS_MAX} characters"),
        (not words(article.description), "the description is empty"),
        (
            len(article.description) > DESCRIPTION_CHARACTERS_MAX,
            f"the description has more than {DESCRIPTION_CHARACTERS_MAX} characters",
        ),
        (count < WORDS_LEAST, f"the body has {count} words, and at least {WORDS_LEAST} are needed"),
        (count > WORDS_MAX, f"the body has {count} words, and at most {WORDS_MAX} are allowed"),
        (not article.key_points, "it has no key points"),
        (len(article.key_points) > KEY_POINTS_MAX, f"it has more than {KEY_POINTS_MAX} key points"),
        (
            any(len(point) > KEY_POINT_CHARACTERS_MAX for point in article.key_points),
            f"a key point has more than {KEY_POINT_CHARACTERS_MAX} characters",
        ),
        (len(article.citations) > CITATIONS_MAX, f"it has more than {CITATIONS_MAX} citations"),
        (
            any(
                len(each.quote) > QUOTE_CHARACTERS_MAX or len(each.url) > URL_CHARACTERS_MAX
                for each in article.citations
            ),
            f"a quotation or an address has more than {QUOTE_CHARACTERS_MAX} characters",
        ),
    )
    return next((text for is_broken, text in limits if is_broken), None)
