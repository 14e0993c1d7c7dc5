"""Builds the site: the pages of the navigation, the reference, and the files that pages point to; or says what is wrong."""

from __future__ import annotations

import html
import os.path
import posixpath
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from urllib.parse import urldefrag

import msgspec

from tools.site import markdown, navigation, reference
from tools.site.links import ELSEWHERE, dead_links
from tools.site.markdown import Heading, Page
from tools.site.navigation import Section

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
LANGUAGES = {".py": "python", ".toml": "toml", ".service": "ini", ".yaml": "yaml", ".sql": "sql"}
PICTURES = (".svg", ".png")
DECISIONS = "decisions/index.html"
CLOSED = ("Decisions", "Reference")  # in the menu, while one reads something else


class Broken(Exception):
    """What has to be mended before there is a site."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass
class Site:
    sections: list[Section]
    pages: dict[str, Page] = field(default_factory=dict)  # by address
    files: dict[str, str] = field(default_factory=dict)  # what pages point to that is no page: source by address
    pictures: dict[str, Path] = field(default_factory=dict)  # that are copied as they are, by address
    menu: list[tuple[str, list[str]]] = field(default_factory=list)  # addresses by section
    names: dict[str, str] = field(default_factory=dict)  # of pages in the menu, where they are not the titles
    problems: list[str] = field(default_factory=list)


def build(target: Path, root: Path = ROOT) -> int:
    """Makes the site anew in `target`, and says how many pages it has."""
    site = Site(navigation.read(root))
    listed = [source for section in site.sections for source in section.sources]
    site.problems += [
        f"{source} is in no section of docs/navigation.toml"
        for source in navigation.pages_of(root)
        if source not in listed
    ]
    site.problems += [f"{source} is there twice" for source in sorted(set(listed)) if listed.count(source) > 1]
    for section in site.sections:
        for source in section.sources:
            _add(site, root, source, listed)
        site.names |= {navigation.address(source): name for source, name in section.names.items()}
        site.menu.append((section.title, [navigation.address(source) for source in section.sources]))
    _add_list_of_decisions(site)
    _add_reference(site)
    for address, source in site.files.items():
        site.pages[address] = _source_page(root, source)
    if site.problems:
        raise Broken(site.problems)
    _write(site, target)
    if dead := dead_links(target):
        raise Broken(dead)
    return len(site.pages)


def _add(site: Site, root: Path, source: str, listed: list[str]) -> None:
    if not (root / source).is_file():
        site.problems.append(f"docs/navigation.toml names {source}, which is not there")
        return
    own = navigation.address(source)

    def link(url: str) -> str:
        if url.startswith((*ELSEWHERE, "#")):
            return url
        place, anchor = urldefrag(url)
        meant = os.path.normpath(posixpath.join(posixpath.dirname(source), place))
        if meant in listed:
            address = navigation.address(meant)
        elif meant == "docs/decisions":
            address = DECISIONS
        elif (root / meant).is_file() and meant.endswith(PICTURES):
            address = meant.removeprefix("docs/")
            site.pictures[address] = root / meant
        elif (root / meant).is_file() and not meant.endswith(".md"):
            address = f"source/{meant}.html"
            site.files[address] = meant
        else:
            site.problems.append(f"{source}: {url} leads to no page and no file")
            return url
        return _relative(own, address) + (f"#{anchor}" if anchor else "")

    site.pages[own] = page = markdown.page((root / source).read_text("utf-8"), link)
    if not page.title:
        site.problems.append(f"{source} has no title")


def _add_list_of_decisions(site: Site) -> None:
    title, decided = next((entry for entry in site.menu if entry[0] == "Decisions"), ("Decisions", []))
    items = "".join(
        f'<li><a href="{posixpath.basename(address)}">{html.escape(site.pages[address].title)}</a></li>\n'
        for address in decided
        if address in site.pages
    )
    text = f'<h1 id="top">{title}</h1>\n<p>Why it is as it is, a page each.</p>\n<ol class="plain">{items}</ol>\n'
    site.pages[DECISIONS] = Page(title, (Heading(1, title, "top"),), text)
    site.names[DECISIONS] = "All of them"
    decided.insert(0, DECISIONS)


def _add_reference(site: Site) -> None:
    made, problems = reference.pages()
    site.problems += problems
    site.pages |= dict(made)
    at = next((index for index, (title, _) in enumerate(site.menu) if title == "Reference"), None)
    if at is None:
        site.problems.append("docs/navigation.toml has no section Reference")
    else:
        site.menu[at][1][:0] = [address for address, _ in made]


def _source_page(root: Path, source: str) -> Page:
    shown = markdown.code((root / source).read_text("utf-8"), LANGUAGES.get(Path(source).suffix, "text"))
    return Page(source, (Heading(1, source, "top"),), f'<h1 id="top"><code>{html.escape(source)}</code></h1>\n{shown}')


# -- on the disk ----------------------------------------------------------------------------------------------------


def _write(site: Site, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    frame = Template((HERE / "page.html").read_text("utf-8"))
    for address, page in site.pages.items():
        path = target / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_whole(frame, site, address, page), "utf-8")
    for address, picture in site.pictures.items():
        (target / address).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, target / address)
    colours = markdown.COLOURS.get_style_defs(".code")
    (target / "style.css").write_text(f"{colours}\n{(HERE / 'style.css').read_text('utf-8')}", "utf-8")
    found = msgspec.json.encode([entry for address in site.pages for entry in _entries(site, address)])
    script = (HERE / "search.js").read_text("utf-8")
    (target / "search.js").write_text(f"const PAGES = {found.decode()};\n{script}", "utf-8")


def _whole(frame: Template, site: Site, address: str, page: Page) -> str:
    return frame.substitute(
        title=html.escape(page.title if address == "index.html" else f"{page.title} · Penstock"),
        top=_relative(address, ""),
        home=_relative(address, "index.html"),
        menu="".join(_section(site, address, title, pages) for title, pages in site.menu),
        content=page.html,
        contents=_contents(page),
        next=_next(site, address),
    )


def _section(site: Site, own: str, title: str, addresses: list[str]) -> str:
    items = "".join(
        f'<li><a{here} href="{_relative(own, address)}">{html.escape(_name(site, address))}</a></li>\n'
        for address in addresses
        for here in [' aria-current="page"' if address == own else ""]
    )
    opened = " open" if own in addresses or title not in CLOSED else ""
    return f"<details{opened}><summary>{html.escape(title)}</summary>\n<ul>\n{items}</ul></details>\n"


def _name(site: Site, address: str) -> str:
    return site.names.get(address) or site.pages[address].title


def _contents(page: Page) -> str:
    found = [heading for heading in page.headings if heading.level == 2]
    if len(found) < 2:
        return ""
    items = "".join(f'<li><a href="#{each.anchor}">{html.escape(each.text)}</a></li>\n' for each in found)
    return f'<nav class="contents" aria-label="On this page"><p>On this page</p>\n<ul>\n{items}</ul></nav>'


def _next(site: Site, own: str) -> str:
    order = [address for _, addresses in site.menu for address in addresses]
    if own not in order or order[-1] == own:
        return ""
    following = order[order.index(own) + 1]
    return f'<a href="{_relative(own, following)}">{html.escape(_name(site, following))} →</a>'


def _entries(site: Site, address: str) -> list[tuple[str, str, str]]:
    """What the search looks through: each heading, the name of its page, and where it is."""
    return [
        (heading.text, _name(site, address), address if heading.level == 1 else f"{address}#{heading.anchor}")
        for heading in site.pages[address].headings
    ]


def _relative(own: str, address: str) -> str:
    """The way from one page of the site to another; to its top it ends with a slash, or is nothing."""
    up = "../" * own.count("/")
    return up + address
