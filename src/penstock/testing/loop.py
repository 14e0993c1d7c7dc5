"""Virtual time: an event loop on which days pass in milliseconds, and the same program runs in the same order every time."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import importlib.machinery
import itertools
import math
import os
import random
import selectors
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypedDict, TypeVar, Unpack, overload

from penstock.model.errors import PenstockError
from penstock.model.times import MICROS, in_seconds, to_micros
from penstock.runtime.clock import HostClock, Jump

P = ParamSpec("P")
T = TypeVar("T")
TURNS_A_LOOK = 64  # of the loop, before it looks how much work they took: that is a system call


class Stuck(PenstockError):
    """Nothing can happen any more, and the main task still waits."""


class OutOfPatience(PenstockError):
    """Virtual time has stood still for too long in real time."""


class SocketsForbidden(PenstockError, RuntimeError):
    """virtual time has no network; use the in-process transport"""


class LoopOptions(TypedDict, total=False):
    start: datetime  # what the wall shows at first: the year 2026
    patience: float  # seconds of processor time without a leap after which a task must be spinning: 60
    horizon: timedelta  # where a test ends that waits for what never comes beside a task that ticks: 366 days


def run(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 0, **options: Unpack[LoopOptions]) -> T:
    """`asyncio.run` in virtual time. The `random` module is seeded for as long as it lasts."""
    loop = VirtualLoop(seed=seed, **options)
    chance = random.getstate()
    random.seed(seed)
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main())
    except BaseException as error:
        passed = timedelta(seconds=loop.time())
        error.add_note(f"virtual time: {passed} had passed; seed {seed} (PENSTOCK_SEED={seed} repeats it)")
        raise
    finally:
        random.setstate(chance)


Test = Callable[P, Coroutine[Any, Any, None]]


@overload
def virtual(test: Test[P], /) -> Callable[P, None]: ...
@overload
def virtual(*, seed: int | None = None, **options: Unpack[LoopOptions]) -> Callable[[Test[P]], Callable[P, None]]: ...
def virtual(test: Any = None, /, *, seed: int | None = None, **options: Unpack[LoopOptions]) -> Any:
    """Turns an async test into a plain one that runs in virtual time, with its fixtures and parameters.

    The seed is `seed`, else the environment's `PENSTOCK_SEED`, else 0; a failure names it.
    """
    if test is None:
        return functools.partial(virtual, seed=seed, **options)

    @functools.wraps(test)
    def in_virtual_time(*args: Any, **kwargs: Any) -> None:
        chosen = int(os.environ.get("PENSTOCK_SEED") or 0) if seed is None else seed
        run(lambda: test(*args, **kwargs), seed=chosen, **options)

    return in_virtual_time


class VirtualTime:
    """A test's hands on the time of a loop. `clock` is what the app under test gets."""

    def __init__(self, loop: VirtualLoop, *, on_jump: Callable[[Jump], None] | None = None) -> None:
        self.loop = loop
        self.clock = HostClock(wall=loop.wall_ns, monotonic=loop.time, on_jump=on_jump)

    async def advance(
        self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Lets everything due up to then happen in order, and returns at exactly that moment."""
        await asyncio.sleep(in_seconds(seconds) + 60 * minutes + 3_600 * hours + 86_400 * days)
        await self.loop.settle()

    async def settle(self) -> None:
        """Runs everything that is ready now. No time passes."""
        await self.loop.settle()

    def jump(self, seconds: float) -> None:
        """Sets the clock on the wall forward or back. Timers do not notice."""
        self.loop.wall_offset += round(seconds * MICROS)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time leaps to the next timer, and only when nothing is ready.

    Timers due at the same moment fire in the order they were set. A function given to a thread runs in place instead.
    """

    if TYPE_CHECKING:  # what it needs of BaseEventLoop, the same from Python 3.11 to 3.14
        _ready: deque[asyncio.Handle]
        _scheduled: list[_Timer]
        _thread_id: int | None
        _check_closed: Callable[[], None]

    def __init__(self, *, seed: int = 0, **options: Unpack[LoopOptions]) -> None:
        super().__init__(_Leaper(self))
        self.seed = seed
        self.leaps = 0
        self.wall_offset = 0
        self._start = to_micros(options.get("start", datetime(2026, 1, 1, tzinfo=UTC)))
        self._time, self._clock_resolution = 0.0, math.ulp(0.0)
        self._horizon = options.get("horizon", timedelta(days=366))
        self._horizon_seconds = self._horizon.total_seconds()
        self._patience = options.get("patience", 60.0)
        self._leapt_at = (math.inf, math.inf)  # in real seconds, and until when it may spin in processor seconds
        self._numbers = itertools.count(1)
        self._timer_numbers = itertools.count()
        self._settling: deque[asyncio.Future[None]] = deque()
        # Shared with threads under this lock, which is re-entrant because a signal may come in the middle of a wait.
        self._news = threading.Condition()
        self._arrivals: deque[asyncio.Handle] = deque()
        self._holds = 0
        _route_anyio()

    def time(self) -> float:
        return self._time

    def wall_ns(self) -> int:
        """The wall clock of this world, in nanoseconds since 1970."""
        # To the nearest microsecond: cut off, a float a hair below a due time would read as one too early.
        return (self._start + self.wall_offset + round(self._time * MICROS)) * 1000

    def random(self, concern: str) -> random.Random:
        """A source of chance for each concern, so that one more draw in one leaves the others as they were."""
        return random.Random(f"{self.seed}/{concern}")

    async def settle(self) -> None:
        """Returns when nothing is ready any more. No time passes."""
        settled: asyncio.Future[None] = self.create_future()
        self._settling.append(settled)
        await settled

    @contextmanager
    def hold(self) -> Iterator[None]:
        """While held, the loop waits in real time for what threads report, instead of leaping or giving up."""
        with self._news:
            self._holds += 1
        try:
            yield
        finally:
            with self._news:
                self._holds -= 1
                self._news.notify_all()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        self._check_closed()
        timer = _Timer(when, callback, args, self, context)
        timer.number = next(self._timer_numbers)
        timer._scheduled = True
        heapq.heappush(self._scheduled, timer)
        return timer

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """From another thread: heard when nothing else is ready, so that a fast thread and a slow one act alike."""
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context)
        with self._news:
            (self._ready if threading.get_ident() == self._thread_id else self._arrivals).append(handle)
            self._news.notify_all()
        return handle

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        self._check_closed()
        future: asyncio.Future[T] = self.create_future()
        # In a context of its own, as in a thread: what the caller set is not seen unless it was handed over.
        self.call_soon(_in_place, self, future, func, args, context=contextvars.Context())
        return future

    def set_default_executor(self, executor: object) -> None:
        """Without effect: functions run in place."""

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        if self.get_task_factory() is not None:
            return super().create_task(coro, **options)
        self._check_closed()
        number = next(self._numbers)
        if options.get("name") is None:
            options["name"] = f"Task-{number}"
        return _Task(coro, number, loop=self, **options)

    def run_forever(self) -> None:
        self._leapt_at = time.monotonic(), time.thread_time() + self._patience
        super().run_forever()

    def _nothing_ready(self) -> None:
        """Makes the next thing happen: news from threads, else who waits for things to settle, else the next timer."""
        if self._arrivals or self._holds:
            self._hear_threads()
            return
        while self._settling:
            if not (settled := self._settling.popleft()).done():
                settled.set_result(None)
                return
        # Written so that a timer for infinity, or for no number at all, lies beyond the horizon.
        if not self._scheduled or not self._scheduled[0]._when <= self._horizon_seconds:
            raise self._stuck()
        self._time = float(self._scheduled[0]._when)
        # The loop fires what is due before `time + resolution`: with one step of a float, exactly what is due now.
        self._clock_resolution = math.ulp(self._time)
        self._leapt_at = time.monotonic(), time.thread_time() + self._patience
        self.leaps += 1

    def _hear_threads(self) -> None:
        with self._news:
            left = self._leapt_at[0] + self._patience - time.monotonic()
            if not self._news.wait_for(lambda: self._arrivals or self._ready or not self._holds, left):
                why = f"Virtual time was held for {self._patience:g} real seconds and no thread reported. "
                raise OutOfPatience(why + "Release the hold when the thread has done its work.", holds=self._holds)
            self._ready.extend(self._arrivals)
            self._arrivals.clear()

    def _stuck(self) -> Stuck:
        why = f"Nothing is ready and no timer is due within {self._horizon}, but these tasks wait. "
        tasks = [_place(task) for task in sorted(asyncio.all_tasks(self), key=hash)]
        return Stuck("\n  ".join([why + "A thread that wakes one needs a `loop.hold()`.", *tasks]), tasks=tasks)

    def _spinning(self) -> OutOfPatience:
        why = f"No time has passed in {self._patience:g} s of processor time: these tasks are ready over and over. "
        owners = [getattr(handle._callback, "__self__", None) for handle in self._ready]  # type: ignore[attr-defined]
        tasks = [_place(owner) for owner in owners if isinstance(owner, asyncio.Task)]
        return OutOfPatience("\n  ".join([why + "Let them sleep or wait for an event.", *tasks]), tasks=tasks)

    # There are no signals either: code that can do without them expects this.
    add_signal_handler = asyncio.AbstractEventLoop.add_signal_handler

    def _make_self_pipe(self) -> None:
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass


