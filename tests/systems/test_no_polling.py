"""The systems learn from events that work is done: no loop of theirs sleeps and looks again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SYSTEMS = Path(__file__).resolve().parents[2] / "src/penstock_systems"
OUTSIDE = ("standins", "demo")  # fakes of other companies' servers, and the directors of demonstrations
# A trial is a command that waits for the app beside it, whose cron task sends nothing when it has nothing to cluster.
EXCEPTIONS = {"appstore/trial.py"}
LOOKS = {"status", "state"}  # of a run, a queue or a post elsewhere


def polling(text: str) -> Iterator[int]:
    """Find the lines of loops that sleep, or ask again and again for the state of something."""
    for loop in ast.walk(ast.parse(text)):
        if isinstance(loop, ast.While | ast.For | ast.AsyncFor):
            awaited = (node.value for node in ast.walk(loop) if isinstance(node, ast.Await))
            names = {
                call.func.attr
                for call in awaited
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            }
            if "sleep" in names or (isinstance(loop, ast.While) and names & LOOKS):
                yield loop.lineno


@pytest.mark.spec("F-25")
def test_no_loop_of_a_system_polls() -> None:
    files = [path for path in SYSTEMS.rglob("*.py") if not {*path.relative_to(SYSTEMS).parts} & {*OUTSIDE}]

    found = {path.relative_to(SYSTEMS).as_posix() for path in files if list(polling(path.read_text("utf-8")))}

    assert found == EXCEPTIONS
    assert len(files) > 100


@pytest.mark.parametrize(
    "loop, is_polling",
    [
        ("while not done:\n        await asyncio.sleep(1)", True),
        ("for _ in range(9):\n        if await ready():\n            break\n        await run.sleep(minutes=1)", True),
        ("while (await runs['a'].status()).state != 'complete':\n        pass", True),
        ("while True:\n        word = await run.wait_for('decide')", False),
        ("async for page in pages:\n        await store(page)", False),
    ],
)
def test_polling_is_distinguished_from_waiting(loop: str, is_polling: bool) -> None:
    assert bool(list(polling(f"async def work() -> None:\n    {loop}\n"))) is is_polling
