"""What MkDocs cannot read from docs/: the pages at the root, files that pages link to, and what fences tell the tests.

`mkdocs.yml` loads this module as a hook. Pages link to each other as files of the repository, so that the links also work
where the repository is read; here they become links of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
AT_THE_ROOT = {"README.md": "index.md"} | {
    name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
}
SOURCES = {page: source for source, page in AT_THE_ROOT.items()}
DECISIONS = "docs/decisions"
LANGUAGES = {".py": "python", ".service": "ini", ".timer": "ini", ".toml": "toml", ".yaml": "yaml"}

BLOCK = r"^ *(?P<ticks>`{3,})[^\n]*\n.*?^ *(?P=ticks) *$"
CODE = re.compile(BLOCK + r"|(?P<inline>`+)[^`].*?(?P=inline)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^(?P<start> *`{3,}\w+) (?P<info>[^\n`]+)$", re.MULTILINE)
LIST_AFTER_PROSE = re.compile(
    BLOCK + r"|^(?P<prose>(?![-*] |1\. )\S[^\n]*\n)(?=(?:[-*]|1\.) )", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)(?P<place>[^)\s#]+)(?=[)#])")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages at the root, the list of decisions, and a page for each file that a page links to."""
    from mkdocs.structure.files import File  # installed by `make docs` alone

    added = {page: (ROOT / source).read_text("utf-8") for source, page in AT_THE_ROOT.items()}
    added[site_path(DECISIONS)] = decisions()
    pages = {source_path(file.src_uri): file.content_string for file in files.documentation_pages()}
    for source, text in (pages | {SOURCES[page]: added[page] for page in SOURCES}).items():
        for linked in linked_files(text, source):
            added[site_path(linked)] = file_page(linked)
    for page, text in added.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page as MkDocs reads it."""
    return for_the_site(markdown, source_path(page.file.src_uri))


def for_the_site(text: str, source: str) -> str:
    """Return the text of a source with links of the site, fences that say the language and a title alone, and blank lines
    before lists, which GitHub does not need."""
    own = posixpath.dirname(site_path(source))

    def rewrite(link: re.Match[str]) -> str:
        return posixpath.relpath(site_path(repository_path(source, link["place"])), own or ".")

    linked = "".join(piece if is_code else LINK.sub(rewrite, piece) for piece, is_code in pieces(text))
    apart = LIST_AFTER_PROSE.sub(lambda found: f"{found[0]}\n" if found["prose"] else found[0], linked)
    return FENCE.sub(_plain_fence, apart)


def linked_files(text: str, source: str) -> set[str]:
    """Return the files that a source links to which are neither pages nor pictures."""
    prose = "".join(piece for piece, is_code in pieces(text) if not is_code)
    linked = {repository_path(source, link["place"]) for link in LINK.finditer(prose)}
    return {
        path for path in linked if not path.startswith("docs/") and path not in AT_THE_ROOT and (ROOT / path).is_file()
    }


def site_path(source: str) -> str:
    """Return the path in the site of a file of the repository."""
    if source in AT_THE_ROOT:
        return AT_THE_ROOT[source]
    if source == DECISIONS:
        return "decisions/index.md"
    return source.removeprefix("docs/") if source.startswith("docs/") else f"files/{source}.md"


def source_path(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    return SOURCES.get(page) or f"docs/{page}"


def repository_path(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def decisions() -> str:
    """Return the page that lists the decisions by their titles."""
    titles = {path.name: path.read_text("utf-8").partition("\n")[0] for path in sorted((ROOT / DECISIONS).glob("*.md"))}
    listed = "\n".join(f"- [{title.removeprefix('# ')}]({name})" for name, title in titles.items())
    return f"# Decisions\n\nHard decisions, one page each, with the reasons.\n\n{listed}\n"


def file_page(source: str) -> str:
    path = ROOT / source
    return f"# `{source}`\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text('utf-8')}````\n"


def pieces(text: str) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is code."""
    found, end = [], 0
    for code in CODE.finditer(text):
        found += [(text[end : code.start()], False), (code[0], True)]
        end = code.end()
    return [*found, (text[end:], False)]


def _plain_fence(fence: re.Match[str]) -> str:
    kind, _, name = fence["info"].partition(" ")
    return f'{fence["start"]} title="{name}"' if kind == "file" else fence["start"]
