"""A static site for each brand: pages with JSON-LD, a feed and a sitemap. Every file is written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import penstock as ps
from penstock_systems.brand.bindings import Content
from penstock_systems.brand.scalable_media.writing import OFFLINE

FEED_MAX, INDEX_MAX, MORE_MAX = 50, 500, 3

_TEMPLATES = Environment(
    loader=PackageLoader("penstock_systems.brand.pages_plus", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Page(NamedTuple):
    """A published article, as the feed, the sitemap and the index list it."""

    title: str
    description: str
    slug: str
    published_at: str


def article_url(content: Content) -> str:
    return f"https://{content.brand.fqdn}/blog/{content.slug}"


def page_of(content: Content, published_at: str, others: Sequence[Page] = ()) -> str:
    """Return the page of an article. It names its writer, its reviewer and its sources, and links to other articles."""
    brand, moment = content.brand, f"{published_at.replace(' ', 'T')}Z"
    facts = {
        "@context": "https://schema.org",
        "@type": "Article",
        "headline": content.title,
        "description": content.description,
        "url": article_url(content),
        "mainEntityOfPage": {"@type": "WebPage", "@id": article_url(content)},
        "datePublished": moment,
        "dateModified": moment,
        "inLanguage": brand.language,
        "author": {"@type": "Organization", "name": brand.title, "url": f"https://{brand.fqdn}/"},
        "publisher": {"@type": "Organization", "name": brand.title, "url": f"https://{brand.fqdn}/"},
        "creditText": byline(content),
        "citation": content.sources,
    }
    return _TEMPLATES.get_template("article.html").render(
        brand=brand,
        others=others,
        content=content,
        url=article_url(content),
        byline=byline(content),
        published_at=published_at,
        moment=moment,
        html=Markup(content.html),
        facts=Markup(_json_in_html(facts)),
    )


def byline(content: Content) -> str:
    """Return who made the article, in plain words."""
    wrote = (
        "Composed from its sources without a language model"
        if content.model == OFFLINE
        else f"Written with {content.model}"
    )
    return (
        f"{wrote}, reviewed by {content.reviewed_by}" if content.reviewed_by else f"{wrote}, not reviewed by a person"
    )


def write_site(folder: Path, content: Content, published_at: str, pages: Sequence[Page]) -> None:
    """Write the page of an article, and the feed, the sitemap and the index of all pages with it."""
    fqdn = content.brand.fqdn
    blog = folder / fqdn / "blog"
    blog.mkdir(parents=True, exist_ok=True)
    _write(blog / f"{content.slug}.html", page_of(content, published_at, pages[1 : 1 + MORE_MAX]))
    shown = [
        {
            "title": page.title,
            "description": page.description,
            "url": f"https://{fqdn}/blog/{page.slug}",
            "file": f"{page.slug}.html",
            "at": page.published_at,
            "rfc": format_datetime(datetime.fromisoformat(page.published_at).replace(tzinfo=UTC)),
        }
        for page in pages
    ]
    site, now = f"https://{fqdn}/blog/", shown[0]["rfc"]
    if not (folder / fqdn / "index.html").exists():  # a home page of one's own stays
        _write(folder / fqdn / "index.html", _TEMPLATES.get_template("home.html").render(brand=content.brand))
    for name, template, most in (
        ("blog/index.html", "index.html", INDEX_MAX),
        ("feed.xml", "feed.xml", FEED_MAX),
        ("sitemap.xml", "sitemap.xml", len(shown)),
    ):
        facts = {"brand": content.brand, "site": site, "pages": shown[:most], "now": now}
        _write(folder / fqdn / name, _TEMPLATES.get_template(template).render(facts))


def _write(path: Path, text: str) -> None:
    """Put a file in place of the old one in a single step. A reader sees one of both, also after a crash."""
    waiting = path.with_name(f".{path.name}.new")
    try:
        with waiting.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        waiting.replace(path)
    except OSError as error:
        raise ps.Unavailable(f"{path} cannot be written: {error.strerror}.") from error


def _json_in_html(value: object) -> str:
    """JSON that ends no script element."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
