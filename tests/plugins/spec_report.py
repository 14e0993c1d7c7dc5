"""Writes build/spec.json: which passing tests prove which requirement and survive which fault.

Only a run of the whole suite writes it, so that a single test never replaces the full picture.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

PROPERTY = "penstock-ids"  # of a test's report: a worker process sends it with the result
IDS = {
    "spec": re.compile(r"[A-G]\d{0,2}-T?\d{2}"),  # A1-03, A10-02, D-11, B8-T01
    "fault": re.compile(r"F\d{2}"),  # F03
}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SpecReport(config), "penstock-spec-report")


class SpecReport:
    """Collects the ids of each test that passed, also from the workers of a parallel run."""

    def __init__(self, config: pytest.Config) -> None:
        self.path = config.rootpath / "build" / "spec.json"
        chosen = any(getattr(config.option, name, None) for name in ("keyword", "markexpr", "deselect", "lf"))
        self.whole_suite = runs_everything(config) and not chosen and not hasattr(config, "workerinput")
        self.ids: dict[str, list[str]] = {}
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if ids := marked_ids(item):
                item.user_properties.append((PROPERTY, ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.whole_suite = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.ids[report.nodeid] = [id for name, ids in report.user_properties if name == PROPERTY for id in ids]  # type: ignore[attr-defined]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        stopped_early = session.shouldstop or session.shouldfail or exitstatus > pytest.ExitCode.TESTS_FAILED
        if self.whole_suite and not stopped_early:
            write(self.path, self.proofs())

    def proofs(self) -> dict[str, list[str]]:
        tests: defaultdict[str, list[str]] = defaultdict(list)
        for test in sorted(self.ids.keys() - self.failed):
            for id in self.ids[test]:
                tests[id].append(test)
        return dict(sorted(tests.items()))


def runs_everything(config: pytest.Config) -> bool:
    """Whether this run was asked for all of `testpaths`, by saying so or by naming nothing."""
    asked = {Path(config.invocation_params.dir, arg).resolve() for arg in config.args}
    suite = {Path(config.rootpath, folder).resolve() for folder in config.getini("testpaths")}
    left_out = config.option.ignore or config.option.ignore_glob or config.option.collectonly
    return suite <= asked and not left_out


def marked_ids(item: pytest.Item) -> list[str]:
    found: set[str] = set()
    for kind, pattern in IDS.items():
        for mark in item.iter_markers(kind):
            if not mark.args or not all(isinstance(id, str) and pattern.fullmatch(id) for id in mark.args):
                raise pytest.UsageError(
                    f"{item.nodeid}: @pytest.mark.{kind}{mark.args!r} names no known id. "
                    'Write it like @pytest.mark.spec("A1-03", "D-11") or @pytest.mark.fault("F03").'
                )
            found.update(mark.args)
    return sorted(found)


def write(path: Path, proofs: dict[str, list[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(proofs, indent=2) + "\n", encoding="utf-8")
