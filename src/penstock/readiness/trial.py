"""A trial: the same few items are followed through every stage before an app is let loose on the world.

It asks each stage what has become of these very items. What a stage has made of others, or long ago, proves nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from penstock.model.arguments import Count, checked
from penstock.model.errors import BadApp
from penstock.model.times import parse_span
from penstock.objects.namespace import MAIN, Namespace
from penstock.objects.object import Object
from penstock.runtime.audit import audit, record
from penstock.runtime.unit import current_unit

ITEMS = 10
LOOKS = 200  # how often a stage is asked, at most, in the time it has

Question = Callable[[list[Any]], Awaitable[Sequence[Any]]]
Push = Callable[[list[Any]], Awaitable[object]]
Wait = Callable[[float], Awaitable[object]]
Tell = Callable[["Passed"], object]


class Stage(NamedTuple):
    """`question` is given the items and answers with those that have come through. Until `least` of them have it is asked
    again, for `within_seconds`. `push` is called once before, for a stage that would begin only hours later."""

    name: str
    question: Question
    push: Push | None
    within_seconds: float
    least: int


class Passed(NamedTuple):
    """What became of the items in one stage."""

    stage: str
    passed: bool
    items: int
    of: int
    least: int


class TrialRecord(Object, singleton=True):
    """When the last trial of this database passed."""

    passed_at: str | None = None

    async def note(self, at: str) -> None:
        self.passed_at = at
        unit = current_unit.get()
        assert unit is not None  # an event of an object is one
        record(unit, audit(unit.engine, "trial", "database", MAIN, passed_at=at))

    async def read(self) -> str | None:
        return self.passed_at


class Trial:
    """Declared beside the app: `trial = app.trial`, then `@trial.stage("crawl", within="30m")` above a question."""

    def __init__(
        self, register: Callable[[type[TrialRecord]], Namespace[TrialRecord]], now: Callable[[], Awaitable[str]]
    ) -> None:
        self.stages: list[Stage] = []
        self._register = register
        self._now = now
        self._records: Namespace[TrialRecord] | None = None

    def __bool__(self) -> bool:
        return bool(self.stages)

    @checked
    def stage(
        self, name: str, *, within: str, push: Push | None = None, least: Count | None = None
    ) -> Callable[[Question], Question]:
        """The next stage that the items go through. The first one is asked with no items: what it answers with are the
        items that are followed. It has passed when `least` of the items have, all of them by default."""
        if any(each.name == name for each in self.stages):
            raise BadApp(f"The trial has two stages called {name!r}.", name=name)

        def add(question: Question) -> Question:
            self.stages.append(Stage(name, question, push, parse_span(within), ITEMS if least is None else least))
            return question

        return add

    def record(self) -> TrialRecord:
        """Return the record of the app's database. An app that requires a trial registers it before it opens."""
        if self._records is None:
            self._records = self._register(TrialRecord)
        return self._records[MAIN]

    async def has_passed(self) -> bool:
        """Return whether a trial of this database has passed."""
        return await self.record().read() is not None

    async def note_passed(self) -> None:
        """Record that a trial has passed."""
        await self.record().note(await self._now())

    async def follow(self, wait: Wait, tell: Tell, *, items: int = ITEMS) -> list[Passed]:
        """Follow the items through the stages. A stage that fails is the last."""
        followed: list[Any] = []
        results: list[Passed] = []
        for stage in self.stages:
            if stage.push is not None:
                await stage.push(followed)
            least = min(stage.least, items)
            through: list[Any] = []
            for _ in range(LOOKS):
                found = list(await stage.question(followed))
                through = found[:items] if not followed else [each for each in followed if each in set(found)]
                if len(through) >= least:
                    break
                await wait(stage.within_seconds / LOOKS)
            result = Passed(stage.name, len(through) >= least, len(through), len(followed) or items, least)
            results.append(result)
            tell(result)
            if not result.passed:
                break
            followed = followed or through
        return results
