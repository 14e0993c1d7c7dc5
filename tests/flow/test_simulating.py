"""A simulation tells the first history that breaks what an app promises: always the same one, no larger than it must be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

import penstock as ps
from penstock.testing import History, InvariantBroken, Simulation, history_of, simulate
from penstock.testing.simulation import DISTURBANCES
from tests.extent import EVERYTHING, sampled
from tests.flow import checkout
from tests.flow.checkout import MISTAKES, CounterInMemory, Orders, Shop
from tests.unit.cli import Said, penstock

SEEDS = range(200 if EVERYTHING else 40)
SERVICES = {"slow to begin", "slow to answer", "fails", "answer lost"}
DELIVERIES = {"deliveries in any order", "every message delivered twice", "a slow store"}

AnySimulation = TypeVar("AnySimulation", bound=Simulation)

only_on_sqlite = pytest.mark.only_on("sqlite")


@only_on_sqlite
@pytest.mark.spec("A13-11")
def test_a_shop_that_keeps_its_word_does_so_in_every_history(note: Callable[[str], None]) -> None:
    began = time.perf_counter()

    report = simulate(Shop, seeds=SEEDS)

    rate = len(SEEDS) / (time.perf_counter() - began)
    note(f"simulations of an app: {len(SEEDS)} histories, {report.befallen.total()} disturbances, {rate:.0f} a second")
    assert report.histories == len(SEEDS)
    assert {*report.befallen} == {*DISTURBANCES} | SERVICES | DELIVERIES  # one that never happens proves nothing


def test_a_few_histories_on_each_store() -> None:
    assert simulate(Shop, seeds=range(3)).histories == 3


@only_on_sqlite
@pytest.mark.spec("A13-11")
@sampled("mistake", MISTAKES, ids=lambda each: each.__name__, every=3)
def test_a_typical_mistake_is_found_and_its_seed_fails_again(mistake: type[Orders]) -> None:
    mended = type(mistake.__name__, (mistake,), {"mended": True})

    with pytest.raises(InvariantBroken) as found:
        simulate(mistake, seeds=SEEDS)
    with pytest.raises(InvariantBroken) as again:
        simulate(mistake, seeds=[found.value.history.seed])

    history = found.value.history
    assert again.value.history == history
    assert "AssertionError" in history.broken
    assert "checkout.py" in history.where
    assert f"PENSTOCK_SEED={history.seed}" in str(found.value)
    assert simulate(mended, seeds=range(history.seed + 15)).histories == history.seed + 15


@only_on_sqlite
@pytest.mark.parametrize("mistake", [CounterInMemory, *MISTAKES[2:]], ids=lambda each: each.__name__)
def test_everything_that_a_broken_history_still_tells_of_was_needed(mistake: type[Orders]) -> None:
    seed = next(seed for seed in SEEDS if len(history_of(mistake, seed).broken))
    whole = history_of(mistake, seed)

    small = _smallest(mistake, seed)

    assert small.befallen
    assert len(small.befallen) <= len(whole.befallen)
    left_out = {*whole.befallen} - {*small.befallen}
    for what in small.befallen:
        assert history_of(mistake, seed, spared={*left_out, what}).where != small.where


@only_on_sqlite
def test_a_seed_tells_the_same_story_every_time() -> None:
    for seed in range(6):
        one, other = history_of(Shop, seed), history_of(Shop, seed)
        assert one == other
        assert len(one.story) > 3
    assert history_of(Shop, 1).story != history_of(Shop, 2).story


@only_on_sqlite
def test_what_is_spared_does_not_happen_and_leaves_the_rest_as_it_was() -> None:
    seed = next(seed for seed in SEEDS if any(each.startswith("jump") for each in history_of(Shop, seed).befallen))
    before = history_of(Shop, seed)
    jumps = [each for each in before.befallen if each.startswith("jump")]

    after = history_of(Shop, seed, spared=jumps)

    assert not {*jumps} & {*after.befallen}
    planned = [each for each in before.befallen if each.partition(":")[0] in DISTURBANCES]
    assert [each for each in planned if each not in jumps] == [each for each in after.befallen if each in planned]


# -- the world --------------------------------------------------------------------------------------------


class Alone(Simulation):
    """An app that does nothing yet, for looking at the world around it."""

    misfortunes = 0

    def make(self) -> ps.App:
        self.made = getattr(self, "made", 0) + 1
        return ps.App("alone")


class Asking(Alone):
    """Calls a service a hundred times; notes what came of each."""

    misfortunes = 1_000

    def prepare(self) -> None:
        self.done: list[int] = []
        self.came: list[str] = []

    async def scenario(self) -> None:
        async def ask(number: int) -> int:
            self.done.append(number)
            return number

        far_away = self.service(ask)
        for number in range(100):
            try:
                assert await far_away(number) == number
                told = "answered"
            except (ConnectionError, TimeoutError) as error:
                told = type(error).__name__
            self.came.append(told)
            assert (number in self.done) == (told != "ConnectionError")


@only_on_sqlite
def test_a_call_that_failed_was_not_done_and_one_without_an_answer_was() -> None:
    worlds = [_lived(Asking, seed) for seed in range(8)]

    told = {answer for world in worlds for answer in world.came}
    assert told == {"answered", "ConnectionError", "TimeoutError"}
    assert any({*world.came} == {"answered"} for world in worlds)


class OverHttp(Orders):
    """The bank is a host somewhere, and the app calls it with its client."""

    def prepare(self) -> None:
        self.charged: dict[str, int] = {}

    async def charge(self, key: str, number: int) -> None:
        self.charged.setdefault(key, number)

    def serve(self, app: ps.App) -> None:
        web, charge = app.http(), self.service(self.charge)

        async def bank(scope: Any, receive: Any, send: Any) -> None:
            await charge(scope["path"], int(scope["query_string"]))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})

        web.mount("https://bank.example", bank)

        @self.orders.handler(checkout.Order)
        async def pay(order: checkout.Order, message: ps.Message[checkout.Order]) -> None:
            await web.post(f"https://bank.example/{message.id}?{order.number}", json={})
            checkout.write(app, order.number)

    async def in_the_end(self) -> None:
        await super().in_the_end()
        assert sorted(self.charged.values()) == self.numbers


@only_on_sqlite
def test_a_host_that_calls_a_service_fails_as_a_network_does() -> None:
    report = simulate(OverHttp, seeds=range(15))

    assert {"fails", "answer lost"} <= {*report.befallen}


class Impatient(Alone):
    async def scenario(self) -> None:
        self.done = 0

        async def ask() -> None:
            self.done += 1

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.0):
                await self.service(ask)()
        assert self.done == 0

    async def in_the_end(self) -> None:
        assert self.done == 1


@only_on_sqlite
def test_a_service_continues_when_its_last_waiting_caller_left() -> None:
    assert not history_of(Impatient, 0).broken


@only_on_sqlite
def test_every_worker_is_a_new_app_and_no_more_die_than_a_history_may_hold() -> None:
    worlds = [_lived(Orderly, seed) for seed in range(12)]

    assert all(world.made == world.workers_started for world in worlds)
    assert {world.deaths for world in worlds} == {0, 1, 2}


class Orderly(Alone):
    misfortunes = 2
    deaths = 0

    def _revive(self) -> None:
        self.deaths += self._open
        super()._revive()


class Armed(Alone):
    """Somebody who knows where it hurts arms a crash point by hand."""

    async def scenario(self) -> None:
        await self.crash(at="drain.begun")
        await self.restart()

    async def in_the_end(self) -> None:
        assert any("the worker is dead" in line for line in self.story)
        await self.crash(at="commit.after")


@only_on_sqlite
def test_a_scenario_may_crash_its_app_by_itself() -> None:
    assert not history_of(Armed, 0).broken


class SameApp(Simulation):
    """An app of a module: made once, for all histories."""

    app_of_the_module = ps.App("module")
    queue = app_of_the_module.queue("orders", checkout.Order)

    @staticmethod
    @queue.handler(checkout.Order)
    async def take(order: checkout.Order) -> None: ...

    def make(self) -> ps.App:
        return self.app_of_the_module

    async def scenario(self) -> None:
        for number in range(3):
            await self.send(self.queue, checkout.Order(number=number))
        await self.restart()

    async def in_the_end(self) -> None:
        assert (await self.counts(self.queue)).acked == 3
        assert len([line for line in self.story if "message.settled" in line and "success=True" in line]) == 3


@only_on_sqlite
def test_an_app_that_is_made_only_once_can_be_simulated_too() -> None:
    config, database = SameApp.app_of_the_module.config, SameApp.app_of_the_module.database

    assert simulate(SameApp, seeds=range(12)).histories == 12

    assert (SameApp.app_of_the_module.config, SameApp.app_of_the_module.database) == (config, database)


# -- what is told -----------------------------------------------------------------------------------------


class Hostile(Alone):
    async def in_the_end(self) -> None:
        self.note("\x1b[2J[red]\u202e" + "long " * 1_000)
        raise ValueError("\x1b[2J=cmd|' /C calc'!A0 [bold]")


class Endless(Alone):
    longest = timedelta(hours=2)

    async def scenario(self) -> None:
        await asyncio.Event().wait()


@only_on_sqlite
def test_whatever_ends_a_history_is_reported_with_its_line() -> None:
    with pytest.raises(InvariantBroken, match="ValueError") as found:
        simulate(Hostile)
    assert "in in_the_end: raise ValueError" in found.value.history.where
    assert max(map(len, found.value.history.story)) < 400
    with pytest.raises(InvariantBroken, match="Stuck"):
        simulate(Endless)
    with pytest.raises(InvariantBroken, match="NotImplementedError"):
        simulate(Simulation)


@only_on_sqlite
def test_the_seed_of_the_environment_is_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SEED", "7")

    assert simulate(Alone, seeds=range(100)).histories == 1


@only_on_sqlite
def test_the_command_finds_a_broken_history_and_repeats_it_under_other_hashes(tmp_path: Path) -> None:
    place = checkout.__file__

    found = _simulate(f"{place}:CounterInMemory", "--json", folder=tmp_path, PYTHONHASHSEED="1")
    again = _simulate(
        f"{place}:CounterInMemory",
        "--json",
        "--seed",
        str(found.told["history"]["seed"]),
        folder=tmp_path,
        PYTHONHASHSEED="2",
    )
    drawn = _simulate(f"{place}:CounterInMemory", folder=tmp_path)

    assert found.code == again.code == drawn.code == 1
    assert found.told == again.told
    assert found.told["passed"] is False
    assert "AssertionError" in drawn.out
    assert f"--seed {found.told['history']['seed']}" in drawn.out
    assert drawn.err == ""


@pytest.mark.slow
@only_on_sqlite
def test_the_command_says_what_befell_those_that_kept_their_word(tmp_path: Path) -> None:
    kept = _simulate(f"{checkout.__file__}:Shop", "--seeds", "8", folder=tmp_path)
    one = _simulate(f"{checkout.__file__}:Shop", "--seed", "3", folder=tmp_path)

    assert kept.code == one.code == 0
    assert "8 histories kept every invariant" in kept.out
    assert "every invariant held" in one.out
    assert "sent to orders: Order(number=0)" in one.out


@pytest.mark.slow
@only_on_sqlite
def test_a_simulation_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("x = 1\n")
    for asked, says in {
        f"{checkout.__file__}:Nobody": "has no simulation called 'Nobody'. It has: Orders, Shop",
        checkout.__file__: "has to be told which simulation",
        "nothing.py": "derive a class from penstock.testing.Simulation",
        ":": "names no simulation",
    }.items():
        said = _simulate(asked, folder=tmp_path)
        assert said.code == 2
        assert says in said.words
        assert "penstock simulate --help" in said.words


def _simulate(*arguments: str, folder: Path, **more: str) -> Said:
    return penstock("simulate", *arguments, folder=folder, **more)


def _smallest(mistake: type[Simulation], seed: int) -> History:
    with pytest.raises(InvariantBroken) as found:
        simulate(mistake, seeds=[seed])
    return found.value.history


def _lived(simulation: type[AnySimulation], seed: int) -> AnySimulation:
    worlds: list[AnySimulation] = []

    class Kept(simulation):  # type: ignore[valid-type, misc]
        def prepare(self) -> None:
            super().prepare()
            worlds.append(self)

    history = history_of(Kept, seed)
    assert not history.broken, history.text()
    return worlds[0]
