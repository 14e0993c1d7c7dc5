"""What a transaction adds to the counters: each queue gets the sizes of its own messages."""

from __future__ import annotations

from penstock.model.prices import OPERATION_BYTES
from penstock.storage.tally import ACKED, BYTES, OPERATIONS, SENT, Tally
from tests.contract.material import message


def test_each_queue_counts_its_own_messages_bytes_and_operations() -> None:
    tally = Tally()
    rows = [message(b"x" * 10, queue="a"), message(b"x" * 20, queue="a"), message(b"x", queue="b")]

    tally.bulk(rows, SENT)

    counted = {queue: (counts[SENT], counts[BYTES], counts[OPERATIONS]) for queue, counts in tally.by_queue.items()}
    assert counted == {"a": (2, 30, 2), "b": (1, 1, 1)}


def test_an_acknowledged_message_takes_its_bytes_out_of_the_backlog() -> None:
    tally = Tally()

    tally.bulk([message(b"x" * 10, queue="a")], ACKED)

    assert (tally.of("a")[ACKED], tally.of("a")[BYTES]) == (1, -10)


def test_a_body_counts_one_operation_for_every_64_kb_that_it_begins() -> None:
    tally = Tally()
    sizes = (OPERATION_BYTES, OPERATION_BYTES + 1, 2 * OPERATION_BYTES + 1)

    tally.bulk([message(b"x" * size, queue=str(place)) for place, size in enumerate(sizes)], SENT)

    assert [tally.of(str(place))[OPERATIONS] for place in range(3)] == [1, 2, 3]
