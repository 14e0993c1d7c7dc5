"""`python -m tools.try_answers`: recordings of a store, told apart by what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.systems.appstore.store_shapes import SHAPES, page, shape, shoebox_page
from tools.try_answers import main, try_answer


def test_every_shape_of_the_tests_is_reported_and_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bodies = {name: shape(name) for name in ("search.json", "chart.json", "genres.json", "hints.xml", "ratings.html")}
    bodies |= {"feed.json": shape("reviews.json"), "feed.xml": shape("reviews.xml"), "page.html": page()}
    bodies |= {"shoebox.html": b'<link href="/us/app/x/id1700000001">' + shoebox_page()}
    for name, body in bodies.items():
        (tmp_path / name).write_bytes(body)

    assert main([str(tmp_path)]) == 0

    told = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines() if ": " in line)
    endpoints = {name: text.split(",")[0] for name, text in told.items()}
    assert endpoints == {
        "chart.json": "chart",
        "feed.json": "reviews as JSON",
        "feed.xml": "reviews as XML",
        "genres.json": "genres",
        "hints.xml": "hints",
        "page.html": "page",
        "ratings.html": "ratings",
        "search.json": "search or look-up",
        "shoebox.html": "page",
    }
    assert "1 of 2 versions have a date" in told["page.html"]  # the other one is written as a person writes it
    assert "histogram=(30, 20, 50, 100, 800)" in told["page.html"]


def test_an_answer_that_cannot_be_read_is_named_and_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_bytes(shape("search.json")[:500])
    (tmp_path / "cat.html").write_bytes(b"<html><body>A cat</body></html>")

    assert main([str(tmp_path)]) == 1

    printed = capsys.readouterr().out
    assert "broken.json: This cannot be read" in printed
    assert "cat.html: This is the answer of no endpoint that is known here." in printed
    assert "2 answers, 2 that cannot be read." in printed
    assert main([str(SHAPES / "nowhere")]) == 2
    assert main([str(tmp_path / "empty")]) == 2


def test_a_page_without_its_data_is_read_from_its_markup() -> None:
    assert try_answer(shape("markup.html")).endpoint == "page"
