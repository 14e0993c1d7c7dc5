"""Links of a built site that lead nowhere, to no file or to no anchor in it, and what it would have to load from outside."""

from __future__ import annotations

import os.path
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

ELSEWHERE = ("https://", "http://", "mailto:", "data:")


class _Seen(HTMLParser):
    """The anchors of a page, where its links lead, and what it has to load to be shown."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                (self.links if tag == "a" else self.loaded).append(value)


def dead_links(site: Path) -> list[str]:
    pages = {path: _Seen(path) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, seen in pages.items():
        shown = path.relative_to(site).as_posix()
        problems += [f"{shown}: loads {url} from outside" for url in seen.loaded if "//" in url]
        for url in seen.links + seen.loaded:
            if url.startswith(ELSEWHERE):
                continue
            place, anchor = urldefrag(unquote(url))
            target = Path(os.path.normpath(path.parent / place)) if place else path
            if not target.is_file():
                problems.append(f"{shown}: {url} leads to no file")
            elif anchor and target.suffix == ".html" and anchor not in pages[target].anchors:
                problems.append(f"{shown}: {url} leads to a page without that heading")
    return problems
