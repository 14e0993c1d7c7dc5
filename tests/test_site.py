"""The documentation holds together: every link and anchor leads somewhere, every page can be found, every name is told of."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tools import trying
from tools.site import build, links, markdown, navigation, reference

ROOT = Path(__file__).resolve().parent.parent
PAGES = navigation.pages_of(ROOT)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    build.build(target)
    return target


# -- as it is read on the disk and where the repository is kept ------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: str) -> None:
    assert list(lost(ROOT / page)) == []


def test_every_page_is_in_the_navigation_once() -> None:
    listed = [source for section in navigation.read(ROOT) for source in section.sources]

    assert sorted(listed) == sorted(PAGES)


def test_the_sections_go_by_what_a_reader_wants() -> None:
    titles = [section.title for section in navigation.read(ROOT)]

    assert titles == ["Start", "Guide", "Operate", "Explain", "Decisions", "Reference"]


# -- as it is built --------------------------------------------------------------------------------------------------


def test_the_built_site_has_no_dead_link_and_needs_nothing_from_outside(site: Path) -> None:
    assert links.dead_links(site) == []


def test_every_page_of_the_site_is_in_the_menu_of_every_other(site: Path) -> None:
    told = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    menu = (site / "index.html").read_text("utf-8").partition('<nav class="menu"')[2].partition("</nav>")[0]

    missing = {page for page in told if f'href="{page}"' not in menu}

    assert {page for page in missing if not page.startswith("source/")} == set()


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    told = "".join(path.read_text("utf-8") for path in (site / "reference").glob("*.html"))
    names = [name for module in reference.PUBLIC for name in __import__(module, fromlist=["_"]).__all__]

    assert [name for name in names if f'<h2 id="{name}">' not in told] == []


# -- these tests can fail --------------------------------------------------------------------------------------------


def test_a_link_to_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n\n## A `heading`, twice\n\n## A heading, twice\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#a-heading-twice-1) [b](there.md#gone) [c](gone.md) [d](#e) `[f](gone.md)`\n", "utf-8")

    assert list(lost(page)) == ["there.md#gone", "gone.md", "#e"]


def test_a_built_page_that_leads_nowhere_or_loads_from_outside_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/a.js"></script><a href="b.html">b</a><a href="#c">c</a><p id="d"><a href="#d">d',
        "utf-8",
    )

    assert [problem.partition(": ")[2].split()[0] for problem in links.dead_links(tmp_path)] == [
        "loads",
        "b.html",
        "#c",
    ]


def test_a_page_outside_the_navigation_stops_the_build(tmp_path: Path) -> None:
    for name in ("README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "docs/guide/new"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.md").write_text("# A page\n", "utf-8")
    (tmp_path / "docs/navigation.toml").write_text(
        '[[section]]\ntitle = "Reference"\npages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]\n',
        "utf-8",
    )

    with pytest.raises(build.Broken) as broken:
        build.build(tmp_path / "site", tmp_path)

    assert broken.value.problems == ["docs/guide/new.md is in no section of docs/navigation.toml"]


def test_a_name_or_a_method_without_a_docstring_is_found() -> None:
    class Silent:
        def quiet(self) -> None: ...

    Silent.__module__ = "penstock.queues"

    found = list(reference.undocumented(reference.Entry("ps.Silent", Silent, public=True)))

    assert found == ["ps.Silent has no docstring", "ps.Silent.quiet has no docstring"]


def test_whoever_follows_a_page_writes_its_files_and_runs_its_commands_and_code_in_order(tmp_path: Path) -> None:
    page = """
```text file shop/lamp.txt
4
```

```console run
$ cp shop/lamp.txt copy.txt
```

```python
price = open("copy.txt", encoding="utf-8").read()
```

```console run
$ rm copy.txt
```

```python
open("price.txt", "w", encoding="utf-8").write(price)
```
"""

    trying.follow(page, tmp_path, Path(sys.executable).parent)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.py", "price.txt", "shop"]


@pytest.mark.parametrize("block", ["```console run\n$ false\n```\n", "```python\n1 / 0\n```\n"])
def test_a_page_that_does_not_work_for_a_stranger_is_found(tmp_path: Path, block: str) -> None:
    with pytest.raises(trying.Failed):
        trying.follow(block, tmp_path, Path(sys.executable).parent)


def lost(page: Path) -> Iterator[str]:
    """The links of a page that lead to no file, or to no heading in it."""
    for link in markdown.links_of(page.read_text("utf-8")):
        if link.startswith(links.ELSEWHERE):
            continue
        place, anchor = urldefrag(unquote(link))
        target = Path(os.path.normpath(page.parent / place)) if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def anchors(page: Path) -> set[str]:
    return {heading.anchor for heading in markdown.headings_of(page.read_text("utf-8"))}
