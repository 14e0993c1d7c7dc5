"""The host's clock never runs back, tells a jump once, and no jump takes a lease away or keeps it for long."""

from __future__ import annotations

import asyncio
import itertools
import logging
import timeit
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.contracts.clock import Clock
from penstock.model.sweep import SweepHold
from penstock.model.times import from_micros
from penstock.runtime.clock import SPEED_LEAST, TRUSTED, HostClock, Jump
from penstock.testing.loop import VirtualLoop, VirtualTime, virtual

SECOND = 1_000_000
HOUR = 3_600.0


@dataclass
class Host:
    """A machine whose wall clock anyone can set."""

    wall_seconds: float = 1_767_225_600.0
    steady_seconds: float = 1_000.0
    jumps: list[Jump] = field(default_factory=list)

    def clock(self) -> HostClock:
        return HostClock(wall=self.wall, monotonic=lambda: self.steady_seconds, on_jump=self.jumps.append)

    def wall(self) -> int:
        return round(self.wall_seconds * SECOND) * 1000

    def wait(self, seconds: float, *, wall_speed: float = 1.0) -> None:
        self.steady_seconds += seconds
        self.wall_seconds += seconds * wall_speed

    def jump(self, seconds: float) -> None:
        self.wall_seconds += seconds


def test_it_shows_the_wall_in_microseconds() -> None:
    host = Host()
    clock: Clock = host.clock()

    host.wait(12.5)

    assert clock.now() == host.wall() // 1000 == 1_767_225_612_500_000
    assert clock.monotonic() == 1_012.5


def test_the_wall_may_count_in_floats() -> None:
    clock = HostClock(wall=lambda: 1_767_225_600e9)

    assert clock.now() == 1_767_225_600 * SECOND
    assert isinstance(clock.now(), int)


@pytest.mark.parametrize("wall_speed", [0.9995, 1.0005])
def test_a_wall_that_is_slewed_is_followed_without_a_word(wall_speed: float) -> None:
    host = Host()
    clock = host.clock()

    for seconds in (0.001, 1, 60, 24 * HOUR):
        host.wait(seconds, wall_speed=wall_speed)
        assert clock.now() == host.wall() // 1000

    assert host.jumps == []


