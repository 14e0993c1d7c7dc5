"""Detection of loops: a chain of messages that repeats the type and payload of an ancestor without ever waiting.

A message carries the state of the detection in its column `flags`, above the flags themselves, so that finding a loop takes
no query. The state names one ancestor by a digest. A message that follows and equals it completes a round. After 1, 2, 4 ...
256 messages without a round the newest message takes the ancestor's place (Brent's algorithm), which finds a round of several
messages too, and one that begins in the middle of a chain. Zero is the state of a message that begins a chain.
"""

from __future__ import annotations

from zlib import crc32

from penstock.model.message import FLAG_BITS, FLAGS, Delivery

LOOP_SECONDS = 60
ROUNDS_MAX = 1_000  # that the state can count

# From the lowest bit: the flags, messages since the last round, the power of two of them after which the ancestor changes,
# rounds, the time of the first of them, and the ancestor's digest. That is all that a signed integer has.
_STEPS_AT, _POWER_AT, _ROUNDS_AT, _START_AT, _DIGEST_AT, _END = FLAG_BITS, 12, 16, 26, 39, 63
_STEPS, _POWER, _ROUNDS = 0xFF, 0xF, 0x3FF
_TIMES = (1 << _DIGEST_AT - _START_AT) - 1
_DIGESTS = (1 << _END - _DIGEST_AT) - 1
_POWER_MAX = 8
_FIRST_ROUND, _FIRST_POWER = 1 << _ROUNDS_AT, 1 << _POWER_AT
_TICK_MICROS = 15_625  # 128 s until the time of the start repeats itself: the window and once more as long
_WINDOW_MICROS = LOOP_SECONDS * 1_000_000
_WINDOW_TICKS = _WINDOW_MICROS // _TICK_MICROS


def follow(parent: Delivery, type: str, body: bytes, *, now: int) -> tuple[int, int]:
    """Return the rounds and the state of a message of this type and body, sent at `now` while `parent` is handled."""
    state, tick, digest = parent.flags, now // _TICK_MICROS & _TIMES, _digest(type, body)
    if state <= FLAGS:
        # The parent begins the chain, and is the first ancestor.
        rounds = int(body == parent.body and type == parent.type)
        return rounds, digest << _DIGEST_AT | tick << _START_AT | (_FIRST_ROUND if rounds else _FIRST_POWER)
    start, rounds = state >> _START_AT & _TIMES, state >> _ROUNDS_AT & _ROUNDS
    if now - parent.sent_at > _WINDOW_MICROS or (tick - start & _TIMES) > _WINDOW_TICKS:
        start, rounds = tick, 0
    ancestor, power, steps = state >> _DIGEST_AT, state >> _POWER_AT & _POWER, state >> _STEPS_AT & _STEPS
    if digest == ancestor:
        rounds, steps = min(rounds + 1, ROUNDS_MAX), 0
    elif steps + 1 < 1 << power:
        steps += 1
    else:
        ancestor, start, rounds, power, steps = digest, tick, 0, min(power + 1, _POWER_MAX), 0
    packed = (
        ancestor << _DIGEST_AT | start << _START_AT | rounds << _ROUNDS_AT | power << _POWER_AT | steps << _STEPS_AT
    )
    return rounds, packed


def begin(type: str, body: bytes, *, now: int) -> int:
    """Return the state that a message hands on if it has none: it is the first ancestor."""
    return _digest(type, body) << _DIGEST_AT | (now // _TICK_MICROS & _TIMES) << _START_AT


def _digest(type: str, body: bytes) -> int:
    return crc32(body, crc32(type.encode())) & _DIGESTS
