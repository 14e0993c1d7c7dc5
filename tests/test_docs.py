"""The documentation keeps its word: its code runs, its commands succeed and print what it shows, its links lead somewhere.

The python blocks of a page run in order in one namespace, in an empty folder. What a fence may say:

    ```python                         run
    ```python no-run needs a server   not run, with the reason
    ```python file market.py          written there, as a reader would; so is any other language
    ```text output                    what the python block before it printed
    ```console                        not run, and shows no output
    ```console no-run has ids         not run, with the reason
    ```console run                    every `$ penstock ...` and `$ python ...` line has to succeed
    ```console fails                  every such line has to fail

Lines below a `$` line are what the command prints, line breaks and runs of spaces aside; `...` stands for any text. A python
block that prints is followed by its output.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.test_tidy import PUBLIC_MODULES

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md") for path in ROOT.glob(pattern))
GUIDES = sorted(path for pattern in ("README.md", "docs/[!e]*/*.md", "examples/*.py") for path in ROOT.glob(pattern))
IMPORTED = re.compile(r"^ *(?:from|import) (penstock(?:\.\w+)*)(?![\w.])", re.MULTILINE)
COMMAND_SECONDS_MAX = 120  # the slowest command a reader is asked to wait for

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^ *(?P=ticks) *$", re.MULTILINE | re.DOTALL
)
INLINE_CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^ *\[[^\]]+\]: *(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.IGNORECASE)


SHOWN_RESULT = re.compile(r"# *(->|=>|→|prints\b)")
INDENTED_COMMAND = re.compile(r"^ {4}\$ .*", re.MULTILINE)
LIKE_A_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_stand_in_fences(page: Path) -> None:
    assert indented_commands(page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_guide_imports_only_public_modules(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not {module for module in IMPORTED.findall(text) if module not in PUBLIC_MODULES}


# -- how a page is read and run -------------------------------------------------------------------------------------


def blocks(page: str) -> Iterator[Block]:
    for found in FENCE.finditer(page):
        language, _, info = found["info"].strip().partition(" ")
        line = page.count("\n", 0, found.start("text")) + 1
        yield Block(line, language, info.strip(), textwrap.dedent(found["text"]))


def run(page: Path, found: list[Block], module: ModuleType) -> None:
    for block, after in zip_longest(found, found[1:]):
        where = f"{page}:{block.line}"
        match block.language, block.info.split():
            case "python", []:
                if shown := SHOWN_RESULT.search(block.text):
                    pytest.fail(f"{where}: `{shown[0]}` is not checked. Assert it, or print it.", pytrace=False)
                # Blank lines in front give a traceback the page's own line numbers.
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
                with redirect_stdout(io.StringIO()) as printed:
                    exec(code, module.__dict__)
                is_shown = after is not None and (after.language, after.info) == ("text", "output")
                if printed.getvalue() or is_shown:
                    compare(after.text if is_shown else "", printed.getvalue(), where)
            case "python" | "console", ["no-run", _, *_]:
                pass
            case _, ["file", name]:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(block.text, "utf-8")
            case "python", _:
                pytest.fail(f'{where}: write "python", or "python no-run" and the reason.', pytrace=False)
            case "console", ["run" | "fails" as how]:
                for command, output in commands(block.text):
                    execute(command, output, where, fails=how == "fails")
            case "console", []:
                if any(output for _, output in commands(block.text)):
                    said = 'it shows output: write "console run", "console fails", or "console no-run" and the reason.'
                    pytest.fail(f"{where}: {said}", pytrace=False)


def commands(console: str) -> Iterator[tuple[list[str], str]]:
    """Yield each command with the output that is shown below it."""
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE):
        yield shlex.split(command, comments=True), output


def compare(shown: str, printed: str, where: str) -> None:
    """Fail unless the output is as shown."""
    shown, printed = (f"{text.strip()}\n" for text in (shown, printed))
    if not doctest.OutputChecker().check_output(shown, printed, LIKE_A_DOCTEST):
        pytest.fail(f"{where}: it shows\n\n{shown}\nand this was printed:\n\n{printed}", pytrace=False)


def execute(command: list[str], output: str, where: str, *, fails: bool) -> None:
    if command[:1] not in (["penstock"], ["python"]):
        said = "only `$ penstock ...` and `$ python ...` lines can be run"
        pytest.fail(f"{where}: {said}, not {shlex.join(command)}", pytrace=False)
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:]], capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, check=False
    )
    if output.strip():
        compare(output, done.stdout + done.stderr, f"{where}: {shlex.join(command)}")
    if (done.returncode != 0) is not fails:
        pytest.fail(f"{where}: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr}", pytrace=False)


def indented_commands(text: str) -> list[str]:
    """Return the commands in indented blocks, where nothing can say whether they are run."""
    return INDENTED_COMMAND.findall(FENCE.sub("", text))


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


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1 + 1)\n```\n\n```text output\n3\n```\n",
        "```python\nprint(1 + 1)\n```\n",
        "```python\n1 + 1\n```\n\n```text output\n2\n```\n",
        "```python\n1 + 1  # -> 3\n```\n",
        "```console run\n$ python -c 'print(1 + 1)'\n3\n```\n",
        "```console fails\n$ python -c 'print(1 + 1)'\n2\n```\n",
        "```console\n$ penstock status\nAll is well.\n```\n",
    ],
)
def test_a_result_that_is_shown_and_not_there_is_reported(text: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:2"):
        run_text(text)


@pytest.mark.usefixtures("empty_folder")
def test_a_result_may_leave_out_what_differs() -> None:
    run_text(
        "```python\nprint('took', 17, 'ms')\n```\n\n```text output\ntook ... ms\n```\n\n"
        "```console run\n$ python -c 'print(1); print(2)'\n1\n...\n$ python -c 1\n```\n\n"
        "```console fails\n$ python -c 'raise SystemExit(2)'\n```\n\n"
        "```console no-run has ids\n$ penstock status\nAll is well.\n```\n"
    )


def test_a_command_in_an_indented_block_is_found() -> None:
    text = "Look:\n\n    $ penstock status\n\n```console\n    $ penstock why\n```\n"

    assert indented_commands(text) == ["    $ penstock status"]


def test_a_link_to_nothing_is_found() -> None:
    text = "[a](nowhere.md) [b](test_docs.py#here) [c](https://shop.example) [d](#top) `[e](code.md)`\n\n[f]: gone.md\n"

    assert dead_links(Path(__file__), text) == ["nowhere.md", "gone.md"]
