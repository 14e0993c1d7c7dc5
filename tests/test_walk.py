"""ARCHITECTURE.md tells the way of a message as it is: traced in a real run, and short."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.walk import traced

FILES_MAX = 15
PAGE = Path(__file__).parent.parent / "ARCHITECTURE.md"
STEP = re.compile(r"^ (\S+\.py)\s+(\w+): ", re.MULTILINE)


def test_a_message_passes_the_files_that_the_architecture_lists_and_no_others(tmp_path: Path) -> None:
    block = PAGE.read_text("utf-8").partition("## A message, file by file")[2].partition("\n## ")[0]
    told = STEP.findall(block)

    walk = asyncio.run(traced(tmp_path))

    assert [file for file, _ in told] == [*walk], "`python -m tests.walk` prints the files as they are"
    assert [step for step in told if step[1] not in walk[step[0]]] == []
    assert len(walk) <= FILES_MAX
