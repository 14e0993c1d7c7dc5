"""Which page stands where: docs/navigation.toml names the sections, and the pages of each in the order they are read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Section:
    title: str
    sources: tuple[str, ...]  # paths of pages from the top of the repository
    names: dict[str, str]  # what stands in the menu, where that is not a page's title


def read(root: Path) -> list[Section]:
    described = tomllib.loads((root / "docs" / "navigation.toml").read_text("utf-8"))
    return [_section(root, section["title"], section["pages"]) for section in described["section"]]


def address(source: str) -> str:
    """Where a page of the repository stands in the site."""
    if source == "README.md":
        return "index.html"
    return source.removeprefix("docs/").removesuffix(".md").lower() + ".html"


def pages_of(root: Path) -> list[str]:
    """Every page that a reader may look for in the site."""
    docs = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    return ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", *docs]


def _section(root: Path, title: str, pages: list[str | list[str]]) -> Section:
    sources: list[str] = []
    names: dict[str, str] = {}
    for page in pages:
        name, pattern = ("", page) if isinstance(page, str) else page
        matching = sorted(path.relative_to(root).as_posix() for path in root.glob(pattern))
        sources += matching or [pattern]  # a page that is not there is reported by whoever reads it
        names |= dict.fromkeys(sources[-1:], name) if name else {}
    return Section(title, tuple(sources), names)
