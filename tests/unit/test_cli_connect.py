"""`penstock connect`: what it shows of a source, what it saves, and how it judges a connector."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.cli.main import main

SPEC = """
name = "offers"
base = "BASE/offers.json"
records = "items"
[fields]
title = "title"
price = { path = "price", as = "price" }
"""
OFFERS = {
    "items": [{"id": 1, "title": "A flat", "price": "1.250,00 €"}, {"id": 2, "title": "Another", "price": "900 €"}]
}


@pytest.fixture
def offers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A connector, and the folder of the server that it reads, on this machine."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offers.json").write_text(json.dumps(OFFERS))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    (tmp_path / "offers.toml").write_text(SPEC.replace("BASE", f"http://127.0.0.1:{server.server_port}"))
    (tmp_path / "address").write_text(f"127.0.0.1:{server.server_port}")
    yield tmp_path
    server.shutdown()
    thread.join()
    server.server_close()


def test_try_shows_the_records_of_a_page_and_saves_it_for_check(
    offers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = (offers / "address").read_text()
    assert main(["connect", "try", "offers.toml", "--save"]) == 2
    assert f"add: --allow {allowed}" in capsys.readouterr().err
    assert main(["connect", "try", "offers.toml", "--save", "--allow", allowed]) == 0
    shown = capsys.readouterr().out
    assert "A flat" in shown
    assert "1250" in shown
    assert "Saved fixtures/offers.json. Check it with: penstock connect check offers.toml" in shown
    (offers / "offers.json").unlink()
    assert main(["connect", "check", "offers.toml"]) == 0
    assert "offers keeps its contract" in capsys.readouterr().out
    text = (offers / "offers.toml").read_text()
    (offers / "offers.toml").write_text(text.replace('"title"', '"name"'))
    assert main(["connect", "check", "offers.toml", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["checks"] if not each["passed"]] == ["no field is lost"]


def test_a_connector_that_cannot_be_read_is_an_error_of_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["connect", "try", "missing.toml"]) == 2
    (tmp_path / "empty_source.py").write_text("import penstock as ps")
    assert main(["connect", "check", "empty_source.py"]) == 2
    assert "has 0 connectors" in capsys.readouterr().err
