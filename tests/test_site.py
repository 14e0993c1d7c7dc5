"""The documentation holds together: links and anchors lead somewhere, every page is in the navigation, every public name
has a docstring and a place in the reference, and the site builds without a warning."""

from __future__ import annotations

import functools
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import penstock
import penstock.testing
from tools import site, trying
from tools.markdown import PARSER, anchors_of, links_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ELSEWHERE = ("https://", "http://", "mailto:")
ENTRY = re.compile(r"^::: (?P<name>\S+)\n(?P<options>(?:    .*\n)*)", re.MULTILINE)
LEFT_OUT = re.compile(r'"!(\^\(.*?\)\$)"')
PUBLIC = re.compile(r"penstock(\.testing)?\.\w+")
LISTED = re.compile(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", re.MULTILINE)


def entries() -> list[tuple[str, str]]:
    """Return the names that the reference lists, each with the pattern of the members that it leaves out."""
    found = []
    for page in sorted(ROOT.glob("docs/reference/*.md")):
        for entry in ENTRY.finditer(page.read_text("utf-8")):
            left_out = LEFT_OUT.search(entry["options"])
            found.append((entry["name"], left_out[1] if left_out else "^$"))
    return found


# -- as it is read in the repository ---------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: str) -> None:
    assert list(dead_links(ROOT / page)) == []


def test_every_page_is_in_the_navigation_once() -> None:
    listed = LISTED.findall((ROOT / "mkdocs.yml").read_text("utf-8"))

    assert Counter(listed) == Counter([*map(site.site_path, PAGES), site.site_path(site.DECISIONS)])


def test_every_public_name_is_in_the_reference_once() -> None:
    public = [f"{module.__name__}.{name}" for module in (penstock, penstock.testing) for name in module.__all__]

    assert Counter(name for name, _ in entries() if PUBLIC.fullmatch(name)) == Counter(public)


def test_every_name_of_the_reference_exists() -> None:
    for name, _ in entries():
        pkgutil.resolve_name(name)


@pytest.mark.parametrize(
    "name, left_out", [pytest.param(*entry, id=entry[0]) for entry in entries() if PUBLIC.fullmatch(entry[0])]
)
def test_a_public_name_and_its_members_have_docstrings(name: str, left_out: str) -> None:
    assert list(undocumented(name, pkgutil.resolve_name(name), left_out)) == []


# -- as it is built --------------------------------------------------------------------------------------------------


def test_links_and_fences_are_rewritten_for_the_site() -> None:
    text = """[a](docs/guide/units.md#the-unit) [`b`](LICENSE), [all](docs/decisions/) `[c](d.md)` [e](https://shop.example/)

```python file market.py
x = "[f](g.md)"
```

```console run
$ penstock status
```
"""

    assert (
        site.for_the_site(text, "README.md")
        == """[a](guide/units.md#the-unit) [`b`](files/LICENSE.md), [all](decisions/index.md) `[c](d.md)` [e](https://shop.example/)

```python title="market.py"
x = "[f](g.md)"
```

```console
$ penstock status
```
"""
    )


def test_a_page_in_a_folder_links_to_pages_and_files_at_the_root() -> None:
    text = "[a](../../README.md) [b](../../deploy/Dockerfile) [c](cron.md)"

    assert (
        site.for_the_site(text, "docs/guide/units.md")
        == "[a](../index.md) [b](../files/deploy/Dockerfile.md) [c](cron.md)"
    )
    assert site.linked_files(text, "docs/guide/units.md") == {"deploy/Dockerfile"}


def test_a_list_below_a_line_of_prose_is_a_list_on_the_site_too() -> None:
    text = "`Two` things:\n- one\n- two\n\n```text\nTwo:\n- one\n```\n"

    assert site.for_the_site(text, "README.md") == text.replace("things:\n", "things:\n\n")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_another_host(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="make docs installs it, and so does make test-all")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]

    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    built = {path.relative_to(tmp_path).as_posix(): Seen(path.read_text("utf-8")) for path in tmp_path.rglob("*.html")}
    assert {page: found for page, seen in built.items() if (found := outside(seen.loaded))} == {}
    assert (
        outside(re.findall(r"url\(([^)]+)\)", "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.css"))))
        == []
    )
    for page in PAGES:
        shown = built[site.site_path(page).replace(".md", ".html")]
        parsed = PARSER.parse((ROOT / page).read_text("utf-8"))
        if not page.startswith("docs/reference/"):
            assert (page, shown.items, shown.tables) == (
                page,
                sum(token.type == "list_item_open" for token in parsed),
                sum(token.type == "table_open" for token in parsed),
            )


