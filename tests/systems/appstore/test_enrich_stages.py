"""The borders of the two stages: what they import, and which tables they write."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from penstock_systems.appstore import app as shared

pytestmark = pytest.mark.slow("postgres")
HOME = Path(shared.__file__).parent
STAGES = {"crawl", "daily", "enrich", "evaluate", "cluster", "opportunity", "reading"}
WRITTEN = re.compile(r"\b(?:insert into|update|delete from) (\w+)")
CALLED = re.compile(r'\b(?:insert_many|upsert)\(\s*"(\w+)"')
WRITES = {
    "enrich": {"app_registry", "developers", "app_reviews", "app_version_history", "app_keyword_mentions"},
    "evaluate": {
        "app_registry",
        "crawl_keywords",
        "market_clusters",
        "agent_ledger",
        "agent_memory",
        "agent_core_beliefs",
        "design_concepts",
    },
}


def sources(stage: str) -> list[Path]:
    return sorted((HOME / stage).glob("*.py"))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


@pytest.mark.spec("B1-03")
@pytest.mark.parametrize("stage", ["enrich", "evaluate"])
def test_a_stage_imports_no_other_stage(stage: str) -> None:
    others = tuple(f"penstock_systems.appstore.{other}" for other in STAGES - {stage})
    for path in sources(stage):
        assert not [name for name in imported(path) if name.startswith(others)], path.name


@pytest.mark.spec("B3-01", "F-11")
@pytest.mark.parametrize("stage", ["crawl", "daily", "cluster"])
def test_what_runs_by_the_clock_never_enriches(stage: str) -> None:
    for path in sources(stage):
        assert not [name for name in imported(path) if "appstore.enrich" in name], path.name
        assert 'controllers["enrichment"]' not in path.read_text("utf-8")


@pytest.mark.spec("B1-03")
@pytest.mark.parametrize("stage", ["enrich", "evaluate"])
def test_a_stage_writes_its_own_tables_and_no_others(stage: str) -> None:
    written: set[str] = set()
    for path in sources(stage):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                written.update(WRITTEN.findall(node.value.replace("do update set", "")))
        written.update(CALLED.findall(text))
    assert written == WRITES[stage]


@pytest.mark.spec("B1-03", "B4-01")
def test_messages_carry_ids() -> None:
    carried = {
        shared.AppEnriched: "track_ids",
        shared.ClustersReady: "cluster_ids",
        shared.FragmentationDone: "cluster_ids",
        shared.DesignDone: "cluster_ids",
    }
    for event, name in carried.items():
        assert event.__annotations__ == {name: "list[int]"}
    assert shared.RankingsUpdated.__annotations__ == {"keywords": "list[str]"}


@pytest.mark.spec("F-38")
def test_no_object_of_the_pipeline_waits_in_a_loop_of_its_own() -> None:
    sources = [path for path in Path(shared.__file__).parent.rglob("*.py") if "Object" in path.read_text("utf-8")]
    classes = [node for path in sources for node in ast.walk(ast.parse(path.read_text("utf-8"))) if is_object(node)]
    loops = [loop for cls in classes for loop in ast.walk(cls) if isinstance(loop, ast.While | ast.For | ast.AsyncFor)]

    assert classes
    assert [ast.unparse(loop) for loop in loops if "sleep(" in ast.unparse(loop)] == []


def is_object(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base).startswith("ps.Object") for base in node.bases)
