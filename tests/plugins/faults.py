"""The table of faults: what may happen, what is promised then, and the tests that make it happen.

`python -m tests.plugins.faults` writes it into docs/explain/faults.md.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.plugins.claims import TESTS, Proof, claims

PAGE = TESTS.parent / "docs" / "explain" / "faults.md"
NAMED_MAX = 4  # tests of one file that are told by their names; of more, their number
HEAD = """\
# Faults

What may happen, what Penstock promises when it does, and the tests that make it happen. The tests write this table:
`python -m tests.plugins.faults` after a test was added, and a test of its own sees that nobody forgot.

A name such as *a worker cut off ...* is that of a test; run it with `pytest -k`. The limits of what is promised are in
[guarantees](guarantees.md).

| | What happens | What is promised | Which tests make it happen |
|---|---|---|---|
"""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    fault: str
    promise: str
    not_yet: str = ""


def faults() -> dict[str, Fault]:
    found = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
    return msgspec.convert(found, dict[str, Fault])


def page() -> str:
    return HEAD + "".join(f"{_row(id, fault, claims().get(id, []))}\n" for id, fault in faults().items())


def _row(id: str, fault: Fault, tests: Sequence[Proof]) -> str:
    proof = [*_told(tests), *([f"Not yet: {fault.not_yet}"] if fault.not_yet else [])]
    return f"| {id} | {fault.fault} | {fault.promise} | {'<br>'.join(proof)} |"


def _told(tests: Sequence[Proof]) -> Iterator[str]:
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.file].append(test.name.removeprefix("test_").replace("_", " "))
    for file, names in by_file.items():
        told = "; ".join(f"*{name}*" for name in names) if len(names) <= NAMED_MAX else f"{len(names)} tests"
        yield f"`{file}`: {told}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
