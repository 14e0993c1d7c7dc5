"""Markdown as HTML: headings with the anchors that GitHub gives them, code in colours, links that lead to built pages."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HtmlOf = Callable[[str], str]
COLOURS = HtmlFormatter(cssclass="code", style="friendly", wrapcode=True)
NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Page:
    title: str
    headings: tuple[Heading, ...]
    html: str


def page(text: str, link: HtmlOf) -> Page:
    """The page that a text makes; `link` says where each of its links leads in the site."""
    tokens = _parser().parse(text)
    headings = _with_anchors(tokens)
    for token in _flat(tokens):
        if token.type == "link_open":
            token.attrSet("href", link(str(token.attrGet("href"))))
        elif token.type == "image":
            token.attrSet("src", link(str(token.attrGet("src"))))
    title = next((heading.text for heading in headings if heading.level == 1), "")
    return Page(title, tuple(headings), _parser().renderer.render(tokens, _parser().options, {}))


def headings_of(text: str) -> list[Heading]:
    return _with_anchors(_parser().parse(text))


def links_of(text: str) -> list[str]:
    """Where the links of a page lead, as they are written; what stands in code is no link."""
    return [str(token.attrGet("href")) for token in _flat(_parser().parse(text)) if token.type == "link_open"]


def blocks_of(text: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of a page: their language, what else the fence says, and what is in them."""
    found = [token for token in _parser().parse(text) if token.type == "fence"]
    return [(*token.info.strip().partition(" ")[::2], token.content) for token in found]


def fragment(text: str) -> str:
    """A few sentences without headings and links, such as a docstring."""
    return str(_parser().render(text))


def code(text: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return f'<div class="code"><pre><code>{html.escape(text)}</code></pre></div>\n'
    return str(highlight(text, lexer, COLOURS))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    for name in ("html_inline", "html_block"):
        parser.add_render_rule(name, _markup)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _indented)
    parser.add_render_rule("table_open", lambda *_: '<div class="table"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _fence(_renderer: object, tokens: Sequence[Token], index: int, *_rest: object) -> str:
    language, _, meant = tokens[index].info.strip().partition(" ")  # behind it stands what the tests do with the block
    named = f'<p class="file">{html.escape(meant.removeprefix("file "))}</p>\n' if meant.startswith("file ") else ""
    return named + code(tokens[index].content, language)


def _markup(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    """A line break in a cell is one, a comment is for whoever edits the page, and other markup is shown as it is."""
    text = tokens[index].content
    return "" if text.startswith("<!--") else text if text == "<br>" else html.escape(text)


def _indented(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    return code(tokens[index].content, "")


def _with_anchors(tokens: Sequence[Token]) -> list[Heading]:
    headings: list[Heading] = []
    seen: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline"))
        plain = NOT_IN_AN_ANCHOR.sub("", text.lower()).replace(" ", "-")
        times = seen[plain] = seen.get(plain, -1) + 1
        anchor = f"{plain}-{times}" if times else plain
        opening.attrSet("id", anchor)
        headings.append(Heading(int(opening.tag.removeprefix("h")), text, anchor))
    return headings


def _flat(tokens: Sequence[Token]) -> list[Token]:
    return [token for outer in tokens for token in (outer, *(outer.children or ()))]
