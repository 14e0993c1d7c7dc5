"""Queues, objects, cron, workflows and the controller all at work in two processes, which are killed and paused: each thing
that any of them does happens once."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest

from penstock.contracts.faults import CRASH_POINTS
from tests.crash.everything import KIND_OF, KINDS, WRONG_VARIABLE, queue_of
from tests.crash.harness import KILLS, Site, Victim
from tests.crash.invariants import Invariants
from tests.crash.journal import wait_until
from tests.crash.killer import Kill, Killer
from tests.crash.leases import LEASE_VARIABLE
from tests.crash.lookout import RunningList
from tests.crash.oracle import Oracle
from tests.crash.test_pauses import pause_outside_of_a_transaction
from tests.extent import EVERYTHING, sampled
from tests.long_runs import LongRun

EVERYTHING_KILLS = KILLS // 2 if EVERYTHING else 10
KILLS_A_ROUND = 10
PAUSES = 20 if EVERYTHING else 2
LEASE_SECONDS, AWAY_SECONDS = 3.0, 4.0
REST_SECONDS = 60.0  # what everything may take to come to rest: a bound to fail at
BOTH_AT_ONCE_EVERY = 7
CONTROL_KILLS, AGAIN_SECONDS = 15, 2.0  # by then a harness that is worth something has found out who does it wrong
PATIENT_SECONDS = 2.0  # what a worker has to come to some work before it is paused where it is
MOMENT_SECONDS = 0.03
PILE = 6_000  # items: more than a controller does in a test
DOOMED_SHARE = 0.35  # of the workers: they kill themselves at a crash point
CONTROLLER = "object.Controller"
QUEUES = {
    "queue": ("first", "second"),
    "object": ("object.Counter",),
    "cron": ("cron.tick",),
    "workflow": ("workflow.journey", "workflow.errand"),
    "controller": (CONTROLLER,),
}
COUNTED = tuple(name for kind in QUEUES for name in QUEUES[kind] if name != CONTROLLER)
AIMS = {
    "queue": 20,
    "object": 12,
    "cron": 8,
    "workflow": 16,
    "controller": 8,
    "processor": 10,
    "commit": 16,
    "anywhere": 5,
}
# What comes from outside, and what only a worker reaches that is told to stop.
ELSEWHERE = {"send.after_commit", "pull.after_commit", "drain.begun"}
POINTS = [point for point in CRASH_POINTS if point not in ELSEWHERE]
ONCE_A_LIFE = {"return.before", "return.after"}


@pytest.mark.fault("F01", "F05", "F32", "F34")
@pytest.mark.spec("A1-09", "A2-09", "A5-09", "A7-02", "A7-03")
def test_everything_at_once_happens_once_through_kills_at_any_moment(
    site: Site, oracle: Oracle, seed: int, note: Callable[[str], None], store: str, long_run: LongRun
) -> None:
    began = time.monotonic()
    scene = Scene(site, oracle, Random(seed))

    with scene.workers():
        while not scene.killer.is_done(EVERYTHING_KILLS):
            with scene.round():
                for _ in range(KILLS_A_ROUND):
                    scene.next_kill()
                    assert scene.problems() == []
            assert scene.problems_at_rest() == []
        scene.stop_ticking()
    assert scene.problems_at_rest() == []

    long_run.counted(
        f"kills with queues, objects, cron, workflows and a controller at work, {store}",
        kills=len(scene.killer.kills),
        at_named_points=sum(bool(kill.point) for kill in scene.killer.kills),
        effects=scene.numbers,
        ticks=scene.invariants.ticks(),
    )
    note(f"{scene.summary()}; {time.monotonic() - began:.0f} s")
    assert oracle.damage() == []
    assert oracle.dead() == []
    assert not scene.killer.misses(), "too few kills hit a handler: this run proves little"
    assert site.tracebacks() == []


@pytest.mark.slow("postgres")
@pytest.mark.fault("F03", "F12", "F35")
@pytest.mark.spec("A2-09")
def test_everything_at_once_happens_once_through_pauses_longer_than_a_lease(
    site: Site, oracle: Oracle, seed: int, note: Callable[[str], None]
) -> None:
    began = time.monotonic()
    scene = Scene(site, oracle, Random(seed), **{LEASE_VARIABLE: str(LEASE_SECONDS)})
    aims = scene.random.sample(KINDS, len(KINDS))

    with scene.workers():
        for number in range(0, PAUSES, 2):
            with scene.round():
                for comes_back in (True, False):
                    scene.pause(aims[(number + comes_back) % len(aims)], comes_back=comes_back)
                    assert scene.problems() == []
            assert scene.problems_at_rest() == []
        scene.stop_ticking()
    assert scene.problems_at_rest() == []

    lost = len(site.journal.all("lease.lost"))
    note(
        f"everything at once, {PAUSES} pauses of {AWAY_SECONDS:g} s past leases of {LEASE_SECONDS:g} s: {lost} late commits "
        f"refused, {scene.numbers:,} numbers; under way: {listed(scene.paused)}; {time.monotonic() - began:.0f} s"
    )
    assert oracle.damage() == []
    assert oracle.dead() == []
    assert site.tracebacks() == []


@pytest.mark.slow("postgres")
@pytest.mark.fault("F01")
@pytest.mark.parametrize("dies", ["the only worker", "its neighbour"])
def test_a_controller_at_work_delays_no_takeover_when_a_worker_dies(dies: str, site: Site, oracle: Oracle) -> None:
    """Who was running when his worker died runs alone the next time: neither may he wait for the tick of a controller that
    has minutes of work, nor everybody for him, if it is the tick itself."""
    scene = Scene(site, oracle, Random(0))
    invariants = scene.invariants
    flying = scene.worker()
    site.up(flying)
    scene.role("pile_up", first_number=1_000_000, items=PILE)
    wait_until(lambda: flying.running is not None and running_one_of((CONTROLLER,))(flying.running), "its tick")

    if dies == "the only worker":
        flying.kill()
        survivor = scene.worker()
    else:
        survivor, neighbour = flying, scene.worker()
        feeder = scene.role("feed", first_number=0, waits=False)
        wait_until(lambda: neighbour.running is not None and neighbour.running.busy(), "its neighbour's first handler")
        neighbour.kill()
        site.stop(feeder)
    site.up(survivor)

    died = time.monotonic()
    wait_until(lambda: site.journal.all("ticked", pid=survivor.pid, after=died), "tick of the clock", REST_SECONDS)
    oracle.wait_until_empty("first", "second", seconds=REST_SECONDS)
    assert invariants.items_waiting() > 0, "the controller was done: this proves nothing"
    assert invariants.doubled() == []


# -- controls of the harness itself -----------------------------------------------------------------------


@pytest.mark.slow("postgres")
@sampled("kind", KINDS, every=5)
def test_who_saves_an_effect_outside_of_his_unit_is_found_out_by_a_few_kills(
    kind: str, site: Site, oracle: Oracle, seed: int, note: Callable[[str], None]
) -> None:
    scene = Scene(site, oracle, Random(seed), **{WRONG_VARIABLE: kind})
    found: list[str] = []

    scene.begin()
    scene.role("feed", first_number=0, waits=False)
    while not found and len(scene.killer.kills) < CONTROL_KILLS:
        scene.kill_in(kind)
        with suppress(TimeoutError):  # what was running has to come again before anything is doubled
            wait_until(scene.invariants.doubled, "effect that happened twice", AGAIN_SECONDS, every=0.05)
        found = scene.invariants.doubled()

    note(f"known to be wrong, the {kind}: {found[:1]} after {len(scene.killer.kills)} kills")
    assert found, "the harness finds nothing"
    assert {KIND_OF[line.split()[0]] for line in found} == {kind}


@pytest.mark.slow("postgres")
def test_a_run_without_kills_is_clean_and_each_damage_to_it_is_named(site: Site, oracle: Oracle) -> None:
    scene = Scene(site, oracle, Random(0))
    with scene.workers():
        with scene.round():
            wait_until(lambda: scene.invariants.ticks() >= 3, "three ticks")
        scene.stop_ticking()
    assert scene.numbers > 0
    known = scene.problems_at_rest()
    assert known == []

    for damage, complaint in DAMAGES:
        assert site.database.change(damage) > 0, damage
        problems = [*scene.problems(), *scene.problems_at_rest()]
        assert any(complaint in problem for problem in problems if problem not in known), (damage, problems)
        known = problems


AGAIN = "insert into effects (queue, number, value, pid) select queue, number, value, pid from effects where queue = "
DAMAGES = [
    (f"{AGAIN} 'second' and number = 1", "second 1 happened 2 times"),
    ("delete from effects where queue = 'first' and number = 2", "first: 1 lost, such as [2]"),
    ("insert into effects (queue, number, value, pid) values ('first', 99999, 0, 0)", "first: 1 invented"),
    ("update penstock_counters set acked = acked - 1 where queue = 'first'", "first: Counts"),
    (f"{AGAIN} 'called' and number = 0", "called: 1 doubled"),
    ("delete from effects where queue = 'told' and number = 1", "counter 1: it says"),
    ("update effects set value = value + 1 where queue = 'second' and number = 2", "counter 2: who called it"),
    ("delete from effects where queue = 'rung' and number = 1", "rung: 1 lost"),
    (f"{AGAIN} 'tick'", "tick: "),
    ("delete from penstock_ticks where due = (select min(due) + 1000000 from penstock_ticks)", "1 seconds without one"),
    (f"{AGAIN} 'step' and number = 4", "step: 1 doubled, such as [4]"),
    ("update penstock_runs set state = 'errored' where id = 'run-3'", "run-3: ('errored', 28)"),
    ("delete from penstock_runs where id = 'run-0/errand'", "run-0: ('complete', 10), its child None"),
    ("update penstock_steps set attempts = 2 where name = 'back'", "steps are recorded as done at once"),
    (f"{AGAIN} 'worked' and number = 1", "worked: 1 doubled"),
    ("delete from effects where queue = 'after' and number = 2", "after: 1 lost"),
    ("update items set done = 2 where number = 3", "items: "),
]


def names(kill: Kill) -> set[str]:
    """The queues whose handlers were running when it died."""
    return set(map(queue_of, kill.running))


def is_in_flight(kill: Kill) -> bool:
    """A tick of the controller alone does not count: one is nearly always under way."""
    return bool(names(kill) - {CONTROLLER})


class Scene:
    """Two workers that are killed in turn and replaced at once, and somebody who gives all five kinds something to do."""

    def __init__(self, site: Site, oracle: Oracle, random: Random, **environment: str) -> None:
        self._site = site
        self._oracle = oracle
        self.random = random
        self._environment = environment
        self._points: dict[int, str] = {}  # by process: where it is to kill itself
        self._workers: list[Victim] = []
        self._kills = 0
        self.killer = Killer(site, oracle, random, is_in_flight)
        self.invariants = Invariants(site.database)
        self.numbers = 0
        self.paused: Counter[str] = Counter()  # what was running in those that stood still

    @contextmanager
    def workers(self) -> Iterator[None]:
        self.begin()
        yield
        self._replace_doomed()
        self._site.stop(*self._workers)

    def begin(self) -> None:
        self._workers = [self.worker(), self.worker()]
        self._site.up(*self._workers)

    def role(self, name: str, *, waits: bool = True, **arguments: Any) -> Victim:
        """Somebody else than a worker: `waits` for his end, or until he is ready."""
        started = self._site.start(name, module="tests.crash.everything", environment=self._environment, **arguments)
        if waits:
            assert started.wait() == 0, self._site.said()
        else:
            self._site.up(started)
        return started

    def worker(self, point: str = "") -> Victim:
        environment = self._environment
        if point:
            nth = 1 if point in ONCE_A_LIFE else self.random.randint(1, 12)
            environment = environment | {"PENSTOCK_CRASH_AT": f"{point}=kill@{nth}"}
        worker = self._site.start("worker", grace=25.0, reference="tests.crash.everything:app", environment=environment)
        self._points[worker.pid] = point
        return worker

    @contextmanager
    def round(self) -> Iterator[None]:
        """Everybody has something to do in it, and at its end nothing is left but the ticks of the clock."""
        feeder = self.role("feed", first_number=self.numbers, waits=False)
        yield
        self._site.stop(feeder)
        self.numbers = self._site.journal.wait("fed", pid=feeder.pid).number
        self._replace_doomed()
        queues = [name for kind in ("queue", "object", "workflow") for name in QUEUES[kind]]
        wait_until(lambda: self.invariants.is_at_rest(*queues), "rest", REST_SECONDS, every=0.05)

    def _replace_doomed(self) -> None:
        for turn, worker in enumerate(self._workers):
            if self._points[worker.pid]:
                self._kill(turn)

    def next_kill(self) -> None:
        self._kills += 1
        turn = self._kills % 2
        self._kill(turn, self._doom())
        if self._kills % BOTH_AT_ONCE_EVERY == 0:
            self._kill(1 - turn, self._doom())

    def _doom(self) -> str:
        is_doomed = self.random.random() < DOOMED_SHARE and not self.killer.misses()
        return self.random.choice(POINTS) if is_doomed else ""

    def _kill(self, turn: int, next_point: str = "") -> None:
        worker = self._workers[turn]
        if point := self._points[worker.pid]:
            self.killer.let_fall(worker, point)
        elif self.killer.misses():
            self.killer.kill(worker, running_one_of(COUNTED))
        else:
            [aim] = self.random.choices(list(AIMS), list(AIMS.values()))
            self.killer.kill(worker, running_one_of(QUEUES[aim]) if aim in KINDS else aim)
        self._workers[turn] = self.worker(next_point)

    def kill_in(self, kind: str) -> None:
        """One of the workers is seen at work of this kind, and killed a moment later."""
        wanted, seen = running_one_of(QUEUES[kind]), list[int]()

        def at_work() -> bool:
            seen[:] = [
                turn for turn, each in enumerate(self._workers) if each.running is not None and wanted(each.running)
            ]
            return bool(seen)

        wait_until(at_work, f"worker at work of this kind: {kind}", every=0.001)
        time.sleep(self.random.uniform(0.0, MOMENT_SECONDS))
        self.killer.kill(self._workers[seen[0]], lambda _: True)
        self._workers[seen[0]] = self.worker()

    def pause(self, kind: str, *, comes_back: bool) -> None:
        """One stands still for longer than its leases while it is at work of this kind; the other goes on, or is killed and
        replaced meanwhile. Afterwards the first goes on, or never does."""
        turn = self.random.randrange(2)
        paused = self._workers[turn]
        wanted = running_one_of(QUEUES[kind])
        self._site.up(paused)
        with suppress(TimeoutError):
            wait_until(
                lambda: paused.running is not None and wanted(paused.running), kind, PATIENT_SECONDS, every=0.001
            )
        pause_outside_of_a_transaction(self._site, paused)
        ends = time.monotonic() + AWAY_SECONDS
        running = paused.running
        assert running is not None
        held = set(running.rows())
        self.paused.update(set(map(queue_of, held)))
        if self.random.random() < 0.5:
            self._kill(1 - turn)
        time.sleep(max(0.0, ends - time.monotonic()))
        if comes_back:
            paused.signal(signal.SIGCONT)
            wait_until(lambda: held.isdisjoint(running.rows()), "end of what it was at")
        else:
            paused.kill()
            self._workers[turn] = self.worker()

    def stop_ticking(self) -> None:
        """The last tick has run."""
        self.role("stop_ticking")
        self._oracle.wait_until_empty(*QUEUES["cron"], seconds=REST_SECONDS)

    # -- what must hold -----------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        return [*self._oracle.unbalanced(), *self.invariants.doubled()]

    def problems_at_rest(self) -> list[str]:
        return [*self._oracle.unbalanced(), *self.invariants.problems(self.numbers)]

    def summary(self) -> str:
        kills = self.killer.kills
        hit = Counter(name for kill in kills for name in names(kill))
        points = Counter(kill.point for kill in kills if kill.point)
        return (
            f"everything at once, {self.killer.summary()}; {self.killer.hits()} in flight besides the controller; "
            f"under way: {listed(hit)}; {points.total()} at crash points: {listed(points)}; {self.numbers:,} numbers, "
            f"{self.invariants.ticks()} ticks"
        )


def listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"


def running_one_of(queues: tuple[str, ...]) -> Callable[[RunningList], bool]:
    return lambda running: any(queue_of(row) in queues for row in running.rows())
