"""A conflict or a lost connection at any statement at all: the same things happen as without it, each of them once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import penstock as ps
from penstock.config import Config
from penstock.contracts.effects import Transaction
from penstock.model.errors import StoreError
from penstock.runtime.events import StoreFailed
from tests.crash.databases import PostgresCrashDatabase
from tests.crash.harness import SOCKETS_VARIABLE
from tests.crash.injection import Injector
from tests.crash.oracle import Oracle
from tests.extent import EVERYTHING, sampled

FAULTS = ["40001", "40P01", "lost before", "lost after"]
SAMPLE = 8  # statements of each run that are tried in `make test`; `make crash` tries all
STARTS_MAX = 3
WRITE = "insert into effects (queue, number, pid) values (:queue, :number, 0)"


class Part(ps.Event, type="injected.part"):
    number: int


class Tally(ps.Object):
    total: int = 0

    async def add(self) -> int:
        self.total += 1
        return self.total


class Workshop:
    """An app that does a little of everything that commits, and where each effect has to happen once a run."""

    EFFECTS = ("work", "midway", "atomic", "object", "other", "sent")

    def __init__(self, url: str) -> None:
        config = Config(overrides={"retry_first_seconds": 0.01, "retry_longest_seconds": 0.01})
        migrations = Path(__file__).parent / "migrations"
        self.app = app = ps.App("workshop", database=url, migrations=migrations, config=config)
        self.troubles: list[str] = []
        work = app.queue("work", Part, retries=20)
        other = app.queue("other", Part, retries=20)
        tallies = app.object(Tally)
        self.work = work

        @work.handler
        async def do(part: Part) -> None:
            await app.once("before", self.before)
            async with app.unit(key="midway"):
                self.write("midway", part.number)
            if await tallies[str(part.number)].add() == 1:
                self.write("object", part.number)
            self.write("work", part.number)
            app.db.atomically(lambda transaction: self.count(transaction, part.number))
            other.send(part)

        @other.handler
        async def go_on(part: Part) -> None:
            if await app.db.value("select count(*) from effects where queue = 'work' and number = :n", n=part.number):
                self.write("other", part.number)

        app.events.subscribe(lambda event: self.troubles.append(event.error), to=StoreFailed)

    async def before(self) -> str:
        return "done"

    def write(self, queue: str, number: int) -> None:
        self.app.db.write(WRITE, queue=queue, number=number)

    def count(self, transaction: Transaction, number: int) -> None:
        found = transaction.value("select count(*) from effects where queue = 'atomic' and number = :n", n=number)
        transaction.write(WRITE, queue="atomic", number=number + 1_000_000 * found)

    async def day(self, number: int) -> None:
        """Sends one part and works until nothing is left; started again where it gave up, as a supervisor would."""
        sent = False
        for _ in range(STARTS_MAX):
            try:
                async with self.app:
                    if not sent:
                        async with self.app.unit(key=f"part {number}"):
                            self.write("sent", number)
                            self.work.send(Part(number=number))
                        sent = True
                    await self.app.run(until_idle=True)
                return
            except StoreError as error:
                self.troubles.append(f"started again: {error}")
        raise AssertionError(f"it gave up {STARTS_MAX} times: {self.troubles}")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresCrashDatabase]:
    monkeypatch.setenv(SOCKETS_VARIABLE, str(tmp_path))
    database = PostgresCrashDatabase(tmp_path)
    yield database
    database.close()


@pytest.mark.fault("F24")
@sampled("fault", FAULTS, every=4)
def test_a_fault_at_any_statement_changes_nothing_of_what_happens(
    fault: str,
    database: PostgresCrashDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    note: Callable[[str], None],
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    injector = Injector(database.address)
    oracle = Oracle(database)
    try:
        asyncio.run(Workshop(injector.url).day(0))  # applies migrations, and prepares nothing to be counted
        injector.arm(0, "")
        asyncio.run(Workshop(injector.url).day(1))
        statements = injector.seen
        tried = range(1, statements + 1)
        chosen = tried if EVERYTHING else sorted(Random(seed).sample(tried, SAMPLE))
        again = 0

        for number, nth in enumerate(chosen, start=2):
            workshop = Workshop(injector.url)
            injector.arm(nth, fault)
            asyncio.run(workshop.day(number))

            again += any(trouble.startswith("started again") for trouble in workshop.troubles)
            happened = {name: found[number] for name, found in oracle.effects().items()}
            where = f"statement {nth}, {injector.struck!r}; {workshop.troubles}"
            assert happened == dict.fromkeys(Workshop.EFFECTS, 1), where
            assert oracle.unbalanced() == [], where
            assert oracle.left() == 0, where
            assert oracle.dead() == [], where
    finally:
        injector.close()
    effects = oracle.effects()
    assert all(count == 1 for found in effects.values() for count in found.values()), Counter(effects)
    note(
        f"{fault} at {len(chosen)} of {statements} statements: same effects; {again} times the app had to be started again"
    )
