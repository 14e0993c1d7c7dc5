"""What we depend on is little, pinned and never runs what was stored."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from penstock.cli.main import penstock

ROOT = Path(__file__).resolve().parents[2]
DEPENDENCIES_MAX = 10
# Whoever may write what these read can run code with them.
RUNS_WHAT_IT_READS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "jsonpickle", "joblib"}
# A module that somebody names on the command line is meant to be run, and so is the code of a page of ours.
CALLS = {"eval", "exec", "compile", "__import__"}


@pytest.mark.fault("F55")
def test_there_are_ten_direct_dependencies_at_most() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert 0 < len(project["dependencies"]) <= DEPENDENCIES_MAX


@pytest.mark.fault("F55")
def test_every_package_that_is_installed_is_pinned_to_a_hash() -> None:
    lock = (ROOT / "requirements" / "dev.lock").read_text("utf-8")
    packages = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {re.split(r"[^a-z0-9-]", each)[0] for each in project["dependencies"]}

    assert len(packages) > len(wanted)
    for package in packages:
        assert re.match(r"[a-z0-9._-]+==\S+", package), package.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", package), package.splitlines()[0]
    assert wanted <= {package.partition("==")[0] for package in packages}
    assert "--require-hashes" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.fault("F47")
def test_nothing_that_was_stored_is_ever_run() -> None:
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    found = {alias.name.partition(".")[0] for alias in names} & RUNS_WHAT_IT_READS
                case ast.ImportFrom(module=str(module)):
                    found = {module.partition(".")[0]} & RUNS_WHAT_IT_READS
                case ast.Call(func=ast.Name(id=name)):
                    found = {name} & CALLS
                case _:
                    continue
            assert not found, f"{path.relative_to(ROOT)}:{node.lineno}: {', '.join(found)}"


def test_the_page_of_extras_has_every_extra_with_its_libraries() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs/operate/extras.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", page, re.MULTILINE)

    shown = {extra: set(re.findall(r"`([^`]+)`", libraries)) for extra, libraries in rows}
    assert shown == {extra: {each.partition(">=")[0] for each in extras[extra]} for extra in extras if extra != "dev"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_page_of_extras_has_the_line_that_completes_commands_in_each_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    monkeypatch.setenv("_PENSTOCK_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit):
        penstock(prog_name="penstock")

    assert "penstock" in capsys.readouterr().out
    assert f"_PENSTOCK_COMPLETE={shell}_source penstock" in (ROOT / "docs/operate/extras.md").read_text("utf-8")
