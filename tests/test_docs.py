"""The documentation keeps its word: its code runs, its commands succeed, its links lead somewhere.

The python blocks of a page run in order in one namespace, in an empty folder. What a fence may say:

    ```python                         run
    ```python no-run needs a server   not run, with the reason
    ```python file market.py          written there, as a reader would; so is any other language
    ```console                        not run
    ```console run                    every `$ penstock ...` and `$ python ...` line has to succeed
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md") for path in ROOT.glob(pattern))
COMMAND_SECONDS_MAX = 120  # the slowest command a reader is asked to wait for

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^ *(?P=ticks) *$", re.MULTILINE | re.DOTALL
)
INLINE_CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^ *\[[^\]]+\]: *(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.IGNORECASE)


class Block(NamedTuple):
    line: int
    language: str
    info: str
    text: str


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a page's code runs: an empty folder, and no setting of ours in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    yield tmp_path
    # The next page may have a market.py of its own, or a package without a file.
    for name, module in list(sys.modules.items()):
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if any(str(place).startswith(str(tmp_path)) for place in places):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(page: Path, empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A real module, because typed payloads look their annotations up in the module they were made in.
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    run(page, list(blocks(page.read_text("utf-8"))), module)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert dead_links(page, page.read_text("utf-8")) == []


# -- how a page is read and run -------------------------------------------------------------------------------------


def blocks(page: str) -> Iterator[Block]:
    for found in FENCE.finditer(page):
        language, _, info = found["info"].strip().partition(" ")
        line = page.count("\n", 0, found.start("text")) + 1
        yield Block(line, language, info.strip(), textwrap.dedent(found["text"]))


def run(page: Path, found: list[Block], module: ModuleType) -> None:
    for block in found:
        match block.language, block.info.split():
            case "python", []:
                # Blank lines in front give a traceback the page's own line numbers.
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
                exec(code, module.__dict__)
            case "python", ["no-run", _, *_]:
                pass
            case _, ["file", name]:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(block.text, "utf-8")
            case "python", _:
                pytest.fail(f'{page}:{block.line}: write "python", or "python no-run" and the reason.', pytrace=False)
            case "console", ["run"]:
                for command in commands(block.text):
                    execute(command, f"{page}:{block.line}")


def commands(console: str) -> Iterator[list[str]]:
    for line in console.splitlines():
        if line.startswith("$ "):
            yield shlex.split(line.removeprefix("$ "), comments=True)


def execute(command: list[str], where: str) -> None:
    if command[:1] not in (["penstock"], ["python"]):
        said = "only `$ penstock ...` and `$ python ...` lines can be run"
        pytest.fail(f"{where}: {said}, not {shlex.join(command)}", pytrace=False)
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:]], capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"{where}: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr}", pytrace=False)


def dead_links(page: Path, text: str) -> list[str]:
    prose = INLINE_CODE.sub("", FENCE.sub("", text))
    targets = [found[1] or found[2] for found in LINK.finditer(prose)]
    return [
        target
        for target in targets
        if not ELSEWHERE.match(target) and not (page.parent / target.partition("#")[0]).exists()
    ]


# -- these tests can fail -------------------------------------------------------------------------------------------


def run_text(text: str) -> ModuleType:
    module = ModuleType("page")
    run(Path("page.md"), list(blocks(text)), module)
    return module


def test_blocks_share_a_namespace_and_run_in_order() -> None:
    page = run_text("```python\na = 1\n```\n\n* In a list:\n\n  ```python\n  b = a + 1\n  ```\n")

    assert page.b == 2


@pytest.mark.usefixtures("empty_folder")
def test_a_block_that_names_a_file_is_written_there_and_can_be_run() -> None:
    page = run_text(
        "```python file shop/lamp.py\nprice = 4\n```\n\n```console run\n$ python shop/lamp.py\n```\n\n"
        "```python\nfrom shop import lamp\n```\n"
    )

    assert page.lamp.price == 4


def test_an_error_is_reported_at_the_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_text("# Page\n\n```python\n1 / 0\n```\n")

    assert caught.traceback[-1].lineno == 3  # counted from 0


def test_a_block_that_is_not_run_needs_a_reason() -> None:
    run_text("```python no-run needs a server\n1 / 0\n```\n")

    with pytest.raises(pytest.fail.Exception, match="the reason"):
        run_text("```python no-run\n1 / 0\n```\n")


@pytest.mark.parametrize("command", ["penstock no-such-command", "rm -r market"])
def test_a_command_that_fails_or_is_not_ours_is_reported(command: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:2"):
        run_text(f"```console run\n$ {command}\n```\n")


def test_a_command_that_is_only_shown_is_not_run() -> None:
    run_text("```console\n$ penstock no-such-command\n```\n")


def test_a_link_to_nothing_is_found() -> None:
    text = "[a](nowhere.md) [b](test_docs.py#here) [c](https://shop.example) [d](#top) `[e](code.md)`\n\n[f]: gone.md\n"

    assert dead_links(Path(__file__), text) == ["nowhere.md", "gone.md"]
