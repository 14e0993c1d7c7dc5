"""In virtual time days pass in milliseconds, everything happens in one order, and what cannot go on says why."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import itertools
import math
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.testing.loop import OutOfPatience, SocketsForbidden, Stuck, VirtualLoop, VirtualTime, run, virtual
from tests.extent import patient

DAY = 86_400.0


def this_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def test_days_pass_in_milliseconds(note: Callable[[str], None]) -> None:
    async def main() -> float:
        for _ in range(10_000):
            await asyncio.sleep(864)
        return this_loop().time()

    began = time.monotonic()
    assert run(main) == 100 * DAY
    took = time.monotonic() - began
    note(f"virtual time: {10_000 / took:,.0f} leaps a second")
    assert took < patient(5)


@virtual
async def test_timers_fire_in_order_and_those_of_one_moment_in_the_order_they_were_set() -> None:
    fired: list[tuple[float, int]] = []
    for number in range(500):
        delay = random.choice([1.0, 2.0, 2.5, 1e-9, 3_600.0])
        this_loop().call_later(delay, fired.append, (delay, number))
    this_loop().call_later(2, pytest.fail, "it was cancelled").cancel()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), timeout=DAY)

    assert fired == sorted(fired)
    assert (len(fired), this_loop().time()) == (500, DAY)


@given(st.lists(st.lists(st.sampled_from([0.1, 0.25, 0.3, 1.0, 7.0]), max_size=6), max_size=8))
def test_sleeping_tasks_interleave_as_in_real_time(sleepers: list[list[float]]) -> None:
    woken: list[tuple[float, int, int]] = []

    async def sleeper(name: int) -> None:
        for turn, delay in enumerate(sleepers[name]):
            await asyncio.sleep(delay)
            woken.append((this_loop().time(), name, turn))

    async def main() -> None:
        await asyncio.gather(*map(sleeper, range(len(sleepers))))

    run(main)

    assert woken == list(simulated(sleepers))


def simulated(sleepers: list[list[float]]) -> Iterator[tuple[float, int, int]]:
    """The same by hand: whoever is due first wakes first, and of two due at once, whoever lay down first."""
    asleep = [(delays[0], order, order, 0) for order, delays in enumerate(sleepers) if delays]
    heapq.heapify(asleep)
    for order in range(len(sleepers), sum(map(len, sleepers)) + len(sleepers)):
        now, _, name, turn = heapq.heappop(asleep)
        yield now, name, turn
        if turn + 1 < len(sleepers[name]):
            heapq.heappush(asleep, (now + sleepers[name][turn + 1], order, name, turn + 1))


@virtual
async def test_advance_lets_everything_due_happen_and_returns_at_exactly_that_moment() -> None:
    loop, happened = this_loop(), list[float]()

    def tick() -> None:
        happened.append(loop.time())
        loop.call_later(0.5, tick)
        loop.call_soon(loop.call_soon, happened.append, -loop.time())

    loop.call_later(0.5, tick)
    await VirtualTime(loop).advance(seconds=1)
    assert (happened, loop.time()) == ([0.5, -0.5, 1.0, -1.0], 1.0)

    await VirtualTime(loop).advance(hours=1, minutes=1, seconds=1)
    assert loop.time() == 1 + 3_600 + 60 + 1 == -happened[-1]


@virtual
async def test_settle_runs_what_is_ready_and_no_time_passes() -> None:
    async def chain(left: int) -> None:
        if left:
            await asyncio.create_task(chain(left - 1))

    this_loop().call_later(1e-9, pytest.fail, "time passed")
    task = asyncio.create_task(chain(20))
    await VirtualTime(this_loop()).settle()

    assert (task.done(), this_loop().time()) == (True, 0)


def test_a_deadlock_names_the_tasks_and_where_they_wait() -> None:
    async def waiter() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.gather(waiter(), asyncio.create_task(waiter(), name="second"))

    with pytest.raises(Stuck) as stuck:
        run(main)

    place = f"{__file__}:{waiter.__code__.co_firstlineno + 1} in {waiter.__qualname__}, waiting in Event.wait"
    _, *waiting = stuck.value.facts["tasks"]
    assert waiting == [f"second: {place}", f"Task-3: {place}"]
    assert place in str(stuck.value)


def test_waiting_for_what_never_comes_beside_something_that_ticks_ends_at_the_horizon() -> None:
    def tick(loop: VirtualLoop) -> None:
        ticks.append(loop.time())
        loop.call_later(3_600, tick, loop)

    async def main() -> None:
        tick(this_loop())
        await asyncio.sleep(math.inf)

    ticks: list[float] = []
    with pytest.raises(Stuck, match="within 10 days"):
        run(main, horizon=timedelta(days=10))

    assert ticks[-1] == 10 * DAY


def test_a_task_that_spins_is_named_when_patience_runs_out() -> None:
    async def spinner() -> None:
        for _ in itertools.repeat(None):
            await asyncio.sleep(0)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(spinner(), name="the spinner")
            group.create_task(asyncio.sleep(1), name="the sleeper")

    with pytest.raises(OutOfPatience, match="the spinner") as raised:
        run(main, patience=0.05)

    assert "the sleeper" not in str(raised.value)


def test_a_run_may_take_long_as_long_as_time_leaps() -> None:
    async def main() -> None:
        for _ in range(20):
            await asyncio.sleep(1)
            threading.Event().wait(0.01)  # stands for work

    run(main, patience=0.1)


CALLS: list[Callable[[VirtualLoop, socket.socket], object]] = [
    lambda loop, _: loop.create_connection(asyncio.Protocol, "localhost", 80),
    lambda loop, _: loop.create_server(asyncio.Protocol, "localhost", 0),
    lambda loop, _: loop.getaddrinfo("localhost", 80),
    lambda loop, end: loop.sock_recv(end, 1),
    lambda loop, end: loop.add_reader(end, print),
    lambda loop, _: loop.subprocess_shell(asyncio.SubprocessProtocol, "true"),
]


@pytest.mark.parametrize("call", CALLS)
@virtual
async def test_a_socket_is_refused_with_a_sentence(call: Callable[[VirtualLoop, socket.socket], object]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(SocketsForbidden, match="virtual time has no network; use the in-process"):
        call(this_loop(), ours)


@virtual
async def test_functions_for_threads_run_and_answer_in_the_order_of_submission() -> None:
    ran, answered = list[int](), list[int]()

    def work(number: int) -> int:
        assert threading.current_thread() is threading.main_thread()
        ran.append(number)
        return number

    async def ask(number: int) -> None:
        answered.append(await asyncio.to_thread(work, number))

    async def ask_anyio(number: int) -> None:
        answered.append(await anyio.to_thread.run_sync(work, number))

    await asyncio.gather(*map(ask, range(50)))
    await asyncio.gather(*map(ask_anyio, range(50, 150)))  # more than anyio runs at once

    assert ran == answered == list(range(150))
    assert this_loop().leaps == 0


variable = contextvars.ContextVar("variable", default="unset")


@virtual
async def test_a_function_sees_and_raises_what_it_would_in_a_thread() -> None:
    def look() -> tuple[str, bool]:
        return variable.get(), asyncio._get_running_loop() is None

    variable.set("set")

    assert await this_loop().run_in_executor(None, look) == ("unset", True)
    assert await asyncio.to_thread(look) == ("set", True)
    assert await anyio.to_thread.run_sync(look) == ("set", True)
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(divmod, 1, 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.to_thread(next, iter(()))


@virtual
async def test_a_real_thread_is_waited_for_while_time_is_held() -> None:
    loop = this_loop()
    answer: asyncio.Future[str] = loop.create_future()
    loop.call_later(1, answer.set_result, "time leapt")

    def slow() -> None:
        threading.Event().wait(0.05)
        loop.call_soon_threadsafe(answer.set_result, "the thread")

    thread = threading.Thread(target=slow)
    with loop.hold():
        thread.start()
        assert await answer == "the thread"
    thread.join()


@virtual
async def test_a_thread_is_heard_when_nothing_else_is_ready() -> None:
    loop, heard = this_loop(), list[str]()
    thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(heard.append, "thread"))
    loop.call_later(1, heard.append, "timer")

    thread.start()
    thread.join()
    for _ in range(10):
        await asyncio.sleep(0)
        heard.append("ready")
    await asyncio.sleep(1)

    assert heard == ["ready"] * 10 + ["thread", "timer"]


def test_a_hold_that_is_never_released_is_reported() -> None:
    async def main() -> None:
        with this_loop().hold():
            await asyncio.sleep(1)

    with pytest.raises(OutOfPatience, match="no thread reported"):
        run(main, patience=0.05)


def test_interrupting_a_run_that_waits_for_a_thread_ends_it() -> None:
    async def main() -> None:
        interrupt = functools.partial(signal.pthread_kill, threading.get_ident(), signal.SIGINT)
        threading.Timer(0.05, interrupt).start()
        with this_loop().hold():
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run(main)


def test_anyio_is_routed_even_if_it_is_imported_later_and_is_not_imported_for_it() -> None:
    program = """if True:
        import sys, threading
        from penstock.testing.loop import run

        async def main():
            assert "anyio" not in sys.modules
            import anyio.to_thread
            return await anyio.to_thread.run_sync(threading.current_thread)

        assert run(main) is threading.main_thread()
        import anyio
        assert "AnyIO" in anyio.run(anyio.to_thread.run_sync, threading.current_thread).name
    """
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


async def eventful() -> list[object]:
    """Timers, task groups that fail, sets of tasks, threads and chance: whatever has an order."""
    trace: list[object] = []
    chance = this_loop().random("workers")

    async def worker(number: int) -> None:
        try:
            while True:
                await asyncio.sleep(chance.choice([0.5, 1, 1.5]))
                trace.append((this_loop().time(), await asyncio.to_thread(int, number)))
        finally:
            trace.append(number)

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(worker(number))
            await asyncio.sleep(5)
            raise KeyError

    with pytest.raises(ExceptionGroup):
        await work()
    done, _ = await asyncio.wait([asyncio.create_task(asyncio.sleep(1)) for _ in range(40)])
    return [random.random(), *trace, *(task.get_name() for task in done)]


def test_two_runs_from_one_seed_are_equal_and_from_another_not() -> None:
    chance = random.getstate()
    first = run(eventful, seed=7)
    ballast = [object() for _ in range(12_345)]  # so that nothing lies where it lay before

    assert first[0] == random.Random(7).random()
    assert run(eventful, seed=7) == first
    assert run(eventful, seed=8) != first
    assert ballast
    assert random.getstate() == chance


def test_leftovers_are_closed_as_by_asyncio_run() -> None:
    closed, kept = list[str](), list[object]()

    async def leftover(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(10)
            closed.append(name)

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append("generator")

    async def main() -> int:
        kept.extend(asyncio.create_task(leftover(name)) for name in "abc")
        kept.append(generator := numbers())
        return await anext(generator)

    assert run(main) == 1
    assert closed == ["a", "b", "c", "generator"]


@pytest.mark.parametrize("seed, used", [(42, 42), (None, 5)])
def test_a_failure_names_its_seed_and_its_moment(seed: int | None, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    @virtual(seed=seed)
    async def failing() -> None:
        await asyncio.sleep(90)
        raise AssertionError

    monkeypatch.setenv("PENSTOCK_SEED", "5")
    with pytest.raises(AssertionError) as failure:
        failing()

    note = f"virtual time: 0:01:30 had passed; seed {used} (PENSTOCK_SEED={used} repeats it)"
    assert failure.value.__notes__ == [note]


class TestWhatSurroundsAVirtualTest:
    @pytest.mark.parametrize("number", [1, 2])
    @virtual(seed=3)
    async def test_fixtures_and_parameters_reach_it(self, number: int, tmp_path: Path) -> None:
        await asyncio.sleep(number)
        assert (this_loop().time(), this_loop().seed, tmp_path.is_absolute()) == (number, 3, True)

    @given(st.floats(0, 1e6))
    @virtual
    async def test_it_may_be_a_property(self, delay: float) -> None:
        await asyncio.sleep(delay)
        assert this_loop().time() == delay