@pytest.mark.fault("F09")
@pytest.mark.parametrize("by", [1.5, 5, HOUR])
def test_a_jump_forward_is_taken_over_at_once_with_one_warning(by: float, caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    clock = host.clock()

    host.wait(0.5)
    host.jump(by)

    assert clock.now() == host.wall() // 1000
    host.wait(0.5)
    assert clock.now() == host.wall() // 1000
    assert [jump.at for jump in host.jumps] == [host.wall() // 1000 - SECOND // 2]
    assert [jump.by_seconds for jump in host.jumps] == [pytest.approx(by)]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"forward by {by:.3f} s" in caplog.text


@pytest.mark.fault("F09")
@pytest.mark.parametrize("by", [1.5, 5, HOUR])
def test_after_a_jump_back_it_goes_on_slowly_until_the_wall_caught_up(
    by: float, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host()
    clock = host.clock()
    before = clock.now()

    host.jump(-by)

    assert clock.now() == before
    # At 3/4 of its speed the clock gives a quarter back: the wall is level after four times the jump.
    for _ in range(3):
        host.wait(by)
        before += round(by * SECOND * SPEED_LEAST)
        assert clock.now() == pytest.approx(before, abs=1)
    host.wait(by + 1)
    assert clock.now() == host.wall() // 1000
    assert [jump.by_seconds for jump in host.jumps] == [pytest.approx(-by)]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"back by {by:.3f} s" in caplog.text


@pytest.mark.fault("F09")
def test_a_jump_back_during_a_long_silence_is_reported_too() -> None:
    host = Host()
    clock = host.clock()

    host.wait(60)
    host.jump(-5)
    clock.now()

    assert [jump.by_seconds for jump in host.jumps] == [pytest.approx(-5)]


@pytest.mark.fault("F09")
def test_each_jump_is_reported_also_while_the_clock_waits_for_the_wall() -> None:
    host = Host()
    clock = host.clock()

    for by in (-HOUR, -10, -5):
        host.jump(by)
        host.wait(0.01)
        clock.now()

    assert [round(jump.by_seconds) for jump in host.jumps] == [-3600, -10, -5]


def test_a_wall_set_back_and_forth_moves_the_clock_only_by_what_is_left() -> None:
    host = Host()
    clock = host.clock()

    host.jump(-HOUR)
    host.wait(2)
    clock.now()
    host.jump(HOUR)

    assert clock.now() == host.wall() // 1000
    assert [jump.by_seconds for jump in host.jumps] == [pytest.approx(-HOUR)]


def test_the_wall_catching_up_between_two_looks_is_no_jump() -> None:
    host = Host()
    clock = host.clock()

    host.jump(-2)
    clock.now()
    host.wait(600)

    assert clock.now() == host.wall() // 1000
    assert len(host.jumps) == 1


@pytest.mark.parametrize("by", [-0.9, 0.9])
def test_a_small_step_is_taken_over_without_a_word(by: float) -> None:
    host = Host()
    clock = host.clock()

    host.jump(by)
    host.wait(4)

    assert clock.now() == host.wall() // 1000
    assert host.jumps == []


def test_it_does_not_stand_still_when_read_in_a_tight_loop_while_it_waits() -> None:
    host = Host()
    clock = host.clock()
    host.jump(-HOUR)
    before = clock.now()

    for _ in range(1_000):
        host.wait(0.000_000_5)
        clock.now()

    assert clock.now() - before == pytest.approx(375, abs=2)


def test_a_process_paused_between_reading_two_clocks_has_seen_no_jump() -> None:
    host = Host()
    # Two readings when it is made; the fourth is the second of a look.
    pauses = itertools.chain([0, 0, 0, 30], itertools.repeat(0))

    def monotonic() -> float:
        host.wait(next(pauses))
        return host.steady_seconds

    clock = HostClock(wall=host.wall, monotonic=monotonic, on_jump=host.jumps.append)
    for _ in range(5):
        host.wait(1)
        assert clock.now() == host.wall() // 1000

    assert host.steady_seconds == 1_035
    assert host.jumps == []


def test_a_callback_of_a_jump_may_read_the_clock() -> None:
    host = Host()
    clock = host.clock()
    read: list[int] = []
    clock.on_jump = lambda jump: read.append(clock.now())

    host.jump(HOUR)

    assert [clock.now()] == read


JUMPS = st.one_of(st.just(0.0), st.floats(-2 * HOUR, 2 * HOUR), st.floats(-2, 2))


@pytest.mark.fault("F09")
@given(st.lists(st.tuples(st.floats(0, 600), JUMPS), max_size=30))
@example(moves=[(1.0, -1.0)])
@example(moves=[(0.008, 0.0), (0.0, -1.0)])
def test_whatever_the_wall_does_it_never_runs_back_and_never_slower_than_three_quarters(
    moves: list[tuple[float, float]],
) -> None:
    host = Host()
    clock = host.clock()
    last = clock.now()

    for seconds, by in moves:
        host.wait(seconds)
        host.jump(by)
        now = clock.now()
        assert now >= last
        # The speed is kept from the last look at both clocks, which may be a little older than the last reading.
        assert now - last >= seconds * SECOND * SPEED_LEAST - TRUSTED
        assert now >= host.wall() // 1000
        last = now

    assert len(host.jumps) <= sum(1 for _, by in moves if abs(by) > 0.99)


# -- leases over a jump -----------------------------------------------------------------------------------------------


def lease_lasts(lease: float, jumps: list[tuple[float, float]], *, longest: float | None = None) -> float:
    """Real seconds until a lease is swept by someone who looks often, when the wall jumps at some moments."""
    host = Host()
    hold = SweepHold(longest or lease)
    granted_at = host.steady_seconds

    def jumped(jump: Jump) -> None:
        nonlocal hold
        hold = hold.jumped(jump.by_seconds, at=host.steady_seconds)

    clock = HostClock(wall=host.wall, monotonic=lambda: host.steady_seconds, on_jump=jumped)
    until = clock.now() + round(lease * SECOND)
    coming = sorted(jumps)
    while clock.now() < until or not hold.allows(host.steady_seconds):
        host.wait(lease / 400)
        while coming and host.steady_seconds - granted_at >= coming[0][0]:
            host.jump(coming.pop(0)[1])
    return host.steady_seconds - granted_at


LEASES = st.floats(2, 2 * HOUR)  # of a shorter one, a jump too small to notice may take half
A_LOOK = 1.01  # the sweeper looks 400 times during a lease


@pytest.mark.fault("F09")
@given(LEASES, st.floats(-2 * HOUR, 2 * HOUR), st.floats(0, 1))
@example(lease=60, by=HOUR, moment=0.0)
@example(lease=60, by=HOUR, moment=1.0)
@example(lease=60, by=-HOUR, moment=0.5)
@example(lease=60, by=5, moment=0.5)
@example(lease=60, by=-5, moment=0.5)
@example(lease=60, by=40, moment=0.0)
def test_no_lease_is_cut_below_half_or_stretched_beyond_twice(lease: float, by: float, moment: float) -> None:
    lasted = lease_lasts(lease, [(lease * moment, by)])

    assert lease / 2 <= lasted * A_LOOK
    assert lasted <= 2 * lease * A_LOOK


@pytest.mark.fault("F09")
@given(
    LEASES,
    st.floats(1, 10),
    st.lists(st.tuples(st.floats(0, 1), st.floats(2, HOUR) | st.floats(-HOUR, -2)), max_size=4),
)
def test_no_lease_is_cut_below_half_by_any_number_of_jumps(
    lease: float, others: float, jumps: list[tuple[float, float]]
) -> None:
    lasted = lease_lasts(lease, [(lease * moment, by) for moment, by in jumps], longest=lease * others)

    assert lease / 2 <= lasted * A_LOOK


def test_without_a_jump_sweeping_is_never_held() -> None:
    assert SweepHold(60).allows(0)
    assert SweepHold(60).jumped(-HOUR, at=10).allows(10)


def test_a_hold_lasts_as_long_as_the_jump_but_no_longer_than_the_longest_lease() -> None:
    assert SweepHold(60).jumped(5, at=10).until == 15
    assert SweepHold(60).jumped(HOUR, at=10).until == 70
    assert SweepHold(60).jumped(5, at=10).jumped(7, at=12).until == 22
    assert not SweepHold(60).jumped(5, at=10).allows(14.9)
    assert SweepHold(60).jumped(5, at=10).allows(15)


def test_reading_the_real_clock_costs_about_half_a_microsecond() -> None:
    now = HostClock().now

    assert min(timeit.repeat(now, number=1_000, repeat=50)) / 1_000 < 0.000_002


# -- in virtual time --------------------------------------------------------------------------------------------------


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


@virtual(horizon=timedelta(days=365 * 50))
async def test_after_decades_a_timer_still_fires_at_its_microsecond() -> None:
    clock = VirtualTime(virtual_loop()).clock
    await asyncio.sleep(40 * 365 * 24 * HOUR)

    for microseconds in (1, 2, 3, 10, 333, 1_000_001):
        due = clock.now() + microseconds
        await asyncio.sleep((due - clock.now()) / SECOND)
        assert clock.now() == due


@virtual(start=datetime(2026, 3, 29, 0, 30, tzinfo=UTC))
async def test_the_clock_shows_the_chosen_start_and_what_has_passed() -> None:
    virtual_time = VirtualTime(virtual_loop())

    await virtual_time.advance(minutes=90)

    assert from_micros(virtual_time.clock.now()) == datetime(2026, 3, 29, 2, 0, tzinfo=UTC)
    assert virtual_time.clock.monotonic() == 5_400


@pytest.mark.fault("F09")
@pytest.mark.parametrize("by", [5, 3_600, -5, -3_600])
@virtual
async def test_the_wall_may_jump_and_the_clock_tells_it_once(by: int, caplog: pytest.LogCaptureFixture) -> None:
    jumps: list[float] = []
    virtual_time = VirtualTime(virtual_loop(), on_jump=lambda jump: jumps.append(round(jump.by_seconds)))
    before = virtual_time.clock.now()

    virtual_time.jump(by)
    after = virtual_time.clock.now()
    for _ in range(10):
        await virtual_time.advance(seconds=1)
        assert virtual_time.clock.now() > after

    assert after == before + max(by, 0) * SECOND
    assert jumps == [by]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
