"""The oracle is only worth something if it complains: each kind of damage is done by hand, and it has to name it."""

from __future__ import annotations

from pathlib import Path

from tests.crash.harness import Site
from tests.crash.oracle import Oracle, read_ids
from tests.extent import sampled

STAGES = ("first", "second")
NUMBERS = set(range(10))


@sampled(
    "damage, complaint",
    [
        ("delete from effects where queue = 'first' and number = 3", "first: 1 lost, such as [3]"),
        ("delete from effects where number = 3", "second: 1 lost, such as [3]"),
        ("insert into effects (queue, number, pid) values ('second', 3, 1)", "second: 1 doubled, such as [3]"),
        ("insert into effects (queue, number, pid) values ('first', 99, 1)", "first: 1 invented, such as [99]"),
        ("delete from penstock_counters where queue = 'second'", "second: 0 acked, 10 effects"),
    ],
    every=2,
)
def test_an_effect_too_few_or_too_many_is_found(damage: str, complaint: str, site: Site, oracle: Oracle) -> None:
    do_ten(site, oracle)
    assert oracle.lost_or_doubled(NUMBERS, NUMBERS, STAGES) == []

    assert site.database.change(damage) > 0

    assert complaint in oracle.lost_or_doubled(NUMBERS, NUMBERS, STAGES)


@sampled(
    "damage",
    [
        "update penstock_counters set sent = sent + 1 where queue = 'first'",
        "update penstock_counters set acked = acked - 1 where queue = 'first'",
        "update penstock_counters set dead = dead + 1 where queue = 'first'",
    ],
    every=2,
)
def test_a_queue_that_does_not_add_up_is_found(damage: str, site: Site, oracle: Oracle) -> None:
    do_ten(site, oracle)
    assert oracle.unbalanced() == []

    assert site.database.change(damage) > 0

    assert oracle.unbalanced() != []


def test_what_a_killed_producer_had_only_begun_is_allowed_but_not_expected(tmp_path: Path) -> None:
    log = tmp_path / "sent.log"
    log.write_text("begun 1 2 .\nsent 1 2 .\nbegun 3 4 .\nsent 3\nbegun 5 .")

    assert read_ids(log) == ({1, 2}, {1, 2, 3, 4, 5})


def do_ten(site: Site, oracle: Oracle) -> None:
    """Ten messages go all the way, and the worker leaves."""
    site.send("first", *({"number": number} for number in NUMBERS))
    worker = site.worker()
    site.up(worker)
    oracle.wait_until_empty()
    site.stop(worker)
