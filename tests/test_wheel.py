"""The wheel alone, in an empty virtual environment: a new project's tests pass, and a missing extra is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.trying import DEMO, LISTS_NOTHING, QUIETLY, install, run, stranger


@pytest.mark.slow
def test_a_new_project_passes_its_tests_with_nothing_but_the_wheel(tmp_path: Path) -> None:
    _, programs = install(tmp_path)
    run([str(programs / "pip"), *QUIETLY, "pytest"], tmp_path, stranger(programs))
    run(["penstock", "new", "x"], tmp_path, stranger(programs))
    run(["pytest", "-q"], tmp_path / "x", stranger(programs))
    for command in ("migrate x.py", "check x.py", "run x.py --virtual 1h", "run x.py --until-idle", "audit x.py"):
        run(["penstock", *command.split()], tmp_path / "x", stranger(programs))


@pytest.mark.slow
def test_the_demo_names_the_extra_that_it_needs_and_runs_with_it(tmp_path: Path) -> None:
    wheel, programs = install(tmp_path)
    refused = (
        f"{DEMO} 2> said; test $? = 2 && grep -qF \"pip install 'penstock[demo]'\" said && ! test -e penstock-demo"
    )
    run(["sh", "-c", refused], tmp_path, stranger(programs))
    run([str(programs / "pip"), *QUIETLY, f"{wheel}[demo]"], tmp_path, stranger(programs))
    run(["sh", "-ec", f"{DEMO}; ! {LISTS_NOTHING}; test -s penstock-demo/report.html"], tmp_path, stranger(programs))
