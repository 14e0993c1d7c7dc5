"""Libraries of other authors are those of their packages, and what is own stays within its size."""

from __future__ import annotations

import tomllib
from hashlib import sha256
from pathlib import Path

import penstock.web.ui

FOLDER = Path(penstock.web.ui.__file__).parent
OWN_LINES_MAX = 2_500  # of templates, CSS and JavaScript
BYTES_MAX = 400_000  # of everything but Python


def test_vendored_files_have_the_digests_that_are_written_down() -> None:
    files = tomllib.loads((FOLDER / "static/vendor.toml").read_text("utf-8"))["file"]

    assert {each["name"] for each in files} == {path.name for path in (FOLDER / "static").glob("*.min.*")}
    for each in files:
        assert sha256((FOLDER / "static" / each["name"]).read_bytes()).hexdigest() == each["sha256"], each["name"]


def test_what_is_own_stays_within_its_size() -> None:
    own = [*FOLDER.glob("templates/*"), FOLDER / "static/page.css", FOLDER / "static/live.js"]
    everything = [
        path for path in FOLDER.rglob("*") if path.is_file() and path.suffix in (".js", ".css", ".html", ".txt", ".svg")
    ]

    assert sum(len(path.read_text("utf-8").splitlines()) for path in own) <= OWN_LINES_MAX
    assert sum(path.stat().st_size for path in everything) <= BYTES_MAX