# -- these tests can fail --------------------------------------------------------------------------------------------


def test_a_link_to_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n\n## A `heading`, twice\n\n## A heading, twice\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#a-heading-twice-1) [b](there.md#gone) [c](gone.md) [d](#e) `[f](gone.md)`\n", "utf-8")

    assert list(dead_links(page)) == ["there.md#gone", "gone.md", "#e"]


def test_a_page_that_loads_from_another_host_is_found() -> None:
    seen = Seen('<script src="https://cdn.example/a.js"></script><a href="https://shop.example">b</a><img src="c.svg">')

    assert outside(seen.loaded) == ["https://cdn.example/a.js"]


def test_a_name_or_a_method_without_a_docstring_is_found() -> None:
    class Silent:
        def quiet(self) -> None: ...

        def hidden(self) -> None: ...

    Silent.__module__ = "penstock.queues"

    assert list(undocumented("Silent", Silent, "^(hidden)$")) == ["Silent", "Silent.quiet"]


def test_following_a_page_writes_its_files_and_runs_its_commands_and_code_in_order(tmp_path: Path) -> None:
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
def test_a_page_that_does_not_work_for_a_new_user_is_found(tmp_path: Path, block: str) -> None:
    with pytest.raises(trying.Failed):
        trying.follow(block, tmp_path, Path(sys.executable).parent)


# -- what they look with ---------------------------------------------------------------------------------------------


class Seen(HTMLParser):
    """What a built page loads to be shown, and how many list items and tables its article has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.items = self.tables = 0
        self.in_article = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.in_article = self.in_article or tag == "article"
        self.items += tag == "li" and self.in_article
        self.tables += tag == "table" and self.in_article
        if tag != "a":
            self.loaded += [value for name, value in attributes if name in ("href", "src") and value]

    def handle_endtag(self, tag: str) -> None:
        self.in_article = self.in_article and tag != "article"


def outside(addresses: list[str]) -> list[str]:
    return [address for address in addresses if re.match(r"""["']?(https?:)?//""", address)]


def dead_links(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead to no file, or to no heading in it."""
    for link in links_of(page.read_text("utf-8")):
        if link.startswith(ELSEWHERE):
            continue
        place, anchor = urldefrag(unquote(link))
        target = Path(os.path.normpath(page.parent / place)) if place else page
        if not target.exists() or (anchor and anchor not in anchors_of(target.read_text("utf-8"))):
            yield link


def undocumented(name: str, value: object, left_out: str) -> Iterator[str]:
    """Yield the name, and those of its public members, that have no docstring."""
    if not isinstance(value, tuple) and not inspect.getdoc(value):
        yield name
    if inspect.isclass(value):
        inherited = {
            each for base in value.__mro__ if not base.__module__.startswith("penstock") for each in vars(base)
        }
        for base in value.__mro__:
            if not base.__module__.startswith("penstock"):
                continue
            for member, held in vars(base).items():
                is_offered = callable(held) or isinstance(
                    held, property | functools.cached_property | staticmethod | classmethod
                )
                is_public = not member.startswith("_") and member not in inherited and not re.search(left_out, member)
                if is_offered and is_public and not inspect.getdoc(held):
                    yield f"{name}.{member}"
