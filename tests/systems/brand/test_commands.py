"""`penstock brand`, on a database of its own, without a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SETTINGS = """
[systems.brand]
allow = ["127.0.0.1:8788"]

[systems.brand.brands.llc-tax]
fqdn = "llctax.example"
"""


def brand(folder: Path, *words: str) -> tuple[int, Any]:
    command = [sys.executable, "-m", "penstock", "--json", "brand", *words]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ})
    return said.returncode, json.loads(said.stdout or said.stderr)


def test_a_request_names_its_chain_and_counts_as_pending(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(SETTINGS)

    code, asked = brand(tmp_path, "research", "llc-tax", "llc receipts", "llc deadlines", "--id", "r1")
    assert code == 0
    assert asked["correlation_id"].startswith("brand-cycle-llc-tax-")

    [row] = brand(tmp_path, "list")[1]["brands"]
    assert (row["brand"], row["pending"], row["published"]) == ("llc-tax", 2, 0)
    code, said = brand(tmp_path, "research", "other", "x")
    assert (code, "Known brands: llc-tax" in said["error"]["message"]) == (1, True)
