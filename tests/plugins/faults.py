"""The table of faults: what can happen, what Penstock guarantees then, and the tests that inject it.

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
NAMED_MAX = 4  # tests of one file that are listed by name; of more, their number
HEAD = """\
# Faults

This table lists the faults that Penstock is tested against, what it guarantees when they happen, and the tests that inject
them. The tests generate the table: run `python -m tests.plugins.faults` after you add a test. A test fails if the table is
out of date.

A name in italics, such as *a worker cut off ...*, is the name of a test; run it with `pytest -k`. The limits of each
guarantee are in [guarantees](guarantees.md).

| | Fault | Guarantee | Tests that inject it |
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
    proof = [*_listed(tests), *([f"Not tested yet: {fault.not_yet}"] if fault.not_yet else [])]
    return f"| {id} | {fault.fault} | {fault.promise} | {'<br>'.join(proof)} |"


def _listed(tests: Sequence[Proof]) -> Iterator[str]:
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.file].append(test.name.removeprefix("test_").replace("_", " "))
    for file, names in by_file.items():
        listed = "; ".join(f"*{name}*" for name in names) if len(names) <= NAMED_MAX else f"{len(names)} tests"
        yield f"`{file}`: {listed}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
