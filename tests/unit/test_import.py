"""`import penstock` loads what every app needs, and nothing that only some apps use."""

from __future__ import annotations

import subprocess
import sys

MODULES_MAX = 225  # of Penstock itself; each takes a third of a millisecond to load
LIBRARIES = {"apsw", "cronsim", "msgspec", "penstock", "typing_extensions"}
USED_BY_SOME = (
    "penstock.connect.declared",
    "penstock.outbound.client",
    "penstock.storage.postgres",
    "statistics",
    "tempfile",
)


def test_importing_penstock_loads_no_library_that_only_some_apps_use() -> None:
    code = "import sys; before = set(sys.modules); import penstock; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    libraries = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names

    assert {name for name in libraries if not name.startswith("_")} <= LIBRARIES
    assert [name for name in loaded if name.startswith(USED_BY_SOME)] == []
    assert sum(name.startswith("penstock") for name in loaded) <= MODULES_MAX