def _refuse(name: str, *_args: object, **_options: object) -> NoReturn:
    raise SocketsForbidden(f"{SocketsForbidden.__doc__} (called: {name})")


for _name in """
    add_reader add_writer connect_accepted_socket connect_read_pipe connect_write_pipe create_connection
    create_datagram_endpoint create_server create_unix_connection create_unix_server getaddrinfo getnameinfo sendfile
    sock_accept sock_connect sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendfile
    sock_sendto start_tls subprocess_exec subprocess_shell
""".split():
    setattr(VirtualLoop, _name, staticmethod(functools.partial(_refuse, _name)))


class _Leaper(selectors.BaseSelector):
    """Where a real loop would block, this one leaps."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._turns = itertools.count(1)  # in which no time passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self._loop._nothing_ready()
        elif next(self._turns) % TURNS_A_LOOK == 0 and time.thread_time() > self._loop._leapt_at[1]:
            raise self._loop._spinning()
        return []

    def register(self, fileobj: object, events: int, data: object = None) -> NoReturn:
        raise SocketsForbidden

    def unregister(self, fileobj: object) -> NoReturn:
        raise KeyError(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


class _Timer(asyncio.TimerHandle):
    __slots__ = ("number",)
    if TYPE_CHECKING:
        number: int
        _when: float
        _scheduled: bool

    def __lt__(self, other: _Timer) -> bool:  # type: ignore[override]
        return self._when < other._when or (self._when == other._when and self.number < other.number)


class _Task(asyncio.Task[Any]):
    """Hashed by its number and not its address, so that a set of tasks, as in a task group, has one order."""

    def __init__(self, coro: Coroutine[Any, Any, Any], number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


def _in_place(loop: VirtualLoop, future: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
    if future.done():
        return
    # As in a thread, no loop runs here: `asyncio.run` works, and a call that needs the loop fails as it would there.
    asyncio._set_running_loop(None)
    try:
        future.set_result(func(*args))
    except (KeyboardInterrupt, SystemExit):
        raise
    except StopIteration as error:
        future.set_exception(RuntimeError(f"the function raised {error!r}, which cannot be awaited"))
    except BaseException as error:
        future.set_exception(error)
    finally:
        asyncio._set_running_loop(loop)


def _place(task: asyncio.Task[Any]) -> str:
    """`Task-3: shop.py:12 in fetch, waiting in Event.wait`"""
    awaited: Any = task.get_coro()
    place = inner = getattr(awaited, "__qualname__", type(awaited).__name__)
    while awaited is not None:
        if frame := getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None):
            inner = awaited.__qualname__
            if not frame.f_code.co_filename.startswith(os.path.dirname(asyncio.__file__)):
                place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {inner}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return f"{task.get_name()}: {place}, waiting in {inner}"


# anyio starts threads of its own, past the loop. Its asyncio half is changed once it is imported, by whomever.
_ANYIO: Final = "anyio._backends._asyncio"


def _route_anyio() -> None:
    if module := sys.modules.get(_ANYIO):
        _own_threads(module)
    elif _AnyioFinder not in sys.meta_path:
        sys.meta_path.insert(0, _AnyioFinder)


class _AnyioFinder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != _ANYIO or (spec := importlib.machinery.PathFinder.find_spec(name, path)) is None:
            return None
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_route(module: ModuleType) -> None:
            load(module)
            _own_threads(module)

        loader.exec_module = load_and_route
        return spec


def _own_threads(anyio: Any) -> None:
    backend = anyio.AsyncIOBackend
    threaded = backend.run_sync_in_worker_thread
    if hasattr(threaded, "routed"):
        return

    async def route(func: Any, args: Any, abandon_on_cancel: bool = False, limiter: Any = None) -> Any:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            return await threaded(func, args, abandon_on_cancel=abandon_on_cancel, limiter=limiter)
        await backend.checkpoint()
        async with limiter or backend.current_default_thread_limiter():
            with anyio.CancelScope(shield=not abandon_on_cancel):
                return await loop.run_in_executor(None, contextvars.copy_context().run, func, *args)

    route.routed = True  # type: ignore[attr-defined]
    backend.run_sync_in_worker_thread = staticmethod(route)
