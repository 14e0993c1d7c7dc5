"""The page of the long runs sums what was counted on one engine, and hides no failure."""

from __future__ import annotations

import json
from pathlib import Path

from tests import long_runs
from tests.long_runs import LongRun, engine_hash, next_seed, page, record, table


def test_runs_of_one_engine_are_summed_and_a_failed_one_is_shown(tmp_path: Path) -> None:
    lines = tmp_path / "runs.jsonl"
    old = {"engine": "old", "day": "2026-01-01", "run": "kills", "failed": False, "counts": {"kills": 9}}
    lines.write_text(json.dumps(old) + "\n")

    record("kills", {"kills": 1_000, "messages": 20}, failed=False, lines=lines)
    record("kills", {"kills": 500}, failed=True, lines=lines)

    shown = table(lines)
    assert f"Engine `{engine_hash()}`" in shown
    assert shown.endswith("| kills | 2 | 1,500 kills, 20 messages | 1 |\n"), "the engine of before is left out"


def test_a_simulation_continues_with_the_seeds_that_this_engine_has_not_seen(tmp_path: Path) -> None:
    lines = tmp_path / "runs.jsonl"
    assert next_seed("histories", lines) == 0

    record("histories", {"histories": 300}, failed=False, first=0, lines=lines)
    record("others", {"histories": 900}, failed=False, first=0, lines=lines)

    assert next_seed("histories", lines) == 300


def test_the_engine_is_another_when_a_statement_changes_and_the_same_when_a_command_does(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    (tmp_path / "cli").mkdir()
    statement, command = tmp_path / "storage" / "claims.sql", tmp_path / "cli" / "run.py"
    statement.write_text("select 1")
    before = engine_hash.__wrapped__(tmp_path)

    command.write_text("pass")
    assert engine_hash.__wrapped__(tmp_path) == before
    statement.write_text("select 2")
    assert engine_hash.__wrapped__(tmp_path) != before


def test_a_test_that_fails_before_it_counts_is_recorded_under_its_name(tmp_path: Path) -> None:
    LongRun("test_kills[sqlite]").record(failed=True, lines=tmp_path / "runs.jsonl")

    assert "| test_kills[sqlite] | 1 |  | 1 |" in table(tmp_path / "runs.jsonl")


def test_the_page_is_what_the_recorded_runs_sum_up_to() -> None:
    text = long_runs.PAGE.read_text("utf-8")
    assert page(text, table()) == text, "Run `python -m tests.long_runs`."
